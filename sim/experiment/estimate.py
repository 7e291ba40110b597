# SPDX-License-Identifier: Apache-2.0
"""The cost of a study, from prices of this machine.

CPU time of a point = ``point + pairs x switches^2 + idle x switches x ticks + hop x packet hops``: start, tables of
pairs, switches per tick, and moves of packets (of flits in mode wormhole). Ceilings are measured on one network and
extrapolated by a power of their size (``growth`` of their kind).
"""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.sim.config.case import Case
from flitlab.sim.config.sections import AdaptiveConfig
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.experiment.prices import (
    PLACED,
    SIZES,
    Price,
    Prices,
    expected_ticks,
    full_load,
    load_of,
    network,
    pricing_of,
    scenario_of,
)
from flitlab.sim.experiment.saturation import questions
from flitlab.sim.measure.probe_windows import longest_probe

LONG_PROBES = 3
"""Approximate number of probes of a search with the longest window."""

ENGINES = {"both": ("compiled", "reference")}
"""Engine -> the engines that it runs, if more than one."""

COMPILED_BYTES = 300e6
"""Memory of a process with all modules and kernels loaded (approximate)."""

OPERATION = 400.0
"""Bytes per operation of a program, its measurements included."""

PAIR = 40.0
"""Bytes per pair of switches with traffic, for two snapshots and their difference."""

THREAD = 0.8
"""Speed-up of a simulation by each further thread (approximate); see ``docs/performance.md``."""

START_SECONDS = 3.0
"""Seconds until worker processes have started."""


@dataclass(frozen=True)
class Cost:
    """The expected cost of a case.

    Parameters
    ----------
    points: known ones, and an estimate of those that a search adds.
    seconds: CPU seconds of all points.
    longest: CPU seconds of the longest point.
    ceilings: kind -> CPU seconds, None if unknown.
    shared: whether several threads can share a point.
    """

    points: int
    seconds: float
    longest: float
    ceilings: dict[str, float | None]
    shared: bool = False


def _variables(case: Case) -> int:
    topology = case.topology
    return topology.switches * topology.channels


def cost(case: Case, engine: str, prices: Prices) -> Cost:
    """The cost of the points and ceilings of a case.

    Parameters
    ----------
    case: the scenario.
    engine: compiled, reference or both.
    prices: of this machine.
    """
    ceilings: dict[str, float | None] = {spec.kind: _ceiling(case, spec, prices) for spec in case.ceilings}
    if not case.simulated:
        return Cost(0, 0.0, 0.0, ceilings)
    pricing, runs = pricing_of(scenario_of(case)), _runs(case)
    prices_of = [prices.of(name, scenario_of(case)) for name in ENGINES.get(engine, (engine,))]

    def seconds(price: Price, load: float, length: float) -> float:
        return pricing.point(case, load, price, length) if case.workload is None else pricing.program(case, price)

    times = [sum(seconds(price, load, length) for price in prices_of) for load, length in runs]
    shared = not single_thread_reason(engine, scenario_of(case))
    return Cost(len(runs) * len(case.seeds), sum(times) * len(case.seeds), max(times), ceilings, shared)


def _runs(case: Case) -> list[tuple[float, float]]:
    """(load, ticks over those of ``measure``) of the points of a case.

    Unknown loads are replaced by a typical one; the last probes of a search are its longest.
    """
    runs = [(load, 1.0) for load in case.loads]
    if case.placing is None:
        return runs
    placed_load = min(PLACED * full_load(case), 1.0)
    if isinstance(case.placing, AdaptiveConfig):
        return runs + [(placed_load, 1.0)] * max(case.placing.points - len(case.loads), 1)
    warmup, ticks = case.measure.warmup, case.measure.ticks
    first = ticks // 10 if isinstance(warmup, str) else warmup
    longest = longest_probe(first, ticks, case.placing.longest) / (first + ticks)
    short = max(questions(case.placing.tolerance) - LONG_PROBES, 0)
    return runs + [(placed_load, 1.0)] * short + [(placed_load, longest)] * LONG_PROBES


def _ceiling(case: Case, spec: CeilingSpec, prices: Prices) -> float | None:
    """CPU seconds within an order of magnitude; None for kinds that are not measured."""
    growth, instance = spec.growth, case.instance
    if growth is None or instance is None or (spec.routes == "needed" and instance.routes is None):
        return None
    size = _variables(case) / _variables(network(SIZES[0], "vct"))
    # below saturation, the total is the offered load
    times = sum(load > full_load(case) for load in case.grid) if spec.by_load else 1
    seconds: float = prices.of_ceiling(spec.kind) * times * size**growth
    return seconds


def memory(cases: Sequence[Case]) -> float:
    """Bytes of a process that runs points of the largest case."""
    simulated = [case for case in cases if case.simulated]
    if not simulated:
        return COMPILED_BYTES
    largest = max(simulated, key=lambda case: case.topology.switches**2 + case.topology.channels)
    return (
        COMPILED_BYTES
        + _route_bytes(scenario_of(largest))
        + _run_bytes(largest, max(load for load, _ in _runs(largest)))
    )


def _route_bytes(scenario: Scenario) -> float:
    """Bytes of the routes of a scenario, which dominate at thousands of switches."""
    routes = scenario.routes
    parts = [*vars(routes).values(), *(routes.paths or ())]
    return float(sum(part.nbytes for part in parts if isinstance(part, np.ndarray)))


def _run_bytes(case: Case, load: float) -> float:
    """Bytes that one run allocates, results included."""
    from flitlab.sim.engines.start import start

    scenario = scenario_of(case)
    run = _allocated(lambda: start("compiled", *scenario.at(load), 1))
    if isinstance(scenario.work, Workload):
        return run + OPERATION * scenario.work.program.operations
    if scenario.switching.counts == "flows":
        return run
    traffic = load_of(case, load)
    packets = float(scenario.traffic.sent(load).sum()) / scenario.source.mean_flits * expected_ticks(case, traffic.fill)
    return run + PAIR * min(packets, scenario.topology.switches**2)


def _allocated(call: Callable[[], object]) -> float:
    """Peak of the bytes that a call allocates."""
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
        del result
    finally:
        tracemalloc.stop()
    return float(peak)


def wall(costs: Sequence[Cost], jobs: int, threads: int = 1) -> float:
    """Seconds until all points are done.

    Parameters
    ----------
    costs: of all cases.
    jobs: processes.
    threads: of each process.
    """
    speedups = [1 + THREAD * (threads - 1) if cost.shared else 1.0 for cost in costs]
    longest = max((cost.longest / times for cost, times in zip(costs, speedups, strict=True)), default=0.0)
    total = sum(cost.seconds / times for cost, times in zip(costs, speedups, strict=True))
    return max(total / jobs, longest) + (START_SECONDS if jobs > 1 else 0.0)
