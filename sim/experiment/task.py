# SPDX-License-Identifier: Apache-2.0
"""Tasks: ids by content, and the functions that worker processes run.

A worker gets a pickled scenario by name (:class:`ScenarioFile`): a scenario may be many megabytes, and serves hundreds
of points.
"""

import os
import pickle
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.application.workload import Workload
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys, Row
from flitlab.models.scenario import SEMANTICS_VERSION, Scenario
from flitlab.models.threads import set_thread_limit
from flitlab.sim.config.diagnostics import crash
from flitlab.sim.config.plugins import load_plugin
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.experiment.progress import show_solvers
from flitlab.sim.measure.saturation import BACKGROUND, limited

ID_DIGITS = 32


def measure_of(config: MeasureConfig, scenario: Scenario, probe: Keys | None = None, channels: bool = False) -> Keys:
    """The settings of ``measure:`` that results depend on.

    warmup (None: automatic), ticks, ci, max_ticks; for flows the window; for programs and traces max_ticks (None: no
    limit).

    Parameters
    ----------
    config: the section.
    scenario: decides which of them count.
    probe: further settings of a probe of a search, see :class:`~flitlab.sim.measure.point.Measure`.
    channels: whether the traffic of channels is counted.
    """
    measure = _window_of(config, scenario, probe)
    return {**measure, "channels": True} if channels else measure


def _window_of(config: MeasureConfig, scenario: Scenario, probe: Keys | None) -> Keys:
    if scenario.counted == "programs" or scenario.follows_trace:
        return {"max_ticks": config.max_ticks}
    if scenario.counted == "flows":
        return {"window": config.measured(not scenario.switching.long_lived)}
    warmup = None if config.warmup == "auto" else config.warmup
    if probe is not None:
        return {"warmup": warmup, "ticks": config.ticks, **probe}
    return {"warmup": warmup, "ticks": config.ticks, "ci": config.ci, "max_ticks": config.longest}


def point_id(scenario: Scenario, load: float, seed: int, measure: Keys) -> str:
    """Id of a point. The engine is not part of it: results are equal.

    Parameters
    ----------
    scenario: hashed by content.
    load, seed: of the point.
    measure: settings of :func:`measure_of`.
    """
    return content_hash("point", SEMANTICS_VERSION, scenario.content_hash, load, seed, measure)[:ID_DIGITS]


def ceilings_id(
    instance: Instance, specs: Sequence[CeilingSpec], loads: Sequence[float], program: Scenario | None
) -> str:
    """Id of a set of ceilings; routing, loads and program are part of it only if one of them depends on these.

    Parameters
    ----------
    instance: network, demand and routes.
    specs: the ceilings.
    loads: for ceilings that depend on the load.
    program: for ceilings of programs.
    """
    routed = any(spec.routes != "unused" for spec in specs)
    routes = instance.routes.content_hash if routed and instance.routes is not None else None
    parts = [spec.plain() for spec in specs]
    drawn = list(loads) if any(spec.by_load for spec in specs) else None
    timed = _times(program) if program is not None and any(spec.of_program for spec in specs) else []
    return content_hash(
        "ceilings",
        SEMANTICS_VERSION,
        instance.topology.content_hash,
        instance.traffic.content_hash,
        routes,
        parts,
        drawn,
        *timed,
    )[:ID_DIGITS]


def _times(scenario: Scenario) -> list[object]:
    """What the time of a program depends on, besides topology and routes."""
    switching, more = scenario.switching.hashed(scenario.source)
    program = [scenario.work.content_hash] if isinstance(scenario.work, Workload) else []
    return [switching, *program, *more]


@dataclass(frozen=True)
class ScenarioFile:
    """A pickled scenario, or instance, among the arguments of a task.

    Workers without a shared disk get its content instead.
    """

    path: Path


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task: a result, or an error in one line.

    mismatch: the engines disagree, which is a bug and not a property of the point.
    """

    result: Any = None
    problem: str = ""
    mismatch: bool = False


def failure(error: BaseException) -> Outcome:
    """The outcome of a task that raised. An interruption, also during a kernel, is raised again."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if isinstance(cause, KeyboardInterrupt):
        raise cause
    return Outcome(problem=crash(error))


def start_worker(plugins: Sequence[str] = (), threads: int = 1) -> None:
    """Prepare a worker process: the parent handles Ctrl-C, and a worker ends with its parent.

    plugins: of the study (``Study.plugins``); tasks may use their classes and functions. threads: that a ceiling may
    use.
    """
    set_thread_limit(threads)
    show_solvers()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    for name in plugins:
        load_plugin(name)


def _exit_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _scenario(file: ScenarioFile | bytes) -> Any:
    """The scenario, or instance, of a task."""
    return _scenario_cache.get(file)


