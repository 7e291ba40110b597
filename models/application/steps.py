# SPDX-License-Identifier: Apache-2.0
"""The kinds of steps that a program has, for tables: all occurrences of a collective of one size are one kind."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import Program


class StepKind(NamedTuple):
    """Steps that are alike but for the iteration. size: bytes that a rank has to give."""

    name: str
    algorithm: str
    size: int
    ranks: int

    @property
    def label(self) -> str:
        """The kind of step in words: ``allreduce (ring, 8192 B, 64 ranks)``."""
        more = [self.algorithm, f"{self.size} B" if self.size else "", f"{self.ranks} ranks" if self.ranks else ""]
        said = ", ".join(filter(None, more))
        return f"{self.name} ({said})" if said else self.name


def step_kinds(program: Program) -> tuple[list[StepKind], np.ndarray]:
    """All kinds in order of appearance, and int64 [steps], the kind of each step."""
    found: dict[StepKind, int] = {}
    of = [
        found.setdefault(StepKind(step.name, step.algorithm, step.size, step.ranks), len(found))
        for step in program.steps
    ]
    return list(found), np.array(of, np.int64)
