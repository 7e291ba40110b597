"""Tables that more than one command prints."""

from collections.abc import Mapping
from typing import Any

from sim.cli.common import number, print_table

Row = Mapping[str, Any]


def print_ceilings(rows: list[dict[str, Any]]) -> None:
    """Certified intervals; the single bounds and totals that say no more than the offer are left to ceilings.csv."""
    shown = [row for row in rows if ":" not in row["ceiling"] and row["method"] != "offer"]
    columns = [
        ("ceiling", lambda row: row["ceiling"]),
        ("at load", lambda row: number(row["load"]) if row["load"] is not None else ""), ("between", _interval),
        ("unit", lambda row: row["unit"] or ""), ("method", lambda row: row["method"] or ""),
        ("note", lambda row: row["note"] or ""),
    ]  # fmt: skip
    for scenario in dict.fromkeys(row["scenario"] for row in shown):
        print_table(f"{scenario}: ceilings", columns, [row for row in shown if row["scenario"] == scenario])


def _interval(row: Row) -> str:
    lower, upper = row["lower"], row["upper"]
    if lower is None or upper is None:
        return "-" if upper is None else f"at most {number(upper)}"
    return number(upper, 6) if lower == upper else f"{number(lower, 6)} .. {number(upper, 6)}"


def print_metrics(rows: list[dict[str, Any]]) -> None:
    """What was measured of each topology; lists and mappings are left to metrics.csv."""
    hidden = ("edge_hash", "notes")
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in hidden]
    names = [name for name in names if not any(str(row.get(name)).startswith(("[", "{")) for row in rows)]

    def column(name: str) -> Any:
        return name, lambda row: number(row.get(name), 5)

    print_table("topologies", [column(name) for name in names], rows)
