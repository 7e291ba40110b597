# SPDX-License-Identifier: Apache-2.0
"""The saturation point of a scenario, from its measured points.

A load is *saturated* if the network does not carry the offered traffic (the flag ``saturated``, see
:mod:`flitlab.sim.measure.verdict`) or deadlocks. Every load from ``limit`` on is saturated, too: the least certified
upper end that holds for the routing, beyond which some demand cannot be met indefinitely.

The saturation point of a seed lies in a bracket: at least the most that is carried, in units of load, below the lowest
saturated load, and at most that load. Its value is the most that is carried up to and at that load. Below the limit the
flag is raised late, at losses above noise and 1 %; the network carries no more there than it can, so the value does not
depend on the delay. Beyond the limit, more than the limit may be delivered, of an uneven demand or on an uneven
network: all but what the busiest channels refuse. That says nothing of the point, which has no value then. A load whose
window was too short counts as carried as far as it was.

In a search only the probes count (:mod:`flitlab.sim.measure.probe`). A probe is carried, saturated or undecided; one
carried at load x with resolution d shows that x (1 - d) can be carried. The saturation point is the middle between the
highest carried and the lowest saturated load, or the most that probes up to there deliver, if that is less.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from flitlab.models.mappings import Row
from flitlab.sim.measure.interval import mean_and_half, mean_known
from flitlab.sim.measure.rows import flag, number


class SaturatedBy(StrEnum):
    """Why a point is saturated, or undecided (values of ``saturated_by``)."""

    LIMIT = "limit"
    LOSS = "loss"
    STARVING = "starving"
    CHANNEL = "channel"
    SHORT = "short window"
    DIFFER = "draws differ"


NOISE = 0.01
"""What a saturated point may deliver beyond a certified limit, as a part of it, to be as much as the limit."""

SEARCHED = "searched"
"""Column of probes: whether their search has ended; empty in other rows."""

BACKGROUND = "background"
"""Column: offered traffic that does not grow with the load, in flits/tick/host."""


@dataclass(frozen=True)
class Bracket:
    """The saturation point of one seed and its bracket, in loads: lower <= value <= upper.

    lower: 0 if the lowest load is saturated. upper: the limit if no load is. value: NaN if no load is saturated, if
    the lowest saturated one delivers more than the limit, and while a search has not ended. over: the row at
    ``upper``, None if there is none. searched: whether it is from a search. ended: whether that search has ended.
    """

    lower: float
    upper: float
    value: float
    over: Row | None
    searched: bool = False
    ended: bool = True

    @property
    def half(self) -> float:
        """The distance from the value to the farther end."""
        return max(self.value - self.lower, self.upper - self.value)


@dataclass(frozen=True)
class Saturation:
    """The saturation point of a scenario over its seeds, in loads.

    value: mean over seeds, NaN if one of them is never saturated. half: half-width of the 95 % interval (Student's t
    over seeds, plus the resolution); NaN for a sweep with a single seed. low, high: the interval, clipped to 0 and
    ``limit``. lower, upper: hold the brackets of all seeds. seeds: seed -> bracket. resolution: largest error of the
    value of a seed.
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
        """Whether the searches of all seeds have ended."""
        return all(one.ended for one in self.seeds.values())

    @property
    def plus_minus(self) -> float:
        """The half-width of the interval if it is symmetric; NaN if it is clipped."""
        ends = self.value - self.half, self.value + self.half
        return self.half if (self.low, self.high) == ends else math.nan

    def at(self, column: str) -> float:
        """The mean over seeds of a column just past saturation; NaN if unknown."""
        rows = [bracket.over for bracket in self.seeds.values() if bracket.over is not None]
        return mean_known(number(row, column) for row in rows)


