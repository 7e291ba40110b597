// Plays a short run: where every packet is at a tick, what waits where, and the life of one packet.
const film = JSON.parse(document.getElementById("data").textContent), { map, ticks: end } = film;
const packets = film.packets.map(([id, source, target, flits, created, sent, delivered, stuck, visits]) => ({
  id, source, target, flits, created, sent, delivered, stuck,
  visits: visits.map(([at, channel, arrived, eligible, granted, tail, deflected]) => ({ at, channel, arrived, eligible, granted, tail, deflected })),
}));
const SPEEDS = [1, 2, 5, 10, 20, 50];
const begin = Math.min(...packets.map((packet) => packet.created), end - 1); // the first event; before it nothing moves
let now = begin, playing = false, followed = null, speed = 5, last = 0, clock = 0;

const paintOf = (packet) => colour(packet.id % 6);
const before = (tick, limit) => tick !== null && tick <= limit;

// The map: wires below, what is on them above, switches on top.
const stage = document.getElementById("stage"), pad = Math.max(map.radius, 20) + 10;
const all = map.xy.concat(map.hosts), wide = Math.max(...all.map((p) => p[0])), tall = Math.max(...all.map((p) => p[1]));
const svg = put(stage, "svg", { class: "plot", viewBox: `${-pad} ${-pad} ${wide + 2 * pad} ${tall + 2 * pad}`, role: "img", "aria-label": `Network of ${map.xy.length} switches` });
const wires = map.src.map((u, c) => {
  const [a, b] = [map.xy[u], map.xy[map.dst[c]]], dx = b[0] - a[0], dy = b[1] - a[1], long = Math.hypot(dx, dy) || 1, bend = Math.min(0.1 * long, 45);
  const middle = [(a[0] + b[0]) / 2 - (dy / long) * bend, (a[1] + b[1]) / 2 + (dx / long) * bend];
  put(svg, "path", { class: "wire", d: `M${a}Q${middle} ${b}` });
  const at = (s) => [0, 1].map((k) => (1 - s) ** 2 * a[k] + 2 * s * (1 - s) * middle[k] + s * s * b[k]);
  if (map.one_way[c]) {
    const near = Math.max(1 - (1.6 * map.radius) / long, 0.5), [x, y] = at(near), [px, py] = at(near - 0.02);
    put(svg, "path", { class: "head", d: arrowHead(x, y, x - px, y - py, Math.max(0.35 * map.radius, 7)) });
  }
  return at;
});
const straight = (a, b) => (s) => [0, 1].map((k) => a[k] + s * (b[k] - a[k]));
map.hosts.forEach((spot, h) => { const [x, y] = map.xy[map.home[h]]; put(svg, "path", { class: "stub", d: `M${x} ${y}L${spot}` }); });
const moving = put(svg, "g");
const hostDots = map.hosts.map(([cx, cy], h) => { const dot = put(svg, "circle", { cx, cy, r: 0.22 * map.radius, style: "fill:var(--soft)" }); put(dot, "title", {}, `host ${map.host_names[h]}`); return dot; });
const discs = map.xy.map(([cx, cy]) => put(svg, "circle", { cx, cy, r: map.radius, style: "fill:var(--panel);stroke:var(--switch);stroke-width:2" }));
const numbers = map.xy.map(([x, y], v) => {
  const size = Math.min(0.5, 2.6 / map.names[v].length) * map.radius;
  put(svg, "text", { x, y: y - map.radius * 0.3, "text-anchor": "middle", style: `fill:var(--soft);font-size:${size}px` }, map.names[v]);
  return put(svg, "text", { x, y: y + map.radius * 0.55, "text-anchor": "middle", style: `font-size:${map.radius * 0.85}px;font-weight:600` });
});
put(stage, "figcaption", {}, "In a switch: its name, and below how many packets wait in it (the fuller, the thicker the ring). A dot is a packet's head, the coloured wire behind it what its flits occupy; hosts grow with their source queues. A ring around a dot: it was deflected.");

function wireOf(visit, next) {
  if (next.channel !== null) return wires[next.channel];
  const found = map.src.findIndex((u, c) => u === visit.at && map.dst[c] === next.at);
  return found < 0 ? straight(map.xy[visit.at], map.xy[next.at]) : wires[found];
}

// The legs of a packet's way: from when its head leaves to when it arrives, and until when flits are on the wire.
for (const packet of packets) {
  const { visits } = packet, first = visits[0];
  packet.legs = [];
  if (first && packet.sent !== null) packet.legs.push({ way: straight(map.hosts[packet.source], map.xy[first.at]), from: packet.sent, to: first.arrived ?? end, clear: (first.arrived ?? end) + packet.flits - 1 });
  visits.forEach((visit, i) => {
    if (visit.granted === null) return;
    const next = visits[i + 1], flight = next && next.arrived !== null ? next.arrived - visit.granted : 3;
    const to = next ? (next.arrived ?? end) : visit.granted + 2, clear = visit.tail === null ? end : visit.tail + (next ? flight : 2);
    const way = next ? wireOf(visit, next) : straight(map.xy[visit.at], map.hosts[packet.target]);
    packet.legs.push({ way, from: visit.granted, to, clear: next ? clear : (packet.delivered ?? end), deflected: visit.deflected });
  });
}

