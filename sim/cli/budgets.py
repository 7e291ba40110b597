# SPDX-License-Identifier: Apache-2.0
"""How a loss budget is printed."""

from collections.abc import Mapping, Sequence

from flitlab.sim.cli.common import Column, number, print_table, say, shown_label
from flitlab.sim.measure.rows import Row
from flitlab.sim.report.folder.budget import CHANGES, HOSTS, LEVELS, LossBudget, is_insignificant, sentence, warning

MEANING = (
    "between: the 95 % Student interval over seeds, with half of the bracket of either load at both ends; of "
    "a single seed these halves alone"
)
"""What is said of the intervals of parts and of gains."""


def said(ladder: LossBudget) -> str:
    """What a budget says, in a sentence or two, with no blanks but plain ones."""
    return " ".join(filter(None, (sentence(ladder), warning(ladder)))).replace("\xa0", " ")


def print_budgets(found: Sequence[LossBudget]) -> None:
    """Every budget as a table from the highest rung down, what changes would gain, and what it says."""
    for ladder in found:
        parts = {row["to"]: row for row in ladder.losses}
        print_table(f"{shown_label(ladder.scenario)}: where the throughput goes", _columns(parts), ladder.levels)
        if ladder.changes:
            print_table("  one change at a time (gains do not add up)", CHANGED, ladder.changes)
        if ladder.channels:
            say(f"  {_binding(ladder.channels)}")
        say(f"  {said(ladder)}")
    if found:
        say(MEANING)


def _columns(parts: Mapping[str, Row]) -> list[Column]:
    def of_part(text: Column) -> Column:
        return text[0], lambda row: text[1](parts[row["rung"]]) if row["rung"] in parts else ""

    return [
        ("rung", lambda row: row["rung"]), ("", lambda row: LEVELS[row["rung"]]),
        ("load", lambda row: number(row["value"])), ("% of mcf", lambda row: _digit(row["percent"])),
        of_part(("lost", lambda row: _digit(row["percent"]))), of_part(("between", _ends)),
        of_part(("to", lambda row: row["part"])), ("note", lambda row: row["note"]),
    ]  # fmt: skip


def _digit(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:.1f}"


def _ends(row: Row) -> str:
    return f"{_digit(row['percent_low'])} .. {_digit(row['percent_high'])}" + " (may be none)" * is_insignificant(row)


CHANGED: list[Column] = [
    ("change", lambda row: CHANGES[row["change"]]), ("load", lambda row: number(row.get("switch"))),
    ("then", lambda row: number(row.get("changed"))), ("% of mcf", lambda row: _gain(row.get("percent"))),
    ("between", lambda row: _ends(row) if "percent" in row else ""), ("--set", lambda row: row["set"]),
    ("note", lambda row: row["note"]),
]  # fmt: skip


def _gain(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 1) + 0.0:+.1f}"


def _binding(channels: Sequence[Row]) -> str:
    """The channels that bind, the dearest first."""
    if channels[-1]["from"] == HOSTS:
        return "only the channels of hosts limit every routing: no network could carry more"
    count = channels[-1]["of"]
    named = [f"{row['from']}{' -> ' if row['to'] != '' else ''}{row['to']} {row['price']:.1%}" for row in channels]
    return f"{count} channels limit every routing (share of the dual): {', '.join(named)}"
