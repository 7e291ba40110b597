# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of a program on a network, by any routing, and on the time of its steps.

All bounds are in ticks of the scenario. docs/applications.md has the proofs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from flitlab.fluid.bounds import cuts as switch_cuts
from flitlab.fluid.bounds import volumetric
from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.collective.latency import quickest_channels
from flitlab.fluid.hosts import host_bound
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.problem import Problem
from flitlab.models.application.messages import Messages, total_flits
from flitlab.models.application.order import Times, busiest, earliest
from flitlab.models.application.phases import phases
from flitlab.models.application.program import BLOCK, Op, Program, StepKind, step_kinds
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints, scratch
from flitlab.models.hashing import content_hash
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic

GAP = 0.01
"""Relative gap of concurrent flows; their upper ends are used."""

MAX_FLOWS = 24
"""Demands of a program for which concurrent flows are solved; others are bounded by hops and cuts, the smallest
first."""

SOLVED_PART = 0.02
"""Share of a program's volume below which a group of equal demands is not worth a concurrent flow."""


@dataclass(frozen=True)
class StepBound:
    """A lower bound on the time of a kind of step: the mean of the bounds over all occurrences, in ticks."""

    kind: StepKind
    ticks: float
    occurrences: int


@dataclass(frozen=True)
class MakespanBounds:
    """Lower bounds on the time of a program, in ticks.

    volume: all messages pass the network. path: the longest chain of operations in an empty network. processor: work of
    the busiest processor. phases: parts of the program that cannot overlap, summed; 0 where there are no such parts.
    steps: of each kind of step, isolated. tick_ns: nanoseconds of a tick.
    """

    volume: float
    path: float
    processor: float
    phases: float
    steps: list[StepBound]
    tick_ns: Fraction

    @property
    def ticks(self) -> float:
        """The largest of the bounds, in ticks."""
        return max(self.volume, self.path, self.processor, self.phases)

    @property
    def binding(self) -> str:
        """The name of the largest bound."""
        return max(("volume", "path", "processor", "phases"), key=lambda name: getattr(self, name))


