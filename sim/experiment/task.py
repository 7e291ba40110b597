# SPDX-License-Identifier: Apache-2.0
"""The units of work: ids that follow from content, and what a worker process does with them.

A worker gets a pickled scenario by name (:class:`ScenarioFile`): one may be many megabytes, and serves hundreds of
points.
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
from flitlab.models.scenario import SEMANTICS_VERSION, Scenario
from flitlab.models.switching.discipline import FLOWS, PACKETS, PROGRAMS
from flitlab.models.threads import use_threads
from flitlab.sim.config.check import crash
from flitlab.sim.config.plugins import load_plugin
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.measure.saturation import BACKGROUND, limited

ID_DIGITS = 32


def measure_of(config: MeasureConfig, scenario: Scenario, probe: dict[str, Any] | None = None) -> dict[str, Any]:
    """What of ``measure:`` results depend on: warmup (None: automatic), ticks, ci, max_ticks; or the window.

    Of an application: max_ticks (None: as long as it takes). probe: what a probe of a search has besides, which is as
    long as its verdict needs (:class:`~flitlab.sim.measure.point.Measure`).
    """
    if scenario.counted == PROGRAMS:
        return {"max_ticks": config.max_ticks}
    if scenario.counted == FLOWS:
        return {"window": config.measured(not scenario.switching.endless)}
    warmup = None if config.warmup == "auto" else config.warmup
    if probe is not None:
        return {"warmup": warmup, "ticks": config.ticks, **probe}
    return {"warmup": warmup, "ticks": config.ticks, "ci": config.ci, "max_ticks": config.longest}


def point_id(scenario: Scenario, load: float, seed: int, measure: dict[str, Any]) -> str:
    """Id of a point. The engine is no part of it: results are equal."""
    return content_hash("point", SEMANTICS_VERSION, scenario.content_hash, load, seed, measure)[:ID_DIGITS]


def ceilings_id(
    instance: Instance, specs: Sequence[CeilingSpec], loads: Sequence[float], program: Scenario | None = None
) -> str:
    """Id of a set of ceilings: of routing, loads and program only where one of them depends on these."""
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


def _times(scenario: Scenario) -> list[Any]:
    """What the time of a program depends on, besides topology and routes."""
    switching, more = scenario.switching.hashed(scenario.source)
    program = [scenario.work.content_hash] if isinstance(scenario.work, Workload) else []
    return [switching, *program, *more]


@dataclass(frozen=True)
class ScenarioFile:
    """A pickled scenario, or instance, among the arguments of a task.

    Workers that share no disk with us get its content instead.
    """

    path: Path


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a result, or in one line why there is none.

    mismatch: the engines disagree, which is a bug here and no property of the point.
    """

    result: Any = None
    problem: str = ""
    mismatch: bool = False


def failure(error: BaseException) -> Outcome:
    """The outcome of a task that raised. An interruption, also one that came while a kernel ran, is raised again."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if isinstance(cause, KeyboardInterrupt):
        raise cause
    return Outcome(problem=crash(error))


def start_worker(plugins: Sequence[str] = (), threads: int = 1) -> None:
    """Prepares a worker process: Ctrl-C is the parent's to handle, and a worker never outlives it.

    plugins: of the study (``Study.plugins``); their classes and functions may be part of a task. threads: that a
    ceiling may use.
    """
    use_threads(threads)
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
    """The scenario, or instance, that a task is about."""
    return _recent.get(file)


class _Recent:
    """The scenarios that tasks were about last: as many as have room together, or one alone.

    Of 10,000 switches each has a table of 800 MB, so the others are forgotten before it is read.
    """

    ROOM, MOST = 1 << 28, 4
    """Bytes of their pickles, and how many there may be."""

    def __init__(self) -> None:
        self._held: dict[ScenarioFile | bytes, tuple[int, Any]] = {}

    def get(self, file: ScenarioFile | bytes) -> Any:
        held = self._held.pop(file, None) or self._read(file)
        self._held[file] = held  # the last is that which was asked for last
        return held[1]

    def _read(self, file: ScenarioFile | bytes) -> tuple[int, Any]:
        size = len(file) if isinstance(file, bytes) else file.path.stat().st_size
        while self._held and (len(self._held) == self.MOST or size + self._bytes > self.ROOM):
            del self._held[next(iter(self._held))]
        if isinstance(file, bytes):
            return size, pickle.loads(file)
        with file.path.open("rb") as opened:
            return size, pickle.load(opened)  # which reads large tables to where they stay

    @property
    def _bytes(self) -> int:
        return sum(size for size, _ in self._held.values())


_recent = _Recent()


def solve_point(
    file: ScenarioFile | bytes,
    engine: str,
    load: float,
    seed: int,
    measure: dict[str, Any],
    kinds: tuple[str, ...] = (),
    threads: int = 1,
) -> Outcome:
    """Simulates a point of a pickled scenario; the result is a :class:`~flitlab.sim.measure.result.Result`.

    kinds: ceilings asked for; those over the paths drawn belong to a point. threads: that may share the run.
    """
    from flitlab.sim.engines.base import EngineMismatch
    from flitlab.sim.measure import measure as door
    from flitlab.sim.measure.stall import StallError
    from flitlab.sim.measure.unfinished import UnfinishedError

    try:
        scenario: Scenario = _scenario(file)
        found = door.measure(engine, scenario, load, seed, door.how(scenario, measure), threads)
        found.row.update(_beside(scenario, load, seed, found.row, kinds))
        return Outcome(found)
    except EngineMismatch as error:
        return Outcome(problem=str(error), mismatch=True)
    except (UnfinishedError, StallError) as error:
        return Outcome(problem=str(error))
    except BaseException as error:  # one failing point must not end the others; a stranger's may even exit
        return failure(error)


def _beside(scenario: Scenario, load: float, seed: int, row: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    """Further columns of a point: what is certain of it beforehand."""
    from flitlab.fluid.certain import certain_limit

    counts, background = scenario.counted, scenario.traffic.background
    if counts == FLOWS:
        return _drawn(scenario, load, seed, kinds)
    if counts != PACKETS:
        return {}
    fixed = {} if background is None else {BACKGROUND: float(background.rate.mean())}
    if scenario.timeline is not None:
        return fixed
    return limited(row, load, certain_limit(scenario.instance)) | fixed


def _drawn(scenario: Scenario[Any], load: float, seed: int, kinds: tuple[str, ...]) -> dict[str, float]:
    """Ceilings over the paths of a session; none if flows end, links fail or they would be too large to compute."""
    if not scenario.switching.endless or scenario.timeline is not None:
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
    """Computes ceilings of a pickled instance, or of a scenario with a program; the result is a list of ``Ceiling``.

    save_to: folder for their certificates.
    """
    from flitlab.fluid import ceilings

    try:
        given = _scenario(file)
        program = given if isinstance(given, Scenario) else None
        instance = given if program is None else program.instance
        keep = save_to is not None
        found = ceilings.ceilings(instance, specs, list(loads), keep_flow=keep, program=program)
        if save_to is None:
            return Outcome(found)
        from flitlab.sim.experiment.certificates import save

        save(save_to, instance, found)
        return Outcome([replace(row, flow=None) for row in found])
    except BaseException as error:
        return failure(error)
