# SPDX-License-Identifier: Apache-2.0
"""One point of mode datagram: throughput of flows in a window, and completion times of finite flows."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Row
from flitlab.models.scenario import Scenario
from flitlab.models.transport.queues import fastest_capacity
from flitlab.models.transport.session import Session, longest_round_trips
from flitlab.models.transport.uncontended import uncontended_ticks
from flitlab.sim.engines.transport.datagram import Counters, DatagramRun, LinkCount, SubflowCount
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.result import FlowsResult, edges_until, interval, stored_use
from flitlab.sim.measure.transport import (
    Window,
    completion,
    epoch_traffic,
    throughput_columns,
    traffic_of,
    transport_rows,
)

BEGUN, NOT_BEGUN, NOT_OPENED = "begun", "not begun", "not opened"
"""``state`` of flows.csv: of a flow or subflow at the end of the run."""

_LOSSES = {"retransmissions": SubflowCount.RESENT, "timeouts": SubflowCount.TIMEOUTS}
"""Counters that are columns of transports.csv."""

Sample = tuple[Counters, Ints]
"""Counters of a run, and the data packets of each subflow in flight."""


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
    """Measure a run of flows, from the start of a window to its end, or to that of the last of the flows that begin
    together.

    Of detail, ``flows`` has the rows of flows.csv, of each flow and, if it has several, of its subflows;
    ``channel_use`` the traffic of each channel as a fraction of the NIC rate at capacity 1; with several transports,
    ``transports`` the rows of transports.csv; with a timeline,
    ``throughput_time`` the rows of throughput_time.csv.
    """
    session, timeline = run.session, None if scenario is None else scenario.timeline
    first, last = (session.ticks(seconds) for seconds in how.window)
    samples = _sample(run, {first, last, *(() if timeline is None else edges_until(timeline, last))})
    if not first and session.flows.packets.any() and not session.start.any():
        samples = _until_the_last_flow(samples)
        last = max(samples)
    (before, present), (after, _) = samples[first], samples[last]
    moved = after.subflow - before.subflow
    throughput = _fractions(session, _per_flow(session, moved[:, SubflowCount.RECEIVED]), last - first)
    states = _states(session, after)
    row = _summary(session, before, after, throughput) | _state_counts(states)
    times = _times(session, after) if session.flows.packets.any() else None
    if times is not None:
        done, slowdown = times
        size = session.flows.packets * session.queues.packet_bytes
        row |= completion(size, done * float(session.tick_s) * 1e3, slowdown)
    row |= measured("flows", Counted(session, before, after, throughput))
    flows = _flow_rows(session, moved, throughput, last - first, states, times)
    detail = {"flows": flows, "channel_use": _use(session, before, after)}
    if len(session.transports) > 1:
        unknown = np.full(len(session.flows.kinds), np.nan)
        counted = {name: _per_flow(session, moved[:, column]) for name, column in _LOSSES.items()}
        received = _bytes(session, moved[:, SubflowCount.RECEIVED])
        detail["transports"] = transport_rows(session, received, throughput, times or (unknown, unknown), counted)
    if timeline is not None:
        detail["throughput_time"] = _time_rows(session, samples)
    delivered = traffic_of(session, _bytes(session, moved[:, SubflowCount.RECEIVED]))
    in_flight = traffic_of(session, _bytes(session, present))
    window = (last - first) / fastest_capacity(session.topology)
    if timeline is None:
        return FlowsResult(row, detail, delivered, in_flight, window, throughput)

    def between(start: int, end: int) -> tuple[Ints, Ints]:
        (before, present), (after, _) = samples[start], samples[end]
        return _bytes(session, (after.subflow - before.subflow)[:, SubflowCount.RECEIVED]), _bytes(session, present)

    parts, capacity = epoch_traffic(session, timeline, last, between), timeline.capacity(first, last)
    return FlowsResult(row, detail, delivered, in_flight, window, throughput, parts=parts, capacity=capacity)


def _sample(run: DatagramRun, ticks: set[int]) -> dict[int, Sample]:
    """Return the counters of a run, and the packets in flight, at the start of each of some ticks."""
    samples = {}
    for tick in sorted(ticks):
        run.advance(tick)
        samples[tick] = run.counters(), run.in_flight()
    return samples


def _until_the_last_flow(samples: dict[int, Sample]) -> dict[int, Sample]:
    """Return samples up to the end of the last flow: nothing is received after it."""
    after, in_flight = samples[max(samples)]
    end = int(after.finished.max()) + 1
    if after.finished.min() < 0 or end > after.tick:
        return samples
    return {tick: sample for tick, sample in samples.items() if tick < end} | {
        end: (replace(after, tick=end), in_flight)
    }


def _time_rows(session: Session, samples: dict[int, Sample]) -> list[Row]:
    """Rows of throughput_time.csv: mean received by a host, and drops, from each sample to the next."""
    rows = []
    for start, end in pairwise(samples):
        before, after = samples[start][0], samples[end][0]
        moved = (after.subflow - before.subflow).sum(axis=0)
        per_host = float(_fractions(session, moved[SubflowCount.RECEIVED], end - start) / session.topology.hosts)
        drops = int((after.link - before.link)[:, LinkCount.DROPS].sum())
        counted = {"drops": drops, "retransmissions": int(moved[SubflowCount.RESENT])}
        rows.append(interval(start, end, float(session.tick_s) * 1e9, per_host, **counted))
    return rows


def _use(session: Session, before: Counters, after: Counters) -> list[float]:
    """Utilisation of the channels between switches in the window, relative to the NIC rate at capacity 1."""
    sent = (after.link - before.link)[: session.topology.channels, LinkCount.BYTES] / session.queues.packet_bytes
    return stored_use(_fractions(session, sent, after.tick - before.tick) * session.topology.host_capacity)


def _bytes(session: Session, packets: Ints) -> Ints:
    """Bytes of packets, int64 [subflows], of each flow: int64 [flows]."""
    return _per_flow(session, packets) * session.queues.packet_bytes


def _per_flow(session: Session, amount: Ints) -> Ints:
    """Sums over the subflows of each flow, int64 [flows]; amount: int64 [subflows]."""
    return np.add.reduceat(amount, session.first[:-1])


def _fractions(session: Session, packets: Ints | Floats, ticks: int) -> Floats:
    """Packets in ``ticks`` ticks as a fraction of the NIC rate; the same shape."""
    rate = session.queues.nic_mbps * session.topology.host_capacity * 1e6 / 8 * float(session.tick_s)  # bytes a tick
    return packets * session.queues.packet_bytes / (rate * ticks)


def _summary(session: Session, before: Counters, after: Counters, throughput: Floats) -> Row:
    moved, links = after.subflow - before.subflow, after.link - before.link
    ticks, tick_s = after.tick - before.tick, float(session.tick_s)
    total, samples = moved.sum(axis=0), moved[:, SubflowCount.SAMPLES].sum()
    network = len(session.delay)  # feeders come after its links
    stay = links[:network, LinkCount.QUEUE_TICKS] / ticks
    per_host = _fractions(session, total[SubflowCount.RECEIVED], ticks) / session.topology.hosts
    return {
        **throughput_columns(throughput, per_host),
        "drops": int(links[:, LinkCount.DROPS].sum()),
        "retransmissions": int(total[SubflowCount.RESENT]),
        "timeouts": int(total[SubflowCount.TIMEOUTS]),
        "marks": int(links[:, LinkCount.MARKS].sum()),
        "rtt_ms_mean": float(total[SubflowCount.RTT] / samples * tick_s * 1e3) if samples else float("nan"),
        "queue_mean": float(stay.mean()),
        "queue_mean_max": float(stay.max()),
        "queue_max": float(after.link[:network, LinkCount.MAX_QUEUE_BYTES].max() / session.queues.packet_bytes),
        "packets": int(total[SubflowCount.RECEIVED]),
        "packet_hops": int(links[:network, LinkCount.SENT].sum()),
        "ticks": ticks,
        "seconds": ticks * tick_s,
    }


def _times(session: Session, after: Counters) -> tuple[Floats, Floats]:
    """Completion time in ticks, and slowdown, of every flow, float64 [flows]; NaN if incomplete."""
    start = np.minimum.reduceat(session.start, session.first[:-1])
    done = np.where(after.finished >= 0, after.finished - start, np.nan)
    return done, done / uncontended_ticks(session)


def _states(session: Session, after: Counters) -> list[str]:
    """The state of each subflow at the end of a run; NOT_OPENED if its SYN, or the reply, was certainly dropped."""
    begun = session.start < after.tick
    answered = after.subflow[:, SubflowCount.SAMPLES] > 0
    if not session.rules:
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
) -> list[Row]:  # fmt: skip
    """Rows of flows.csv: a flow, then its subflows if there are several.

    states: of subflows. times: of finite flows.
    """
    subflow = _fractions(session, moved[:, SubflowCount.RECEIVED], ticks)
    source, target, packets = (part.tolist() for part in session.flows[:3])
    first, rows = session.first.tolist(), []
    for f in range(len(source)):
        mine = slice(first[f], first[f + 1])
        transport = {} if len(session.names) == 1 else {"transport": session.names[session.flows.kinds[f]]}
        row = {"flow": f, "subflow": "", **transport, "source": source[f], "target": target[f]}
        row |= _counts(session, moved[mine].sum(axis=0), float(throughput[f]), session.start[mine].min())
        row["state"] = _state_of(states[mine])
        if times is not None:
            done, slowdown = times
            row |= {
                "size_bytes": packets[f] * session.queues.packet_bytes,
                "fct_ms": float(done[f] * float(session.tick_s) * 1e3), "slowdown": float(slowdown[f]),
            }  # fmt: skip
        single = mine.stop - mine.start == 1
        rows.append({**row, "path": path_of(session, mine.start) if single else ""})
        for i in range(mine.start, mine.stop) if not single else ():
            part = {"flow": f, "subflow": i - mine.start, **transport, "source": source[f], "target": target[f]}
            part |= _counts(session, moved[i], float(subflow[i]), session.start[i])
            rows.append({**part, "state": states[i], "path": path_of(session, i)})
    return rows


def _counts(session: Session, moved: Ints, throughput: float, start: int) -> Row:
    samples = int(moved[SubflowCount.SAMPLES])
    return {
        "throughput": throughput,
        "received_bytes": int(moved[SubflowCount.RECEIVED]) * session.queues.packet_bytes,
        "retransmissions": int(moved[SubflowCount.RESENT]),
        "timeouts": int(moved[SubflowCount.TIMEOUTS]),
        "rtt_ms": float(moved[SubflowCount.RTT] / samples * float(session.tick_s) * 1e3) if samples else float("nan"),
        "start_ms": float(start * float(session.tick_s) * 1e3),
    }


def path_of(session: Session, subflow: int) -> str:
    """The switches of a subflow's first path, as 3-17-5."""
    topology, paths = session.topology, session.paths
    links = paths.link[paths.start[subflow] + 1 : paths.start[subflow + 1] - 1]
    first = topology.host_switch[paths.link[paths.start[subflow]] - topology.channels]
    return "-".join(map(str, [int(first), *topology.dst[links].tolist()]))
