// Inside the network: a map whose channels are coloured by use, its distribution, path lengths, the channels used most.
const LIGHT = ["#dfe3ea", "#fbc06a", "#e8603c", "#97216b", "#1b0c41"], DARK = ["#343b46", "#7a2482", "#d8433e", "#fba238", "#fcf5a6"];
const TABLE = 12; // channels in the table
const nameOf = (map, v) => String(map.names.length ? map.names[v] : v);

function ramp(share) {
  const stops = dark() ? DARK : LIGHT, at = Math.min(Math.max(share, 0), 1) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  const parse = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)), a = parse(stops[i]), b = parse(stops[i + 1]);
  return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (at - i))).join(" ")})`;
}

class Inside {
  constructor(root, data, page) {
    Object.assign(this, { root, data, page, scenario: 0, what: "use", chosen: null });
    this.loads = [...new Set(data.scenarios.flatMap((s) => s.states.map((state) => state.load)))].sort((a, b) => a - b);
    const calm = this.loads.filter((load) => data.scenarios.some((s) => s.states.some((state) => state.load === load && !state.saturated)));
    this.load = calm.length ? calm[calm.length - 1] : this.loads[0];
    if (!this.loads.length) this.what = "optimum";
    this.controls();
    const pair = put(root, "div", { class: "pair" }), figure = put(pair, "figure");
    put(figure, "h3", {}, "Map of the channels");
    this.map = put(figure, "div");
    this.tip = put(figure, "div", { class: "tip", hidden: "" });
    this.caption = put(figure, "figcaption");
    this.side = put(pair, "div");
    this.charts = {};
    this.below = put(root, "div", { class: "figures" });
    this.draw();
    choice.on(() => this.drawMap());
  }

  state(scenario, load = this.load) {
    return scenario.states.reduce((best, state) => (!best || Math.abs(state.load - load) < Math.abs(best.load - load) ? state : best), null);
  }

  controls() {
    const bar = put(this.root, "div", { class: "controls" }), { data } = this;
    if (data.scenarios.length > 1) {
      const select = put(put(bar, "label", {}, "Scenario"), "select");
      data.scenarios.forEach((s, i) => put(select, "option", { value: i }, s.name));
      select.addEventListener("change", () => { this.scenario = Number(select.value); this.chosen = null; this.draw(); });
    }
    if (this.loads.length > 1) {
      const label = put(bar, "label", {}, "Load"), range = put(label, "input", { type: "range", min: 0, max: this.loads.length - 1, step: 1, value: this.loads.indexOf(this.load) });
      const told = put(label, "output"), tell = () => { told.textContent = format(this.load); range.setAttribute("aria-valuetext", `load ${format(this.load)}`); };
      range.addEventListener("input", () => { this.load = this.loads[Number(range.value)]; tell(); this.draw(); });
      tell();
    }
    const kinds = [["use", "use in the simulation", this.loads.length], ["optimum", "use in the optimum (mcf)", data.scenarios.some((s) => s.optimum)], ["price", "where the optimum binds", data.scenarios.some((s) => s.price)]].filter((kind) => kind[2]);
    if (kinds.length > 1) {
      const select = put(put(bar, "label", {}, "Colour"), "select");
      kinds.forEach(([value, text]) => put(select, "option", { value }, text));
      select.addEventListener("change", () => { this.what = select.value; this.draw(); });
    }
  }

  values(scenario, what = this.what) {
    const state = this.state(scenario), text = what === "use" ? state && state.use : scenario[what];
    return text ? Array.from(bytes(text), (v) => v / this.data.levels) : null;
  }

  draw() {
    this.drawMap();
    this.drawTable();
    this.drawDistributions();
  }

  drawMap() {
    const scenario = this.data.scenarios[this.scenario], map = this.data.maps[scenario.map], values = this.values(scenario);
    this.map.textContent = "";
    this.tip.hidden = true;
    if (!values) { this.caption.textContent = "Not known of this scenario."; return; }
    const svg = put(this.map, "svg", { class: "plot", role: "img", "aria-label": `Map of ${map.n} switches and ${map.src.length} channels` });
    this.links = [];
    map.style === "matrix" ? this.drawMatrix(svg, map, values) : this.drawGraph(svg, map, values);
    this.drawScale(svg);
    const words = { use: "how much of its capacity a channel carries in the simulation", optimum: "how much of its capacity a channel carries in the optimal flow", price: "its price in the certificate, of channels that bind" };
    const state = this.state(scenario), at = this.what === "use" ? `${this.loads.length > 1 ? ` at load ${format(state.load)}` : ""}${state.saturated ? " (past saturation)" : ""}, mean ${format(state.mean, 3)}` : "";
    this.caption.textContent = `Colour and width: ${words[this.what]}${at}. ${map.style === "matrix" ? "A point per channel, from row to column." : "A channel bends to its right, so that both ways of a link are seen."}`;
    if (this.chosen !== null) this.choose(this.chosen);
  }

  drawGraph(svg, map, values) {
    const xs = map.xy.map((p) => p[0]), ys = map.xy.map((p) => p[1]), span = Math.max(Math.max(...xs), Math.max(...ys), 1);
    let apart = Infinity;
    const sorted = [...map.xy].sort((a, b) => a[0] - b[0]);
    sorted.forEach((a, i) => { for (let j = i + 1; j < sorted.length && sorted[j][0] - a[0] < apart; j++) apart = Math.min(apart, Math.hypot(a[0] - sorted[j][0], a[1] - sorted[j][1])); });
    const radius = Math.min(34, Math.max(4, 0.3 * Math.min(apart, 200))), pad = radius + 25;
    svg.setAttribute("viewBox", `${-pad} ${-pad} ${Math.max(...xs) + 2 * pad} ${Math.max(...ys) + 2 * pad + 95}`);
    this.foot = { x: -pad + 10, y: Math.max(...ys) + pad + 20, width: Math.max(...xs) + 2 * pad - 20, size: span / 1000 };
    const order = values.map((_, c) => c).sort((a, b) => values[a] - values[b]), wide = Math.min(1, 10 / Math.sqrt(values.length)), round = map.style === "circular";
    const group = put(svg, "g");
    for (const c of order) {
      const [ax, ay] = map.xy[map.src[c]], [bx, by] = map.xy[map.dst[c]], dx = bx - ax, dy = by - ay, long = Math.hypot(dx, dy) || 1;
      const past = map.style === "grid" && long > 1.5 * apart; // past other switches of its row
      const bend = round ? Math.min(0.12 * long, 60) : past ? 1.1 * radius + 0.12 * long : Math.min(0.09 * long, 26) + 3, mx = (ax + bx) / 2 - (dy / long) * bend, my = (ay + by) / 2 + (dx / long) * bend;
      const path = put(group, "path", { class: "link", d: `M${ax} ${ay}Q${mx.toFixed(1)} ${my.toFixed(1)} ${bx} ${by}`, style: `stroke:${ramp(values[c])};stroke-width:${((1.6 + 6 * values[c]) * wide).toFixed(2)}` });
      this.links[c] = path;
      if (!map.one_way[c]) continue;
      const s = Math.max(1 - (1.7 * radius) / long, 0.5), at = [[ax, mx, bx], [ay, my, by]].map(([p, q, r]) => (1 - s) ** 2 * p + 2 * s * (1 - s) * q + s * s * r);
      put(group, "path", { d: arrowHead(...at, bx + s * (mx - bx) - mx, by + s * (my - by) - my, Math.max(0.3 * radius, 5)), style: `fill:${ramp(values[c])};pointer-events:none` });
    }
    const nodes = put(svg, "g");
    map.xy.forEach(([x, y], v) => {
      const node = put(nodes, "circle", { cx: x, cy: y, r: radius, style: "fill:var(--switch)" });
      put(node, "title", {}, `switch ${nameOf(map, v)}, ${map.hosts[v]} hosts`);
      if (radius >= 11) {
        const name = nameOf(map, v), inside = name.length <= 3, size = radius * (inside && map.n > 99 ? 0.85 : inside ? 1.05 : 0.9);
        const style = inside ? "fill:var(--on-switch)" : "fill:var(--ink);stroke:var(--paper);stroke-width:6;paint-order:stroke";
        put(nodes, "text", { x, y: y + (inside ? radius * 0.36 : radius + size), "text-anchor": "middle", style: `${style};font-size:${size}px;pointer-events:none` }, name);
      }
    });
    this.listen(group, map, values);
  }

  drawMatrix(svg, map, values) {
    svg.setAttribute("viewBox", "-20 -20 1040 1135");
    this.foot = { x: 0, y: 1050, width: 1000, size: 1 };
    put(svg, "rect", { x: 0, y: 0, width: 1000, height: 1000, style: "fill:none;stroke:var(--line)" });
    const cell = 1000 / map.n, size = Math.max(cell, 2.2), group = put(svg, "g");
    values.map((_, c) => c).sort((a, b) => values[a] - values[b]).forEach((c) => {
      this.links[c] = put(group, "rect", { x: (map.dst[c] * cell).toFixed(1), y: (map.src[c] * cell).toFixed(1), width: size.toFixed(1), height: size.toFixed(1), style: `fill:${ramp(values[c])}` });
    });
    this.listen(group, map, values);
  }

  drawScale(svg) {
    const { x, y, width } = this.foot, steps = 40, text = `font-size:${Math.max(26, width / 38)}px`;
    const full = Math.min(width, 700), from = x + (width - full) / 2;
    for (let i = 0; i < steps; i++) put(svg, "rect", { x: from + (full * i) / steps, y, width: full / steps + 0.6, height: 16, style: `fill:${ramp((i + 0.5) / steps)}` });
    [0, 0.25, 0.5, 0.75, 1].forEach((v) => put(svg, "text", { x: from + full * v, y: y + 50, "text-anchor": "middle", style: text }, v));
  }

  listen(group, map, values) {
    const of = new Map(this.links.map((link, c) => [link, c]));
    group.addEventListener("pointerover", (event) => {
      const c = of.get(event.target);
      if (c === undefined) return;
      this.tip.textContent = "";
      put(this.tip, "strong", {}, `switch ${nameOf(map, map.src[c])} → ${nameOf(map, map.dst[c])}`);
      put(this.tip, "span", {}, `${this.what === "price" ? "price" : "utilisation"} ${format(values[c], 3)}`);
      this.tip.hidden = false;
      const frame = this.map.parentElement.getBoundingClientRect();
      this.tip.style.left = `${Math.min(event.clientX - frame.left + 12, frame.width - this.tip.offsetWidth)}px`;
      this.tip.style.top = `${event.clientY - frame.top + 12}px`;
    });
    group.addEventListener("pointerout", () => { this.tip.hidden = true; });
  }

  choose(channel) {
    this.links.forEach((link) => link.classList.remove("chosen"));
    this.chosen = channel;
    const link = this.links[channel];
    if (link) { link.classList.add("chosen"); link.parentNode.appendChild(link); }
  }

  drawTable() {
    const scenario = this.data.scenarios[this.scenario], map = this.data.maps[scenario.map], values = this.values(scenario);
    this.side.textContent = "";
    put(this.side, "h3", {}, "Bottleneck channels");
    if (!values) return;
    const columns = ["use", "optimum", "price"].map((what) => [what, this.values(scenario, what)]).filter((entry) => entry[1]);
    const wide = put(this.side, "div", { class: "wide" }), table = put(wide, "table"), row = put(put(table, "thead"), "tr");
    const heads = { use: "utilisation", optimum: "in the optimum", price: "relative price" };
    put(row, "th", { scope: "col", class: "text" }, "channel");
    columns.forEach(([what]) => put(row, "th", { scope: "col" }, heads[what]));
    const body = put(table, "tbody"), order = values.map((_, c) => c).sort((a, b) => values[b] - values[a] || a - b).slice(0, TABLE);
    for (const c of order) {
      const line = put(body, "tr"), cell = put(line, "td", { class: "text" }), button = put(cell, "button", { type: "button" }, `${nameOf(map, map.src[c])} → ${nameOf(map, map.dst[c])}`);
      columns.forEach(([, known]) => put(line, "td", {}, format(known[c], 3)));
      const mark = () => this.choose(c);
      line.addEventListener("pointerenter", mark);
      button.addEventListener("focus", mark);
      button.addEventListener("click", mark);
    }
    put(this.side, "p", { class: "soft" }, `The ${order.length} of ${values.length} channels with most of what the map shows; pointing at one, or stepping to it, marks it there. Channels with a price bind: no flow near the optimum leaves more than 5 % of one free.`);
  }

  drawDistributions() {
    const { data } = this, known = data.scenarios.filter((s) => s.states.length), line = (s, x, y) => ({ key: s.key, name: s.name, look: s.key, dash: s.key, x, y, half: [], hollow: [] });
    const bins = 20, at = this.loads.length > 1 ? ` at load ${format(this.load)}` : "";
    const use = known.map((s) => {
      const count = new Array(bins).fill(0), values = this.values(s, "use");
      values.forEach((v) => { count[Math.min(Math.floor(v * bins), bins - 1)] += 1 / values.length; });
      return line(s, count.map((_, i) => (i + 0.5) / bins), count);
    });
    this.chart("use", `Utilisation of channels${at}`, "utilisation of a channel", "share of channels", use, "In steps of 0.05.", { step: true });
    for (const [name, title, label] of [["hops", "Path lengths", "hops (channels between switches)"], ["deflections", "Deflections", "deflections of a packet"]]) {
      const series = known.map((s) => line(s, this.state(s)[name].map((p) => p[0]), this.state(s)[name].map((p) => p[1]))).filter((l) => l.x.length);
      const trivial = name === "deflections" && series.every((l) => l.x.length < 2);
      if (series.length && (!trivial || this.charts[name])) this.chart(name, `${title}${at}`, label, "share of packets", series, "Of the packets delivered in the window.", {});
    }
  }

  chart(name, title, x, y, series, note, more) {
    if (!series.length) return;
    const spec = { name: `inside-${name}`, title, x: { label: x, unit: "", scale: name === "use" ? "linear" : "whole" }, y: { label: y, unit: "", scale: "linear" }, series, ...more };
    if (this.charts[name]) { this.charts[name].figure.querySelector("h3").textContent = title; this.charts[name].update(spec); return; }
    const figure = put(this.below, "figure", { class: "chart" });
    put(figure, "h3", {}, title);
    put(figure, "figcaption", {}, note);
    this.charts[name] = new Chart(figure, spec, this.page);
  }
}
