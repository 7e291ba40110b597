# SPDX-License-Identifier: Apache-2.0
"""Loss budgets as their tables have them, and what they say in a sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flitlab.sim.measure.rows import Row, number

TABLES = ("budget", "budget_parts", "budget_sensitivities", "budget_channels")
"""Tables that a budget is made of, by the names of their files."""

LEVELS = {
    "mcf": "any routing", "mcf_paths": "best use of its paths", "split": "its own split", "ideal": "ideal switch",
    "endless": "buffers without limit", "roomy": "no limit in the crossbar", "switch": "this switch",
}  # fmt: skip
"""Rung -> what it is, in plain English."""

LOSS_CAUSES = {
    "paths": "the paths of the routing", "weights": "how the routing spreads traffic over its paths",
    "window": "the window of the run", "blocking": "head-of-line blocking", "room": "waiting for room in buffers",
    "crossbar": "the crossbar",
}  # fmt: skip
"""Part -> what takes it, in plain English."""

CHANGES = {
    "vcs": "twice the VCs", "buffers": "four times the buffers", "vcs_and_buffers": "both of these at once",
    "speedup": "every VC of an input read at once", "oldest": "the oldest packet first",
    "packets": "packets of a quarter of the length", "rising": "VCs that rise along a route",
}  # fmt: skip
"""Sensitivity -> what is changed, in plain English."""

HOSTS = "hosts"
"""What stands for all channels of hosts together among the channels that bind."""

ROUTING_LOSSES, WINDOW = ("paths", "weights"), "window"
"""Parts that a switch has no influence on; the part that is no loss."""

REMEDIES = {
    "paths": "a routing over more or longer paths (routing: optimal)",
    "weights": "other weights on the same paths (routing: optimal)",
    "window": "a longer window",
}
"""What recovers a part that no change of the switch does."""

MAX_WINDOW_LOSS = 2.0
"""Percent of mcf that the window may cost before it says more about the run than about the network."""


@dataclass(frozen=True)
class LossBudget:
    """The budget of a scenario: rows of its tables, each as :data:`TABLES` has them."""

    scenario: str
    levels: Sequence[Row]
    losses: Sequence[Row]
    changes: Sequence[Row]
    channels: Sequence[Row]

    @property
    def known(self) -> bool:
        """Whether anything stands on it but reasons."""
        return bool(self.losses)

    def level(self, name: str) -> Row | None:
        """The row of a rung; None if it is left out."""
        return next((row for row in self.levels if row["rung"] == name and row["kind"] != "omitted"), None)

    @property
    def left_out(self) -> dict[str, str]:
        """Rung -> why it is left out."""
        return {row["rung"]: row["note"] for row in self.levels if row["kind"] == "omitted"}


def loss_budgets(tables: Mapping[str, Sequence[Row]]) -> list[LossBudget]:
    """The budgets of a run, in the order of its scenarios. tables: by the names of :data:`TABLES`."""
    scenarios = dict.fromkeys(row["scenario"] for row in tables.get(TABLES[0], ()))
    return [
        LossBudget(scenario, *([row for row in tables.get(name, ()) if row["scenario"] == scenario] for name in TABLES))
        for scenario in scenarios
    ]


def loss_budgets_of_files(tables: Mapping[str, Sequence[Row]]) -> list[LossBudget]:
    """The budgets of a run whose tables go by the names of their files."""
    return loss_budgets({name: tables.get(f"{name}.csv", []) for name in TABLES})


def describe_loss(part: str) -> str:
    """A part in plain English; one over rungs that are left out is all that they lose.

    >>> named("room"), named("paths+weights")
    ('waiting for room in buffers', 'the paths of the routing and how the routing spreads traffic over its paths')
    """
    names = [LOSS_CAUSES[one] for one in part.split("+")]
    if len(names) == len(LOSS_CAUSES):
        return "all that lies between any routing and this switch"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_insignificant(row: Row) -> bool:
    """Whether the interval of a part, or of a sensitivity, holds 0."""
    return number(row, "low") <= 0 <= number(row, "high")


def is_no_loss(part: str) -> bool:
    """Whether a part says how long the run was, and nothing else."""
    return part == WINDOW


def sentence(budget: LossBudget) -> str:
    """The largest loss and what would recover it; '' where there is none."""
    switch, losses = budget.level("switch"), [row for row in budget.losses if not is_no_loss(row["part"])]
    if switch is None or not losses:
        return ""
    reached = f"{_percent(switch)}{_within(switch)} of what any routing could carry"
    largest = max(losses, key=lambda row: number(row, "percent"))
    if number(largest, "low") <= 0:
        return f"It carries {reached}; no loss is larger than what it is known within."
    remedy = _remedy(budget, largest)
    cause = describe_loss(largest["part"])
    return (
        f"It carries {reached}. The largest loss is {cause}: {_percent(largest)}{_ends(largest)}"
        f"{f'; {remedy}' if remedy else ''}."
    )


def _remedy(budget: LossBudget, largest: Row) -> str:
    """What would recover the largest loss, as far as that is known."""
    parts = largest["part"].split("+")
    if all(part in ROUTING_LOSSES for part in parts):
        return f"{REMEDIES[parts[-1] if len(parts) == 1 else 'paths']} would recover it, and no switch can"
    gains = [row for row in budget.changes if number(row, "low") > 0]
    if not gains:
        tried = [row for row in budget.changes if math.isfinite(number(row, "value"))]
        return "none of the changes tried recovers any of it" if tried else ""
    best = max(gains, key=lambda row: number(row, "percent"))
    name = CHANGES[best["change"]]
    if best["change"] == "vcs_and_buffers":
        name = f"{CHANGES['vcs']} and {CHANGES['buffers']}"
    return f"of the changes tried, {name} gains most, {_percent(best)}"


def warning(budget: LossBudget) -> str:
    """What to do about a window that costs too much; '' where it does not."""
    window = next((row for row in budget.losses if is_no_loss(row["part"])), None)
    if window is None or number(window, "percent") <= MAX_WINDOW_LOSS:
        return ""
    return (
        f"The window alone costs {_percent(window)}, which is no loss but the length of the run: measure longer "
        "(measure.ticks) before the parts below it are believed."
    )


def _percent(row: Row) -> str:
    return f"{number(row, 'percent'):.1f}\xa0%"


def _within(level: Row) -> str:
    """The interval of a rung in percent, where it is more than a number."""
    low, high = (number(level, "percent") * number(level, end) / number(level, "value") for end in ("lower", "upper"))
    return "" if f"{low:.1f}" == f"{high:.1f}" else f" ({low:.1f} to {high:.1f})"


def _ends(row: Row) -> str:
    """The interval, where it is more than a number."""
    low, high = (f"{number(row, end):.1f}" for end in ("percent_low", "percent_high"))
    return "" if low == high else f" ({low} to {high})"
