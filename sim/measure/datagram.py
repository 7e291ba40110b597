# SPDX-License-Identifier: Apache-2.0
"""One point of mode datagram: throughput of flows in a window, and completion times of finite flows."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.fairness import jain
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.transport.session import Session, longest_round_trips
from flitlab.models.transport.uncontended import uncontended_ticks
from flitlab.sim.engines.base import Flows
from flitlab.sim.engines.datagram.base import (
    ACCEPTED,
    DROPS,
    MARKS,
    MAX_QUEUE_BYTES,
    QUEUE_TICKS,
    RECEIVED,
    RESENT,
    RTT,
    SAMPLES,
    TIMEOUTS,
    Counters,
    DatagramRun,
)
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.completion import completion
from flitlab.sim.measure.result import EpochTraffic, FlowsResult
from flitlab.sim.measure.throughput_time import edges_until, interval

BEGUN, NOT_BEGUN, NOT_OPENED = "begun", "not begun", "not opened"
"""``state`` of flows.csv: of a flow or subflow at the end of the run."""

Sample = tuple[Counters, Ints]
"""Counters of a run, and the data packets of each subflow in flight."""


class Window(NamedTuple):
    """The measured window of a run of flows.

    window: from and to, in seconds; the run ends with it.
    """

    window: tuple[float, float]


@dataclass(frozen=True)
class Counted:
    """The counters of the window of a run; further columns of results.csv are functions of it.

    before, after: counters at its ends. throughput: float64 [flows], as a fraction of the NIC rate.
    """

    session: Session
    before: Counters
    after: Counters
    throughput: Floats


def measure_flows(run: DatagramRun, scenario: Scenario | None, load: float, how: Window) -> FlowsResult:
    """Measure a run of flows, from its beginning to the end of a window.

    Of detail, ``flows`` has the rows of flows.csv, of each flow and, if it has several, of its subflows;
    ``channel_use`` the traffic of each channel as a fraction of the NIC rate at capacity 1; with a timeline,
    ``throughput_time`` the rows of throughput_time.csv.
    """
    session, timeline = run.session, None if scenario is None else scenario.timeline
    first, last = (session.ticks(seconds) for seconds in how.window)
    samples = _sample(run, {first, last, *(() if timeline is None else edges_until(timeline, last))})
    (before, present), (after, _) = samples[first], samples[last]
    moved = after.subflow - before.subflow
    throughput = _fractions(session, _per_flow(session, moved[:, RECEIVED]), last - first)
    states = _states(session, after)
    row = _summary(session, before, after, throughput) | _state_counts(states)
    times = _times(session, after) if session.flows.packets.any() else None
    if times is not None:
        done, slowdown = times
        size = session.flows.packets * session.queues.packet_bytes
        row |= completion(size, done * session.tick_s * 1e3, slowdown)
    row |= measured("flows", Counted(session, before, after, throughput))
    flows = _flow_rows(session, moved, throughput, last - first, states, times)
    detail = {"flows": flows, "channel_use": _use(session, before, after)}
    if timeline is not None:
        detail["throughput_time"] = _time_rows(session, samples)
    fastest = max(float(session.topology.capacity.max(initial=0.0)), session.topology.host_capacity)
    delivered, in_flight = _count(session, moved[:, RECEIVED]), _count(session, present)
    window = (last - first) / fastest
    if timeline is None:
        return FlowsResult(row, detail, delivered, in_flight, window, throughput)
    parts, capacity = _epochs(session, timeline, samples, last), timeline.capacity(first, last)
    return FlowsResult(row, detail, delivered, in_flight, window, throughput, parts=parts, capacity=capacity)


def _sample(run: DatagramRun, ticks: set[int]) -> dict[int, Sample]:
    """Return the counters of a run, and the packets in flight, at the start of each of some ticks."""
    samples = {}
    for tick in sorted(ticks):
        run.advance(tick)
        samples[tick] = run.counters(), run.in_flight()
    return samples


def _time_rows(session: Session, samples: dict[int, Sample]) -> list[dict[str, Any]]:
    """Rows of throughput_time.csv: mean received by a host, and drops, from each sample to the next."""
    rows = []
    for start, end in pairwise(samples):
        before, after = samples[start][0], samples[end][0]
        moved = (after.subflow - before.subflow).sum(axis=0)
        per_host = float(_fractions(session, moved[RECEIVED], end - start) / session.topology.hosts)
        drops = int((after.link - before.link)[:, DROPS].sum())
        counted = {"drops": drops, "retransmissions": int(moved[RESENT])}
        rows.append(interval(start, end, session.tick_s * 1e9, per_host, **counted))
    return rows


def _epochs(session: Session, timeline: Timeline, samples: dict[int, Sample], last: int) -> tuple[EpochTraffic, ...]:
    """Traffic delivered in each epoch that began before ``last``."""
    ticks = [epoch.tick for epoch in timeline.epochs if epoch.tick < last]
    fastest = timeline.topology.capacity.max(initial=timeline.topology.host_capacity)
    epochs = []
    for epoch, (start, end) in enumerate(pairwise([*ticks, last])):
        moved = samples[end][0].subflow[:, RECEIVED] - samples[start][0].subflow[:, RECEIVED]
        delivered, present = _count(session, moved), _count(session, samples[start][1])
        epochs.append(EpochTraffic(epoch, delivered, present, (end - start) / float(fastest)))
    return tuple(epochs)


def _use(session: Session, before: Counters, after: Counters) -> list[float]:
    """Utilisation of the channels between switches in the window, relative to the NIC rate at capacity 1."""
    packets = (after.link - before.link)[: session.topology.channels, ACCEPTED]
    use = _fractions(session, packets, after.tick - before.tick) * session.topology.host_capacity
    rounded: list[float] = np.round(use, 4).tolist()
    return rounded


def _count(session: Session, packets: Ints) -> Flows:
    """Bytes of packets, int64 [subflows], by source and destination."""
    topology = session.topology
    sent = _per_flow(session, packets) * session.queues.packet_bytes
    source, target = session.flows.source, session.flows.destination
    pair = topology.host_switch[source] * topology.switches + topology.host_switch[target]
    pairs = PairCounts.of(topology.switches, pair, sent)
    sources, targets = (np.bincount(hosts, sent, topology.hosts) for hosts in (source, target))
    return Flows(pairs, sources.astype(np.int64), targets.astype(np.int64))


def _per_flow(session: Session, amount: Ints) -> Ints:
    """Sums over the subflows of each flow, int64 [flows]; amount: int64 [subflows]."""
    return np.add.reduceat(amount, session.first[:-1])


def _fractions(session: Session, packets: Ints, ticks: int) -> Floats:
    """Packets in ``ticks`` ticks as a fraction of the NIC rate; the same shape."""
    rate = session.queues.nic_mbps * session.topology.host_capacity * 1e6 / 8 * session.tick_s  # bytes a tick
    return packets * session.queues.packet_bytes / (rate * ticks)


def _summary(session: Session, before: Counters, after: Counters, throughput: Floats) -> dict[str, Any]:
    moved, links = after.subflow - before.subflow, after.link - before.link
    ticks = after.tick - before.tick
    total, samples = moved.sum(axis=0), moved[:, SAMPLES].sum()
    network = len(session.delay)  # feeders come after its links
    stay = links[:network, QUEUE_TICKS] / ticks
    per_host = _fractions(session, total[RECEIVED], ticks) / session.topology.hosts
    return {
        "host_throughput": float(per_host),
        "throughput_mean": float(throughput.mean()),
        "throughput_min": float(throughput.min()),
        "throughput_max": float(throughput.max()),
        "jain": jain(throughput),
        "drops": int(links[:, DROPS].sum()),
        "retransmissions": int(total[RESENT]),
        "timeouts": int(total[TIMEOUTS]),
        "marks": int(links[:, MARKS].sum()),
        "rtt_ms_mean": float(total[RTT] / samples * session.tick_s * 1e3) if samples else float("nan"),
        "queue_mean": float(stay.mean()),
        "queue_mean_max": float(stay.max()),
        "queue_max": float(after.link[:network, MAX_QUEUE_BYTES].max() / session.queues.packet_bytes),
        "packets": int(total[RECEIVED]),
        "packet_hops": int(links[:network, ACCEPTED].sum()),
        "ticks": ticks,
        "seconds": ticks * session.tick_s,
    }


def _times(session: Session, after: Counters) -> tuple[Floats, Floats]:
    """Completion time in ticks, and slowdown, of every flow, float64 [flows]; NaN if incomplete."""
    start = np.minimum.reduceat(session.start, session.first[:-1])
    done = np.where(after.finished >= 0, after.finished - start, np.nan)
    return done, done / uncontended_ticks(session)


def _states(session: Session, after: Counters) -> list[str]:
    """The state of each subflow at the end of a run; NOT_OPENED if its SYN, or the reply, was certainly dropped."""
    begun = session.start < after.tick
    answered = after.subflow[:, SAMPLES] > 0
    if session.rules is None:
        answered = begun
    waits = begun & ~answered & (session.start + longest_round_trips(session) < after.tick)
    states: list[str] = np.where(waits, NOT_OPENED, np.where(begun, BEGUN, NOT_BEGUN)).tolist()
    return states


def _state_counts(states: list[str]) -> dict[str, int]:
    """Columns of results.csv: the number of subflows, and of those that could receive nothing."""
    return {
        "subflows": len(states), "not_begun": states.count(NOT_BEGUN), "not_opened": states.count(NOT_OPENED),
    }  # fmt: skip


def _state_of(states: list[str]) -> str:
    """The state of a flow: that of its most advanced subflow."""
    return next(state for state in (BEGUN, NOT_OPENED, NOT_BEGUN) if state in states)


def _flow_rows(
    session: Session, moved: Ints, throughput: Floats, ticks: int, states: list[str],
    times: tuple[Floats, Floats] | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Rows of flows.csv: a flow, then its subflows if there are several.

    states: of subflows. times: of finite flows.
    """
    subflow = _fractions(session, moved[:, RECEIVED], ticks)
    source, target, packets = (part.tolist() for part in session.flows[:3])
    first, rows = session.first.tolist(), []
    for f in range(len(source)):
        mine = slice(first[f], first[f + 1])
        row = {"flow": f, "subflow": "", "source": source[f], "target": target[f]}
        row |= _counts(session, moved[mine].sum(axis=0), float(throughput[f]), session.start[mine].min())
        row["state"] = _state_of(states[mine])
        if times is not None:
            done, slowdown = times
            row |= {
                "size_bytes": packets[f] * session.queues.packet_bytes,
                "fct_ms": float(done[f] * session.tick_s * 1e3), "slowdown": float(slowdown[f]),
            }  # fmt: skip
        single = mine.stop - mine.start == 1
        rows.append({**row, "path": path_of(session, mine.start) if single else ""})
        for i in range(mine.start, mine.stop) if not single else ():
            part = {"flow": f, "subflow": i - mine.start, "source": source[f], "target": target[f]}
            part |= _counts(session, moved[i], float(subflow[i]), session.start[i])
            rows.append({**part, "state": states[i], "path": path_of(session, i)})
    return rows


def _counts(session: Session, moved: Ints, throughput: float, start: int) -> dict[str, Any]:
    samples = int(moved[SAMPLES])
    return {
        "throughput": throughput,
        "received_bytes": int(moved[RECEIVED]) * session.queues.packet_bytes,
        "retransmissions": int(moved[RESENT]),
        "timeouts": int(moved[TIMEOUTS]),
        "rtt_ms": float(moved[RTT] / samples * session.tick_s * 1e3) if samples else float("nan"),
        "start_ms": float(start * session.tick_s * 1e3),
    }


def path_of(session: Session, subflow: int) -> str:
    """The switches of a subflow's first path, as 3-17-5."""
    topology, paths = session.topology, session.paths
    links = paths.link[paths.start[subflow] + 1 : paths.start[subflow + 1] - 1]
    first = topology.host_switch[paths.link[paths.start[subflow]] - topology.channels]
    return "-".join(map(str, [int(first), *topology.dst[links].tolist()]))
