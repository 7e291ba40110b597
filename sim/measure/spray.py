# SPDX-License-Identifier: Apache-2.0
"""One point of mode spray: completion times of flows, and what happened to their packets."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Row
from flitlab.models.scenario import Scenario
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.queues import fastest_capacity
from flitlab.models.transport.uncontended_spray import uncontended_ticks
from flitlab.sim.engines.transport.spray import (
    Counters,
    FlowCount,
    LinkCount,
    PauseCount,
    SprayRun,
    finished_at,
)
from flitlab.sim.measure.pauses import LinkNames, Trees, pause_columns, pause_rows, pause_time_rows, pause_trees
from flitlab.sim.measure.result import FlowsResult, interval, stored_use
from flitlab.sim.measure.transport import (
    Window,
    completion,
    epoch_traffic,
    throughput_columns,
    traffic_of,
    transport_rows,
)

_FIRST_STEP, _GROWTH = 16, 1.5
"""Round trips before the first check whether all flows have ended, and the growth of the next steps."""

_LOSSES = {
    "retransmissions": FlowCount.RESENT, "timeouts": FlowCount.TIMEOUTS, "trims": FlowCount.TRIMS,
    "marks": FlowCount.MARKS,
}  # fmt: skip
"""Counters that are columns of flows.csv and transports.csv."""


MAX_INTERVALS = 200
"""The most equal intervals; beyond, neighbours are merged."""

_INTERVALS_PER_RTT = 16
"""Intervals of a round trip at first."""


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

    Raises :class:`~flitlab.sim.measure.result.StallError` for a deadlock that a certificate excludes.

    Of detail, ``flows`` has the rows of flows.csv; with lossless queues ``pauses`` those of pauses.csv, and
    ``pauses_time`` those of pauses_time.csv;
    ``channel_use`` the utilisation of each channel between switches; with several transports, ``transports`` the rows
    of transports.csv; with a timeline, ``throughput_time`` those of throughput_time.csv.
    """
    session, timeline = run.session, None if scenario is None else scenario.timeline
    first, last = (session.ticks(seconds) for seconds in how.window)
    epochs = () if timeline is None else (epoch.tick for epoch in timeline.epochs)
    samples = None if timeline is None and session.ports is None else Samples(run, {first, *epochs})
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
    elif run.deadlock():
        end = after.tick
    ticks, times = end - first, _times(session, after)
    moved = after.flow - before.flow
    throughput = _fractions(session, moved[:, FlowCount.RECEIVED], ticks)
    row = _summary(session, before, after, throughput, ticks)
    milliseconds = float(session.tick_s) * 1e3
    row |= completion(session.flows.bytes, times.sender * milliseconds, times.slowdown)
    row |= {"fct_receiver_ms_mean": _mean_known(times.receiver) * milliseconds}
    trees = None if after.pause is None else pause_trees(session, after)
    may_deadlock = scenario is None or timeline is not None or scenario.switching.may_deadlock
    row |= pause_columns(run, before, after, ticks, may_deadlock, trees)
    if before.cnps is not None and after.cnps is not None:
        row["cnps"] = int((after.cnps - before.cnps).sum())
    use = (after.link - before.link)[: session.topology.channels, LinkCount.BUSY] / ticks * session.topology.capacity
    detail = {"flows": _flow_rows(session, after, times, trees), "channel_use": stored_use(use)}
    if trees is not None and after.pause is not None and samples is not None:
        detail["pauses"] = pause_rows(session, trees, after.pause)
        detail["pauses_time"] = pause_time_rows(session, trees, samples.paused(end))
    if len(session.transports) > 1:
        counted = {name: moved[:, column] for name, column in _LOSSES.items()}
        received = moved[:, FlowCount.RECEIVED]
        detail["transports"] = transport_rows(session, received, throughput, (times.sender, times.slowdown), counted)
    delivered, present = (traffic_of(session, sent) for sent in _between(before, after))
    window = ticks / fastest_capacity(session.topology)
    if timeline is None or samples is None:
        return FlowsResult(row, detail, delivered, present, window, throughput)
    detail["throughput_time"] = samples.rows(end)
    counters = samples.counters | {end: after}
    parts = epoch_traffic(session, timeline, end, lambda start, until: _between(counters[start], counters[until]))
    capacity = timeline.capacity(first, end)
    return FlowsResult(row, detail, delivered, present, window, throughput, parts=parts, capacity=capacity)


def _between(before: Counters, after: Counters) -> tuple[Ints, Ints]:
    """Bytes on the wire delivered between two ticks, and in flight at the first one, int64 [flows] each."""
    received = FlowCount.RECEIVED
    return after.flow[:, received] - before.flow[:, received], before.flow[:, FlowCount.SENT] - before.flow[:, received]


def _advance_to_end(run: SprayRun, tick: int, last: int) -> None:
    """Advance a run to tick ``last``, or to the end of its last flow, or slightly beyond a deadlock."""
    step = float(_FIRST_STEP * run.session.rules.rtt0)
    while tick < last and not run.ended() and not run.deadlock():
        tick = min(last, tick + int(step))
        run.advance_to_end(tick)
        step *= _GROWTH


def _fractions(session: SpraySession, received: Ints, ticks: int) -> Floats:
    """Bytes in ``ticks`` ticks as a fraction of the NIC rate; the same shape."""
    return received / (session.rules.rate * ticks)