def saturation(rows: Iterable[Row], limit: float = math.inf) -> Saturation | None:
    """Return the saturation point of the scenario of these rows.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of results.csv, of all loads and seeds.
    limit : float
        A load from which on all points count as saturated, besides the rows' ``saturated_from``.

    Returns
    -------
    Saturation or None
        None without a measured load.
    """
    by_seed: dict[int, list[Row]] = {}
    for row in rows:
        if is_saturated(row, limit) is not None:
            by_seed.setdefault(int(row["seed"]), []).append(row)
            limit = min(limit, _certified_limit(row))
    seeds = {seed: bracket(of_seed, limit) for seed, of_seed in sorted(by_seed.items())}
    if not seeds:
        return None
    resolution = max(one.half for one in seeds.values())
    single_half = 0.0 if all(one.searched for one in seeds.values()) else math.nan
    value, half = mean_and_half([one.value for one in seeds.values()], single_half, resolution)
    low, high = max(value - half, 0.0), min(value + half, limit)
    lower, upper = min(one.lower for one in seeds.values()), max(one.upper for one in seeds.values())
    return Saturation(value, half, low, high, lower, upper, seeds, resolution)


def bracket(rows: Iterable[Row], limit: float = math.inf) -> Bracket:
    """Return the saturation point of one seed from rows of different loads; limit: as in :func:`saturation`."""
    ordered = sorted(rows, key=lambda row: float(row["load"]))
    limit = min([limit, *(_certified_limit(row) for row in ordered)])
    probes = [row for row in ordered if is_probe(row)]
    over = next((row for row in probes or ordered if is_saturated(row, limit)), None)
    first = math.inf if over is None else float(over["load"])
    below = [row for row in probes or ordered if float(row["load"]) < first]
    upper = min(first, limit)
    if probes:
        return _of_probes(
            probes, below, upper, over or next((row for row in ordered if is_saturated(row, limit)), None)
        )
    lower = max((carried(row) for row in below), default=0.0)
    most = math.nan if over is None else carried(over)
    value = min(max(most, lower), upper) if most <= upper * (1 + NOISE) else math.nan
    return Bracket(lower, upper, value, over)


def _of_probes(probes: Sequence[Row], below: Sequence[Row], upper: float, over: Row | None) -> Bracket:
    """Return the bracket of a search. below: the probes at loads below ``upper``."""
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
    """Whether a row has no verdict: its window was too short to decide, or draws differ."""
    return row.get("saturated") in (None, "")


def is_saturated(row: Row, limit: float = math.inf) -> bool | None:
    """Whether a point is saturated; None if it has not been measured."""
    if row.get("saturated") in (None, "") and row.get("saturated_by") not in (SaturatedBy.SHORT, SaturatedBy.DIFFER):
        return None
    over = float(row["load"]) >= min(limit, _certified_limit(row))
    return over or any(flag(row, name) for name in ("saturated", "deadlocked"))


def limited(row: Row, load: float, limit: float) -> Row:
    """Return the columns of a point that follow from a certified limit: from it on the point is saturated."""
    if "saturated" not in row:
        return {}
    limit = min(limit, _certified_limit(row))
    over = {"saturated": True, "saturated_by": SaturatedBy.LIMIT} if load >= limit else {}
    return {"saturated_from": limit, **over}


def _certified_limit(row: Row) -> float:
    """The load from which on a row's scenario is certainly saturated; inf if unknown."""
    value = number(row, "saturated_from")
    return math.inf if math.isnan(value) else value


def carried(row: Row) -> float:
    """Return the accepted traffic in units of load, at most the load; the load itself if unknown.

    With background traffic, only the growing part counts as lost. That part may be less than the noise of the total, so
    where no loss was detected, there is none.
    """
    load, accepted, offered = (number(row, name) for name in ("load", "accepted", "offered"))
    fixed = number(row, BACKGROUND)
    if fixed > 0:
        if row.get("saturated") not in (None, "") and not flag(row, "saturated"):
            return load
        accepted, offered = max(accepted - fixed, 0.0), offered - fixed
    share = accepted / offered if offered > 0 else math.nan
    return load if math.isnan(share) else load * min(share, 1.0)
