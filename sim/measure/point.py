"""One point of a curve: a scenario at one load with one seed."""

from dataclasses import dataclass

import numpy as np

from flitlab.models.cputime import CpuTime
from flitlab.models.histogram import edges
from flitlab.models.scenario import Scenario
from flitlab.sim.engines import engine
from flitlab.sim.engines.base import (
    DELIVERED_FLITS,
    DELIVERED_PACKETS,
    LATENCY,
    NETWORK_LATENCY,
    Flows,
    Run,
    Snapshot,
)
from flitlab.sim.engines.compare import BothEngines
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.standstill import is_deadlocked
from flitlab.sim.measure.verdict import lost_in_all, verdict
from flitlab.sim.measure.warmup import is_steady
from flitlab.sim.measure.window import Window, latency_half_width

FIRST_BATCHES = 40
"""Batches in the first window, of ``ticks`` ticks."""


@dataclass(frozen=True)
class Measure:
    """How long to run; ticks.

    warmup: None to find it. ticks: the window measured after it. ci: relative half-width of the
    mean latency wanted; the window grows up to ``max_ticks`` for it. None: exactly ``ticks``.
    """

    warmup: int | None = None
    ticks: int = 30000
    ci: float | None = None
    max_ticks: int = 60000


@dataclass(frozen=True)
class PointResult:
    """What is known of a point.

    row: the measured columns of results.csv. detail: histogram and channel utilisation, and ``compile_s``, CPU seconds
    of making kernels ready, which are not in ``cpu_s``; JSON-able.
    delivered, present: flows delivered in the window, and in the network at its start. window: ticks.
    """

    row: dict
    detail: dict
    delivered: Flows
    present: Flows
    window: int


def run_point(name: str, scenario: Scenario, load: float, seed: int, measure: Measure) -> PointResult:
    """Simulate and measure one point with the engine ``reference``, ``compiled`` or ``both``.

    Raises :class:`~flitlab.sim.engines.base.EngineMismatch` if both engines run and differ, and
    :class:`~flitlab.sim.measure.standstill.StandstillError` if nothing moves that should.
    """
    spent = CpuTime()
    run = (BothEngines() if name == "both" else engine(name)).start(scenario, load, seed)
    warmup, settled = warm_up(run, scenario, measure)
    before = run.snapshot()
    batches, backlog = measure_batches(run, scenario, load, warmup, measure)
    after = run.snapshot()
    row = measured("packets", Window(scenario, before, after, batches))
    row["saturated"], why = verdict(scenario, load, batches, after.created - before.created, backlog)
    row |= {
        "saturated_by": why,
        "deadlocked": is_deadlocked(run, scenario, batches, after.tick - before.tick),
        "warmup_ticks": warmup,
        "steady": settled,
        "cpu_s": spent.seconds,
    }
    delivered = Flows(*(b - a for a, b in zip(before.delivered, after.delivered, strict=True)))
    detail = {**details(before, after), "compile_s": spent.compile_s}
    return PointResult(row, detail, delivered, before.present, after.tick - before.tick)


def warm_up(run: Run, scenario: Scenario, measure: Measure) -> tuple[int, bool]:
    """Advance past the transient: (its length in ticks, whether the rule was satisfied).

    The run is looked at when it is 1, 2, 4, ... times as long as a first guess of thirty zero-load
    latencies; it ends at the first look at which MSER-5 finds both accepted traffic and network
    latency steady for half of it, and at the latest after ``measure.ticks`` or that guess.
    """
    if measure.warmup is not None:
        run.advance(measure.warmup)
        return measure.warmup, True
    guess = max(30 * zero_load_latency(scenario), measure.ticks // 10)
    step = -(-guess // 100)
    latest = max(measure.ticks, 100 * step)
    rows = [run.scalars()]
    now, look = 0, 100 * step
    while True:
        while now < look:
            now += step
            run.advance(now)
            rows.append(run.scalars())
        change = np.diff(np.array(rows), axis=0)
        packets = np.maximum(change[:, DELIVERED_PACKETS], 1)
        if is_steady(change[:, DELIVERED_FLITS]) and is_steady(change[:, NETWORK_LATENCY] / packets):
            return now, True
        if 2 * look > latest:
            return now, False
        look *= 2


def zero_load_latency(scenario: Scenario) -> int:
    """Ticks of the longest route's closed form (INTERFACE.md, Time)."""
    model, hops = scenario.switching, scenario.routes.hops_max
    through = (hops + 1) * (model.header + model.switch) + hops * model.link
    return model.injection + through + model.ejection + max(scenario.source.flits) - 1


def measure_batches(
    run: Run, scenario: Scenario, load: float, start: int, measure: Measure
) -> tuple[np.ndarray, np.ndarray]:
    """Advance through the window.

    What each batch added to the scalars, int64 [batches, SCALARS], and the hosts' backlogs in flits at
    the batches' bounds, int64 [batches + 1, hosts].
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
        batches = np.diff(np.array(rows), axis=0)
        if is_precise(batches, measure.ci) or lost_in_all(scenario, load, batches):
            break
        for _ in range(len(batches) // 2 or 1):
            if now + length > start + measure.max_ticks:
                break
            now += length
            advance(now)
    return np.diff(np.array(rows), axis=0), np.array(backlog)


def is_precise(batches: np.ndarray, wanted: float) -> bool:
    """Whether the mean latency's relative half-width is at most ``wanted``."""
    packets = batches[:, DELIVERED_PACKETS].sum()
    if packets == 0:
        return False
    return latency_half_width(batches) <= wanted * batches[:, LATENCY].sum() / packets


def details(before: Snapshot, after: Snapshot) -> dict:
    """What the window's packets were like, as [value, packets] pairs, and the use of each channel.

    A latency is the lower edge of its bucket. The use is in flits per tick.
    """
    latency = _pairs(after.histogram - before.histogram)
    latency[:, 0] = edges()[latency[:, 0]]
    flits = after.channel_flits - before.channel_flits
    return {
        "latency_histogram": latency.tolist(),
        "hops_histogram": _pairs(after.hops - before.hops).tolist(),
        "deflections_histogram": _pairs(after.deflections - before.deflections).tolist(),
        "channel_use": np.round(flits / (after.tick - before.tick), 4).tolist(),
    }


def _pairs(counts: np.ndarray) -> np.ndarray:
    """int64 [entries, 2]: (index, count) where there are any."""
    used = np.flatnonzero(counts)
    return np.column_stack([used, counts[used]])
