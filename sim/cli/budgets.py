# SPDX-License-Identifier: Apache-2.0
"""Prints loss budgets."""

from collections.abc import Mapping, Sequence

from flitlab.sim.cli.common import Column, number, print_table, say, shown_label
from flitlab.sim.measure.rows import Row
from flitlab.sim.report.folder.budget import CHANGES, HOSTS, LEVELS, LossBudget, is_insignificant, sentence, warning

INTERVAL_MEANING = (
    "between: 95 % confidence interval (Student's t over seeds), widened by half the bracket of each of the two loads; "
    "a single seed has only the brackets"
)
"""Legend of the intervals of losses and gains."""


def budget_text(budget: LossBudget) -> str:
    """The result of a budget in a sentence or two, with plain blanks."""
    return " ".join(filter(None, (sentence(budget), warning(budget)))).replace("\xa0", " ")


def print_budgets(budgets: Sequence[LossBudget]) -> None:
    """Print each budget: levels from the highest, gains of single changes, bottlenecks, and the result."""
    for budget in budgets:
        losses = {row["to"]: row for row in budget.losses}
        print_table(f"{shown_label(budget.scenario)}: loss budget", _columns(losses), budget.levels)
        if budget.changes:
            print_table("  one change at a time (gains do not add up)", CHANGE_COLUMNS, budget.changes)
        if budget.channels:
            say(f"  {_bottlenecks(budget.channels)}")
        say(f"  {budget_text(budget)}")
    if budgets:
        say(INTERVAL_MEANING)


def _columns(losses: Mapping[str, Row]) -> list[Column]:
    def of_loss(text: Column) -> Column:
        return text[0], lambda row: text[1](losses[row["rung"]]) if row["rung"] in losses else ""

    return [
        ("level", lambda row: row["rung"]), ("", lambda row: LEVELS[row["rung"]]),
        ("load", lambda row: number(row["value"])), ("% of mcf", lambda row: _digit(row["percent"])),
        of_loss(("loss", lambda row: _digit(row["percent"]))), of_loss(("between", _ends)),
        of_loss(("cause", lambda row: row["part"])), ("note", lambda row: row["note"]),
    ]  # fmt: skip


def _digit(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:.1f}"


def _ends(row: Row) -> str:
    return f"{_digit(row['percent_low'])} .. {_digit(row['percent_high'])}" + " (not significant)" * is_insignificant(
        row
    )


CHANGE_COLUMNS: list[Column] = [
    ("change", lambda row: CHANGES[row["change"]]), ("load", lambda row: number(row.get("switch"))),
    ("then", lambda row: number(row.get("changed"))), ("% of mcf", lambda row: _gain(row.get("percent"))),
    ("between", lambda row: _ends(row) if "percent" in row else ""), ("--set", lambda row: row["set"]),
    ("note", lambda row: row["note"]),
]  # fmt: skip


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f}"


def _bottlenecks(channels: Sequence[Row]) -> str:
    """The bottlenecks, those with the highest price first."""
    if channels[-1]["from"] == HOSTS:
        return "only the channels of hosts limit every routing: no network could carry more"
    count = channels[-1]["of"]
    named = [f"{row['from']}{' -> ' if row['to'] != '' else ''}{row['to']} {row['price']:.1%}" for row in channels]
    return f"{count} channels limit every routing (share of the dual): {', '.join(named)}"
