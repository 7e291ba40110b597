"""The pages of the scoreboard: every row's published and measured values, verdict, figure and command."""

import base64
import io
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from PIL import Image

from flitlab.sim.experiment.folders import read_manifest
from flitlab.sim.experiment.published import Verdict
from flitlab.sim.experiment.scoreboard import PAPERS, Row

FIGURES = Path("figures") / "reproduction"
"""Where the figures of the rows are, beside the pages."""

WIDTH = 640
"""Pixels of such a figure: twice as many as a page shows."""

SIGNS = {"about": "", "at_most": "at most ", "at_least": "at least ", "less_than": "below ", "greater_than": "above "}

INTRODUCTION = (
    "What the papers say, what was measured here, and whether the two agree within the tolerance that the row states "
    "(in brackets; with a reason, in its file). Nothing is tuned until it agrees; where the two differ, the reason "
    "follows. This page is written by `simrun reproduce`."
)

HEAD = ("where", "published", "measured", "verdict")


def write(folder: Path, rows: Sequence[Row], missing: Sequence[str] = ()) -> list[Path]:
    """Writes ``reproduction.md`` and the self-contained ``reproduction.html`` of rows, which are in order.

    missing: names of rows that have not run. The figures are taken from ``figures/reproduction/<row>.png`` in the same
    folder, where there are any.
    """
    note = f"Not run: {', '.join(missing)}." if missing else ""
    pages = {"reproduction.md": _markdown(folder, rows, note), "reproduction.html": _html(folder, rows, note)}
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in pages]


def take_figure(run: Path, folder: Path, name: str) -> None:
    """Puts the first figure of a row's run beside the pages, small enough for a repository; drops an earlier one."""
    target = folder / FIGURES / f"{name}.png"
    target.unlink(missing_ok=True)
    source = _first_figure(run)
    if source is None:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(reduced(source))


def reduced(picture: Path) -> bytes:
    """A PNG of :data:`WIDTH` pixels and few colours."""
    with Image.open(picture) as image:
        height = round(image.height * WIDTH / image.width)
        small = image.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    small.quantize(32).save(content, "png", optimize=True)
    return content.getvalue()


def _first_figure(run: Path) -> Path | None:
    """Of those that were drawn, the one that the configuration names first."""
    drawn = {file.stem: file for file in sorted(run.glob("figures/*.png"))}
    try:
        manifest = read_manifest(run)
    except (OSError, ValueError):
        return None
    named = [plot.get("name") for plot in manifest.get("plots", [])] + manifest.get("figures", [])
    return next((drawn[name] for name in named if name in drawn), next(iter(drawn.values()), None))


def shown(text: str) -> str:
    """A number as short as it can be without misleading; any other text as it is.

    >>> shown("0.123456"), shown("12345.6"), shown(""), shown("often")
    ('0.12346', '12,346', '-', 'often')
    """
    try:
        return f"{float(text):.5g}" if abs(float(text)) < 1e4 else f"{float(text):,.0f}"
    except ValueError:
        return text or "-"


def _values(row: Row) -> list[tuple[str, str, str, str]]:
    """The cells of a row's table."""
    found = []
    for value in row.published:
        tolerance = f" ({value['tolerance']})" if value["tolerance"] else ""
        claim = f"{SIGNS[value['compare']]}{shown(value['published'])}{tolerance}"
        found.append((value["where"], claim, shown(value["measured"]), value["verdict"]))
    return found


def _reasons(row: Row) -> list[str]:
    """Why values differ, as far as the row says so."""
    return [f"{v['where']}: {v['why']}" for v in row.published if not Verdict(v["verdict"]).agrees and v["why"]]


def _origin(row: Row) -> str:
    """When and where it ran."""
    time = f"{row.cpu_s:,.0f} s of CPU time, " if row.cpu_s else ""
    return f"{'full size' if row.full else 'quick version'}, {time}{row.date}, {row.machine}"


