# SPDX-License-Identifier: Apache-2.0
"""Whether a reported load is delivered at the reported throughput, and which error would explain a shortfall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flitlab.sim.judge.quantity import Quantity


class UnitSlip(NamedTuple):
    """A mistaken unit that makes a rate ``factor`` times too large, more than 1. what: as in ``flits for packets``."""

    factor: float
    what: str


def unit_slips(flits: float, senders: int, switches: int) -> list[UnitSlip]:
    """Common mistakes of units, by increasing factor, one for each factor.

    Parameters
    ----------
    flits : float
        Mean length of a packet.
    senders : int
        Hosts that send.
    switches : int
        Switches of the network.
    """
    every = [
        UnitSlip(2.0, "a factor 2, as of links counted in both directions"), UnitSlip(8.0, "bits for bytes"),
        UnitSlip(senders / switches, "a mean per switch for one per host"), UnitSlip(flits, "flits for packets"),
        UnitSlip(float(senders), "the whole network for one host"),
    ]  # fmt: skip
    by_factor: dict[float, UnitSlip] = {}
    for slip in sorted(every, key=lambda slip: slip.factor):
        if slip.factor > 1:
            by_factor.setdefault(slip.factor, slip)
    return list(by_factor.values())


@dataclass(frozen=True)
class Delivery:
    """A load, and the throughput that is reported with it.

    mean: flits/tick that a sending host creates at load 1, on average. ceiling: the load that no routing exceeds.
    """

    load: Quantity
    throughput: Quantity
    mean: float
    ceiling: float

    @property
    def share(self) -> float:
        """The share of the created flits that is delivered."""
        return self.throughput.value / (self.load.value * self.mean)

    @property
    def is_short(self) -> bool:
        """Whether less is delivered than hosts create, within the errors of both numbers."""
        return self.throughput.high < self.load.low * self.mean

    @property
    def carried(self) -> bool:
        """Whether as much is delivered as hosts create, within the errors of both numbers."""
        return self.is_consistent(1.0)

    @property
    def overload(self) -> bool:
        """Whether the load exceeds what any routing carries."""
        return self.load.low > self.ceiling

    def is_consistent(self, factor: float) -> bool:
        """Whether as much is delivered as hosts create if the load is ``factor`` times less than reported."""
        created = self.mean / factor
        return self.load.low * created <= self.throughput.high and self.throughput.low <= self.load.high * created

    def is_explained(self, factor: float, reached: float) -> bool:
        """Whether the throughput fits a load that is ``factor`` times less: equal, or less beyond saturation.

        reached: flits/tick per sending host that some routing delivers.
        """
        created = self.mean / factor
        saturated = self.load.low * created > reached and self.throughput.low <= self.load.high * created
        return saturated or self.is_consistent(factor)

    def shortfall_text(self, ceiling: float) -> str:
        """What a shortfall means. ceiling: as a throughput, in flits/tick/host."""
        arrives, most = (
            f"Of a load of {self.load} {100 * self.share:.3g} % arrives",
            self.throughput.unit.at_most(ceiling),
        )
        why = f"{arrives}, and the ceiling is {most}. In steady state a load below saturation arrives in full"
        if self.overload:
            share = f"{100 * self.throughput.value / ceiling:.3g} %"
            why = f"{arrives}: no routing carries more than {most}, and {share} of that arrives. "
            why += "Past saturation a network delivers about what it does at saturation"
        return (
            f"{why}: so the network saturates at {self.throughput} or less, or the sources or the network drop or "
            "queue the rest, or the unit of one of the two numbers is wrong."
        )

    def run_length_text(self, latency: Quantity) -> str:
        """Upper bound on the length of the run, warm-up included, if undelivered flits wait in source queues.

        A source that creates c and sends d < c in order sends at t what it created at t d / c, so the mean latency over
        a run of T is at least T (1 - d / c) / 2.
        """
        longest_run = latency.unit.at_most(2 * latency.high / (1 - self.share))
        return (
            f"Had the rest waited at sources that are served alike, a mean latency of {latency} would be that of a run "
            f"of {longest_run} at most."
        )


def unit_explanation(deliveries: Sequence[Delivery], every: Sequence[UnitSlip], reached: float) -> str:
    """Which mistaken unit would make the loads and throughputs of an entry consistent, or that none would.

    Parameters
    ----------
    deliveries : sequence of Delivery
        Loads and throughputs of the entry.
    every : sequence of UnitSlip
        Mistakes that are considered.
    reached : float
        Flits/tick per sending host that some routing delivers.
    """
    explanations = [
        _explanation(deliveries[0], slip.factor, slip.what, len(deliveries))
        for slip in every if all(one.is_explained(slip.factor, reached) for one in deliveries)
        and any(one.is_consistent(slip.factor) for one in deliveries)
    ]  # fmt: skip
    if explanations:
        return " ".join(explanations)
    considered = ", ".join(f"{slip.factor:g} ({slip.what})" for slip in every)
    at_all_loads = " at all loads" if len(deliveries) > 1 else ""
    return f"No slip of a unit makes the two agree{at_all_loads}: {considered}."


def _explanation(one: Delivery, factor: float, what: str, count: int) -> str:
    read = f"Divided by {factor:g} ({what})"
    if count > 1:
        return f"{read} every load would arrive, or be above the ceiling."
    load = one.load.unit.about(one.load.value / factor)
    return f"{read} the load would be {load}, and {100 * factor * one.share:.3g} % of it would arrive."
