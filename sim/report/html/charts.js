// Charts: curves with bands, ceilings as named lines, values under the pointer and the arrow keys.
const DASHES = ["", "7 2.5", "8 2.5 2 2.5", "2.5 2.5", "12 3", "4 2 1 2 1 2", "1.5 4"];
const THETA = { mcf: "", mcf_paths: "8 4", split: "2 3" };
const MARKERS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.6-3.6h7.2v7.2h-7.2Z", "M0-4.6L4.3 3.4H-4.3Z", "M0-4.9L4.4 0L0 4.9L-4.4 0Z",
  "M0 4.6L4.3-3.4H-4.3Z", "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z", "M-4.4-2.4L-2.4-4.4L0-2L2.4-4.4L4.4-2.4L2 0L4.4 2.4L2.4 4.4L0 2L-2.4 4.4L-4.4 2.4L-2 0Z",
  "M-4.6 0L3.4-4.3V4.3Z",
];
const FIRST = 12; // curves that are shown to begin with; the legend says which others there are
const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10]; // first digits of round numbers
const FAR = 2.5; // ceilings further right than this many times the largest measured traffic are named at the edge
const MOST_MARKED = 60; // curves of more points than this are lines without markers

const colour = (look) => `var(--c${look % 7})`;
const shared = new Map(); // key of a scenario -> whether it is shown, in all charts

function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function logTicks(low, high) {
  const found = [], wide = high / low > 500;
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++)
    for (const m of wide ? [1] : high / low > 8 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7])
      if (m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) found.push(m * 10 ** p);
  return found;
}

function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return ROUND.map((digit) => digit * power).find((round) => round >= value * (1 - 1e-9));
}

// A scale: at(value) in 0 .. 1, its ticks, and for a knee where the logarithmic part begins: a round number from three
// times the latency at zero load on, whatever else was measured.
function scaleOf(kind, values, zero, count, idle = null) {
  let low = Math.min(...values), high = Math.max(...values);
  if (kind === "log" && low > 0) {
    const span = Math.max(high / low, 1.5);
    [low, high] = [low / span ** 0.06, high * span ** 0.06];
    return { at: (v) => Math.log(v / low) / Math.log(high / low), ticks: logTicks(low, high) };
  }
  if (kind === "knee" && low > 0) {
    let knee = roundUp(3 * (idle || low));
    if (low > knee) knee = roundUp(1.2 * low);
    if (high <= knee) return { at: (v) => v / knee, ticks: ticks(0, knee, count) };
    {
      const top = Math.max(2 * knee, 1.4 * high), share = 0.7;
      const upper = logTicks(2.2 * knee, top), most = Math.ceil(upper.length / 4);
      return {
        at: (v) => (v <= knee ? (share * v) / knee : share + ((1 - share) * Math.log(v / knee)) / Math.log(top / knee)),
        ticks: ticks(0, knee, 5).concat(upper.filter((_, i) => i % most === 0)), knee,
      };
    }
  }
  if (zero || low > high / 2 && low > 0 && kind === "knee") low = Math.min(0, low);
  const pad = 0.06 * (high - low || Math.abs(high) || 1);
  high += pad;
  if (low !== 0) low -= pad;
  const found = ticks(low, high, count);
  return { at: (v) => (v - low) / (high - low), ticks: kind === "whole" ? found.filter(Number.isInteger) : found };
}

class Chart {
  constructor(figure, spec, page) {
    Object.assign(this, { figure, page, own: new Map(), point: null, identity: `chart-${spec.name}` });
    this.box = put(figure, "div");
    this.legend = put(figure, "ul", { class: "legend", "aria-label": "Curves" });
    this.aside = put(figure, "p", { class: "soft aside" });
    this.tip = put(figure, "div", { class: "tip", hidden: "" });
    this.live = put(figure, "p", { class: "unseen", "aria-live": "polite" });
    figure.insertBefore(this.box, figure.querySelector("figcaption"));
    figure.insertBefore(this.legend, figure.querySelector("figcaption"));
    figure.insertBefore(this.aside, figure.querySelector("figcaption"));
    figure.classList.add("ready");
    this.update(spec);
    choice.on(() => this.draw());
    this.width = 0;
    const resized = () => { if (Math.abs(this.box.clientWidth - this.width) > 4) this.draw(); };
    new ResizeObserver(() => requestAnimationFrame(resized)).observe(this.box);
  }

