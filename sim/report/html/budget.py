# SPDX-License-Identifier: Apache-2.0
"""The first thing on the page of a run with loss budgets: where the throughput goes, and what would bring it back."""

from collections.abc import Mapping
from html import escape

from flitlab.sim.measure.rows import Row, number
from flitlab.sim.report.folder.budget import (
    CHANGES,
    HOSTS,
    LEVELS,
    LossBudget,
    describe_loss,
    is_insignificant,
    loss_budgets,
    warning,
)
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.tables import folded, plain, table

CAPTION = (
    "Each rung is the load that could be carried if nothing below it cost anything; a part is the difference of two, "
    "taken seed by seed with the same packets, and its 95 % interval holds half of both brackets. Parts add up."
)


def section(run: Run, image: str) -> str:
    """All budgets: the waterfall (``image``, HTML), and for each the rungs, what changes gain, and what binds."""
    budgets = loss_budgets(run.tables)
    if not budgets:
        return ""
    picture = f'<figure class="budget">{image}<figcaption>{escape(CAPTION)}</figcaption></figure>\n' if image else ""
    return picture + "".join(_budget_tables(budget, len(budgets) > 1) for budget in budgets)


def _budget_tables(budget: LossBudget, titled: bool) -> str:
    losses = {row["to"]: row for row in budget.losses}
    head = ("rung", "what it is", "load", "% of mcf", "lost, % of mcf", "between", "to", "note")
    levels = table(head, [_level_row(row, losses.get(row["rung"])) for row in budget.levels], text=(0, 1, 6, 7))
    text = [f"<h3>{escape(budget.scenario)}</h3>\n"] if titled else []
    text += [f"<p><strong>{escape(said)}</strong></p>\n" for said in (warning(budget),) if said]
    return "".join([*text, levels, _changes(budget), _channels(budget)])


def _level_row(row: Row, loss: Row | None) -> tuple[str, ...]:
    lost, between, to = ("", "", "") if loss is None else (_one(loss), _ends(loss), describe_loss(loss["part"]))
    value = "omitted" if row["kind"] == "omitted" else plain(number(row, "value"))
    return row["rung"], LEVELS[row["rung"]], value, _one(row), lost, between, to, row.get("note") or ""


def _one(row: Row) -> str:
    return f"{value:.1f}" if (value := number(row, "percent")) == value else ""


def _ends(row: Row) -> str:
    if not row.get("percent_low"):
        return ""
    return (
        f"{number(row, 'percent_low'):.1f} .. {number(row, 'percent_high'):.1f}"
        + ", may be none" * is_insignificant(row)
    )


def _changes(budget: LossBudget) -> str:
    head = ("change", "load", "then", "gained, % of mcf", "between", "--set", "note")
    rows = [
        (
            CHANGES[row["change"]], plain(number(row, "switch")), plain(number(row, "changed")), _one(row), _ends(row),
            row["set"], row.get("note") or "",
        ) for row in budget.changes
    ]  # fmt: skip
    caption = "One change at a time: what the stable load gains by it. These do not add up."
    return table(head, rows, text=(0, 5, 6), caption=caption) if rows else ""


def _channels(budget: LossBudget) -> str:
    """The channels that every routing fills at the optimum, the dearest first."""
    rows = [(_channel(row), f"{100 * number(row, 'price'):.2f} %") for row in budget.channels]
    count = budget.channels[-1]["of"] if budget.channels else "0"
    body = table(("channel", "price"), rows, text=(0,), caption="Its part of what an optimum pays for all capacity.")
    only = bool(rows) and budget.channels[-1]["from"] == HOSTS
    return folded("The host channels bind" if only else f"{count} channels limit every routing", body) if rows else ""


def _channel(row: Mapping[str, str]) -> str:
    return f"{row['from']} → {row['to']}" if row["to"] else "host channels together"
