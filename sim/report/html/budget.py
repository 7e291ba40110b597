# SPDX-License-Identifier: Apache-2.0
"""The section of the page on loss budgets: where the throughput goes, and what would recover it."""

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
    "Each level is the load that would be carried without the losses below it. A loss is the difference of two levels, "
    "paired by seed with the same packets; its 95 % interval includes half of both brackets. Losses add up."
)


def section(run: Run, image: str) -> str:
    """Return all loss budgets as HTML; image: the waterfall, HTML."""
    budgets = loss_budgets(run.tables)
    if not budgets:
        return ""
    picture = f'<figure class="budget">{image}<figcaption>{escape(CAPTION)}</figcaption></figure>\n' if image else ""
    return picture + "".join(map(_budget_tables, budgets))


def _budget_tables(budget: LossBudget) -> str:
    losses = {row["to"]: row for row in budget.losses}
    head = ("level", "meaning", "load", "% of mcf", "loss, % of mcf", "95 % interval", "cause", "note")
    levels = table(head, [_level_row(row, losses.get(row["rung"])) for row in budget.levels], text=(0, 1, 6, 7))
    text = [f"<h3>{escape(budget.scenario)}</h3>\n"]
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
        + ", not significant" * is_insignificant(row)
    )


def _changes(budget: LossBudget) -> str:
    head = ("change", "load", "changed load", "gain, % of mcf", "95 % interval", "--set", "note")
    rows = [
        (
            CHANGES[row["change"]], plain(number(row, "switch")), plain(number(row, "changed")), _one(row), _ends(row),
            row["set"], row.get("note") or "",
        ) for row in budget.changes
    ]  # fmt: skip
    caption = "Gain in stable load by one change of the switch at a time. Gains do not add up."
    return table(head, rows, text=(0, 5, 6), caption=caption) if rows else ""


def _channels(budget: LossBudget) -> str:
    """The bottleneck channels of every routing, the highest price first."""
    rows = [(_channel(row), f"{100 * number(row, 'price'):.2f} %") for row in budget.channels]
    count = budget.channels[-1]["of"] if budget.channels else "0"
    body = table(("channel", "price"), rows, text=(0,), caption="Share of the dual value of all capacity.")
    only = bool(rows) and budget.channels[-1]["from"] == HOSTS
    return (
        folded("Host channels are the bottleneck" if only else f"{count} channels limit every routing", body)
        if rows
        else ""
    )


def _channel(row: Mapping[str, str]) -> str:
    return f"{row['from']} → {row['to']}" if row["to"] else "host channels together"
