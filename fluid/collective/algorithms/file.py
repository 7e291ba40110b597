# SPDX-License-Identifier: Apache-2.0
"""Schedules from files."""

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, in_order, result_or_raise
from flitlab.models.collective.program import build_program
from flitlab.models.collective.schedule import KINDS, Schedule, ScheduleError
from flitlab.models.collective.schedule_file import read_schedule
from flitlab.models.registry import SpecError, register


@register("algorithm", "file")
class File(AlgorithmSpec):
    """The schedule of a file, JSON, MSCCL's XML or the JSON of TE-CCL or TACCL, verified chunk by chunk before it runs.

    docs/collectives.md has the formats.

    Example: ``algorithm: {kind: file, path: mine.schedule.json}``
    """

    collectives: ClassVar[tuple[str, ...]] = tuple(KINDS)

    path: str
    """The file."""
    window: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Messages to a peer in flight at a time."""

    def plan(self, question: Question, once: Once) -> Plan:
        schedule: Schedule = result_or_raise(once(("schedule file", self.path), lambda: self._read()))
        if (schedule.kind, schedule.ranks) != (question.collective, question.count):
            problem = f"is of {schedule.kind} among {schedule.ranks} ranks, not of {question.collective}"
            raise SpecError(f"{problem} among {question.count}", "path")
        if schedule.root != question.root:
            raise SpecError(f"has the root {schedule.root}, not {question.root}", "path")
        program = build_program(
            schedule, question.piece, self.window, self.kind, question.size, question.ns_per_byte
        )  # fmt: skip
        return Plan(program, in_order(question), schedule=schedule)

    def _read(self) -> Schedule:
        try:
            return read_schedule(Path(self.path))
        except OSError as error:
            raise SpecError(error.strerror or str(error), "path") from None
        except ScheduleError as error:
            raise SpecError(f"is not a valid schedule: {error}", "path") from None