def _summary(
    session: SpraySession, before: Counters, after: Counters, throughput: Floats, ticks: int
) -> Row:  # fmt: skip
    moved, links = (after.flow - before.flow).sum(axis=0), (after.link - before.link).sum(axis=0)
    per_host = _fractions(session, moved[FlowCount.RECEIVED], ticks) / session.topology.hosts
    return {
        **throughput_columns(throughput, per_host),
        "drops": int(links[LinkCount.DROPS]),
        "trims": int(links[LinkCount.TRIMMED]),
        "marks": int(links[LinkCount.MARKED]),
        "retransmissions": int(moved[FlowCount.RESENT]),
        "timeouts": int(moved[FlowCount.TIMEOUTS]),
        "acks": int(moved[FlowCount.ACKS]),
        "nacks": int(moved[FlowCount.NACKS]),
        "pulls": int(moved[FlowCount.PULLS]),
        "queue_max": float(after.link[:, LinkCount.MAX_QUEUE_BYTES].max() / session.rules.mtu),
        "packet_hops": int(links[LinkCount.ACCEPTED]),
        "ticks": ticks,
        "seconds": ticks * float(session.tick_s),
    }


def _times(session: SpraySession, after: Counters) -> Times:
    start = session.flows.start
    both = finished_at(session, after.flow), after.flow[:, FlowCount.COMPLETE]
    sender, receiver = (np.where(when >= 0, when - start, np.nan) for when in both)
    return Times(sender, receiver, sender / uncontended_ticks(session))


def _mean_known(values: Floats) -> float:
    """The mean of the values that are not NaN; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _flow_rows(session: SpraySession, after: Counters, times: Times, trees: Trees | None) -> list[Row]:
    """Rows of flows.csv. trees: of pauses, if there are some."""
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
        "slowdown": times.slowdown, **{name: after.flow[:, column] for name, column in _LOSSES.items()},
    }  # fmt: skip
    classes = None if session.ports is None else session.ports.classes
    if classes is not None:
        columns = {"class": np.array(classes.names)[classes.of_flow], **columns}
    if len(session.transports) > 1:
        columns = {"transport": np.array(session.names)[session.flows.kinds], **columns}
    if trees is not None and trees.victims is not None:
        names, victims = LinkNames(session), trees.victims
        columns["victim_of"] = np.array([
            names.name(victims[i].root) if i in victims else "" for i in range(len(flows.source))
        ])  # fmt: skip
        columns["victim_us"] = us(np.array([victims[i].ticks if i in victims else 0 for i in range(len(flows.source))]))
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [{"flow": i, **dict(zip(columns, row, strict=True))} for i, row in enumerate(rows)]


class Sample(NamedTuple):
    """Totals before a tick: bytes received, packets retransmitted, packets dropped.

    paused: int64 [ports], ticks for which each is paused, None without lossless queues.
    """

    received: int
    resent: int
    drops: int
    paused: Ints | None


class Samples:
    """Advances a run and samples it in equal intervals, and at some ticks.

    counters: by tick, at these. The interval doubles as the run gets longer.
    """

    def __init__(self, run: SprayRun, at: Collection[int]):
        self.run = run
        self.counters: dict[int, Counters] = {}
        self._sample_ticks = set(at)
        self._samples: dict[int, Sample] = {}
        self._width = max(1, run.session.rules.rtt0 // _INTERVALS_PER_RTT)

    def advance_to_end(self, last: int, least: int) -> None:
        """Advance the run until its last flow has ended, or a deadlock, and tick ``least`` is reached, but not beyond
        ``last``.
        """
        tick = 0
        self._sample(tick)
        while tick < last and not (tick >= least and (self.run.ended() or self.run.deadlock())):
            later = [kept for kept in self._sample_ticks if kept > tick]
            tick = min(last, tick - tick % self._width + self._width, *later)
            (self.run.advance if tick <= least else self.run.advance_to_end)(tick)
            self._sample(tick)
            even = [seen for seen in self._samples if seen % self._width == 0]
            if len(even) > MAX_INTERVALS:
                self._width *= 2
                self._samples = {
                    t: look for t, look in self._samples.items() if t in self._sample_ticks or t % self._width == 0
                }

    def _sample(self, tick: int) -> None:
        counters = self.run.counters(causes=False)
        flow = counters.flow.sum(axis=0)
        self._samples[tick] = Sample(
            int(flow[FlowCount.RECEIVED]), int(flow[FlowCount.RESENT]), int(counters.link[:, LinkCount.DROPS].sum()),
            None if counters.pause is None else counters.pause[:, PauseCount.PAUSED].copy(),
        )  # fmt: skip
        if tick in self._sample_ticks:
            self.counters[tick] = counters

    def _until(self, end: int) -> dict[int, Sample]:
        """The samples in order, the last of them at tick ``end``."""
        last = self._samples[max(self._samples)]
        return {tick: look for tick, look in sorted(self._samples.items()) if tick < end} | {end: last}

    def paused(self, end: int) -> list[tuple[int, Ints]]:
        """Ticks for which each port has been paused, int64 [ports], before each sample up to tick ``end``."""
        return [(tick, look.paused) for tick, look in self._until(end).items() if look.paused is not None]

    def rows(self, end: int) -> list[Row]:
        """Rows of throughput_time.csv: mean received by a host, and drops, from each sample to the next.

        end: the tick after which nothing arrived.
        """
        session, rows = self.run.session, []
        rate, samples = session.rules.rate * session.topology.hosts, self._until(end)
        for (start, before), (until, after) in pairwise(samples.items()):
            per_host = (after.received - before.received) / (rate * (until - start))
            counted = {"drops": after.drops - before.drops, "retransmissions": after.resent - before.resent}
            rows.append(interval(start, until, float(session.tick_s * 10**9), per_host, **counted))
        return rows
