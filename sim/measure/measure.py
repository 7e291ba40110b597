# SPDX-License-Identifier: Apache-2.0
"""The entry point of measurement: runs and measures a scenario at a load with a seed."""

from collections.abc import Callable

from flitlab.models.cputime import CpuTime
from flitlab.models.mappings import Fields, Keys
from flitlab.models.scenario import Scenario
from flitlab.models.switching.spray import Spray
from flitlab.sim.engines.start import start
from flitlab.sim.measure.application import ProgramMeasure, measure_program
from flitlab.sim.measure.datagram import measure_flows
from flitlab.sim.measure.point import Measure, measure_packets
from flitlab.sim.measure.probe import fresh_seeds, measure_probe, until_verdicts_differ
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.spray import measure_sprayed
from flitlab.sim.measure.timeline_point import measure_with_timeline
from flitlab.sim.measure.trace import measure_trace
from flitlab.sim.measure.transport import Window

How = Measure | Window | ProgramMeasure
"""The window, or limit, of a run: of packets, of flows, and of programs."""

_KINDS: dict[str, tuple[type[How], Callable[..., Result]]] = {
    "packets": (Measure, measure_packets),
    "flows": (Window, measure_flows),
    "programs": (ProgramMeasure, measure_program),
}


_OF_MODE: dict[str, Callable[..., Result]] = {Spray.mode: measure_sprayed}
"""Modes that are measured differently from others of the same kind."""


def how(scenario: Scenario, values: Keys) -> How:
    """Return the window, or limit, of a scenario from the values of the configuration's ``measure``."""
    return _kind(scenario)[0](**values)


def _kind(scenario: Scenario) -> tuple[type[How], Callable[..., Result]]:
    """The settings of a measurement, and the function that measures."""
    return (ProgramMeasure, measure_trace) if scenario.follows_trace else _KINDS[scenario.counted]


def measure(engine: str, scenario: Scenario, load: float, seed: int, how: How, threads: int = 1) -> Result:
    """Simulate and measure one point.

    Parameters
    ----------
    engine : str
        ``reference``, ``compiled`` or ``both``.
    load : float
        Injection rate, flits/tick/host.
    seed : int
        Seed of the run.
    how : Measure, Window or ProgramMeasure
        See :func:`how`.
    threads : int
        See :func:`~flitlab.sim.engines.start.start`.

    Returns
    -------
    Result
        With ``cpu_s`` and ``compile_s``.

    Raises
    ------
    EngineMismatch
        If both engines run and differ.
    StallError
        For a stall that a certificate excludes.
    UnfinishedError
        For a program that does not end, or not in time.
    """
    spent = CpuTime()
    growing, offered = scenario.at(load)
    kind, measures = _kind(scenario)
    if kind is Window:
        measures = _OF_MODE.get(scenario.switching.mode, measures)
    elif kind is Measure and scenario.timeline is not None:
        measures = measure_with_timeline
    elif kind is Measure and getattr(how, "resolution", None) is not None:
        measures = measure_probe
    seeds = fresh_seeds(seed, how.draws) if isinstance(how, Measure) and how.draws else [seed]
    options: Fields = {
        "threads": threads,
        "log": scenario.follows_trace,
        "channels": getattr(how, "channels", False),
    }
    runs = (measures(start(engine, growing, offered, one, **options), growing, offered, how) for one in seeds)
    result = next(runs) if len(seeds) == 1 else until_verdicts_differ(runs)
    result.row["cpu_s"] = spent.seconds
    result.detail["compile_s"] = spent.compile_s
    return result
