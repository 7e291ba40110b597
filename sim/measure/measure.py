# SPDX-License-Identifier: Apache-2.0
"""The one door to results: a scenario at a load with a seed, run and measured."""

from collections.abc import Callable
from typing import Any

from flitlab.models.cputime import CpuTime
from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import FLOWS, PACKETS, PROGRAMS
from flitlab.models.switching.spray import Spray
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import Ending, measure_program
from flitlab.sim.measure.changing import measure_changing
from flitlab.sim.measure.datagram import Window, measure_flows
from flitlab.sim.measure.point import Measure, measure_packets
from flitlab.sim.measure.probe import fresh_seeds, measure_probe, until_verdicts_differ
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.spray import measure_sprayed

How = Measure | Window | Ending
"""How long to run, and what of it counts: of packets, of flows, and of programs."""

_KINDS: dict[str, tuple[type[How], Callable[..., Result]]] = {
    PACKETS: (Measure, measure_packets), FLOWS: (Window, measure_flows), PROGRAMS: (Ending, measure_program),
}  # fmt: skip


_OF_MODE: dict[str, Callable[..., Result]] = {Spray.mode: measure_sprayed}
"""What measures runs of a mode that are unlike others that count the same."""


def how(scenario: Scenario, values: dict[str, Any]) -> How:
    """How to run and measure a scenario, from the values of the configuration's ``measure``."""
    return _KINDS[scenario.counted][0](**values)


def measure(engine: str, scenario: Scenario, load: float, seed: int, how: How, threads: int = 1) -> Result:
    """Simulate and measure one point with the engine ``reference``, ``compiled`` or ``both``.

    threads: see :func:`~flitlab.sim.engines.start.start`.
    Raises :class:`~flitlab.sim.engines.base.EngineMismatch` if both engines run and differ,
    :class:`~flitlab.sim.measure.standstill.StandstillError` if nothing moves that should, and
    :class:`~flitlab.sim.measure.ending.UnfinishedError` for a program that has no end, or none in time.
    """
    spent = CpuTime()
    growing, offered = scenario.at(load)
    kind, measures = _KINDS[scenario.counted]
    if kind is Window:
        measures = _OF_MODE.get(scenario.switching.mode, measures)
    elif kind is Measure and scenario.timeline is not None:
        measures = measure_changing
    elif kind is Measure and getattr(how, "resolution", None) is not None:
        measures = measure_probe
    seeds = fresh_seeds(seed, how.draws) if isinstance(how, Measure) and how.draws else [seed]
    runs = (measures(start(engine, growing, offered, one, threads=threads), growing, offered, how) for one in seeds)
    result = next(runs) if len(seeds) == 1 else until_verdicts_differ(runs)
    result.row["cpu_s"] = spent.seconds
    result.detail["compile_s"] = spent.compile_s
    return result
