# SPDX-License-Identifier: Apache-2.0
"""One point of a curve: packets of a scenario at one load with one seed."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.histogram import edges, percentile
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.rules.stalls import Stall
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import ChannelCounter, ClassCounter, Run, Scalar, Snapshot
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.growth import overloaded_channels, source_settling
from flitlab.sim.measure.result import Result, StallError, stored_use
from flitlab.sim.measure.verdict import is_losing, verdict
from flitlab.sim.measure.window import Window, latency_half_width

FIRST_BATCHES = 40
"""Batches of the first window, which has ``ticks`` ticks."""

STALL_COLUMNS = {f"stalled_{name.lower()}": reason for name, reason in Stall._asdict().items()}
"""Column of channels.csv -> the reason of the stalls that it counts."""


@dataclass(frozen=True)
class Measure:
    """Warm-up and window of a run of packets, in ticks.

    warmup: None to detect its end. ticks: the window after it. ci: target for the relative half-width of the mean
    latency; the window grows up to ``max_ticks`` for it; None: exactly ``ticks``.

    A probe of a search (:mod:`flitlab.sim.measure.probe`) has a ``resolution``: the relative overload that it must
    exclude, None for other points. longest: its longest window, as a multiple of ``ticks``. draws: runs with fresh
    draws that have to agree; 0 for one run, with the draws of the seed. channels: whether the traffic of channels is
    counted.
    """

    warmup: int | None = None
    ticks: int = 30000
    ci: float | None = None
    max_ticks: int = 60000
    resolution: float | None = None
    longest: int = 1
    draws: int = 0
    channels: bool = False


@dataclass(frozen=True)
class Observed:
    """A measured window. backlog: int64 [batches + 1, hosts], flits of hosts at the bounds of batches."""

    window: Window
    backlog: Ints

    @property
    def created(self) -> Ints:
        """Flits that hosts created in the window, int64 [hosts]."""
        created: Ints = self.window.after.created - self.window.before.created
        return created


def measure_packets(run: Run, scenario: Scenario, load: float, how: Measure) -> Result:
    """Measure a run of packets from its beginning.

    Raises :class:`~flitlab.sim.measure.result.StallError` for a stall that a certificate excludes.
    """
    warmup, settled = warm_up(run, scenario, load, how)
    seen = observe(run, scenario, load, warmup, how)
    saturated, why = verdict(scenario, load, seen.window.batches, seen.created, seen.backlog)
    row = {"saturated": saturated, "saturated_by": why, "warmup_ticks": warmup, "steady": settled}
    return result(run, scenario, load, seen, row)


def observe(run: Run, scenario: Scenario, load: float, start: int, how: Measure) -> Observed:
    """Advance through the window that begins at tick ``start``, the current tick of the run."""
    before = run.snapshot()
    batches, backlog = measure_batches(run, scenario, load, start, how)
    return Observed(Window(scenario, before, run.snapshot(), batches), backlog)


def result(run: Run, scenario: Scenario, load: float, seen: Observed, more: Row) -> Result:
    """Return the result of a run that ends with a window. more: columns that do not follow from its counters.

    Raises :class:`~flitlab.sim.measure.result.StallError` for a stall that a certificate excludes.
    """
    window = seen.window
    before, after = window.before, window.after
    row = measured("packets", window) | more
    row["overloaded_channels"] = overloaded_channels(scenario, load, window.channels)
    row["deadlocked"] = is_deadlocked(run, scenario, window.batches, window.ticks)
    delivered = after.delivered.minus(before.delivered)
    ticks = window.ticks / scenario.switching.flits_per_tick(scenario.topology)
    more_tables = details(before, after) | class_tables(scenario, before, after)
    return Result(row, more_tables, delivered, before.present, ticks)


def is_deadlocked(run: Run, scenario: Scenario, batches: Ints, ticks: int) -> bool:
    """Whether some packet can never move again, at the end of a window.

    With a certificate this is checked only after a long stall.

    Parameters
    ----------
    batches : int64 [batches, scalars]
        Increments of the scalar counters over equal parts of the window.
    ticks : int
        Length of the window.

    Raises
    ------
    StallError
        If nothing has moved for the deadlock timeout though packets wait, and a certificate excludes a deadlock.
    """
    if scenario.switching.may_deadlock and run.deadlocked():
        return True
    scalars = run.scalars()
    created, sent, delivered = (
        int(scalars[index]) for index in (Scalar.CREATED_PACKETS, Scalar.SENT_PACKETS, Scalar.DELIVERED_PACKETS)
    )
    quiet, since = _stalled_ticks(batches, ticks)
    timeout = scenario.switching.deadlock_timeout(scenario.topology, max(scenario.source.flits))
    if quiet > timeout and created - since > delivered:
        where = f"({sent - delivered:,} in the network, {created - sent:,} at hosts)"
        if run.deadlocked():
            raise StallError(f"packets wait for each other in a cycle, in spite of the certificate {where}")
        raise StallError(f"nothing has moved for {quiet:,} ticks, though packets wait {where}")
    return False


def _stalled_ticks(batches: Ints, ticks: int) -> tuple[int, int]:
    """Return the ticks at the end of the window in which nothing moved, and the packets created in them."""
    moves = (batches[:, [Scalar.SENT_PACKETS, Scalar.GRANTS, Scalar.DELIVERED_FLITS]] > 0).sum(axis=1)
    count = len(moves) - 1 - int(np.flatnonzero(moves).max(initial=-1))
    return ticks * count // len(moves), int(batches[len(moves) - count :, Scalar.CREATED_PACKETS].sum())


def warm_up(run: Run, scenario: Scenario, load: float, measure: Measure) -> tuple[int, bool]:
    """Advance past the transient and return its length in ticks, and whether the rule was satisfied.

    The run is checked at 1, 2, 4, ... times a first guess of thirty zero-load latencies, and for the last time after
    ``measure.ticks``, or that guess if it is longer. The warm-up ends at the first check at which MSER-5 finds both
    accepted traffic and network latency steady for half of it, and at the last one. As a series cannot show a transient
    that is longer than itself, it lasts for :func:`~flitlab.sim.measure.growth.source_settling`, too, unless traffic is
    lost.
    """
    if measure.warmup is not None:
        run.advance(measure.warmup)
        return measure.warmup, True
    guess = max(30 * scenario.zero_load_latency, measure.ticks // 10)
    step = -(-guess // 100)
    latest, settling = max(measure.ticks, 100 * step), source_settling(scenario, load)
    rows = [run.scalars()]
    now, check_at = 0, 100 * step
    while True:
        while now < check_at:
            now += step
            run.advance(now)
            rows.append(run.scalars())
        change = _steps(rows)
        packets = np.maximum(change[:, Scalar.DELIVERED_PACKETS], 1)
        steady = is_steady(change[:, Scalar.DELIVERED_FLITS]) and is_steady(change[:, Scalar.NETWORK_LATENCY] / packets)
        if steady and (now >= settling or is_losing(scenario, load, change)):
            return now, True
        if check_at == latest:
            return now, False
        check_at = min(2 * check_at, latest)


def measure_batches(run: Run, scenario: Scenario, load: float, start: int, measure: Measure) -> tuple[Ints, Ints]:
    """Advance through the window, which begins at tick ``start``.

    Returns
    -------
    batches : int64 [batches, scalars]
        Increments of the scalar counters.
    backlog : int64 [batches + 1, hosts]
        Backlogs of hosts in flits at the bounds of batches.
    """
    count = min(FIRST_BATCHES, measure.ticks)
    bounds = [start + measure.ticks * i // count for i in range(count + 1)]
    rows, backlog = [run.scalars()], [run.backlog()]

    def advance(bound: int) -> None:
        run.advance(bound)
        rows.append(run.scalars())
        backlog.append(run.backlog())

    for bound in bounds[1:]:
        advance(bound)
    length, now = max(measure.ticks // count, 1), bounds[-1]
    while measure.ci is not None and now + length <= start + measure.max_ticks:
        batches = _steps(rows)
        if is_precise(batches, measure.ci) or is_losing(scenario, load, batches):
            break
        for _ in range(len(batches) // 2 or 1):
            if now + length > start + measure.max_ticks:
                break
            now += length
            advance(now)
    return _steps(rows), np.array(backlog)


def _steps(rows: list[Ints]) -> Ints:
    """Increments from each row of counters to the next, int64 [rows - 1, columns]."""
    table: Ints = np.array(rows)
    return np.diff(table, axis=0)


def is_precise(batches: Ints, target: float) -> bool:
    """Whether the relative half-width of the mean latency is at most ``target``; batches: int64 [batches, scalars]."""
    packets = batches[:, Scalar.DELIVERED_PACKETS].sum()
    if packets == 0:
        return False
    return bool(latency_half_width(batches) <= target * batches[:, Scalar.LATENCY].sum() / packets)


def details(before: Snapshot, after: Snapshot) -> JsonObject:
    """Return histograms of the window's packets, as [value, packets] pairs, and the utilisation of each channel.

    A latency is the lower edge of its bucket. The utilisation is in flits/tick. ``channels`` has the columns of
    channels.csv, if the run counts the traffic of channels.
    """
    latency = _pairs(after.histogram - before.histogram)
    latency[:, 0] = edges()[latency[:, 0]]
    flits = after.channel_flits - before.channel_flits
    return {
        "latency_histogram": latency.tolist(),
        "hops_histogram": _pairs(after.hops - before.hops).tolist(),
        "deflections_histogram": _pairs(after.deflections - before.deflections).tolist(),
        "channel_use": stored_use(flits / (after.tick - before.tick)),
        **channel_columns(after, before),
    }


def channel_columns(after: Snapshot, before: Snapshot | None = None) -> JsonObject:
    """Return the columns of channels.csv up to a snapshot, by name, as ``channels``; {} if they are not counted.

    Ejection channels have no buffers, and no entries in columns of stalls. before: the start of the window; None: tick
    0.
    """
    if after.channels is None:
        return {}
    counted, stalls, start = after.channels, after.stalls, 0
    if before is not None and before.channels is not None:
        counted, start = counted - before.channels, before.tick
        stalls = None if stalls is None or before.stalls is None else stalls - before.stalls
    columns = {name.lower(): counted[:, place].tolist() for name, place in ChannelCounter._asdict().items()}
    if stalls is not None:  # ticks with this reason alone
        columns |= {name: stalls[:, reason].tolist() for name, reason in STALL_COLUMNS.items()}
    return {"channels": {"ticks": after.tick - start, **columns}}


def _pairs(counts: Ints) -> Ints:
    """The non-zero counts, as rows (index, count), int64 [entries, 2]."""
    used = np.flatnonzero(counts)
    return np.column_stack([used, counts[used]])


def class_tables(scenario: Scenario, before: Snapshot, after: Snapshot) -> JsonObject:
    """Return the rows of classes.csv as ``classes``; {} where all packets are of one class.

    Parameters
    ----------
    scenario: of the run.
    before, after: the bounds of the window.
    """
    if before.classes is None or after.classes is None:
        return {}
    rows, host_ticks = [], (after.tick - before.tick) * scenario.topology.physical_hosts
    for one, counted in zip(scenario.traffic.classes, after.classes - before.classes, strict=True):
        packets, histogram = int(counted[ClassCounter.DELIVERED_PACKETS]), counted[len(ClassCounter) :]
        latency, network = (
            float(counted[column] / packets) if packets else None
            for column in (ClassCounter.LATENCY, ClassCounter.NETWORK_LATENCY)
        )
        rows.append({
            "class": one.name, "priority": one.priority,
            "offered": float(counted[ClassCounter.CREATED_FLITS] / host_ticks),
            "accepted": float(counted[ClassCounter.DELIVERED_FLITS] / host_ticks),
            "latency_mean": latency, "latency_p99": percentile(histogram, 0.99) if packets else None,
            "network_latency_mean": network, "packets": packets,
            **({} if scenario.timeline is None else _lost(counted)),
        })  # fmt: skip
    return {"classes": rows}


def _lost(counted: Ints) -> dict[str, int]:
    """Return the columns of dropped packets; counted: int64 [counters], of a class."""
    dropped = counted[ClassCounter.DROPPED_PACKETS], counted[ClassCounter.DROPPED_FLITS]
    return dict(zip(("lost_packets", "lost_flits"), map(int, dropped), strict=True))


def mser5(series: Ints | Floats) -> int:
    """Return how many leading observations to drop by the MSER-5 rule (a multiple of 5).

    Batches of five are averaged. Of all truncations up to half of the batches, the rule takes the one that minimises
    the standard error of the rest (beyond, few batches may agree by chance). White 1997,
    doi:10.1177/003754979706900601.

    Parameters
    ----------
    series : int64 or float64 [observations]
        One value per equal interval.
    """
    batches = series[: len(series) // 5 * 5].reshape(-1, 5).mean(axis=1)
    count = len(batches)
    if count < 2:
        return 0
    # sums over batches d .. count - 1, for every d at once
    total = np.cumsum(batches[::-1])[::-1]
    square = np.cumsum(batches[::-1] ** 2)[::-1]
    left = count - np.arange(count)
    statistic = (square - total**2 / left) / left**2
    return 5 * int(np.argmin(statistic[: count // 2 + 1]))


def is_steady(series: Ints | Floats) -> bool:
    """Whether the truncation point of a series lies in its first half, the usual condition for trusting it."""
    return mser5(series) < len(series) // 5 // 2 * 5
