# SPDX-License-Identifier: Apache-2.0
"""Verdict on a claim: whether each number is possible, its share of the ceiling, and the proof."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from flitlab.fluid.ceiling import Ceiling
from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.problem import FluidError
from flitlab.fluid.total import total
from flitlab.models.instance import Instance
from flitlab.models.mappings import JsonObject
from flitlab.sim.judge.claim import Claim, ClaimPoint
from flitlab.sim.judge.deadlock import DeadlockRisk, deadlock
from flitlab.sim.judge.delivery import Delivery, unit_explanation, unit_slips
from flitlab.sim.judge.quantity import ROUNDING, Quantity, Unit
from flitlab.sim.judge.witness import Witness, witness_of_theta, witness_of_total
from flitlab.sim.judge.zero_load import ZeroLoad

POSSIBLE, IMPOSSIBLE = "possible", "impossible"

GAP, ROUGH_GAP, FINE_SWITCHES = 1e-3, 0.01, 512
"""Relative gap of ceilings up to a number of switches, gap on larger networks, and that number; where a number is
between the ends of a ceiling, it is solved exactly."""

UNFAIR = 1e-6
"""Relative excess of a throughput over the ceiling up to which fairness is not mentioned."""


@dataclass(frozen=True)
class Check:
    """The verdict on one reported number.

    what: ``load``, ``throughput`` or ``latency``. limit: in flits/tick/host, or ticks; which: its name. efficiency: of
    a rate its share of the ceiling, of a latency the least one over it. delivery: of a throughput with a load. witness:
    None if possible.
    """

    where: str
    what: str
    reported: Quantity
    possible: bool
    limit: float
    limit_name: str
    efficiency: float
    note: str = ""
    witness: Witness | None = None
    hints: tuple[str, ...] = ()
    delivery: Delivery | None = None

    @property
    def verdict(self) -> str:
        """``possible`` or ``impossible``."""
        return POSSIBLE if self.possible else IMPOSSIBLE

    @property
    def verdict_text(self) -> str:
        """The verdict, and whether the load is delivered."""
        is_short = self.possible and self.delivery is not None and self.delivery.is_short
        return f"{self.verdict}, not carried" if is_short else self.verdict

    @property
    def share(self) -> float:
        """A rate over its limit, or the least latency over the reported one: at most 1 if possible."""
        value = self.reported.value
        return self.limit / value if self.what == "latency" else value / self.limit

    @property
    def shown_limit(self) -> str:
        """The limit in the reported unit: rounded up, of a latency down."""
        unit = self.reported.unit
        return unit.at_least(self.limit) if self.what == "latency" else unit.at_most(self.limit)

    def plain(self) -> JsonObject:
        """The check as a JSON object, with all numbers in ``unit``."""
        number, factor = self.reported, self.reported.unit.factor
        return {
            "where": self.where, "quantity": self.what, "reported": number.text, "unit": number.unit.name,
            "value": number.value / factor, "at_least": number.low / factor, "at_most": number.high / factor,
            "native_unit": "ticks" if self.what == "latency" else "load" if self.what == "load" else "flits/tick/host",
            "native_per_unit": factor, "verdict": self.verdict, "limit": self.limit / factor,
            "limited_by": self.limit_name,
            "share": self.share, "efficiency": self.efficiency,
            "delivered": None if self.delivery is None else self.delivery.share,
            "carried": None if self.delivery is None else self.delivery.carried, "note": self.note or None,
            "hints": list(self.hints), "witness": None if self.witness is None else self.witness.plain(),
        }  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim.

    ceiling: of its load, with the certificate. mean: flits/tick that a sending host creates at load 1, on average.
    unit_explanation: which unit would make loads and throughputs consistent, '' where they are.
    """

    claim: Claim
    ceiling: Ceiling
    mean: float
    checks: list[Check]
    deadlock: DeadlockRisk | None
    unit_explanation: str = ""

    @property
    def possible(self) -> bool:
        """Whether all numbers are possible."""
        return all(check.possible for check in self.checks)

    @property
    def verdict(self) -> str:
        """``possible`` or ``impossible``."""
        return POSSIBLE if self.possible else IMPOSSIBLE

    @property
    def efficiency(self) -> float | None:
        """The largest share of the ceiling among reported loads and throughputs; None if there are none."""
        return max((check.efficiency for check in self.checks if check.what != "latency"), default=None)

    @property
    def deliveries(self) -> list[Delivery]:
        """The loads that are reported with a throughput."""
        return [check.delivery for check in self.checks if check.delivery is not None]

    @property
    def carried(self) -> bool | None:
        """Whether every load that is reported with a throughput is delivered; None if there is none."""
        return all(one.carried for one in self.deliveries) if self.deliveries else None

    @property
    def witness(self) -> Witness | None:
        """The proof that the first impossible number is impossible; None if all are possible."""
        return next((check.witness for check in self.checks if check.witness is not None), None)

    @cached_property
    def units(self) -> list[tuple[str, Unit]]:
        """The units of rates in the claim, each with its quantity, in order."""
        by_unit = {(check.what, check.reported.unit.name): check for check in self.checks if check.what != "latency"}
        return [(check.what, check.reported.unit) for check in by_unit.values()]

    def ceiling_in(self, what: str, unit: Unit) -> tuple[float, float]:
        """Both ends of the ceiling as a load or a throughput, in a unit."""
        mean = self.mean if what == "throughput" else 1.0
        return self.ceiling.lower * mean / unit.factor, self.ceiling.upper * mean / unit.factor

    @cached_property
    def sentence(self) -> str:
        """The verdict in one sentence, with its reasons."""
        wrong = [check for check in self.checks if not check.possible]
        parts = [self._impossible(wrong)] if wrong else [self._possible()]
        if any(one.is_short for one in self.deliveries):
            parts += [self._not_carried(), self.unit_explanation]
        else:
            parts += [check.note for check in self.checks if check.note and not wrong][:1]
        if not wrong and self.deadlock is not None and self.deadlock.prone:
            parts.append(f"Deadlock-prone: {self.deadlock.note}.")
        return " ".join(filter(None, parts))

    def _impossible(self, wrong: list[Check]) -> str:
        first = wrong[0]
        beyond = "below the zero-load latency" if first.what == "latency" else "above what can be carried"
        count = f" ({len(wrong)} of {len(self.checks)} numbers are impossible)" if len(wrong) > 1 else ""
        proof = "" if first.witness is None else f" {first.witness.statement}"
        return f"Impossible: a {first.what} of {first.reported} is {beyond}{count}.{proof}"

    def _possible(self) -> str:
        if self.efficiency is None:
            least = max(self.checks, key=lambda check: check.efficiency)
            return f"Possible: the least latency reported is {1 / least.efficiency:.3g} times that at zero load."
        what, unit = self.units[0]
        ceiling = unit.at_most(self.ceiling_in(what, unit)[1] * unit.factor)
        return f"Possible: {100 * self.efficiency:.3g} % of the ceiling of this network and traffic, {ceiling}."

    def _not_carried(self) -> str:
        """Which loads are not delivered, and the meaning at the one with the least share."""
        short = [check for check in self.checks if check.delivery is not None and check.delivery.is_short]
        count = f"At {len(short)} of {len(self.deliveries)} loads less arrives than hosts create. " if short[1:] else ""
        # below the ceiling a shortfall needs a reason
        worst = min(short, key=lambda check: (check.delivery.overload, check.delivery.share))  # type: ignore[union-attr]
        return f"Not carried. {count}{worst.note}"

    def plain(self) -> JsonObject:
        """The verdict as a JSON object. Ceilings are loads, and in ``ceilings`` in the units of the claim."""
        row, deadlock, topology = self.ceiling, self.deadlock, self.claim.instance.topology
        return {
            "name": self.claim.name, "verdict": self.verdict, "carried": self.carried, "sentence": self.sentence,
            "efficiency": self.efficiency, "delivered": min((one.share for one in self.deliveries), default=None),
            "ceiling": row.ceiling, "ceiling_lower": row.lower, "ceiling_upper": row.upper, "ceiling_unit": row.unit,
            "ceilings": [
                {"quantity": what, "unit": unit.name, "lower": ends[0], "upper": ends[1]}
                for what, unit in self.units for ends in [self.ceiling_in(what, unit)]
            ],
            "ceiling_note": row.note or None, "witness": None if self.witness is None else self.witness.plain(),
            "deadlock_prone": None if deadlock is None else deadlock.prone,
            "deadlock": None if deadlock is None else deadlock.note,
            "reported": [check.plain() for check in self.checks], "assumed": self.claim.assumed,
            "topology": {
                "kind": topology.kind, "switches": topology.switches, "channels": topology.channels,
                "hosts": topology.hosts, "hash": topology.content_hash,
            },
            "traffic": {"kind": self.claim.instance.traffic.kind, "hash": self.claim.instance.traffic.content_hash},
        }  # fmt: skip


