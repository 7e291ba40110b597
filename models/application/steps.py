# SPDX-License-Identifier: Apache-2.0
"""Kinds of steps of a program, for tables: all occurrences of a collective of one size are one kind."""

from typing import NamedTuple

import numpy as np

from flitlab.models.application.program import Program


class StepKind(NamedTuple):
    """Steps that differ only in the iteration. size: bytes that a rank contributes."""

    name: str
    algorithm: str
    size: int
    ranks: int

    @property
    def label(self) -> str:
        """The kind of step in words: ``allreduce (ring, 8192 B, 64 ranks)``."""
        candidates = [
            self.algorithm,
            f"{self.size} B" if self.size else "",
            f"{self.ranks} ranks" if self.ranks else "",
        ]
        details = ", ".join(filter(None, candidates))
        return f"{self.name} ({details})" if details else self.name


def step_kinds(program: Program) -> tuple[list[StepKind], np.ndarray]:
    """All kinds in order of appearance, and the kind of each step, int64 [steps].

    Parameters
    ----------
    program: the program.
    """
    kinds: dict[StepKind, int] = {}
    kind_of = [
        kinds.setdefault(StepKind(step.name, step.algorithm, step.size, step.ranks), len(kinds))
        for step in program.steps
    ]
    return list(kinds), np.array(kind_of, np.int64)