class _ScenarioCache:
    """The scenarios of recent tasks, limited in bytes and number; at least one.

    At 10,000 switches each has a table of 800 MB, so others are dropped before it is read.
    """

    MAX_BYTES, MAX_COUNT = 1 << 28, 4
    """Bytes of their pickles, and their number."""

    def __init__(self) -> None:
        self._scenarios: dict[ScenarioFile | bytes, tuple[int, Any]] = {}

    def get(self, file: ScenarioFile | bytes) -> Any:
        entry = self._scenarios.pop(file, None) or self._read(file)
        self._scenarios[file] = entry  # ordered by last use
        return entry[1]

    def _read(self, file: ScenarioFile | bytes) -> tuple[int, Any]:
        size = len(file) if isinstance(file, bytes) else file.path.stat().st_size
        while self._scenarios and (len(self._scenarios) == self.MAX_COUNT or size + self._bytes > self.MAX_BYTES):
            del self._scenarios[next(iter(self._scenarios))]
        if isinstance(file, bytes):
            return size, pickle.loads(file)
        with file.path.open("rb") as opened:
            return size, pickle.load(opened)  # reads large tables in place

    @property
    def _bytes(self) -> int:
        return sum(size for size, _ in self._scenarios.values())


_scenario_cache = _ScenarioCache()


def solve_point(
    file: ScenarioFile | bytes,
    engine: str,
    load: float,
    seed: int,
    measure: Keys,
    kinds: tuple[str, ...] = (),
    threads: int = 1,
) -> Outcome:
    """Simulate a point of a pickled scenario; the result is a :class:`~flitlab.sim.measure.result.Result`.

    Parameters
    ----------
    file: the scenario.
    engine: compiled, reference or both.
    load, seed: of the point.
    measure: settings of :func:`measure_of`.
    kinds: configured ceilings; those over drawn paths belong to the point.
    threads: that may share the run.
    """
    from flitlab.sim.engines.base import EngineMismatch
    from flitlab.sim.measure import measure as measure_module
    from flitlab.sim.measure.result import StallError
    from flitlab.sim.measure.unfinished import UnfinishedError

    try:
        scenario: Scenario = _scenario(file)
        result = measure_module.measure(engine, scenario, load, seed, measure_module.how(scenario, measure), threads)
        result.row.update(_certain_columns(scenario, load, seed, result.row, kinds))
        return Outcome(result)
    except EngineMismatch as error:
        return Outcome(problem=str(error), mismatch=True)
    except (UnfinishedError, StallError) as error:
        return Outcome(problem=str(error))
    except BaseException as error:  # one failing point must not end the others; third-party code may even exit
        return failure(error)


def _certain_columns(scenario: Scenario, load: float, seed: int, row: Row, kinds: tuple[str, ...]) -> Row:
    """Further columns of a point: its certified limit and background."""
    from flitlab.fluid.split import certified_limit

    counts, background = scenario.counted, scenario.traffic.background
    if counts == "flows":
        return _drawn(scenario, load, seed, kinds)
    if counts != "packets" or scenario.follows_trace:
        return {}
    fixed = {} if background is None else {BACKGROUND: background.mean_rate}
    if scenario.timeline is not None:
        return fixed
    limit = certified_limit(scenario.instance) / scenario.switching.flits_per_load(scenario.topology)
    return limited(row, load, limit) | fixed


def _drawn(scenario: Scenario[Any], load: float, seed: int, kinds: tuple[str, ...]) -> dict[str, float]:
    """Ceilings over the drawn paths of a session; {} if flows end, links fail or they are too large to compute."""
    if not scenario.switching.long_lived or scenario.timeline is not None:
        return {}
    session = scenario.switching.session(scenario.instance, scenario.work, load, seed)
    if session.changes:
        return {}
    from flitlab.fluid.ceilings import drawn_ceilings
    from flitlab.fluid.problem import FluidError

    try:
        return drawn_ceilings(session, scenario.traffic, kinds)
    except FluidError:
        return {}


def solve_ceilings(
    file: ScenarioFile | bytes, specs: Sequence[CeilingSpec], loads: Sequence[float], save_to: Path | None = None
) -> Outcome:
    """Compute ceilings of a pickled instance, or of a scenario with a program; the result is a list of ``Ceiling``.

    Parameters
    ----------
    file: the instance or scenario.
    specs: the ceilings.
    loads: for ceilings that depend on the load.
    save_to: folder for their certificates, None to save none.
    """
    from flitlab.fluid import ceilings

    try:
        work = _scenario(file)
        program = work if isinstance(work, Scenario) else None
        instance = work if program is None else program.instance
        keep = save_to is not None
        rows = ceilings.ceilings(instance, specs, list(loads), keep_flow=keep, program=program)
        if save_to is None:
            return Outcome(rows)
        from flitlab.sim.experiment.certificates import save

        save(save_to, instance, rows)
        return Outcome([replace(row, flow=None) for row in rows])
    except BaseException as error:
        return failure(error)
