# SPDX-License-Identifier: Apache-2.0
"""Programs from files."""

from pathlib import Path

from flitlab.models.application.goal import read_goal
from flitlab.models.application.program import Program
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.application.stored import read_program
from flitlab.models.registry import SpecError, register


class RecordedSpec(ApplicationSpec):
    """A program from ``path``. ``ranks``, if set, must equal its ranks; ``gflops`` cannot be changed."""

    path: Path
    """The file."""

    def program(self, hosts: int) -> Program:
        if self.gflops != type(self).model_fields["gflops"].default:
            raise SpecError("is not for this kind: calculations last as long as the file says", "gflops")
        program = self.read()
        if self.ranks not in (None, program.ranks):
            raise SpecError(f"the file has {program.ranks} ranks", "ranks")
        return program

    def read(self) -> Program:
        """The program of the file. Raises ``SpecError``."""
        raise NotImplementedError


@register("application", "goal")
class Goal(RecordedSpec):
    """The program of a GOAL file (text), the schedule format of LogGOPSim and ATLAHS.

    Its calculations last as long as the file says. ``simrun goal FILE --out NAME.program`` makes of a large file what
    kind ``program`` begins with at once. ranks: if given, how many it must have.

    Example: ``application: {kind: goal, path: trace.goal}``

    Source: Hoefler, Schneider, Lumsdaine 2010, doi:10.1145/1851476.1851564.
    """

    def read(self) -> Program:
        return read_goal(self.path)


@register("application", "program")
class Stored(RecordedSpec):
    """A program that ``simrun goal`` has written into a folder; its arrays are mapped, not read.

    Its calculations last as long as it says. ranks: if given, how many it must have.

    Example: ``application: {kind: program, path: trace.program}``
    """

    def read(self) -> Program:
        return read_program(self.path)
