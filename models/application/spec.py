# SPDX-License-Identifier: Apache-2.0
"""What a program's parameters are, whatever program it is."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from flitlab.models.application.builder import Ticks
from flitlab.models.application.matching import check
from flitlab.models.application.program import Program
from flitlab.models.faults import refuse_other
from flitlab.models.registry import Spec, is_third_party

Ranks = Annotated[int, Field(ge=1, le=1_000_000)]


class ApplicationSpec(Spec):
    """A program, given by :meth:`program`; its ranks compute at ``gflops`` (UNI, section III-C: 100).

    ranks: by default as many as there are hosts.
    """

    ranks: Ranks | None = None
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 100.0

    def program(self, hosts: int) -> Program:
        """The program on a network of so many hosts. Raises ``SpecError``."""
        raise NotImplementedError

    @property
    def asks_for_best(self) -> bool:
        """Whether some of its algorithms are to be those that are best on the network."""
        return False

    def tuned(self, hosts: int, ticks: Ticks | None) -> Program:
        """The program with the algorithms that are best by an estimate of their ticks. Raises ``SpecError``."""
        return self.program(hosts)

    def build(self, hosts: int, ticks: Ticks | None = None) -> Program:
        """The program on a network of so many hosts, looked at. Raises ``SpecError``.

        ticks: estimates algorithms on the network; without it, those asked for as best are those of a library.
        """
        return self.validated(self.program if ticks is None else lambda count: self.tuned(count, ticks), hosts)

    def validated(self, method: Callable[[int], Program], hosts: int) -> Program:
        """The program that a method of this kind gives; the arrays of a user's own are gone through."""
        program = method(hosts)
        if is_third_party(self):
            refuse_other(program, Program, method.__name__)
            check(program)
        return program
