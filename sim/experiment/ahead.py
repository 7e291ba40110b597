# SPDX-License-Identifier: Apache-2.0
"""The order in which a run makes its calls: kernels are compiled by some processes while others solve ceilings.

A kernel takes up to 20 CPU seconds, once for a state of the sources, and a process that needs one which another
compiles waits for it. So the first calls are one of ceilings and one for each set of kernels: a point, or, where all
loads are found only once ceilings are known, one tick of a network that nobody measures.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from flitlab.models.hashing import content_hash
from flitlab.models.jit.folder import note, noted
from flitlab.sim.config.study import Case
from flitlab.sim.engines.table import kernel_key
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.points import PointRuns
from flitlab.sim.experiment.pool import Task
from flitlab.sim.experiment.progress import Progress, Quiet
from flitlab.sim.experiment.task import Outcome, solve_point

IDLE = 1e-4
"""A load at which next to nothing happens."""

TICK: dict[str, Any] = {"warmup": 0, "ticks": 1, "ci": None, "max_ticks": 1}
"""How a point is measured that is there for its kernels alone."""


def in_turn(bounds: CeilingRuns, points: PointRuns, bar: Progress, prepare: bool) -> Iterator[Task | None]:
    """All calls of a run: ceilings before points, but for the first ones.

    prepare: whether some process may compile what no point is known to need yet.
    """
    ceilings, simulations = bounds.tasks(Quiet()), points.tasks(bar)
    first = points.missing[: len({kernel_key(point.scenario) for point in points.missing})]
    early = preparations(bounds, points) if prepare else iter(())
    compiling = (_noted(task, point.case) for point, task in zip(first, simulations, strict=False))
    return chain(islice(ceilings, 1), early, compiling, ceilings, simulations)


def _noted(task: Task | None, case: Case) -> Task | None:
    """A point that compiles its kernels, after which nobody needs to prepare them."""
    if task is None or task.arguments[1] == "reference":
        return task

    def done(outcome: Outcome) -> None:
        task.done(outcome)
        if not outcome.problem:
            note(_name(case))

    return replace(task, done=done)


def preparations(bounds: CeilingRuns, points: PointRuns) -> Iterator[Task]:
    """Calls that compile the kernels which only points with loads that are not known yet will need.

    Where they have been compiled before, from the same sources, there is none. Of several networks that the same
    kernels simulate the smallest is taken.
    """
    if points.study.engine == "reference":
        return
    waiting = [one.case for one in points.placements if not one.ended and bounds.bounds(one.index) is None]
    found = {_name(case): case for case in sorted(waiting, key=lambda case: -case.topology.switches)}
    needed = {_name(point.case) for point in points.missing}
    for name, case in found.items():
        if name not in needed and not noted(name):
            yield _preparation(points, case, name)


def _preparation(points: PointRuns, case: Case, name: str) -> Task:
    scenario = case.scenario
    assert scenario is not None
    file = points.store.scenario(scenario, scenario.content_hash)

    def done(outcome: Outcome) -> None:
        if not outcome.problem:  # else points will have it, too, and tell it
            points.compiled_s += outcome.result.detail["compile_s"]
            note(name)

    arguments = (file, "compiled", IDLE, 1, TICK, (), points.threads)
    return Task(solve_point, arguments, done, name=f"{case.label}: kernels")


def _name(case: Case) -> str:
    """Name of the kernels that simulate a case, the same in every run."""
    assert case.scenario is not None
    return content_hash(*kernel_key(case.scenario))[:16]
