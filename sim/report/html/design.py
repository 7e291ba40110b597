# SPDX-License-Identifier: Apache-2.0
"""``write(design, folder)``: one self-contained page on a design."""

from collections.abc import Mapping
from pathlib import Path

from flitlab.sim.design.files import front_rows
from flitlab.sim.design.measures import PARTS, Part
from flitlab.sim.design.outcome import Design
from flitlab.sim.report.html.shell import data_uri, write_page
from flitlab.sim.report.html.tables import Table

MOST_PRICES = "Prices in dollars and power in watts; a file replaces any of them."


TITLES = {"design": "Cost and throughput", "failures": "After failures", "cost": "Parts of the cost"}
"""Headings of the figures by their names."""


def write(design: Design, folder: Path, figures: Mapping[str, Path]) -> Path:
    """Write the page of a design, ``folder/report.html``.

    Parameters
    ----------
    design: the answer.
    folder: for the page.
    figures: name -> picture (PNG or SVG).

    Raises
    ------
    OSError: it cannot be written.
    """
    request, sentences = design.request, [*design.sentences(), *design.orders]
    sections: list[tuple[str, str, object]] = [
        ("front", "The front", _front(design)),
        *((f"figure-{name}", title, data_uri(figures[name])) for name, title in TITLES.items() if name in figures),
        *((f"part-{name}", part.title.capitalize(), _part(design, part)) for name, part in _parts(design)),
        ("why", "Why not", _families(design)), ("proven", "What is proven", sentences),
        ("prices", "Assumptions", _prices(design)), ("file", "The file", request.text),
    ]  # fmt: skip
    facts = [f"{request.hosts} hosts", f"{len(design.search.results)} candidates", f"prices {request.prices.profile}"]
    return write_page(
        folder / "report.html", "design.html", title=request.name, answer=_answer(design), facts=facts,
        warnings=[] if design.front else ["no network meets the limits"], sections=sections, data={},
    )  # fmt: skip


def _answer(design: Design) -> str:
    if not design.front:
        return "No candidate meets the limits."
    full = [point for point in design.front if (point.result.lower >= 0.98).all()]
    best = full[0] if full else max(design.front, key=design.score)
    what = "carries every demand at full rate" if full else "carries most"
    cost = best.result.option.cost / design.request.hosts
    return f"{best.result.option.label} {what} for {cost:.0f} $ a host; the front has {len(design.front)} points."


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:.0f}" if isinstance(
        value, float
    ) else str(value)  # fmt: skip


def _parts(design: Design) -> list[tuple[str, Part]]:
    """The parts of the front that have columns and points."""
    return [(name, part) for name, part in PARTS.items() if design.front and part.columns(design.request)]


def _part(design: Design, part: Part) -> Table:
    columns = part.columns(design.request)
    rows = [[str(point.number), *(_text(point.values.get(name)) for name in columns)] for point in design.front]
    return Table(["point", *columns], rows, (), "Columns: docs/design.md.")


def _front(design: Design) -> Table:
    hidden = {"topology", *(column for _, part in _parts(design) for column in part.columns(design.request))}
    rows = [{key: value for key, value in row.items() if key not in hidden} for row in front_rows(design)]
    head = list(rows[0]) if rows else []
    caption = "Throughputs are certified intervals; bound: of any network of as many switches, under uniform traffic."
    return Table(head, [[_text(value) for value in row.values()] for row in rows], (1, 2, 3), caption)


def _families(design: Design) -> Table:
    rows = design.families()
    caption = "could_exceed: the most by which a candidate that is not on the front could exceed it for the same cost."
    return Table(list(rows[0]), [[_text(value) for value in row.values()] for row in rows], (0,), caption)


def _prices(design: Design) -> Table:
    rows = [(key, f"{value:g}", source) for key, value, source in design.request.prices.assumptions()]
    return Table(("value", "amount", "source"), rows, (0, 2), MOST_PRICES)
