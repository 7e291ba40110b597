# SPDX-License-Identifier: Apache-2.0
"""The order of the calls of a run: some processes compile kernels while others solve ceilings.

A kernel takes up to 20 CPU seconds to compile, once per state of the sources, and all processes that need it wait. So
the first calls are one for each set of kernels: a point, or, where all loads depend on ceilings, one tick of a network
at :data:`IDLE_LOAD`; and before them one of ceilings, if all kernels of points are compiled, or none is needed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from flitlab.models.hashing import content_hash
from flitlab.models.jit.cache import is_compiled, mark_compiled, needed_compilations
from flitlab.models.mappings import Keys
from flitlab.sim.config.case import Case
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress, Quiet
from flitlab.sim.experiment.task import Outcome, solve_point

IDLE_LOAD = 1e-4
"""A load at which almost nothing is simulated."""

ONE_TICK: Keys = {"warmup": 0, "ticks": 1, "ci": None, "max_ticks": 1}
"""Measurement of a point that only compiles kernels."""


def ordered_tasks(bounds: CeilingRuns, points: PointRuns, bar: Progress, prepare: bool) -> Iterator[Task | None]:
    """All calls of a run: those that compile kernels, for which everything waits, then ceilings, then points.

    Parameters
    ----------
    bounds, points: the ceilings and points of the study.
    bar: told of finished points.
    prepare: whether kernels are compiled before it is known which points need them.
    """
    ceilings, simulations = bounds.tasks(Quiet()), points.tasks(bar)
    first = points.missing[: len({kernel_key(point.scenario) for point in points.missing})]
    early = preparations(bounds, points) if prepare else iter(())
    compiling = (_with_note(task, point.case) for point, task in zip(first, simulations, strict=False))
    ready = points.study.engine == "reference" or all(is_compiled(_kernel_name(point.case)) for point in first)
    return chain(islice(ceilings, ready), early, compiling, ceilings, simulations)


def _with_note(task: Task | None, case: Case) -> Task | None:
    """A call of a point which records that its kernels are compiled."""
    if task is None or task.arguments[1] == "reference":
        return task

    def done(outcome: Outcome) -> None:
        task.done(outcome)
        if not outcome.problem:
            mark_compiled(_kernel_name(case))

    return replace(task, done=done)


def preparations(bounds: CeilingRuns, points: PointRuns) -> Iterator[Task]:
    """Calls that compile the kernels of points whose loads are not known yet.

    None for kernels that were compiled before from the same sources. Of several networks with the same kernels, the
    smallest is taken.
    """
    if points.study.engine == "reference":
        return
    unplaced = [one.case for one in points.placements if not one.ended and bounds.bounds(one.index) is None]
    by_kernels = {_kernel_name(case): case for case in sorted(unplaced, key=lambda case: -case.topology.switches)}
    needed = {_kernel_name(point.case) for point in points.missing}
    for name, case in by_kernels.items():
        if name not in needed and not is_compiled(name):
            yield _preparation(points, case, name)


def _preparation(points: PointRuns, case: Case, name: str) -> Task:
    scenario = case.scenario
    assert scenario is not None
    file = points.store.scenario(scenario, scenario.content_hash)

    def done(outcome: Outcome) -> None:
        if not outcome.problem:  # an error recurs in the points, which report it
            points.compiled_s += outcome.result.detail["compile_s"]
            mark_compiled(name)

    arguments = (file, "compiled", IDLE_LOAD, 1, ONE_TICK, (), points.threads)
    return Task(solve_point, arguments, done, name=f"{case.label}: kernels")


def kernels_to_compile(cases: Iterable[Case]) -> dict[str, int | None]:
    """The sets of kernels of simulated cases that are not in the cache, each with the number of its functions.

    The number is that of the last time on this machine, from other sources; None if there was none.
    """
    names = {_kernel_name(case) for case in cases if case.scenario is not None}
    return {name: needed_compilations(name) for name in sorted(names) if not is_compiled(name)}


def _kernel_name(case: Case) -> str:
    """Name of the kernels of a case, the same in every run."""
    assert case.scenario is not None
    return content_hash(*kernel_key(case.scenario))[:16]
