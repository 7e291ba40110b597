# SPDX-License-Identifier: Apache-2.0
"""Loss budgets, as their tables have them, and their answer in a sentence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flitlab.models.mappings import Row
from flitlab.sim.measure.rows import number

TABLES = ("budget", "budget_parts", "budget_sensitivities", "budget_channels")
"""Tables of a loss budget, by the names of their files."""

LEVELS = {
    "mcf": "any routing", "mcf_paths": "best use of its paths", "split": "its own split", "ideal": "ideal switch",
    "infinite_buffers": "buffers without limit", "full_speedup": "no limit in the crossbar", "switch": "this switch",
}  # fmt: skip
"""Level -> its meaning."""

LOSS_CAUSES = {
    "paths": "the paths of the routing", "weights": "how the routing spreads traffic over its paths",
    "window": "the window of the run", "blocking": "head-of-line blocking", "buffers": "waiting for buffer space",
    "crossbar": "the crossbar",
}  # fmt: skip
"""Loss (column ``part``) -> its cause."""

CHANGES = {
    "vcs": "twice the VCs", "buffers": "four times the buffers", "vcs_and_buffers": "both of these at once",
    "speedup": "every VC of an input read at once", "oldest": "the oldest packet first",
    "packets": "packets of a quarter of the length", "rising": "VCs that rise along a route",
}  # fmt: skip
"""Sensitivity -> the change of the switch."""

HOSTS = "hosts"
"""Stands for all host channels together among the bottlenecks."""

ROUTING_LOSSES, WINDOW = ("paths", "weights"), "window"
"""Losses that do not depend on the switch; the one that is an effect of the window."""

REMEDIES = {
    "paths": "a routing over more or longer paths (routing: optimal)",
    "weights": "other weights on the same paths (routing: optimal)",
    "window": "a longer window",
}
"""What recovers a loss that no change of the switch recovers."""

MAX_WINDOW_LOSS = 2.0
"""Percent of mcf above which the window is too short for the other losses to be trusted."""


@dataclass(frozen=True)
class LossBudget:
    """The loss budget of a scenario: rows of its tables, as in :data:`TABLES`."""

    scenario: str
    levels: Sequence[Row]
    losses: Sequence[Row]
    changes: Sequence[Row]
    channels: Sequence[Row]

    @property
    def known(self) -> bool:
        """Whether any loss is known."""
        return bool(self.losses)

    def level(self, name: str) -> Row | None:
        """The row of a level; None if it is omitted."""
        return next((row for row in self.levels if row["rung"] == name and row["kind"] != "omitted"), None)

    @property
    def left_out(self) -> dict[str, str]:
        """Omitted level -> the reason."""
        return {row["rung"]: row["note"] for row in self.levels if row["kind"] == "omitted"}


def loss_budgets(tables: Mapping[str, Sequence[Row]]) -> list[LossBudget]:
    """Return the loss budgets of a run, in the order of its scenarios. tables: by the names of :data:`TABLES`."""
    scenarios = dict.fromkeys(row["scenario"] for row in tables.get(TABLES[0], ()))
    return [
        LossBudget(scenario, *([row for row in tables.get(name, ()) if row["scenario"] == scenario] for name in TABLES))
        for scenario in scenarios
    ]


def loss_budgets_of_files(tables: Mapping[str, Sequence[Row]]) -> list[LossBudget]:
    """Return the loss budgets of a run from tables by the names of their files."""
    return loss_budgets({name: tables.get(f"{name}.csv", []) for name in TABLES})


def describe_loss(part: str) -> str:
    """Describe the cause of a loss; a loss across omitted levels has several.

    >>> describe_loss("buffers"), describe_loss("paths+weights")
    ('waiting for buffer space', 'the paths of the routing and how the routing spreads traffic over its paths')
    """
    names = [LOSS_CAUSES[one] for one in part.split("+")]
    if len(names) == len(LOSS_CAUSES):
        return "all losses between any routing and this switch"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_insignificant(row: Row) -> bool:
    """Whether the interval of a loss, or of a sensitivity, contains 0."""
    return number(row, "low") <= 0 <= number(row, "high")


def is_no_loss(part: str) -> bool:
    """Whether a loss is an effect of the window only."""
    return part == WINDOW


def sentence(budget: LossBudget, name: str = "") -> str:
    """Return the largest loss of a scenario and what would recover it, in a sentence; '' without losses.

    name: of the scenario.
    """
    switch, losses = budget.level("switch"), [row for row in budget.losses if not is_no_loss(row["part"])]
    if switch is None or not losses:
        return ""
    reached = f"{_percent(switch)}{_within(switch)} of what any routing could carry"
    largest = max(losses, key=lambda row: number(row, "percent"))
    if number(largest, "low") <= 0:
        return f"{name or 'It'} carries {reached}; its largest loss does not differ significantly from 0."
    remedy = _remedy(budget, largest)
    cause = describe_loss(largest["part"])
    return (
        f"{name or 'It'} carries {reached}. Its largest loss is {cause}: {_percent(largest)}{_ends(largest)}"
        f"{f'; {remedy}' if remedy else ''}."
    )


def _remedy(budget: LossBudget, largest: Row) -> str:
    """What would recover the largest loss, as far as known."""
    parts = largest["part"].split("+")
    if all(part in ROUTING_LOSSES for part in parts):
        return f"{REMEDIES[parts[-1] if len(parts) == 1 else 'paths']} would recover it, and no switch can"
    gains = [row for row in budget.changes if number(row, "low") > 0]
    if not gains:
        tried = [row for row in budget.changes if math.isfinite(number(row, "value"))]
        return "no change of the switch that was tried recovers it" if tried else ""
    best = max(gains, key=lambda row: number(row, "percent"))
    name = CHANGES[best["change"]]
    if best["change"] == "vcs_and_buffers":
        name = f"{CHANGES['vcs']} and {CHANGES['buffers']}"
    return f"of the changes of the switch that were tried, {name} gains most, {_percent(best)}"


def warning(budget: LossBudget) -> str:
    """Return the advice about a window that is too short; '' for a long enough one."""
    window = next((row for row in budget.losses if is_no_loss(row["part"])), None)
    if window is None or number(window, "percent") <= MAX_WINDOW_LOSS:
        return ""
    return (
        f"The window is too short: it accounts for {_percent(window)} of mcf, more than {MAX_WINDOW_LOSS:g}\xa0%. "
        "Increase measure.ticks before trusting the losses below it."
    )


def _percent(row: Row) -> str:
    return f"{number(row, 'percent'):.1f}\xa0%"


def _within(level: Row) -> str:
    """The interval of a level in percent, if it is wider than the printed digits."""
    low, high = (number(level, "percent") * number(level, end) / number(level, "value") for end in ("lower", "upper"))
    return "" if f"{low:.1f}" == f"{high:.1f}" else f" ({low:.1f} to {high:.1f})"


def _ends(row: Row) -> str:
    """The interval of a loss, if it is wider than the printed digits."""
    low, high = (f"{number(row, end):.1f}" for end in ("percent_low", "percent_high"))
    return "" if low == high else f" ({low} to {high})"
