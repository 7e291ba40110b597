# SPDX-License-Identifier: Apache-2.0
"""Programs from GOAL schedules."""

from flitlab.models.application.goal import read_goal
from flitlab.models.application.program import Program
from flitlab.models.application.recorded import RecordedSpec
from flitlab.models.registry import register


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