// What waits where, at every tick.
const inSource = new Array(end).fill(0), inNetwork = new Array(end).fill(0);
for (const packet of packets) {
  for (let t = packet.created; t < Math.min(packet.sent ?? end, end); t++) inSource[t]++;
  if (packet.sent !== null) for (let t = packet.sent; t < Math.min(packet.delivered ?? end, end); t++) inNetwork[t]++;
}

function waitingAt(t) {
  const depth = new Array(map.xy.length).fill(0), queue = new Array(map.hosts.length).fill(0);
  for (const packet of packets) {
    if (packet.created > t || before(packet.delivered, t)) continue;
    if (!before(packet.sent, t)) { queue[packet.source]++; continue; }
    const visit = packet.visits.findLast((v) => before(v.arrived, t));
    if (visit && !before(visit.granted, t)) depth[visit.at]++;
  }
  return [depth, queue];
}

function drawPacket(packet, t) {
  const own = packet.legs.filter((leg) => leg.from <= t && t < leg.clear);
  if (!own.length) return;
  const paint = paintOf(packet), dim = followed && followed !== packet ? " faded" : "";
  for (const leg of own) {
    const head = Math.min((t - leg.from) / Math.max(leg.to - leg.from, 1), 1), tailFrom = leg.from + packet.flits - 1;
    const tail = leg.clear - leg.to > 0 ? Math.min(Math.max((t - Math.max(tailFrom, leg.clear - (leg.to - leg.from))) / Math.max(leg.to - leg.from, 1), 0), head) : 0;
    const points = [0, 0.25, 0.5, 0.75, 1].map((s) => leg.way(tail + s * (head - tail)).map((v) => v.toFixed(1)));
    put(moving, "path", { class: `busy${dim}`, d: `M${points.join("L")}`, style: `stroke:${paint}` });
    if (t > leg.to) continue;
    const [x, y] = leg.way(head), size = Math.max(0.24 * map.radius, 6);
    if (leg.deflected) put(moving, "circle", { cx: x, cy: y, r: size + 5, class: dim, style: `fill:none;stroke:${paint};stroke-width:2.5` });
    put(put(moving, "circle", { cx: x, cy: y, r: size, class: `flit${dim}${followed === packet ? " followed" : ""}`, style: `fill:${paint}` }), "title", {}, `packet ${packet.id}: host ${map.host_names[packet.source]} → ${map.host_names[packet.target]}`);
  }
}

function draw() {
  const t = Math.floor(now), [depth, queue] = waitingAt(t);
  moving.textContent = "";
  packets.forEach((packet) => { if (packet.created <= now) drawPacket(packet, now); });
  depth.forEach((count, v) => {
    numbers[v].textContent = count || "";
    discs[v].style.strokeWidth = 2 + Math.min(count, 12) * 0.05 * map.radius;
    discs[v].style.strokeDasharray = count ? "" : "3 3";
  });
  queue.forEach((count, h) => hostDots[h].setAttribute("r", (0.22 * map.radius * Math.sqrt(1 + count)).toFixed(1)));
  slider.value = t;
  slider.setAttribute("aria-valuetext", `tick ${t}: ${inSource[t]} packets at hosts, ${inNetwork[t]} in the network`);
  told.textContent = `tick ${t}`;
  drawDeepest(depth, queue);
  drawLife(t);
  drawCursor(t);
}

// Controls.
const controls = document.getElementById("controls");
const play = put(controls, "button", { type: "button" }, "Play");
const back = put(controls, "button", { type: "button", "aria-label": "One tick back" }, "◀ step"), forth = put(controls, "button", { type: "button", "aria-label": "One tick on" }, "step ▶");
const slider = put(put(controls, "label", { class: "wide-range" }, "Tick"), "input", { type: "range", min: 0, max: end - 1, step: 1, value: begin, style: "flex:1" });
const told = put(controls, "output");
const pace = put(put(controls, "label", {}, "Ticks a second"), "select");
SPEEDS.forEach((value) => put(pace, "option", value === speed ? { value, selected: "" } : { value }, value));