def judge(claim: Claim) -> Verdict:
    """Compare all reported numbers with certified limits, which the independent verifier has confirmed.

    Raises :class:`~flitlab.fluid.problem.FluidError` where no ceiling is known, and
    :class:`~flitlab.sim.judge.witness.UnconfirmedError` where a certificate is not confirmed.
    """
    judged = _Judge(claim)
    checks = [check for point in claim.points for check in judged.checks(point)]
    deadlock_risk, explanation = deadlock(claim.instance, claim.vcs), judged.unit_explanation()
    return Verdict(claim, judged.ceiling, judged.share, checks, deadlock_risk, explanation)


class _Judge:
    """The limits of a network and traffic, each computed on first use."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.instance = claim, claim.instance
        traffic, topology = claim.instance.traffic, claim.instance.topology
        self.senders = claim.senders
        self.share = float(traffic.rate.sum()) / self.senders  # flits/tick of a sender at load 1, mean
        self.gap = GAP if topology.switches <= FINE_SWITCHES else ROUGH_GAP
        self.ceiling = _least(self.instance, "auto", self.gap)
        self.slips = unit_slips(claim.flits, self.senders, topology.switches)
        self._totals: dict[float, Ceiling] = {}

    @cached_property
    def zero_load(self) -> ZeroLoad:
        assert self.claim.delays is not None
        return ZeroLoad(self.instance, self.claim.delays, self.claim.flits)

    def checks(self, point: ClaimPoint) -> list[Check]:
        """The checks of all numbers of a point."""
        checks = []
        if point.load is not None and point.throughput is None:
            checks.append(self._of_load(point, point.load))
        if point.throughput is not None:
            checks.append(self._of_throughput(point, point.throughput))
        if point.latency is not None:
            checks.append(self._of_latency(point, point.latency))
        return checks

    def unit_explanation(self) -> str:
        """The unit that would make loads and throughputs consistent, for the first entry in which they are not."""
        for _, points in groupby(self.claim.points, lambda point: point.entry):
            deliveries = [one for one in map(self._delivery, points) if one is not None]
            if any(one.is_short for one in deliveries):
                return unit_explanation(deliveries, self.slips, self.ceiling.lower * self.share)
        return ""

    def _delivery(self, point: ClaimPoint) -> Delivery | None:
        """The load and throughput of a point; None unless it has both."""
        if point.load is None or point.throughput is None:
            return None
        return Delivery(point.load, point.throughput, self.share, self.ceiling.upper)

    def _of_load(self, point: ClaimPoint, load: Quantity) -> Check:
        """Check a load that is carried: every demand is met."""
        claimed = load.low
        self._solve_for(claimed)
        possible = claimed <= self.ceiling.upper * (1 + ROUNDING)
        witness = None if possible else witness_of_theta(self.instance, self.ceiling, load)
        limit = self.ceiling.upper
        hints = () if possible else self._hints(load, limit, "the limit")
        return Check(
            point.where, "load", load, possible, limit, self.ceiling.ceiling, load.value / limit, "", witness, hints
        )  # fmt: skip

    def _of_throughput(self, point: ClaimPoint, throughput: Quantity) -> Check:
        """Check a mean throughput of hosts, which may exceed the ceiling if demands are served unequally."""
        ceiling, delivery = self.ceiling.upper * self.share, self._delivery(point)
        efficiency = throughput.value / ceiling
        offered = None if point.load is None else point.load.high
        within = ROUNDING + 1
        note = "" if delivery is None else self._shortfall_note(delivery, point)
        if throughput.low <= within * self.share * min(self.ceiling.lower, offered or math.inf):
            return Check(
                point.where, "throughput", throughput, True, ceiling, self.ceiling.ceiling, efficiency, note,
                delivery=delivery,
            )  # fmt: skip
        row = self._total(self._most_offered() if offered is None else offered)
        most = row.upper * self.instance.topology.hosts / self.senders
        possible = throughput.low <= most * within
        if possible:
            unfair = (
                f"A throughput of {throughput} is above the load at which every demand is met, "
                f"{throughput.unit.at_most(ceiling)}: it is possible only where some demands get less than others."
            )
            note = unfair if efficiency > 1 + UNFAIR else note
            return Check(
                point.where, "throughput", throughput, True, most, "total", efficiency, note, delivery=delivery
            )  # fmt: skip
        hints = self._hints(throughput, min(ceiling, most), "the ceiling" if ceiling <= most else "what hosts create")
        witness = self._beyond_total(row, throughput, point)
        return Check(
            point.where, "throughput", throughput, False, most, witness.ceiling, efficiency, "", witness, hints,
            delivery,
        )  # fmt: skip

    def _shortfall_note(self, delivery: Delivery, point: ClaimPoint) -> str:
        """The meaning of a shortfall, '' if there is none."""
        if not delivery.is_short:
            return ""
        text = delivery.shortfall_text(self.ceiling.upper * self.share)
        return text if point.latency is None else f"{text} {delivery.run_length_text(point.latency)}"

    def _beyond_total(self, row: Ceiling, claimed: Quantity, point: ClaimPoint) -> Witness:
        """The proof that less is delivered than claimed: hosts create less, or a cut or prices prove it."""
        assert row.load is not None
        offer, hosts = row.load * self.share, self.instance.topology.hosts
        offered = "Where the busiest sender fills its channel"
        if point.load is not None:
            offered = f"At a load of {point.load}"
        if row.certificate is not None and row.upper * hosts < offer * self.senders * (1 - ROUNDING):
            return witness_of_total(self.instance, row, claimed, self.senders, offered)
        statement = (
            f"{offered}, hosts that send create no more than {claimed.unit.at_most(offer)} on average, and no network "
            "delivers more than that."
        )
        return Witness("offer", statement, "offer", offer, "flits/tick/host", {"load": row.load})

    def _of_latency(self, point: ClaimPoint, latency: Quantity) -> Check:
        """Check a mean latency: of all demands, or of the least part of them that may be served."""
        share = 1.0
        if point.throughput is not None:
            created = self._most_offered() if point.load is None else point.load.high
            share = min(1.0, point.throughput.low / (created * self.share))
        least = self.zero_load.least(share)
        possible = latency.high >= least.ticks * (1 - ROUNDING)
        efficiency = least.ticks / latency.value
        if possible:
            return Check(point.where, "latency", latency, True, least.ticks, "zero_load", efficiency)
        delays = self.claim.delays
        assert delays is not None
        nearest = "" if share >= 1 else f" of the nearest {100 * share:.3g} % of the demand"
        unit = latency.unit
        network, ends, tail = (f"{ticks / unit.factor:.4g}" for ticks in (least.network, least.ends, least.tail))
        statement = (
            f"Packets{nearest} have {least.hops:.4g} hops between switches on average and take {network} {unit.name} "
            f"for them, {ends} for the rest, and {tail} until their tail has followed: {unit.at_least(least.ticks)} "
            "without any queueing."
        )
        facts = {
            "hops_mean": least.hops,
            "hop_cycles": delays.hop,
            "ends_cycles": least.ends,
            "tail_cycles": least.tail,
        }
        witness = Witness("zero_load", statement, "zero_load", least.ticks, "ticks", facts)
        return Check(
            point.where, "latency", latency, False, least.ticks, "zero_load", efficiency, "", witness,
            _latency_hints(latency, least.ticks, self.claim),
        )  # fmt: skip

    def _solve_for(self, load: float) -> None:
        """Solve the ceiling exactly if a load is between its ends."""
        row = self.ceiling
        if row.lower * (1 - ROUNDING) < load <= row.upper and row.upper > row.lower * (1 + ROUNDING):
            try:
                closer = _least(self.instance, "exact", self.gap)
            except FluidError:
                return
            if closer.upper < row.upper:
                self.ceiling = closer

    def _most_offered(self) -> float:
        """The load at which the busiest sender fills its channel."""
        return float(self.instance.topology.host_capacity / self.instance.traffic.rate.max())

    def _total(self, load: float) -> Ceiling:
        """The largest total accepted at a load, per host."""
        if load not in self._totals:
            topology, traffic = self.instance.topology, self.instance.traffic
            bounds = total(topology, traffic, load, ROUGH_GAP, "auto")
            row = Ceiling(
                "total", load, bounds.lower / topology.hosts, bounds.upper / topology.hosts, "flits/tick/host",
                bounds.method, 0.0, bounds.note, bounds.certificate,
            )  # fmt: skip
            self._totals[load] = replace(row, upper=min(row.upper, load * float(traffic.rate.mean())))
        return self._totals[load]

    def _hints(self, reported: Quantity, limit: float, of: str) -> tuple[str, ...]:
        """Mistaken units that would each make a rate possible, by increasing factor. of: name of the limit."""
        unit = reported.unit
        return tuple(
            f"divided by {slip.factor:g} ({slip.what}) it would be {unit.about(reported.value / slip.factor)}, "
            f"{100 * reported.value / slip.factor / limit:.3g} % of {of}, {unit.at_most(limit)}"
            for slip in self.slips if reported.value / slip.factor <= limit
        )  # fmt: skip


def _least(instance: Instance, method: str, gap: float) -> Ceiling:
    """The ceiling of loads: by any routing, or over oblivious routes if these carry less."""
    specs = [ceiling_spec("mcf", method=method, gap=gap)]
    if instance.routes is not None and instance.routes.oblivious:
        specs.append(ceiling_spec("mcf_paths", method=method, gap=gap))
    free, *routed = ceilings(instance, specs)
    return next((row for row in routed if row.upper < free.lower * (1 - ROUNDING)), free)


def _latency_hints(latency: Quantity, least: float, claim: Claim) -> tuple[str, ...]:
    """Mistaken units that would each make a latency possible."""
    value, unit = latency.value, latency.unit
    times = [(2.0, "of one direction instead of both"), (1000.0, "of a unit a thousand times larger")]
    hints = [
        f"times {factor:g} ({what}) it would be possible: {unit.about(value * factor)}"
        for factor, what in times if value * factor >= least
    ]  # fmt: skip
    if claim.flits > 1 and value + claim.flits - 1 >= least:
        hints.append(f"plus {unit.about(claim.flits - 1)} (of the head instead of the tail) it would be possible")
    return tuple(hints)
