# SPDX-License-Identifier: Apache-2.0
"""The first thing on the page of a run with loss budgets: where the throughput goes, and what would bring it back."""

from collections.abc import Mapping
from html import escape

from flitlab.sim.measure.rows import Row, number
from flitlab.sim.report.folder.budget import CHANGES, HOSTS, RUNGS, Ladder, ladders, may_be_none, named, warning
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.tables import folded, plain, table

CAPTION = (
    "Each rung is the load that could be carried if nothing below it cost anything; a part is the difference of two, "
    "taken seed by seed with the same packets, and its 95 % interval holds half of both brackets. Parts add up."
)


def section(run: Run, image: str) -> str:
    """All budgets: the waterfall (``image``, HTML), and for each the rungs, what changes gain, and what binds."""
    found = ladders(run.tables)
    if not found:
        return ""
    picture = f'<figure class="budget">{image}<figcaption>{escape(CAPTION)}</figcaption></figure>\n' if image else ""
    return picture + "".join(_ladder(ladder, len(found) > 1) for ladder in found)


def _ladder(ladder: Ladder, titled: bool) -> str:
    parts = {row["to"]: row for row in ladder.parts}
    head = ("rung", "what it is", "load", "% of mcf", "lost, % of mcf", "between", "to", "note")
    rungs = table(head, [_rung(row, parts.get(row["rung"])) for row in ladder.rungs], text=(0, 1, 6, 7))
    text = [f"<h3>{escape(ladder.scenario)}</h3>\n"] if titled else []
    text += [f"<p><strong>{escape(said)}</strong></p>\n" for said in (warning(ladder),) if said]
    return "".join([*text, rungs, _changes(ladder), _channels(ladder)])


def _rung(row: Row, part: Row | None) -> tuple[str, ...]:
    lost, between, to = ("", "", "") if part is None else (_one(part), _ends(part), named(part["part"]))
    value = "omitted" if row["kind"] == "omitted" else plain(number(row, "value"))
    return row["rung"], RUNGS[row["rung"]], value, _one(row), lost, between, to, row.get("note") or ""


def _one(row: Row) -> str:
    return f"{value:.1f}" if (value := number(row, "percent")) == value else ""


def _ends(row: Row) -> str:
    if not row.get("percent_low"):
        return ""
    return f"{number(row, 'percent_low'):.1f} .. {number(row, 'percent_high'):.1f}" + ", may be none" * may_be_none(row)


def _changes(ladder: Ladder) -> str:
    head = ("change", "load", "then", "gained, % of mcf", "between", "--set", "note")
    rows = [
        (
            CHANGES[row["change"]], plain(number(row, "switch")), plain(number(row, "changed")), _one(row), _ends(row),
            row["set"], row.get("note") or "",
        ) for row in ladder.changes
    ]  # fmt: skip
    caption = "One change at a time: what the stable load gains by it. These do not add up."
    return table(head, rows, text=(0, 5, 6), caption=caption) if rows else ""


def _channels(ladder: Ladder) -> str:
    """The channels that every routing fills at the optimum, the dearest first."""
    rows = [(_channel(row), f"{100 * number(row, 'price'):.2f} %") for row in ladder.channels]
    count = ladder.channels[-1]["of"] if ladder.channels else "0"
    body = table(("channel", "price"), rows, text=(0,), caption="Its part of what an optimum pays for all capacity.")
    only = bool(rows) and ladder.channels[-1]["from"] == HOSTS
    return folded("The host channels bind" if only else f"{count} channels limit every routing", body) if rows else ""


def _channel(row: Mapping[str, str]) -> str:
    return f"{row['from']} → {row['to']}" if row["to"] else "host channels together"
