"""``write(folder)``: one self-contained page with figures, tables, configuration and provenance."""

import base64
import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from sim.report import figures
from sim.report.frames import Ceiling, Row, Run, curves, load, number

MEASURES = (
    "offered", "accepted", "min_flow_ratio", "jain", "latency_mean", "latency_p50", "latency_p99",
    "latency_p999", "hops_mean", "deflections_mean", "throughput_mean", "throughput_min",
)  # fmt: skip
"""Columns of results.csv that the table of results shows, where they exist."""

MOST_ROWS = 500
"""Rows of metrics.csv that the page shows."""

LONGEST_TEXT = 1_000_000
"""A resolved configuration of more bytes is not shown: a study may have thousands of topologies."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #ddd; --soft: #666; --head: #f5f5f5 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #161616; --line: #383838; --soft: #9a9a9a; --head: #222 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1.2rem }
figure { margin: 0 } figure img { width: 100%; background: #fff; border-radius: 4px; box-sizing: border-box;
  padding: .5rem; border: 1px solid var(--line) }
figcaption, .soft { color: var(--soft); font-size: .85rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
th { background: var(--head); font-weight: 600 } .text { text-align: left; white-space: normal }
pre { background: var(--head); padding: .8rem; overflow-x: auto; font-size: .8rem; border-radius: 4px }
summary { cursor: pointer }
"""


def write(folder: Path) -> Path:
    """Writes ``folder/report.html`` from what lies in a run folder; draws the figures if there are none.

    The page loads nothing from elsewhere. Means are over replicates, with 95 % confidence half-widths.
    """
    folder = Path(folder)
    run = Run.read(folder)
    if not list(folder.glob("figures/*.svg")):
        with suppress(ValueError):  # a page without a figure is better than no page
            figures.draw(folder)
    name = str(run.manifest.get("name") or folder.resolve().name)
    sections = [
        _section("Figures", _figures(folder, figures.captions(run))),
        _section("Published values", _published(run.published)),
        _section("Metrics", _metrics(run.metrics)),
        _section("Results", _results(run)),
        _section("Failed points", _raw([_short(row) for row in run.failures])),
        _section("Ceilings", _ceilings(run.ceilings)),
        _section("Configuration", _configuration(folder)),
        _section("Provenance", _table(("", ""), list(_flat(_provenance(run))), text=(0, 1))),
    ]
    page = folder / "report.html"
    page.write_text(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(name)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(name)}</h1>\n{''.join(sections)}</body>\n</html>\n",
        "utf-8",
    )
    return page