  update(spec) {
    this.spec = spec;
    const states = spec.shared === false ? this.own : shared;
    spec.series.forEach((line) => { if (!states.has(line.key)) states.set(line.key, states.size < FIRST); });
    this.draw();
  }

  states() { return this.spec.shared === false ? this.own : shared; }
  lines() { return this.spec.series.filter((line) => this.states().get(line.key)); }

  factor(axis) {
    if (!this.page.inTime || !axis.unit) return 1;
    return axis.unit === "time" ? this.page.time : 1 / this.page.time;
  }

  label(axis) {
    const time = this.page.inTime ? this.page.unit : "ticks", rate = this.page.inTime ? `flit/${this.page.unit}/host` : "flit/tick/host";
    return axis.unit ? `${axis.label} (${axis.unit === "time" ? time : rate})` : axis.label;
  }

  draw() {
    const { spec, box } = this, lines = this.lines();
    this.drawLegend();
    box.textContent = "";
    this.tip.hidden = true;
    this.point = null;
    const width = (this.width = Math.max(box.clientWidth || 460, 260)), height = Math.round(Math.min(Math.max(0.62 * width, 230), 380));
    const svg = (this.svg = put(box, "svg", {
      class: "plot", viewBox: `0 0 ${width} ${height}`, tabindex: "0", role: "group", "aria-roledescription": "interactive chart",
      "aria-label": `${spec.title}: ${this.label(spec.y)} over ${this.label(spec.x)}, ${lines.length} curves. Arrow keys move from value to value.`,
    }));
    const fx = this.factor(spec.x), fy = this.factor(spec.y);
    const xs = lines.flatMap((line) => line.x.filter((x, i) => x !== null && line.y[i] !== null)), measured = Math.max(...xs, 0);
    const ys = lines.flatMap((line) => line.y.filter((y) => y !== null && (spec.y.scale === "linear" || y > 0)));
    if (!xs.length || !ys.length) { put(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No curve is shown"); return; }
    const marks = (spec.marks || []).filter((m) => !m.keys.length || m.keys.some((key) => this.states().get(key)));
    const near = marks.filter((m) => m.upper <= FAR * measured), far = marks.filter((m) => !near.includes(m));
    const totals = (spec.totals || []).filter((t) => !t.keys.length || t.keys.some((key) => this.states().get(key)));
    const loads = spec.x.unit === "rate", zero = spec.shared !== false;
    const high = spec.y.scale === "linear" ? lines.flatMap((l) => l.y.map((y, i) => Math.min(y + (l.half[i] || 0), 1.3 * Math.max(...ys)))).concat(totals.flatMap((t) => t.y.filter((_, i) => t.x[i] <= 1.06 * measured))) : [];
    const ends = spec.ends || { x: [], y: [] };
    const X = scaleOf(spec.x.scale, [...xs, ...ends.x, ...near.map((m) => m.upper), ...(loads || (zero && spec.x.scale !== "log") ? [0] : [])].map((v) => v * fx), zero, Math.max(3, Math.floor(width / 85)));
    const inY = ends.y.filter((y) => spec.y.scale === "linear" || y > 0);
    const Y = scaleOf(spec.y.scale, [...ys, ...inY, ...high.filter(Number.isFinite)].map((v) => v * fy), zero, 6, spec.y.zero && spec.y.zero * fy);
    const yNames = Y.ticks.map((t) => format(t));
    const left = 30 + 6.6 * Math.max(...yNames.map((t) => t.length)), right = width - 10, top = 10, bottom = height - 44;
    const px = (v) => left + (right - left) * X.at(v * fx), py = (v) => bottom - (bottom - top) * Y.at(v * fy);
    this.place = { px, py, left, right, top, bottom };
    if (Y.knee) {
      const y = bottom - (bottom - top) * Y.at(Y.knee);
      put(svg, "rect", { class: "log", x: left, y: top, width: right - left, height: y - top });
      put(svg, "text", { class: "small", x: left + 5, y: y - 5 }, "log scale");
    }
    for (const t of X.ticks) {
      const x = left + (right - left) * X.at(t);
      put(svg, "path", { class: "grid", d: `M${x} ${top}V${bottom}` });
      put(svg, "text", { x, y: bottom + 16, "text-anchor": "middle" }, format(t));
    }
    Y.ticks.forEach((t, i) => {
      const y = bottom - (bottom - top) * Y.at(t);
      put(svg, "path", { class: "grid", d: `M${left} ${y}H${right}` });
      put(svg, "text", { x: left - 6, y: y + 4, "text-anchor": "end" }, yNames[i]);
    });
    put(svg, "path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` });
    put(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, this.label(spec.x));
    put(svg, "text", { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, this.label(spec.y));
    const clip = put(svg, "clipPath", { id: `${this.identity}-clip` });
    put(clip, "rect", { x: left, y: top, width: right - left, height: bottom - top });
    const inner = put(svg, "g", { "clip-path": `url(#${this.identity}-clip)` });
    if (spec.diagonal) put(inner, "path", { class: "diagonal", d: `M${px(0)} ${py(0)}L${px(10)} ${py(10)}` });
    totals.forEach((t) => put(inner, "path", { class: "total", d: `M${t.x.map((x, i) => `${px(x)} ${py(t.y[i])}`).join("L")}` }));
    if (totals.length) this.nameTotal(svg, totals[0]);
    lines.forEach((line) => this.drawLine(inner, line));
    const homeless = this.drawMarks(svg, near).concat(far.map((m) => `${this.markName(m)} at ${format(m.upper * fx)}, beyond the axis`));
    this.aside.textContent = homeless.length ? `Ceilings not named above: ${homeless.join("; ")}.` : "";
    this.halo = put(svg, "circle", { class: "halo", r: 8, visibility: "hidden" });
    svg.addEventListener("pointermove", (event) => this.near(event));
    svg.addEventListener("pointerdown", (event) => this.near(event));
    svg.addEventListener("pointerleave", () => this.show(null));
    svg.addEventListener("keydown", (event) => this.key(event));
    svg.addEventListener("blur", () => this.show(null));
  }

  nameTotal(svg, total) {
    const { px, py, left, right, top, bottom } = this.place, last = total.x.findLastIndex((x, i) => px(x) <= right && py(total.y[i]) >= top);
    if (last >= 0) put(svg, "text", { class: "name", x: Math.min(px(total.x[last]), right) - 6, y: Math.max(py(total.y[last]) - 6, top + 10), "text-anchor": px(total.x[last]) - left < 60 ? "start" : "end" }, "total");
  }

  drawLine(svg, line) {
    const { px, py, bottom } = this.place, paint = colour(line.look);
    const known = line.x.map((_, i) => i).filter((i) => line.x[i] !== null && line.y[i] !== null && (this.spec.y.scale !== "log" || line.y[i] > 0));
    if (!known.length) return;
    const at = (i, by = 0) => `${px(line.x[i]).toFixed(1)} ${py(Math.max(line.y[i] + by, this.spec.y.scale === "log" ? line.y[i] / 10 : 0)).toFixed(1)}`;
    if (line.half.length) {
      const low = known.map((i) => at(i, -(line.half[i] || 0))), high = known.map((i) => at(i, line.half[i] || 0));
      put(svg, "path", { class: "band", d: `M${high.join("L")}L${low.reverse().join("L")}Z`, style: `fill:${paint}` });
    }
    let path = `M${known.map((i) => at(i)).join("L")}`;
    if (this.spec.step) {
      const half = (px(line.x[1]) - px(line.x[0])) / 2;
      path = `M${(px(line.x[0]) - half).toFixed(1)} ${bottom}` + known.map((i) => `V${py(line.y[i]).toFixed(1)}H${(px(line.x[i]) + half).toFixed(1)}`).join("") + `V${bottom}`;
    }
    (line.low || []).forEach((low, i) => { if (low !== null) put(svg, "path", { d: `M${px(line.x[i])} ${py(low)}V${py(line.high[i])}`, style: `stroke:${paint};stroke-width:1` }); });
    if (!line.apart) put(svg, "path", { class: "curve", d: path, style: `stroke:${paint}`, "stroke-dasharray": DASHES[line.dash % DASHES.length] });
    if (this.spec.lines || this.spec.step || (known.length > MOST_MARKED && !line.apart)) return;
    const hollow = new Set(line.hollow);
    for (const i of known) put(svg, "path", { d: MARKERS[line.look % MARKERS.length], transform: `translate(${at(i)})`, style: `stroke:${paint};stroke-width:1.6;fill:${hollow.has(i) ? "var(--paper)" : paint}` });
  }

  markName(mark) {
    if (!mark.keys.length) return mark.name;
    const names = mark.keys.map((key) => (this.spec.series.find((line) => line.key === key) || {}).name).filter(Boolean);
    return names.length && names.length <= 2 && names.join().length < 30 ? `${mark.name} (${names.join(", ")})` : `${mark.name} (${mark.keys.length} of ${this.spec.series.length})`;
  }

  // Where the markers of curves are, which no name may cover.
  markers() {
    const { px, py, top } = this.place;
    return this.lines().flatMap((line) => line.x.map((x, i) => [x, line.y[i]]).filter(([x, y]) => x !== null && y !== null).map(([x, y]) => [px(x), Math.max(py(y), top)]));
  }

  // Ceilings: a line each, and a name beside it where nothing else is; what finds no room is told below the chart.
  drawMarks(svg, marks) {
    const { px, top, bottom, left, right } = this.place, fx = this.factor(this.spec.x), taken = [], points = this.markers(), homeless = [];
    for (const mark of [...marks].sort((a, b) => a.upper - b.upper)) {
      const x = px(mark.upper), group = put(svg, "g"), text = this.markName(mark), length = 6 * text.length + 6;
      const paint = mark.keys.length === 1 ? `stroke:${colour(mark.keys[0])}` : "";
      put(group, "title", {}, `${text}: ${format(mark.lower * fx)} to ${format(mark.upper * fx)}, ${mark.method}`);
      if (mark.range) put(group, "rect", { class: "interval", x: px(mark.range[0]), y: top, width: px(mark.range[1]) - px(mark.range[0]), height: bottom - top, style: "opacity:.08" });
      put(group, "rect", { class: "interval", x: px(mark.lower), y: top, width: Math.max(x - px(mark.lower), 0), height: bottom - top });
      put(group, "path", { class: "theta", d: `M${x} ${top}V${bottom}`, "stroke-dasharray": THETA[mark.name] || "", style: paint });
      const place = this.roomFor(x, length, taken, points);
      if (!place) { homeless.push(`${text} at ${format(mark.upper * fx)}`); continue; }
      taken.push(place);
      put(group, "text", { class: "name", transform: `translate(${place.at} ${place.start}) rotate(-90)`, "text-anchor": "end" }, text);
    }
    return homeless;
  }

  // A free place for an upright name left or right of a line at x.
  roomFor(x, length, taken, points) {
    const { top, bottom, left, right } = this.place;
    for (let start = top + 4; start + length <= bottom - 2; start += 8)
      for (const at of [x - 4, x + 12]) {
        if (at - 11 < left || at + 2 > right) continue;
        const free = taken.every((t) => Math.abs(t.at - at) >= 13 || start >= t.end || start + length <= t.start);
        if (free && points.every(([px, py]) => px < at - 16 || px > at + 8 || py < start - 6 || py > start + length + 6)) return { at, start, end: start + length };
      }
    return null;
  }

  drawLegend() {
    const { spec, legend } = this, states = this.states(), focused = legend.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    legend.textContent = "";
    const seen = new Map();
    spec.series.forEach((line) => { if (!seen.has(line.key)) seen.set(line.key, line); });
    const several = spec.series.length > seen.size;
    legend.hidden = seen.size < 2;
    if (legend.hidden) return;
    const toggle = (keys, on) => { keys.forEach((key) => states.set(key, on)); spec.shared === false ? this.draw() : choice.tell(); };
    for (const [key, line] of seen) {
      const item = put(legend, "li"), button = put(item, "button", { type: "button", "aria-pressed": String(states.get(key)), "data-key": key });
      const sample = put(button, "svg", { viewBox: "0 0 34 14", "aria-hidden": "true" });
      put(sample, "path", { d: "M1 7H33", style: `stroke:${colour(line.look)};stroke-width:1.8`, "stroke-dasharray": DASHES[(several ? 0 : line.dash) % DASHES.length] });
      if (!spec.lines && !spec.step) put(sample, "path", { d: MARKERS[line.look % MARKERS.length], transform: "translate(17 7)", style: `fill:${colour(line.look)}` });
      put(button, "span", {}, several ? line.name.split(", ").slice(0, -1).join(", ") || line.name : line.name);
      button.addEventListener("click", () => toggle([key], !states.get(key)));
      if (String(key) === focused) button.focus();
    }
    const shown = [...seen.keys()].filter((key) => states.get(key)).length;
    if (shown < seen.size) put(legend, "li", { class: "soft" }, `${shown} of ${seen.size} curves are shown`);
    if (seen.size > 4) {
      const some = [...seen.keys()].some((key) => !states.get(key)), button = put(put(legend, "li"), "button", { type: "button" }, some ? "all" : "none");
      button.addEventListener("click", () => toggle([...seen.keys()], some));
    }
  }

  near(event) {
    const frame = this.svg.getBoundingClientRect(), scale = this.width / frame.width;
    const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
    let best = null, least = 45 ** 2;
    this.lines().forEach((line, s) => line.x.forEach((value, i) => {
      if (value === null || line.y[i] === null) return;
      const away = (this.place.px(value) - x) ** 2 + 0.6 * (this.place.py(line.y[i]) - y) ** 2;
      if (away < least) { least = away; best = [s, i]; }
    }));
    this.show(best);
  }

  key(event) {
    const lines = this.lines(), steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e9], End: [0, 1e9] };
    if (event.key === "Escape") this.show(null);
    if (!(event.key in steps) || !lines.length) return;
    event.preventDefault();
    const [ds, di] = steps[event.key], [s, i] = this.point || [0, -di];
    const line = (s + ds + lines.length) % lines.length;
    this.show([line, Math.min(Math.max(i + di, 0), lines[line].x.length - 1)], true);
  }

  show(point, aloud = false) {
    this.point = point;
    if (!point || !this.place) { this.tip.hidden = true; if (this.halo) this.halo.setAttribute("visibility", "hidden"); return; }
    const [s, i] = point, line = this.lines()[s], { spec } = this, fx = this.factor(spec.x), fy = this.factor(spec.y);
    const x = this.place.px(line.x[i]), y = Math.max(this.place.py(line.y[i]), this.place.top);
    const half = line.half[i] ? ` ± ${format(line.half[i] * fy, 2)}` : "", rows = [];
    if (line.load) rows.push(`load ${format(line.load[i])}${line.hollow.includes(i) ? ", past saturation" : ""}`);
    rows.push(`${this.label(spec.y)}: ${format(line.y[i] * fy)}${half}`, `${this.label(spec.x)}: ${format(line.x[i] * fx)}`);
    if (line.seeds && line.seeds[i] > 1) rows.push(`mean of ${line.seeds[i]}`);
    if (line.low && line.low[i] !== null) rows.push(`draws from ${format(line.low[i] * fy)} to ${format(line.high[i] * fy)}`);
    this.halo.setAttribute("cx", x); this.halo.setAttribute("cy", y); this.halo.setAttribute("visibility", "visible");
    this.tip.textContent = "";
    put(this.tip, "strong", {}, line.name);
    put(this.tip, "span", {}, rows.join("\n"));
    this.tip.hidden = false;
    const frame = this.svg.getBoundingClientRect(), outer = this.figure.getBoundingClientRect(), scale = frame.width / this.width;
    const leftOf = x * scale + this.tip.offsetWidth + 18 > frame.width;
    this.tip.style.left = `${Math.max(frame.left - outer.left + x * scale + (leftOf ? -this.tip.offsetWidth - 12 : 12), 0)}px`;
    this.tip.style.top = `${frame.top - outer.top + Math.max(y * scale - this.tip.offsetHeight - 10, 0)}px`;
    if (aloud) this.live.textContent = `${line.name}; ${rows.join("; ")}`;
  }
}
