# SPDX-License-Identifier: Apache-2.0
"""What is said of a claim: of each number whether it is possible, how much of the ceiling it is, and what proves it."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import asked
from flitlab.fluid.problem import FluidError
from flitlab.fluid.total import total
from flitlab.models.instance import Instance
from flitlab.sim.judge.claim import Claim, Point
from flitlab.sim.judge.deadlock import Deadlock, deadlock
from flitlab.sim.judge.quantity import Quantity
from flitlab.sim.judge.witness import Witness, of_theta, of_total
from flitlab.sim.judge.zero_load import ZeroLoad

POSSIBLE, IMPOSSIBLE = "possible", "impossible"

ROUNDING = 1e-9
"""By how much of it a number has to pass a limit to count as beyond it."""

GAP, ROUGH_GAP, FEW = 1e-3, 0.01, 512
"""Relative gap to which ceilings of at most so many switches are solved, and of more; where a number lies between their
ends, they are solved exactly."""

UNFAIR = 1e-6
"""A throughput may exceed the ceiling by so much, relatively, without a word on fairness."""


@dataclass(frozen=True)
class Check:
    """One reported number, judged.

    what: ``load``, ``throughput`` or ``latency``. limit: in flits per tick and host, or ticks; which: its name.
    efficiency: of a rate its share of the ceiling, of a latency the least one over it. witness: None if possible.
    """

    where: str
    what: str
    reported: Quantity
    possible: bool
    limit: float
    which: str
    efficiency: float
    note: str = ""
    witness: Witness | None = None
    hints: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``possible`` or ``impossible``."""
        return POSSIBLE if self.possible else IMPOSSIBLE

    def plain(self) -> dict[str, Any]:
        """The check as JSON has it."""
        number = self.reported
        return {
            "where": self.where, "quantity": self.what, "reported": number.text, "unit": number.unit,
            "value": number.value, "at_least": number.low, "at_most": number.high, "verdict": self.verdict,
            "limit": self.limit, "limited_by": self.which, "efficiency": self.efficiency, "note": self.note or None,
            "hints": list(self.hints), "witness": None if self.witness is None else self.witness.plain(),
        }  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What is said of a claim. ceiling: of its load, with the certificate."""

    claim: Claim
    ceiling: Ceiling
    checks: list[Check]
    deadlock: Deadlock | None

    @property
    def possible(self) -> bool:
        """Whether none of its numbers is impossible."""
        return all(check.possible for check in self.checks)

    @property
    def verdict(self) -> str:
        """``possible`` or ``impossible``."""
        return POSSIBLE if self.possible else IMPOSSIBLE

    @property
    def efficiency(self) -> float | None:
        """The largest share of the ceiling that a reported load or throughput is; None where none is reported."""
        return max((check.efficiency for check in self.checks if check.what != "latency"), default=None)

    @property
    def witness(self) -> Witness | None:
        """What proves the first impossible number; None if all are possible."""
        return next((check.witness for check in self.checks if check.witness is not None), None)

    @cached_property
    def sentence(self) -> str:
        """The verdict as a person would say it."""
        wrong = [check for check in self.checks if not check.possible]
        if wrong:
            first = wrong[0]
            beyond = "below the zero-load latency" if first.what == "latency" else "above what can be carried"
            several = f" ({len(wrong)} of {len(self.checks)} numbers are impossible)" if len(wrong) > 1 else ""
            proof = "" if first.witness is None else f" {first.witness.statement}"
            return f"Impossible: a {first.what} of {first.reported} is {beyond}{several}.{proof}"
        parts = []
        if self.efficiency is not None:
            parts.append(f"Possible: {100 * self.efficiency:.3g} % of the ceiling of this network and traffic.")
        else:
            least = max(self.checks, key=lambda check: check.efficiency)
            parts.append(f"Possible: the least latency reported is {1 / least.efficiency:.3g} times that at zero load.")
        parts += [check.note for check in self.checks if check.note][:1]
        if self.deadlock is not None and self.deadlock.prone:
            parts.append(f"Deadlock-prone: {self.deadlock.note}.")
        return " ".join(parts)

    def plain(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        row, stuck, topology = self.ceiling, self.deadlock, self.claim.instance.topology
        return {
            "name": self.claim.name, "verdict": self.verdict, "sentence": self.sentence, "efficiency": self.efficiency,
            "ceiling": row.ceiling, "ceiling_lower": row.lower, "ceiling_upper": row.upper, "ceiling_unit": row.unit,
            "ceiling_note": row.note or None, "witness": None if self.witness is None else self.witness.plain(),
            "deadlock_prone": None if stuck is None else stuck.prone, "deadlock": None if stuck is None else stuck.note,
            "reported": [check.plain() for check in self.checks], "assumed": self.claim.assumed,
            "topology": {
                "kind": topology.kind, "switches": topology.switches, "channels": topology.channels,
                "hosts": topology.hosts, "hash": topology.content_hash,
            },
            "traffic": {"kind": self.claim.instance.traffic.kind, "hash": self.claim.instance.traffic.content_hash},
        }  # fmt: skip


def judge(claim: Claim) -> Verdict:
    """Compares all that a claim reports with certified limits, which a verifier without solvers has confirmed.

    Raises :class:`~flitlab.fluid.problem.FluidError` where no ceiling is known, and
    :class:`~flitlab.sim.judge.witness.UnconfirmedError` where a certificate is not confirmed.
    """
    judged = _Judge(claim)
    checks = [check for point in claim.points for check in judged.checks(point)]
    return Verdict(claim, judged.ceiling, checks, deadlock(claim.instance, claim.vcs))


class _Judge:
    """The limits of one network and traffic, each computed when it is first needed."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.instance = claim, claim.instance
        traffic, topology = claim.instance.traffic, claim.instance.topology
        self.senders = claim.senders
        self.share = float(traffic.rate.sum()) / self.senders  # flits per tick that a sender creates at load 1, in mean
        self.gap = GAP if topology.switches <= FEW else ROUGH_GAP
        self.ceiling = _least(self.instance, "auto", self.gap)
        self._totals: dict[float, Ceiling] = {}

    @cached_property
    def zero_load(self) -> ZeroLoad:
        assert self.claim.delays is not None
        return ZeroLoad(self.instance, self.claim.delays, self.claim.flits)

    def checks(self, point: Point) -> list[Check]:
        """The checks of all that a point reports."""
        found = []
        if point.load is not None and point.throughput is None:
            found.append(self._of_load(point, point.load))
        if point.throughput is not None:
            found.append(self._of_throughput(point, point.throughput))
        if point.latency is not None:
            found.append(self._of_latency(point, point.latency))
        return found

    def _of_load(self, point: Point, load: Quantity) -> Check:
        """A load that is carried: every demand is met."""
        claimed = load.low
        self._solve_for(claimed)
        possible = claimed <= self.ceiling.upper * (1 + ROUNDING)
        witness = None if possible else of_theta(self.instance, self.ceiling, claimed)
        limit = self.ceiling.upper
        hints = () if possible else self._hints(load.value, limit)
        return Check(
            point.where, "load", load, possible, limit, self.ceiling.ceiling, load.value / limit, "", witness, hints
        )  # fmt: skip

    def _of_throughput(self, point: Point, throughput: Quantity) -> Check:
        """What hosts receive on average, which an unfair network may raise above the ceiling of a demand met by all."""
        ceiling = self.ceiling.upper * self.share
        efficiency = throughput.value / ceiling
        offered = None if point.load is None else point.load.high
        within = ROUNDING + 1
        if throughput.low <= within * self.share * min(self.ceiling.lower, offered or math.inf):
            return Check(
                point.where, "throughput", throughput, True, ceiling, self.ceiling.ceiling, efficiency
            )  # fmt: skip
        row = self._total(self._most_offered() if offered is None else offered)
        most = row.upper * self.instance.topology.hosts / self.senders
        possible = throughput.low <= most * within
        if possible:
            beyond = efficiency > 1 + UNFAIR
            note = (
                f"A throughput of {throughput} is above the load at which every demand is met, {ceiling:.6g}: it is "
                "possible only where some demands get less than others."
            )
            return Check(
                point.where, "throughput", throughput, True, most, "total", efficiency, note if beyond else ""
            )  # fmt: skip
        hints = self._hints(throughput.value, min(ceiling, most))
        witness = self._beyond_total(row, throughput.low * self.senders / self.instance.topology.hosts)
        return Check(
            point.where, "throughput", throughput, False, most, witness.ceiling, efficiency, "", witness, hints
        )  # fmt: skip

    def _beyond_total(self, row: Ceiling, claimed: float) -> Witness:
        """Why less arrives than ``claimed`` per host: that is more than hosts create, or a cut or lengths prove it."""
        assert row.load is not None
        offer = row.load * self.share
        created = offer * self.senders
        if row.certificate is not None and row.upper * self.instance.topology.hosts < created * (1 - ROUNDING):
            return of_total(self.instance, row, claimed)
        statement = (
            f"At load {row.load:.6g}, hosts that send create {offer:.6g} flits per tick each, on average, and no "
            "network delivers more than that."
        )
        return Witness("offer", statement, "offer", offer, {"load": row.load})

    def _of_latency(self, point: Point, latency: Quantity) -> Check:
        """A mean latency: of all demands, or of the nearest ones where a throughput says that not all are served."""
        share = 1.0
        if point.throughput is not None and point.load is not None:
            share = min(1.0, point.throughput.high / (point.load.low * self.share))
            share = 1.0 if share >= 1 - 2 * point.throughput.error else share
        least = self.zero_load.least(share)
        possible = latency.high >= least.ticks * (1 - ROUNDING)
        efficiency = least.ticks / latency.value
        if possible:
            return Check(point.where, "latency", latency, True, least.ticks, "zero_load", efficiency)
        delays = self.claim.delays
        assert delays is not None
        nearest = "" if share >= 1 else f" of the nearest {100 * share:.3g} % of the demand"
        statement = (
            f"Packets{nearest} have {least.hops:.6g} hops between switches on average and take {least.network:.6g} "
            f"cycles for them, {least.ends:g} for the rest, and {least.tail:g} until their tail has followed: "
            f"{least.ticks:.6g} cycles with nobody in their way."
        )
        facts = {
            "hops_mean": least.hops,
            "hop_cycles": delays.hop,
            "ends_cycles": least.ends,
            "tail_cycles": least.tail,
        }
        witness = Witness("zero_load", statement, "zero_load", least.ticks, facts)
        return Check(
            point.where, "latency", latency, False, least.ticks, "zero_load", efficiency, "", witness,
            _latency_hints(latency.value, least.ticks, self.claim),
        )  # fmt: skip

    def _solve_for(self, claimed: float) -> None:
        """Solves the ceiling exactly where a claim lies between its ends."""
        row = self.ceiling
        if row.lower * (1 - ROUNDING) < claimed <= row.upper and row.upper > row.lower * (1 + ROUNDING):
            try:
                closer = _least(self.instance, "exact", self.gap)
            except FluidError:
                return
            if closer.upper < row.upper:
                self.ceiling = closer

    def _most_offered(self) -> float:
        """The load at which the busiest host creates as much as its channel takes."""
        return float(self.instance.topology.host_capacity / self.instance.traffic.rate.max())

    def _total(self, load: float) -> Ceiling:
        """The most that hosts receive at a load, per host."""
        if load not in self._totals:
            topology, traffic = self.instance.topology, self.instance.traffic
            found = total(topology, traffic, load, ROUGH_GAP, "auto")
            row = Ceiling(
                "total", load, found.lower / topology.hosts, found.upper / topology.hosts, "flits/tick/host",
                found.method, 0.0, found.note, found.certificate,
            )  # fmt: skip
            self._totals[load] = replace(row, upper=min(row.upper, load * float(traffic.rate.mean())))
        return self._totals[load]

    def _hints(self, value: float, limit: float) -> tuple[str, ...]:
        """The slips of which each alone would make a rate possible, the mildest first."""
        topology = self.instance.topology
        slips = [
            (2.0, "a factor 2, as of links counted in both directions"), (8.0, "bits for bytes"),
            (self.senders / topology.switches, "a mean per switch for one per host"),
            (self.claim.flits, "flits for packets"), (float(self.senders), "the whole network for one host"),
        ]  # fmt: skip
        told = {}
        for factor, what in sorted(slips, key=lambda slip: slip[0]):
            if factor > 1 and value / factor <= limit and factor not in told:
                told[factor] = f"divided by {factor:g} ({what}) it would be {100 * value / factor / limit:.3g} %"
        return tuple(told.values())


def _least(instance: Instance, method: str, gap: float) -> Ceiling:
    """The ceiling of loads: by any routing, or over the routes where these are fixed beforehand and carry less."""
    specs = [asked("mcf", method=method, gap=gap)]
    if instance.routes is not None and instance.routes.oblivious:
        specs.append(asked("mcf_paths", method=method, gap=gap))
    free, *routed = ceilings(instance, specs)
    return next((row for row in routed if row.upper < free.lower * (1 - ROUNDING)), free)


def _latency_hints(value: float, least: float, claim: Claim) -> tuple[str, ...]:
    """The slips of which each alone would make a latency possible."""
    slips = [(2.0, "of one way instead of both"), (1000.0, "of a unit a thousand times larger")]
    found = [f"times {factor:g} ({what}) it would be possible" for factor, what in slips if value * factor >= least]
    if claim.flits > 1 and value + claim.flits - 1 >= least:
        found.append(f"plus {claim.flits - 1:g} cycles (of the head instead of the tail) it would be possible")
    return tuple(found)
