# SPDX-License-Identifier: Apache-2.0
"""The common part of programs from files."""

from pathlib import Path

from flitlab.models.application.program import Program
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.registry import SpecError


class RecordedSpec(ApplicationSpec):
    """A program from ``path``. ``ranks``, if set, must equal its ranks; ``gflops`` cannot be changed."""

    path: Path

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
