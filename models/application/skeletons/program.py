# SPDX-License-Identifier: Apache-2.0
"""Programs from disk."""

from flitlab.models.application.program import Program
from flitlab.models.application.recorded import RecordedSpec
from flitlab.models.application.stored import read_program
from flitlab.models.registry import register


@register("application", "program")
class Stored(RecordedSpec):
    """A program that ``simrun goal`` has written into a folder; its arrays are mapped, not read.

    Its calculations last as long as it says. ranks: if given, how many it must have.

    Example: ``application: {kind: program, path: trace.program}``
    """

    def read(self) -> Program:
        return read_program(self.path)