def makespan_bounds(scenario: Scenario[SwitchingMode, Workload]) -> MakespanBounds:
    """The bounds of a scenario with a workload."""
    work = _Work.of(scenario)
    return MakespanBounds(
        volume=work.volume(), path=work.times.makespan, processor=work.processor(),
        phases=work.in_phases(), steps=list(work.of_steps()), tick_ns=work.messages.tick_ns,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Work:
    """A program on a network, with the least costs of its operations in ticks.

    hold, latency, request, consent, leaving: as for :func:`~flitlab.models.application.order.earliest`. send: int64,
    the sends whose messages cross the network. flits: float64 [sends], of each, without the requests and consents of a
    rendezvous.
    """

    scenario: Scenario[SwitchingMode, Workload]
    hold: np.ndarray
    latency: np.ndarray
    request: np.ndarray
    consent: np.ndarray
    leaving: np.ndarray
    times: Times
    send: Ints
    flits: Floats
    flows: "_MessageFlows"

    @classmethod
    def of(cls, scenario: Scenario[SwitchingMode, Workload]) -> "_Work":
        """The costs of a scenario with a workload."""
        workload, switching_mode, topology = scenario.work, scenario.switching, scenario.topology
        program, messages, host = workload.program, workload.messages, workload.host
        tick = messages.tick_ns
        hold, latency, request, consent, leaving = (scratch(program.operations, float) for _ in range(5))
        hold[:] = messages.overhead
        exact = switching_mode.exact
        for part in program.blocks():
            calc = program.kind[part] == Op.CALC
            work = program.amount[part][calc]
            hold[part][calc] = work * float(1 / tick) if exact else -(-work * tick.denominator // tick.numerator)
        unit = switching_mode.weight(messages)
        control = total_flits(np.zeros(1, np.int64), messages)
        between = empty_latencies(scenario)
        count = sum(map(len, program.sends()))
        sends, source, target = (scratch(count, np.int64) for _ in range(3))
        flits, count = scratch(count, float), 0  # from here on, of those that cross the network
        for send in program.sends():
            ends = host[program.rank[send]], host[program.peer[send]]
            forward, backward = between(*ends), between(*ends[::-1])
            length = total_flits(program.amount[send], messages)
            crosses = ends[0] != ends[1]
            for into, first, size in (
                (latency, forward, length),
                (request, forward, control),
                (consent, backward, control),
            ):
                into[send] = np.where(crosses, first + switching_mode.serialization_ticks(topology, size * unit), 1.0)
            if messages.confirmed:
                leaving[send] = np.where(crosses, latency[send], 0.0)
            elif not messages.buffered and switching_mode.send_ends_at_injection:
                leaving[send] = np.where(crosses, switching_mode.serialization_ticks(topology, length) + 1, 0.0)
            block = slice(count, count + int(crosses.sum()))
            for array, values in ((sends, send), (source, ends[0]), (target, ends[1]), (flits, length * unit)):
                array[block] = values[crosses]
            count = block.stop
        times = earliest(program, messages.rendezvous, hold, latency, request, consent, leaving)
        flows = _MessageFlows(scenario, source[:count], target[:count])
        return cls(scenario, hold, latency, request, consent, leaving, times, sends[:count], flits[:count], flows)

    @property
    def program(self) -> Program:
        """The program of the scenario."""
        return self.scenario.work.program

    @property
    def messages(self) -> Messages:
        """Common parameters of the messages."""
        return self.scenario.work.messages

    def volume(self) -> float:
        """The volume bound: all messages pass between the first possible injection and the last useful delivery."""
        if not len(self.send):
            return 0.0
        head = tail = np.inf
        for part in _pieces(slice(len(self.send))):
            send = self.send[part]
            receive = self.program.partner[send]
            head = min(head, (self.times.start[send] + self.hold[send]).min())
            tail = min(tail, (self.hold[receive] + self.times.tail[receive]).min())
        return float(head + tail + self.flows.ticks(slice(len(self.send)), self.flits, exact=True))

    def processor(self) -> float:
        """The work of the busiest processor."""
        return busiest(self.program, self.hold, self.times)

    def in_phases(self) -> float:
        """The largest sum of bounds over phases that do not overlap: those with a separator between them."""
        phase = phases(self.program)
        last = int(phase.max(initial=0))
        if last == 0:
            return 0.0
        receive = self.program.partner[self.send]
        within = np.where(phase[self.send] == phase[receive], phase[self.send], -1)
        volume = self._volumes(within, last + 1)
        value = np.maximum(volume, _busiest_by(self.program, self.hold, phase, last + 1))
        best = np.zeros(last + 2)  # best[p + 1]: of phases up to p
        for p in range(last + 1):
            separated = 2 * (p // 2) - 2  # up to there, a separator lies in between
            before = best[separated + 1] if separated >= 0 else 0.0
            best[p + 1] = max(best[p], value[p] + before)
        return float(best[-1])

    def of_steps(self) -> Iterator[StepBound]:
        """For every kind of step, the mean over its occurrences of the largest bound."""
        program = self.program
        kinds, of = step_kinds(program)
        if len(program.steps) == 1:  # the whole program, which may be very long
            yield StepBound(kinds[0], max(self.volume(), self.times.makespan, self.processor()), 1)
            return
        receive = program.partner[self.send]
        within = np.where(program.step[self.send] == program.step[receive], program.step[self.send], -1)
        steps = len(program.steps)
        value = np.maximum(self._volumes(within, steps), _busiest_by(program, self.hold, program.step, steps))
        value = np.maximum(value, self._paths_within())
        used = np.bincount(program.step, minlength=steps) > 0
        for number, kind in enumerate(kinds):
            mine = (of == number) & used
            if mine.any():
                yield StepBound(kind, float(value[mine].mean()), int(mine.sum()))

    def _paths_within(self) -> Floats:
        """float64 [steps]: the longest chain of operations within a step; 0 where its messages leave the step."""
        program, steps = self.program, len(self.program.steps)
        source = np.repeat(np.arange(program.operations), np.diff(program.after))
        target = program.successor >> 1
        inside = program.step[source] == program.step[target]
        after = np.concatenate([[0], np.cumsum(np.bincount(source[inside], minlength=program.operations))])
        need = np.bincount(target[inside], minlength=program.operations).astype(np.int32)
        within_steps = replace(program, after=after, successor=program.successor[inside], need=need)
        costs = (self.hold, self.latency, self.request, self.consent, self.leaving)
        finish = earliest(within_steps, self.messages.rendezvous, *costs).finish
        longest = np.zeros(steps)
        np.maximum.at(longest, program.step, finish)
        message = np.flatnonzero(program.kind == Op.SEND)
        ends = program.step[message], program.step[program.partner[message]]
        across = ends[0] != ends[1]
        for end in ends:
            longest[end[across]] = 0.0
        return longest

    def _volumes(self, group: Ints, groups: int) -> Floats:
        """float64 [groups]: ticks of the messages of each group. group: int64 [sends], -1 of those in none."""
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(groups + 1))
        ticks = np.zeros(groups)
        for g in np.flatnonzero(np.diff(bounds)):
            ticks[g] = self.flows.ticks(order[bounds[g] : bounds[g + 1]], self.flits, exact=False)
        simple, all_of_them = ticks.copy(), ticks.sum()
        for g in np.argsort(-simple, kind="stable"):
            alike = np.isclose(simple, simple[g], rtol=1e-9).sum()  # equal groups are solved once
            if simple[g] * alike >= SOLVED_PART * all_of_them > 0:
                ticks[g] = self.flows.ticks(order[bounds[g] : bounds[g + 1]], self.flits, exact=True)
        return ticks


class _MessageFlows:
    """Lower bounds on the ticks of sets of messages in the network; equal demands are solved once.

    source, target: int64 [sends], different hosts of the messages.
    """

    def __init__(self, scenario: Scenario[SwitchingMode, Workload], source: Ints, target: Ints):
        self.topology, self.source, self.target = scenario.topology, source, target
        self.tick = scenario.switching.flits_per_tick(scenario.topology)
        self._known: dict[tuple[str, bool], float] = {}
        self._solved = 0

    def ticks(self, chosen: np.ndarray | slice, flits: np.ndarray, exact: bool) -> float:
        """Lower bound on the ticks of the messages ``chosen``. exact: by a concurrent flow, while there are not too
        many.
        """
        hosts = self.topology.hosts
        demand = sparse.csr_array((hosts, hosts))
        for block in _pieces(chosen):
            demand += sparse.coo_array((flits[block], (self.source[block], self.target[block])), (hosts, hosts)).tocsr()
        busiest_host = max(demand.sum(axis=0).max(), demand.sum(axis=1).max())
        traffic = table_traffic("application", self.topology, demand)
        key = (content_hash(traffic.start, traffic.column, np.round(traffic.weight, 12)), exact)
        if key not in self._known:
            self._solved += exact
            self._known[key] = upper_theta(self.topology, traffic, exact and self._solved <= MAX_FLOWS)
        return float(busiest_host) * self.tick / self._known[key]


def _pieces(chosen: np.ndarray | slice) -> Iterator[np.ndarray | slice]:
    """The indices ``chosen`` in pieces of limited length; a slice starts at 0."""
    if isinstance(chosen, np.ndarray):
        yield from (chosen[first : first + BLOCK] for first in range(0, len(chosen), BLOCK))
    else:
        yield from (slice(first, min(first + BLOCK, chosen.stop)) for first in range(0, chosen.stop, BLOCK))


def upper_theta(topology: Topology, traffic: Traffic, exact: bool) -> float:
    """A certified upper bound on theta.

    Parameters
    ----------
    topology : Topology
        The network.
    traffic : Traffic
        The demand.
    exact : bool
        Solve the maximum concurrent flow; else use hops, hosts and cuts.
    """
    at_hosts = host_bound(topology, traffic)
    problem = Problem.of(topology, traffic)
    if problem.demand.size == 0:
        return at_hosts
    simple = min(at_hosts, volumetric(topology, traffic).upper, switch_cuts(topology, traffic).upper)
    if not exact:
        return simple
    solution = solve(problem, GAP, "auto", at_hosts)
    return min(simple, verify_upper(topology, traffic, Certificate.on_network(topology, solution.prices)))


def _busiest_by(program: Program, hold: np.ndarray, group: np.ndarray, groups: int) -> Floats:
    """float64 [groups]: the most work of one processor in a group of operations. group: int [operations].

    Sends without a successor are ignored: they may run at another time than the operations around them.
    """
    counts = np.diff(program.after) > 0
    counted = (hold > 0) & ((program.kind != Op.SEND) | counts)
    processor = (group[counted].astype(np.int64) * program.ranks + program.rank[counted]) * program.cpus + program.cpu[
        counted
    ]
    keys, index = np.unique(processor, return_inverse=True)
    work = np.zeros(groups)
    np.maximum.at(work, keys // (program.ranks * program.cpus), np.bincount(index, hold[counted], len(keys)))
    return work


def empty_latencies(scenario: Scenario[SwitchingMode, Workload]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function of hosts (source, target: int64) that returns the latency of the fastest path between them, float64
    ticks.
    """
    topology = scenario.topology
    between, ends = scenario.switching.crossing(topology)
    quickest = quickest_channels(topology, between + topology.delay)
    distance, access = dijkstra(quickest), topology.access_delay
    return lambda source, target: (
        ends
        + access[source]
        + access[target]
        + distance[topology.host_switch[source], topology.ejection_switch[target]]
    )
