# SPDX-License-Identifier: Apache-2.0
"""Where a scenario saturates, as its points show it.

A load is *saturated* if the network does not carry what is offered (the flag ``saturated``, see
:mod:`flitlab.sim.measure.verdict`) or has come to a deadlock, and so is every load from ``limit`` on, the least
certified upper end that holds for the routing: there some demand cannot be met for ever, whatever a finite run shows.
The saturation point of a seed lies between the most that is carried, in units of load, below the lowest saturated load,
and that load; within this bracket it is taken to be the most that is carried up to and at that load. Below the limit
the flag comes a little late, at losses that exceed noise and 1 %; what is carried there is no more than the network can
carry, so the value does not depend on how late. A load at which the window was too short to tell is taken to be carried
as far as it was.

In a search the loads are probes (:mod:`flitlab.sim.measure.probe`), and nothing but these counts. A probe is carried,
saturated, or neither, and one that is carried at load x with a resolution d shows that x (1 - d) can be carried. The
saturation point is then the middle between the highest load that is carried and the lowest that is saturated, or the
most that probes up to there deliver, if that is less.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import Row, flag, number

LIMIT, LOSS, STARVING, CHANNEL = "limit", "loss", "starving", "channel"
SHORT, DIFFER = "short window", "draws differ"
"""Why a point is saturated, and why nothing is said of it (``saturated_by``)."""

SEARCHED = "searched"
"""Column of probes: whether the search that they are of has ended; empty in other rows."""

BACKGROUND = "background"
"""Column: what of the offered traffic does not grow with the load, in flits/tick/host."""


@dataclass(frozen=True)
class Bracket:
    """The saturation point of one seed and what holds it, in loads: lower <= value <= upper.

    lower: 0 if the lowest load is saturated. upper: the limit if none is. value: NaN if none is, and of a search that
    has not ended. over: the row at ``upper``, None if there is none. searched: whether it is that of a search. ended:
    whether that has ended.
    """

    lower: float
    upper: float
    value: float
    over: Row | None
    searched: bool = False
    ended: bool = True

    @property
    def half(self) -> float:
        """The distance of the farther end."""
        return max(self.value - self.lower, self.upper - self.value)


@dataclass(frozen=True)
class Saturation:
    """The saturation point of a scenario over its seeds, in loads.

    value: mean over seeds, NaN if one of them is never saturated. half: half-width of its 95 % Student interval over
    seeds and the resolution, NaN for the single one of a sweep. low, high: ends of this interval, within what is
    possible: from 0 to ``limit``. lower, upper: hold the brackets of all seeds. seeds: seed -> its own bracket.
    resolution: how far the value of a seed may be off.
    """

    value: float
    half: float
    low: float
    high: float
    lower: float
    upper: float
    seeds: dict[int, Bracket]
    resolution: float

    @property
    def ended(self) -> bool:
        """Whether the search of every seed, where there was one, has ended."""
        return all(one.ended for one in self.seeds.values())

    @property
    def plus_minus(self) -> float:
        """The half-width of the interval where it is as wide on either side; NaN where it ends at what is possible."""
        ends = self.value - self.half, self.value + self.half
        return self.half if (self.low, self.high) == ends else math.nan

    def at(self, column: str) -> float:
        """A column just past saturation, mean over seeds; NaN if nothing is known of it."""
        rows = [bracket.over for bracket in self.seeds.values() if bracket.over is not None]
        values = [number(row, column) for row in rows]
        known = [value for value in values if not math.isnan(value)]
        return fmean(known) if known else math.nan


def saturation(rows: Iterable[Row], limit: float = math.inf) -> Saturation | None:
    """The saturation point of the scenario that all these rows are of; None without a single load.

    limit: a load from which on everything counts as saturated, besides what the rows say (``saturated_from``).
    """
    by_seed: dict[int, list[Row]] = {}
    for row in rows:
        if is_over(row, limit) is not None:
            by_seed.setdefault(int(row["seed"]), []).append(row)
            limit = min(limit, _certain(row))
    seeds = {seed: bracket(of_seed, limit) for seed, of_seed in sorted(by_seed.items())}
    if not seeds:
        return None
    resolution = max(one.half for one in seeds.values())
    alone = 0.0 if all(one.searched for one in seeds.values()) else math.nan
    value, half = mean_and_half([one.value for one in seeds.values()], alone, resolution)
    low, high = max(value - half, 0.0), min(value + half, limit)
    lower, upper = min(one.lower for one in seeds.values()), max(one.upper for one in seeds.values())
    return Saturation(value, half, low, high, lower, upper, seeds, resolution)


def bracket(rows: Iterable[Row], limit: float = math.inf) -> Bracket:
    """The saturation point of one seed, from rows of different loads."""
    ordered = sorted(rows, key=lambda row: float(row["load"]))
    limit = min([limit, *(_certain(row) for row in ordered)])
    probes = [row for row in ordered if is_probe(row)]
    over = next((row for row in probes or ordered if is_over(row, limit)), None)
    first = math.inf if over is None else float(over["load"])
    below = [row for row in probes or ordered if float(row["load"]) < first]
    upper = min(first, limit)
    if probes:
        return _of_probes(probes, below, upper, over or next((row for row in ordered if is_over(row, limit)), None))
    lower = max((carried(row) for row in below), default=0.0)
    value = math.nan if over is None else min(max(carried(over), lower), upper)
    return Bracket(lower, upper, value, over)


def _of_probes(probes: Sequence[Row], below: Sequence[Row], upper: float, over: Row | None) -> Bracket:
    """The bracket of a search. below: the probes at loads below ``upper``."""
    seen = [row for row in below if not is_unclear(row)]
    lower = max((float(row["load"]) * (1 - number(row, "resolution")) for row in seen), default=0.0)
    highest = max((float(row["load"]) for row in seen), default=0.0)
    most = max((carried(row) for row in probes if float(row["load"]) <= upper), default=math.inf)
    ended = all(flag(row, SEARCHED) for row in probes)
    value = max(min((highest + upper) / 2, most), lower) if ended and math.isfinite(upper) else math.nan
    return Bracket(lower, upper, value, over, True, ended)


def is_probe(row: Row) -> bool:
    """Whether a row is a probe of a search for the saturation point."""
    return row.get(SEARCHED) not in (None, "")


def is_unclear(row: Row) -> bool:
    """Whether a row has no verdict: its window was too short to tell, or draws differ."""
    return row.get("saturated") in (None, "")


def is_over(row: Row, limit: float = math.inf) -> bool | None:
    """Whether a point is past saturation; None if it has not been measured."""
    if row.get("saturated") in (None, "") and row.get("saturated_by") not in (SHORT, DIFFER):
        return None
    over = float(row["load"]) >= min(limit, _certain(row))
    return over or any(flag(row, name) for name in ("saturated", "deadlocked"))


def limited(row: Row, load: float, limit: float) -> dict[str, Any]:
    """What a certain limit adds to the columns of a point: from it on the point is saturated, whatever it shows."""
    if "saturated" not in row:
        return {}
    limit = min(limit, _certain(row))
    over = {"saturated": True, "saturated_by": LIMIT} if load >= limit else {}
    return {"saturated_from": limit, **over}


def _certain(row: Row) -> float:
    """The load from which on a row's scenario is certainly saturated; inf where nothing is known."""
    value = number(row, "saturated_from")
    return math.inf if math.isnan(value) else value


def carried(row: Row) -> float:
    """Accepted traffic in units of load, at most the load; the load itself where nothing is known of it.

    Beside a background, what is not accepted counts as lost by the part that grows. That part may be less than the
    noise of the whole, so where no loss was found, there is none.
    """
    load, accepted, offered = (number(row, name) for name in ("load", "accepted", "offered"))
    fixed = number(row, BACKGROUND)
    if fixed > 0:
        if row.get("saturated") not in (None, "") and not flag(row, "saturated"):
            return load
        accepted, offered = max(accepted - fixed, 0.0), offered - fixed
    share = accepted / offered if offered > 0 else math.nan
    return load if math.isnan(share) else load * min(share, 1.0)
