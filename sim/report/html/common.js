// What all parts of the page use: elements, numbers, and what has been chosen for all charts together.
const SVG = "http://www.w3.org/2000/svg";

function put(parent, name, attributes = {}, text) {
  const svg = parent.namespaceURI === SVG || name === "svg";
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function format(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

// The head of an arrow that lies at (x, y) and points along (dx, dy), as a path.
function arrowHead(x, y, dx, dy, size) {
  const long = Math.hypot(dx, dy) || 1, ux = (dx / long) * size, uy = (dy / long) * size;
  const corners = [[x + ux, y + uy], [x - 0.7 * ux - 0.55 * uy, y - 0.7 * uy + 0.55 * ux], [x - 0.7 * ux + 0.55 * uy, y - 0.7 * uy - 0.55 * ux]];
  return `M${corners.map((corner) => corner.map((v) => v.toFixed(1)).join(" ")).join("L")}Z`;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

const choice = { listeners: [], on(listener) { this.listeners.push(listener); }, tell() { this.listeners.forEach((f) => f()); } };

let printing = false; // paper is light, whatever the theme
const dark = () => !printing && getComputedStyle(document.documentElement).colorScheme === "dark";
["beforeprint", "afterprint"].forEach((name) => addEventListener(name, () => { printing = name === "beforeprint"; choice.tell(); }));