def _section(title: str, body: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>\n" if body else ""


def _figures(folder: Path, captions: dict[str, str]) -> str:
    order = {name: i for i, name in enumerate(captions)}
    files = sorted(folder.glob("figures/*.svg"), key=lambda file: (order.get(file.stem, len(order)), file.stem))
    shown = [_figure(file, captions.get(file.stem, file.stem)) for file in files]
    return f'<div class="figures">\n{"".join(shown)}</div>' if files else ""


def _figure(file: Path, caption: str) -> str:
    """The picture as it is on disk, as an image of its own so that no ids of two pictures meet."""
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(file.stem)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _published(rows: Sequence[Row]) -> str:
    """*published | measured | verdict*."""
    if not rows:
        return ""
    head = ("where", "scenario", "quantity", "published", "measured", "verdict", "why")
    cells = [[_short_number({**row, "published": _claim(row)}.get(name) or "") for name in head] for row in rows]
    return _table(head, cells, text=(0, 1, 2, 5, 6))


SIGNS = {"at_most": "≤ ", "at_least": "≥ ", "less_than": "< ", "greater_than": "> "}


def _claim(row: Row) -> str:
    value = SIGNS.get(row.get("compare") or "", "") + (row.get("published") or "")
    return value + (f" ± {row['tolerance']}" if row.get("tolerance") else "")


def _metrics(rows: Sequence[Row]) -> str:
    """One row per topology; what fits no cell of a table is left to metrics.csv."""
    columns = [name for name in (rows[0] if rows else ()) if not _is_long(name, rows)]
    shown = rows[:MOST_ROWS]
    more = f"The first {MOST_ROWS} of {len(rows)} rows; metrics.csv has all. " if len(rows) > MOST_ROWS else ""
    text = [i for i, name in enumerate(columns) if not all(_is_number(row.get(name) or "0") for row in shown)]
    table = _table(columns, [[_short_number(row.get(name) or "") for name in columns] for row in shown], text=text)
    return table and f'<p class="soft">{more}Distributions and notes are in metrics.csv.</p>\n{table}'


def _is_long(name: str, rows: Sequence[Row]) -> bool:
    """Hashes, notes, distributions, how it went, and what says nothing of any topology."""
    begins = {(row.get(name) or "")[:1] for row in rows}
    hidden = name in ("edge_hash", "notes", "status", "message")
    return hidden or begins == {""} or "{" in begins or _is_list(name, rows)


def _is_list(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column holds lists of more than a few entries; swept dimensions are shown."""
    return any((row.get(name) or "")[:1] == "[" and len(row[name]) > 40 for row in rows)


def _is_number(text: str) -> bool:
    return math.isfinite(number({"": text}, ""))


def _short_number(text: str) -> str:
    """A number with six digits; any other text as it is."""
    return f"{float(text):.6g}" if _is_number(text) and len(text) > 7 else text


def _results(run: Run) -> str:
    """Means over replicates per scenario and load; the rows as they are where there is no load."""
    cells: dict[tuple[str, float], dict[str, str]] = {}
    for measure in MEASURES:
        for curve in curves(run.rows, load, lambda row, m=measure: number(row, m)):  # type: ignore[misc]
            for i, value in enumerate(curve.load):
                point = cells.setdefault((curve.scenario, float(value)), {})
                point[measure] = _plus_minus(curve.y[i], curve.half[i])
                point["seeds"] = str(curve.replicates[i])
                point["saturated"] = "yes" if curve.saturated[i] else ""
    if not cells:
        return _raw(run.rows)
    order = {scenario: i for i, scenario in enumerate(run.scenarios)}
    keys = sorted(cells, key=lambda key: (order[key[0]], key[1]))
    measures = [m for m in (*MEASURES, "saturated", "seeds") if any(m in point for point in cells.values())]
    rows = [(scenario, f"{x:g}", *(cells[scenario, x].get(m, "") for m in measures)) for scenario, x in keys]
    note = "Flits/tick/host and ticks; means ± half-width of the 95 % confidence interval over replicates."
    return f'<p class="soft">{note}</p>\n{_table(("scenario", "load", *measures), rows)}'


def _short(row: dict[str, str]) -> dict[str, str]:
    keep = ("scenario", "load", "seed", "status", "error", "message", "note")
    return {column: row[column] for column in keep if row.get(column)}


def _plus_minus(mean: float, half: float) -> str:
    return f"{mean:.4g} ± {half:.1g}" if half > 0 else f"{mean:.4g}"


def _raw(rows: Sequence[dict[str, str]]) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return _table(columns, [[row.get(column) or "" for column in columns] for row in rows]) if rows else ""


def _ceilings(ceilings: Iterable[Ceiling]) -> str:
    rows = []
    for c in ceilings:
        ends = (f"{c.lower:.6g}", f"{c.upper:.6g}") if c.known else ("omitted", "omitted")
        at = f"{c.load:g}" if math.isfinite(c.load) else ""
        rows.append((c.scenario, c.name, at, *ends, c.unit, c.method, c.note))
    head = ("scenario", "ceiling", "load", "lower", "upper", "unit", "method", "note")
    return _table(head, rows, text=(0, 1, 6, 7)) if rows else ""


def _configuration(folder: Path) -> str:
    given, resolved = folder / "config.yaml", folder / "config.resolved.yaml"
    parts = [f"<pre>{escape(given.read_text('utf-8'))}</pre>"] if given.exists() else []
    if resolved.exists() and resolved.stat().st_size <= LONGEST_TEXT:
        text = escape(resolved.read_text("utf-8"))
        parts.append(f"<details><summary>as resolved</summary><pre>{text}</pre></details>")
    return "\n".join(parts)


def _provenance(run: Run) -> dict[str, Any]:
    """The manifest, without what the table of metrics says already."""
    return {key: value for key, value in run.manifest.items() if not (run.metrics and key == "scenarios")}


def _flat(value: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """The leaves of a JSON document as (path, text)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int] = (0,)) -> str:
    """A table; columns named in ``text`` are set left."""
    if not rows:
        return ""
    side = [' class="text"' if i in text else "" for i in range(len(head))]
    lines = [
        "".join(f"<td{s}>{escape(cell)}</td>" for s, cell in zip(side, row, strict=True)) for row in rows
    ]
    top = "".join(f"<th{s}>{escape(cell)}</th>" for s, cell in zip(side, head, strict=True))
    caption = f"<thead><tr>{top}</tr></thead>\n" if any(head) else ""
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="wide"><table>\n{caption}<tbody>\n{body}</tbody></table></div>'