def _papers(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Paper, its title, its rows."""
    return [(name.upper(), PAPERS.get(name, ""), list(part)) for name, part in groupby(rows, lambda row: row.paper)]


def _counts(rows: Sequence[Row]) -> tuple[str, str, str, str]:
    """Rows, published values, those that agree, rows that failed."""
    values = sum(len(row.published) for row in rows)
    agreeing = sum(row.agreeing for row in rows)
    return str(len(rows)), str(values), str(agreeing), str(sum(bool(row.problem) for row in rows))


COUNTED = ("paper", "rows", "values", "agree", "failed rows")


def _markdown(folder: Path, rows: Sequence[Row], note: str) -> str:
    lines = ["# Reproduction", "", INTRODUCTION, ""]
    summary = [(f"{paper} {title}", *_counts(part)) for paper, title, part in _papers(rows)]
    lines += _pipes(COUNTED, [*summary, ("all", *_counts(rows))])
    lines += [note, ""] if note else []
    for paper, title, part in _papers(rows):
        lines += [f"## {paper}: {title}" if title else f"## {paper}", ""]
        lines += _pipes(("row", "what", "verdict"), [(f"[{r.name}](#{r.name})", r.title, r.verdict) for r in part])
        for row in part:
            lines += _section(folder, row)
    return "\n".join(lines).rstrip() + "\n"


def _section(folder: Path, row: Row) -> list[str]:
    lines = [f"### {row.name}", "", row.about, "", f"**{row.verdict}** ({_origin(row)}):", "", f"    {row.command}", ""]
    if row.problem:
        lines += ["```text", row.problem, "```", ""]
    if (folder / FIGURES / f"{row.name}.png").exists():
        lines += [f"![{row.name}]({(FIGURES / row.name).as_posix()}.png)", ""]
    cells = [(*cells, verdict if Verdict(verdict).agrees else f"**{verdict}**") for *cells, verdict in _values(row)]
    lines += _pipes(HEAD, cells) if cells else []
    lines += [f"* {reason}" for reason in _reasons(row)]
    return [*lines, ""] if lines[-1] else lines


def _pipes(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, and an empty line."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *cells]] + [""]


STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #ddd; --soft: #666; --head: #f5f5f5;
  --bad: #a4420b }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #161616; --line: #383838; --soft: #a0a0a0; --head: #222; --bad: #f0a875 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.6rem } h3 { font-size: 1rem; margin-top: 2rem }
a { color: inherit } .soft { color: var(--soft); font-size: .85rem } .bad { color: var(--bad); font-weight: 600 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top }
th { background: var(--head) } td a, td:last-child { white-space: nowrap }
img { width: 360px; max-width: 100%; background: #fff; border: 1px solid var(--line); border-radius: 4px }
pre { background: var(--head); padding: .6rem .8rem; overflow-x: auto; font-size: .82rem; border-radius: 4px }
@media print { section { break-inside: avoid } }
"""


def _html(folder: Path, rows: Sequence[Row], note: str) -> str:
    summary = [(f"{paper} {title}", *_counts(part)) for paper, title, part in _papers(rows)]
    body = [f"<h1>Reproduction</h1>\n<p>{INTRODUCTION.replace('`', '')}</p>\n"]
    body.append(_table(COUNTED, [*summary, ("all", *_counts(rows))]))
    body.append(f"<p>{note}</p>\n" if note else "")
    for paper, title, part in _papers(rows):
        links = [(f'<a href="#{r.name}">{r.name}</a>', escape(r.title), escape(r.verdict)) for r in part]
        body.append(f"<h2>{escape(f'{paper}: {title}' if title else paper)}</h2>\n")
        body.append(_table(("row", "what", "verdict"), links, plain=False))
        body += [_article(folder, row) for row in part]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Reproduction</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{''.join(body)}</body>\n</html>\n"
    )


def _article(folder: Path, row: Row) -> str:
    parts = [f'<section id="{row.name}">\n<h3>{row.name}</h3>\n<p>{escape(row.about)}</p>\n']
    parts.append(f'<p><b>{row.verdict}</b> <span class="soft">{escape(_origin(row))}</span></p>\n')
    parts.append(f"<pre>{escape(row.command)}</pre>\n")
    if row.problem:
        parts.append(f'<pre class="bad">{escape(row.problem)}</pre>\n')
    picture = folder / FIGURES / f"{row.name}.png"
    if picture.exists():
        data = base64.b64encode(picture.read_bytes()).decode("ascii")
        parts.append(f'<p><img alt="figure of {row.name}" src="data:image/png;base64,{data}"></p>\n')
    cells = [
        (*map(escape, cells), verdict if Verdict(verdict).agrees else f'<span class="bad">{verdict}</span>')
        for *cells, verdict in _values(row)
    ]
    parts.append(_table(HEAD, cells, plain=False) if cells else "")
    reasons = "".join(f"<li>{escape(reason)}</li>\n" for reason in _reasons(row))
    parts.append(f"<ul>\n{reasons}</ul>\n" if reasons else "")
    return "".join(parts) + "</section>\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], plain: bool = True) -> str:
    """A table in HTML. plain: the cells are texts, to be escaped."""
    lines = ["".join(f"<td>{escape(cell) if plain else cell}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'
