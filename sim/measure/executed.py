# SPDX-License-Identifier: Apache-2.0
"""The columns of an executed program: times, ranks, steps, messages, critical path and channel utilisation."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flitlab.models.application.jobs import arrivals
from flitlab.models.application.messages import total_flits
from flitlab.models.application.program import Op, Program, step_kinds
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Floats, Ints, scratch
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.sim.engines.base import Execution, Flows
from flitlab.sim.measure.critical_path import ARRIVING, Segment, critical_path, shares
from flitlab.sim.measure.result import stored_use
from flitlab.sim.measure.spans import busy_spans, communicating_spans, union_lengths, union_until

TIMELINE_RANKS, TIMELINE_BINS = 16, 120
"""The most ranks, and the intervals, of the rows of timeline.csv."""

MAX_SEGMENTS = 2000
"""The most segments of the critical path that are stored, counted from its end."""


def holds(scenario: Scenario[SwitchingMode, Workload], resolution: int = 1) -> Ints:
    """Return the time for which operations hold their processors, int64 [operations], in ticks / resolution."""
    program, messages = scenario.work.program, scenario.work.messages
    held = scratch(program.operations, np.int64, messages.overhead * resolution)
    unit = messages.tick_ns / resolution
    for part in program.blocks():
        calc = program.kind[part] == Op.CALC
        held[part][calc] = -(-program.amount[part][calc] * unit.denominator // unit.numerator)
    return held


@dataclass(frozen=True, eq=False)
class Executed:
    """A run of a program that has ended.

    Times are in units; unit_ns: nanoseconds of one. hold: int64 [operations], units for which each operation holds its
    processor, 0 before a job arrives. path: the segments of the critical path, in order.
    """

    scenario: Scenario[SwitchingMode, Workload]
    execution: Execution
    hold: Ints
    unit_ns: float
    path: list[Segment]

    @classmethod
    def of(cls, scenario: Scenario[SwitchingMode, Workload], execution: Execution) -> "Executed":
        """Return the run of a scenario with a program that has ended."""
        workload = scenario.work
        min_message_ticks = scenario.switching.min_message_ticks(scenario.topology) * execution.resolution
        path = critical_path(workload.program, workload.messages, execution, min_message_ticks)
        unit = float(workload.messages.tick_ns / execution.resolution)
        hold = holds(scenario, execution.resolution)
        hold[arrivals(workload.program)] = 0
        return cls(scenario, execution, hold, unit, path)

    @property
    def program(self) -> Program:
        """The program that was run."""
        return self.scenario.work.program

    @property
    def end(self) -> int:
        """Time at which the last operation completed, in units."""
        return int(self.execution.finish.max(initial=0))

    @property
    def ticks(self) -> int:
        """Tick by which the last operation completed."""
        return -(-self.end // self.execution.resolution)

    def row(self) -> Row:
        """The columns of results.csv for times, messages and the critical path, by name."""
        compute, overhead, wait = self.by_rank()
        ns, program = self.unit_ns, self.program
        row: Row = {"makespan_ns": self.end * ns, **self.extrapolated()}
        row |= {
            "compute_ns": float(compute.mean() * ns), "compute_ns_max": float(compute.max(initial=0) * ns),
            "overhead_ns": float(overhead.mean() * ns), "wait_ns": float(wait.mean() * ns),
            "wait_ns_max": float(wait.max(initial=0) * ns),
        }  # fmt: skip
        parts = shares(self.path, self.end).items()
        row |= {f"path_{kind}": share for kind, share in parts if share or kind != ARRIVING}
        row |= {"ranks": program.ranks, "operations": program.operations}
        return row | self.messages() | {"ticks": self.ticks}

    def extrapolated(self) -> Row:
        """Columns for the time of all iterations; iterations not simulated take the mean of those simulated, without
        the first.
        """
        program, ns = self.program, self.unit_ns
        some, every = program.simulated, program.iterations
        iterations = np.array([step.iteration for step in program.steps] or [-1])
        ends = np.zeros(some + 1, np.int64)  # of what is before the loop, and of each iteration
        ends[0] = self.end
        for part in program.blocks():
            iteration = iterations[program.step[part]]
            inside = (iteration >= 0) & (iteration < some)
            np.maximum.at(ends[1:], iteration[inside], self.execution.finish[part][inside])
            ends[0] = self.execution.start[part][inside].min(initial=ends[0])
        each, how = 0.0, "none"
        if every > some and ends[1:].any():
            how = f"iterations 2..{some}" if some > 1 else "iteration 1"
            each = float((ends[some] - ends[1]) / (some - 1) if some > 1 else ends[1] - ends[0])
        return {
            "total_ns": (self.end + (every - some) * each) * ns, "iterations_simulated": some,
            "iterations_total": every, "iteration_ns": each * ns if each else float("nan"), "extrapolated_from": how,
        }  # fmt: skip

    def by_rank(self) -> tuple[Ints, Ints, Ints]:
        """Time of ranks for calculation, for overhead, and for neither: int64 [ranks] each, in units.

        The first two are sums over a rank's processors.
        """
        program = self.program
        compute, overhead, busy = (np.zeros(program.ranks, np.int64) for _ in range(3))
        for part in program.blocks():
            rank, calc = program.rank[part], program.kind[part] == Op.CALC
            for total, some in ((compute, calc), (overhead, ~calc)):
                np.add.at(total, rank[some], self.hold[part][some])
            busy += union_lengths(busy_spans(program, self.execution, self.hold, part), program.ranks)
        return compute, overhead, self.end - busy

    def sent(self) -> Iterator[Ints]:
        """The sends whose messages cross the network, in blocks of operations, int64 [sends] each."""
        program, host = self.program, self.scenario.work.host
        for send in program.sends():
            yield send[host[program.rank[send]] != host[program.peer[send]]]

    def latencies(self, send: Ints) -> Floats:
        """Latencies of messages, float64 [sends], in ns: from joining the host's queue to the receiver's last flit."""
        late = self.execution.delivered[send] - self.execution.queued[send]
        return np.asarray(late * self.unit_ns, np.float64)

    def messages(self) -> Row:
        """Columns for messages: their number, bytes, and latencies in ns, of all and by size.

        A latency is from joining the host's queue to the last flit at the receiver's host.
        """
        limit = self.scenario.work.messages.packet_bytes
        count, bytes_ = np.zeros(2, np.int64), 0  # messages that fit into a packet, and longer ones
        for send in self.sent():
            size = self.program.amount[send]
            count += np.bincount(size > limit, minlength=2)
            bytes_ += int(size.sum())
        late = scratch(int(count.sum()), np.float64)  # the short ones first
        place = np.array([0, count[0]])
        for send in self.sent():
            values, long = self.latencies(send), self.program.amount[send] > limit
            for which, some in enumerate((values[~long], values[long])):
                late[place[which] : place[which] + len(some)] = some
                place[which] += len(some)
        row: Row = {"messages": int(count.sum()), "bytes": bytes_}
        few = int(count[0])
        small, large = _spread(late[:few], "small_"), _spread(late[few:], "large_")
        return row | _spread(late, "") | small | large

    def use(self, edges: Ints, carried: Floats) -> dict[str, float]:
        """Columns for the utilisation of the channels between switches: mean, of the busiest, and at the peak.

        edges: int64 [edges], ticks. carried: float64 [edges, channels], flits so far.
        """
        part = self._use(edges, carried)
        lengths = self._lengths(edges)
        if not part.size or not lengths.sum():
            return dict.fromkeys(("utilisation_mean", "utilisation_max", "utilisation_peak"), float("nan"))
        whole = (part * lengths[:, None]).sum(axis=0) / lengths.sum()
        return {
            "utilisation_mean": float(whole.mean()), "utilisation_max": float(whole.max()),
            "utilisation_peak": float(part.mean(axis=1).max()),
        }  # fmt: skip

    def _lengths(self, edges: Ints) -> Ints:
        """Ticks of the intervals, int64 [intervals]; the last ends with the program."""
        lengths: Ints = np.maximum(np.diff(np.minimum(edges, max(self.ticks, 1))), 0)
        return lengths

    def _use(self, edges: Ints, carried: Floats) -> Floats:
        """Utilisation of each channel, float64 [intervals, channels]."""
        some = np.maximum(self._lengths(edges), 1)[:, None]
        full = self.scenario.switching.channel_rate(self.scenario.topology)
        use: Floats = np.diff(carried, axis=0) / some / full
        return use

    def detail(self, edges: Ints, carried: Floats) -> JsonObject:
        """Rows of the further tables, by the name of the file."""
        return {
            "ranks": self._rank_rows(), "steps": self._step_rows(), "utilisation": self._use_rows(edges, carried),
            "messages": self._message_rows(), "critical_path": self._path_rows(), "timeline": self._timeline_rows(),
            **({"channel_use": self._mean_use(edges, carried)} if self.scenario.topology.channels else {}),
        }  # fmt: skip

    def _mean_use(self, edges: Ints, carried: Floats) -> list[float]:
        part, lengths = self._use(edges, carried), self._lengths(edges)
        return stored_use((part * lengths[:, None]).sum(axis=0) / max(lengths.sum(), 1))

    def _rank_rows(self) -> list[Row]:
        program, ns = self.program, self.unit_ns
        compute, overhead, wait = self.by_rank()
        finish, sent, bytes_ = (np.zeros(program.ranks, np.int64) for _ in range(3))
        for part in program.blocks():
            np.maximum.at(finish, program.rank[part], self.execution.finish[part])
        for send in self.sent():
            np.add.at(sent, program.rank[send], 1)
            np.add.at(bytes_, program.rank[send], program.amount[send])
        host = self.scenario.work.host
        return [
            {
                "rank": r, "host": int(host[r]), "compute_ns": float(compute[r] * ns),
                "overhead_ns": float(overhead[r] * ns), "wait_ns": float(wait[r] * ns),
                "finish_ns": float(finish[r] * ns), "messages": int(sent[r]), "bytes": int(bytes_[r]),
            }
            for r in range(program.ranks)
        ]  # fmt: skip

    def _step_rows(self) -> list[Row]:
        """One row per kind of step, from its start in the first rank to its end in the last."""
        program, e, ns = self.program, self.execution, self.unit_ns
        kinds, of = step_kinds(program)
        begin = np.full(len(program.steps), self.end)
        end, messages, bytes_ = (np.zeros(len(program.steps), np.int64) for _ in range(3))
        used = np.zeros(len(program.steps), bool)
        for part in program.blocks():
            step, kind, sends = program.step[part], program.kind[part], program.kind[part] == Op.SEND
            np.minimum.at(begin, step, np.where(kind == Op.RECV, e.ready[part], e.start[part]))
            np.maximum.at(end, step, e.finish[part])
            used[step] = True
            np.add.at(messages, step[sends], 1)
            np.add.at(bytes_, step[sends], program.amount[part][sends])
        rows = []
        for number, alike in enumerate(kinds):
            mine = (of == number) & used
            if mine.any():
                took = (end - begin)[mine] * ns
                rows.append({
                    "step": alike.name, "algorithm": alike.algorithm, "size": alike.size, "ranks": alike.ranks,
                    "occurrences": int(mine.sum()), "messages": int(messages[mine].sum()),
                    "bytes": int(bytes_[mine].sum()), "time_ns": float(took.mean()), "time_ns_max": float(took.max()),
                    "label": alike.label,
                })  # fmt: skip
        return rows

    def _use_rows(self, edges: Ints, carried: Floats) -> list[dict[str, float]]:
        part, lengths, ns = self._use(edges, carried), self._lengths(edges), self.unit_ns * self.execution.resolution
        return [
            {
                "from_ns": float(edges[i] * ns), "to_ns": float((edges[i] + lengths[i]) * ns),
                "mean": float(part[i].mean()), "max": float(part[i].max()),
            }
            for i in range(len(lengths)) if lengths[i] and part.shape[1]
        ]  # fmt: skip

    def _message_rows(self) -> list[Row]:
        """Counts by size (a factor of 4) and latency (a factor of sqrt 2)."""
        counts_by_bin: Counter[tuple[int, int]] = Counter()
        for send in self.sent():
            by_size = np.ceil(np.log2(np.maximum(self.program.amount[send], 1)) / 2).astype(np.int64)
            by_time = np.floor(2 * np.log2(np.maximum(self.latencies(send), 1e-3)) + 1e-9).astype(np.int64)
            pairs, counts = np.unique(np.stack([by_size, by_time], axis=1), axis=0, return_counts=True)
            counts_by_bin.update(dict(zip(map(tuple, pairs.tolist()), counts.tolist(), strict=True)))
        return [
            {
                "bytes_up_to": 4**size, "latency_ns_from": float(2.0 ** (when / 2)),
                "latency_ns_to": float(2.0 ** ((when + 1) / 2)), "messages": count,
            }
            for (size, when), count in sorted(counts_by_bin.items())
        ]  # fmt: skip

    def _path_rows(self) -> list[Row]:
        program, ns = self.program, self.unit_ns
        rows = []
        for kind, o, start_, end in self.path[-MAX_SEGMENTS:]:
            rank = int(program.rank[o])
            rows.append({
                "kind": kind, "rank": rank, "operation": o - int(program.start[rank]),
                "peer": int(program.peer[o]) if program.kind[o] != Op.CALC else "", "amount": int(program.amount[o]),
                "step": program.steps[program.step[o]].name, "from_ns": start_ * ns, "to_ns": end * ns,
            })  # fmt: skip
        return rows

    def _timeline_rows(self) -> list[Row]:
        """Activity of some ranks over time: the shares of each interval in which they compute, or communicate."""
        program, ns = self.program, self.unit_ns
        chosen = np.unique(np.linspace(0, program.ranks - 1, min(program.ranks, TIMELINE_RANKS)).astype(int))
        edges = np.linspace(0, self.end, TIMELINE_BINS + 1)
        rows = []
        for r in chosen.tolist():
            mine = slice(int(program.start[r]), int(program.start[r + 1]))
            busy = busy_spans(program, self.execution, self.hold, mine)
            talk = communicating_spans(program, self.execution, mine)
            calc = busy.only(program.kind[busy.operation] == Op.CALC)
            computing, working = (np.diff(union_until(spans, edges)) for spans in (calc, busy))
            taken = np.diff(union_until(busy.joined(talk), edges))
            for i in range(TIMELINE_BINS if self.end else 0):
                length = edges[i + 1] - edges[i]
                rows.append({
                    "rank": r, "from_ns": edges[i] * ns, "to_ns": edges[i + 1] * ns,
                    "compute": round(computing[i] / length, 4),
                    "overhead": round((working[i] - computing[i]) / length, 4),
                    "message": round((taken[i] - working[i]) / length, 4),
                })  # fmt: skip
        return rows

    def delivered(self) -> Flows:
        """Flits (of datagrams, bytes) of all messages that crossed the network, by source and destination."""
        workload, topology = self.scenario.work, self.scenario.topology
        program = workload.program
        unit = self.scenario.switching.weight(workload.messages)
        pairs = PairCounts.none(topology.switches)
        ends = tuple(np.zeros(topology.hosts, np.int64) for _ in range(2))
        for send in self.sent():
            flits = total_flits(program.amount[send], workload.messages).astype(np.int64) * unit
            hosts = workload.host[program.rank[send]], workload.host[program.peer[send]]
            source, target = topology.host_switch[hosts[0]], topology.ejection_switch[hosts[1]]
            pairs += PairCounts.of(topology.switches, source * topology.switches + target, flits)
            for total, host in zip(ends, hosts, strict=True):
                np.add.at(total, host, flits)
        return Flows(pairs, *ends)


def _spread(values: Floats, name: str) -> dict[str, float]:
    """Mean, percentiles and maximum of latencies in ns, float64 [messages]; reorders ``values``."""
    if not len(values):
        return {f"{name}latency_ns_{which}": float("nan") for which in ("mean", "p50", "p99", "max")}
    middle, late = np.percentile(values, [50, 99], overwrite_input=True)
    return {
        f"{name}latency_ns_mean": float(values.mean()), f"{name}latency_ns_p50": float(middle),
        f"{name}latency_ns_p99": float(late), f"{name}latency_ns_max": float(values.max()),
    }  # fmt: skip
