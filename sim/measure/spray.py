# SPDX-License-Identifier: Apache-2.0
"""One point of mode spray: completion times of flows, and what happened to their packets."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.fairness import jain
from flitlab.models.pairs import PairCounts
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.uncontended_spray import uncontended_ticks
from flitlab.sim.engines.base import Flows
from flitlab.sim.engines.spray.base import (
    ACCEPTED,
    ACKS,
    BUSY,
    COMPLETE,
    DROPS,
    MARKED,
    MARKS,
    MAX_QUEUE_BYTES,
    NACKS,
    PULLS,
    RECEIVED,
    RESENT,
    SENT,
    TIMEOUTS,
    TRIMMED,
    TRIMS,
    Counters,
    SprayRun,
    finished_at,
)
from flitlab.sim.measure.completion import completion
from flitlab.sim.measure.datagram import Window
from flitlab.sim.measure.result import EpochTraffic, FlowsResult
from flitlab.sim.measure.samples import Samples

_FIRST_STEP, _GROWTH = 16, 1.5
"""Round trips before the first check whether all flows have ended, and the growth of the next steps."""


@dataclass(frozen=True)
class Times:
    """Completion times of flows: float64 [flows], ticks; NaN if incomplete.

    sender, receiver: until either has all data acknowledged or received. slowdown: of the sender's time, over the
    uncontended completion time.
    """

    sender: Floats
    receiver: Floats
    slowdown: Floats


def measure_sprayed(run: SprayRun, scenario: Scenario | None, load: float, how: Window) -> FlowsResult:
    """Measure a run of sprayed packets, from the start of a window to its end or that of the last flow.

    Of detail, ``flows`` has the rows of flows.csv; ``channel_use`` the utilisation of each channel between switches;
    with several transports, ``transports`` the rows of transports.csv; with a timeline, ``throughput_time`` those of
    throughput_time.csv.
    """
    session, timeline = run.session, None if scenario is None else scenario.timeline
    first, last = (session.ticks(seconds) for seconds in how.window)
    samples = None if timeline is None else Samples(run, timeline, {first})
    if samples is None:
        run.advance(first)
        before = run.counters()
        _advance_to_end(run, first, last)
    else:
        samples.advance_to_end(last, first)
        before = samples.counters[first]
    after = run.counters()
    end = last
    if run.ended():
        end = min(last, max(first, int(finished_at(session, after.flow).max())) + 1)
    ticks, times = end - first, _times(session, after)
    moved = after.flow - before.flow
    throughput = _fractions(session, moved[:, RECEIVED], ticks)
    row = _summary(session, before, after, throughput, ticks)
    milliseconds = float(session.tick_s) * 1e3
    row |= completion(session.flows.bytes, times.sender * milliseconds, times.slowdown)
    row |= _ends(times, milliseconds)
    use = (after.link - before.link)[: session.topology.channels, BUSY] / ticks * session.topology.capacity
    detail = {"flows": _flow_rows(session, after, times), "channel_use": np.round(use, 4).tolist()}
    if len(session.transports) > 1:
        detail["transports"] = _transport_rows(session, moved, throughput, times)
    delivered = _count(session, moved[:, RECEIVED])
    present = _count(session, before.flow[:, SENT] - before.flow[:, RECEIVED])
    pace = max(float(session.topology.capacity.max(initial=0.0)), session.topology.host_capacity)
    if timeline is None or samples is None:
        return FlowsResult(row, detail, delivered, present, ticks / pace, throughput)
    detail["throughput_time"] = samples.rows(end)
    parts = _epochs(session, samples.counters | {end: after}, timeline, end, pace)
    capacity = timeline.capacity(first, end)
    return FlowsResult(row, detail, delivered, present, ticks / pace, throughput, parts=parts, capacity=capacity)


def _epochs(
    session: SpraySession, counters: dict[int, Counters], timeline: Timeline, end: int, pace: float
) -> tuple[EpochTraffic, ...]:
    """Traffic delivered in each epoch that began before the run ended; counters: by tick, at each epoch and at the
    end.
    """
    epochs = []
    for epoch, (start, until) in enumerate(pairwise([*(e.tick for e in timeline.epochs if e.tick < end), end])):
        before, after = counters[start].flow, counters[until].flow
        delivered = _count(session, after[:, RECEIVED] - before[:, RECEIVED])
        present = _count(session, before[:, SENT] - before[:, RECEIVED])
        epochs.append(EpochTraffic(epoch, delivered, present, (until - start) / pace))
    return tuple(epochs)


def _advance_to_end(run: SprayRun, tick: int, last: int) -> None:
    """Advance a run to tick ``last``, or slightly beyond the end of its last flow."""
    step = float(_FIRST_STEP * run.session.rules.rtt0)
    while tick < last and not run.ended():
        tick = min(last, tick + int(step))
        run.advance(tick)
        step *= _GROWTH


def _count(session: SpraySession, sent: Ints) -> Flows:
    """Bytes on the wire, int64 [flows], by source and destination."""
    topology, flows = session.topology, session.flows
    pair = topology.host_switch[flows.source] * topology.switches + topology.host_switch[flows.destination]
    pairs = PairCounts.of(topology.switches, pair, sent)
    sources, targets = (np.bincount(hosts, sent, topology.hosts) for hosts in (flows.source, flows.destination))
    return Flows(pairs, sources.astype(np.int64), targets.astype(np.int64))


def _fractions(session: SpraySession, received: Ints, ticks: int) -> Floats:
    """Bytes in ``ticks`` ticks as a fraction of the NIC rate; the same shape."""
    return received / (session.rules.rate * ticks)


def _summary(
    session: SpraySession, before: Counters, after: Counters, throughput: Floats, ticks: int
) -> dict[str, Any]:  # fmt: skip
    moved, links = (after.flow - before.flow).sum(axis=0), (after.link - before.link).sum(axis=0)
    names = {"retransmissions": RESENT, "timeouts": TIMEOUTS, "acks": ACKS, "nacks": NACKS, "pulls": PULLS}
    per_host = _fractions(session, moved[RECEIVED], ticks) / session.topology.hosts
    return {
        "host_throughput": float(per_host),
        "throughput_mean": float(throughput.mean()),
        "throughput_min": float(throughput.min()),
        "throughput_max": float(throughput.max()),
        "jain": jain(throughput),
        "drops": int(links[DROPS]),
        "trims": int(links[TRIMMED]),
        "marks": int(links[MARKED]),
        **{name: int(moved[place]) for name, place in names.items()},
        "queue_max": float(after.link[:, MAX_QUEUE_BYTES].max() / session.rules.mtu),
        "packet_hops": int(links[ACCEPTED]),
        "ticks": ticks,
        "seconds": ticks * float(session.tick_s),
    }


def _times(session: SpraySession, after: Counters) -> Times:
    start = session.flows.start
    both = finished_at(session, after.flow), after.flow[:, COMPLETE]
    sender, receiver = (np.where(when >= 0, when - start, np.nan) for when in both)
    return Times(sender, receiver, sender / uncontended_ticks(session))


def _ends(times: Times, milliseconds: float) -> dict[str, Any]:
    """Columns: the largest completion time, and the mean at receivers."""
    known = times.sender[~np.isnan(times.sender)]
    arrived = times.receiver[~np.isnan(times.receiver)]
    return {
        "fct_ms_max": float(known.max() * milliseconds) if len(known) else float("nan"),
        "fct_receiver_ms_mean": float(arrived.mean() * milliseconds) if len(arrived) else float("nan"),
    }


def _flow_rows(session: SpraySession, after: Counters, times: Times) -> list[dict[str, Any]]:
    """Rows of flows.csv."""
    flows, unknown = session.flows, np.full(len(times.sender), np.nan)
    tick_us = session.tick_s * 10**6

    def us(ticks: Ints | Floats) -> Floats:
        """Microseconds, as exact as floats are."""
        microseconds: Floats = ticks * float(tick_us.numerator) / tick_us.denominator
        return microseconds

    columns = {
        "source": flows.source, "destination": flows.destination, "bytes": flows.bytes, "start_us": us(flows.start),
        "fct_sender_us": us(np.where(session.acknowledges, times.sender, unknown)),
        "fct_receiver_us": us(times.receiver),
        "slowdown": times.slowdown, "retransmissions": after.flow[:, RESENT], "timeouts": after.flow[:, TIMEOUTS],
        "trims": after.flow[:, TRIMS], "marks": after.flow[:, MARKS],
    }  # fmt: skip
    if len(session.transports) > 1:
        columns = {"transport": np.array(session.names)[session.kind], **columns}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [{"flow": i, **dict(zip(columns, row, strict=True))} for i, row in enumerate(rows)]


def _transport_rows(session: SpraySession, moved: Ints, throughput: Floats, times: Times) -> list[dict[str, Any]]:
    """Rows of transports.csv: throughput of the flows of each transport in the window, and their completion times.

    moved: int64 [flows, FLOW_COUNTS], counters of the window. throughput: float64 [flows].
    """
    received, milliseconds = moved[:, RECEIVED], float(session.tick_s) * 1e3
    counted = {"retransmissions": RESENT, "timeouts": TIMEOUTS, "trims": TRIMS, "marks": MARKS}
    rows = []
    for number, name in enumerate(session.names):
        mine = session.kind == number
        took, slowdown = times.sender[mine], times.slowdown[mine]
        complete = ~np.isnan(took)
        rows.append({
            "transport": name, "flows": int(mine.sum()), "flows_complete": int(complete.sum()),
            "throughput_mean": float(throughput[mine].mean()) if mine.any() else float("nan"),
            "share": float(received[mine].sum() / max(received.sum(), 1)),
            **_of_complete("fct_ms", took[complete] * milliseconds), **_of_complete("slowdown", slowdown[complete]),
            **{what: int(moved[mine, place].sum()) for what, place in counted.items()},
        })  # fmt: skip
    return rows


def _of_complete(name: str, values: Floats) -> dict[str, float]:
    """Mean and largest of some values; NaN if there are none."""
    if not len(values):
        return {f"{name}_mean": float("nan"), f"{name}_max": float("nan")}
    return {f"{name}_mean": float(values.mean()), f"{name}_max": float(values.max())}