function stop() { playing = false; play.textContent = "Play"; }
function go(tick) { now = Math.min(Math.max(tick, 0), end - 1); draw(); }
function toggle() {
  if (playing) { stop(); return; }
  if (now >= end - 1) now = begin;
  playing = true; play.textContent = "Pause"; last = performance.now(); clock = requestAnimationFrame(frame);
}
function frame(time) {
  if (!playing) return;
  now += ((time - last) / 1000) * speed; last = time;
  if (now >= end - 1) { stop(); go(end - 1); return; }
  draw();
  clock = requestAnimationFrame(frame);
}
play.addEventListener("click", toggle);
back.addEventListener("click", () => { stop(); go(Math.ceil(now) - 1); });
forth.addEventListener("click", () => { stop(); go(Math.floor(now) + 1); });
slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
pace.addEventListener("change", () => { speed = Number(pace.value); });
document.addEventListener("keydown", (event) => {
  if (event.key === " " && !event.target.closest("button, select, summary")) { event.preventDefault(); toggle(); }
});

// Beside the map: the deepest queues, and the life of the packet that is followed.
const side = document.getElementById("side");
put(side, "h3", {}, "Deepest queues");
const deepest = put(side, "ul", { class: "facts" });
put(side, "h3", {}, "Follow a packet");
const choose = put(put(side, "label", {}, "Packet "), "select");
put(choose, "option", { value: "" }, "none");
packets.forEach((packet, i) => put(choose, "option", { value: i }, `${packet.id}: host ${map.host_names[packet.source]} → ${map.host_names[packet.target]}, tick ${packet.created}`));
const life = put(side, "div", { "aria-live": "off" });
choose.addEventListener("change", () => {
  followed = choose.value === "" ? null : packets[Number(choose.value)];
  showLife();
  if (followed) { stop(); go(followed.created); } else draw();
});

function drawDeepest(depth, queue) {
  const found = depth.map((count, v) => [count, `switch ${map.names[v]}`]).concat(queue.map((count, h) => [count, `host ${map.host_names[h]}`])).filter((entry) => entry[0] > 1);
  deepest.textContent = "";
  found.sort((a, b) => b[0] - a[0]).slice(0, 8).forEach(([count, name]) => put(deepest, "li", {}, `${name}: ${count}`));
  if (!found.length) put(deepest, "li", {}, "no packet waits behind another");
}

function eventsOf(packet) {
  const found = [[packet.created, `created at host ${map.host_names[packet.source]}`]];
  if (packet.sent !== null) found.push([packet.sent, "leaves the source queue"]);
  packet.visits.forEach((visit, i) => {
    const next = packet.visits[i + 1];
    if (visit.arrived !== null) found.push([visit.arrived, `head arrives at switch ${map.names[visit.at]}`]);
    if (visit.eligible !== null && visit.arrived !== null) found.push([visit.eligible, "may be granted"]);
    if (visit.granted !== null) found.push([visit.granted, `${visit.deflected ? "deflected" : "granted"} to ${next ? `switch ${map.names[next.at]}` : `host ${map.host_names[packet.target]}`}`]);
    if (visit.tail !== null) found.push([visit.tail, `tail leaves switch ${map.names[visit.at]}`]);
  });
  if (packet.delivered !== null) found.push([packet.delivered, `delivered, ${packet.delivered - packet.created} ticks after its creation`]);
  if (packet.stuck) found.push([end - 1, "deadlocked: never moves again"]);
  return found.filter((event) => event[0] < end).sort((a, b) => a[0] - b[0]);
}

function showLife() {
  life.textContent = "";
  if (!followed) return;
  put(life, "p", { class: "soft" }, `${followed.flits} flit${followed.flits > 1 ? "s" : ""}; a tick takes you there.`);
  const body = put(put(put(life, "div", { class: "wide" }), "table"), "tbody");
  eventsOf(followed).forEach(([tick, text]) => {
    const row = put(body, "tr", { "data-tick": tick }), jump = put(put(row, "td"), "button", { type: "button" }, tick);
    put(row, "td", { class: "text" }, text);
    jump.addEventListener("click", () => { stop(); go(tick); });
  });
}

function drawLife(t) {
  const rows = [...life.querySelectorAll("tr")], at = rows.map((row) => Number(row.dataset.tick));
  const reached = Math.max(...at.filter((tick) => tick <= t), -1);
  rows.forEach((row, i) => { row.className = at[i] === reached ? "now" : at[i] > t ? "later" : ""; });
}

// Packets over time, with a line at the tick shown.
const xs = inSource.map((_, t) => t), line = (key, name, y) => ({ key, name, look: key, dash: key, x: xs, y, half: [], hollow: [] });
const history = new Chart(document.getElementById("history"), {
  name: "history", title: "Packets over time", x: { label: "tick", unit: "", scale: "whole" }, y: { label: "packets", unit: "", scale: "whole" },
  series: [line(0, "at their hosts", inSource), line(1, "in the network", inNetwork)], lines: true,
}, { inTime: false });

function drawCursor(t) {
  if (!history.place) return;
  if (!history.cursor || !history.cursor.isConnected) history.cursor = put(history.svg, "path", { class: "theta" });
  history.cursor.setAttribute("d", `M${history.place.px(t)} ${history.place.top}V${history.place.bottom}`);
}
choice.on(draw);
draw();
