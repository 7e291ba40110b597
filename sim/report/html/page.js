// Puts the page together: charts, the inside of the network, sortable tables, theme and units.
const page = JSON.parse(document.getElementById("data").textContent);
page.inTime = page.unit !== "ticks";

if (page.inTime) {
  const select = put(put(tools, "label", {}, "Units "), "select");
  [["1", page.unit], ["", "ticks"]].forEach(([value, text]) => put(select, "option", { value }, text));
  select.addEventListener("change", () => { page.inTime = Boolean(select.value); choice.tell(); });
}

for (const figure of document.querySelectorAll("[data-chart]")) {
  const spec = page.charts.find((chart) => chart.name === figure.dataset.chart);
  if (spec) new Chart(figure, spec, page);
}
const inside = document.getElementById("inside");
if (inside) new Inside(inside, page.inside, page);

const valueOf = (text) => { const found = text.replace(/,(?=\d{3})/g, "").match(/-?\d+(\.\d+)?(e[-+]?\d+)?/i); return found ? Number(found[0]) : NaN; };
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const text = head.textContent, words = head.classList.contains("text");
    head.textContent = "";
    put(head, "button", { type: "button" }, text || "sort").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0], rows = [...body.rows].map((row) => [row.cells[column].textContent, row]);
      const compare = words ? (a, b) => sign * a.localeCompare(b, "en", { numeric: true }) : (a, b) => {
        const [p, q] = [valueOf(a), valueOf(b)];
        return Number.isNaN(p) || Number.isNaN(q) ? Number.isNaN(p) - Number.isNaN(q) : sign * (p - q);
      };
      rows.sort((a, b) => compare(a[0], b[0])).forEach((entry) => body.appendChild(entry[1]));
    });
  });
}
