# SPDX-License-Identifier: Apache-2.0
"""The base class of programs."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from flitlab.models.application.builder import Ticks
from flitlab.models.application.matching import check
from flitlab.models.application.program import Program
from flitlab.models.registry import Spec, is_third_party
from flitlab.models.validation import require_type

Ranks = Annotated[int, Field(ge=1, le=1_000_000)]


class ApplicationSpec(Spec):
    """A program, defined by :meth:`program`; its ranks compute at ``gflops`` (UNI, section III-C: 100)."""

    ranks: Ranks | None = None
    """Number of ranks. null: as many as there are hosts."""
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 100.0
    """Rate at which a rank computes."""

    def program(self, hosts: int) -> Program:
        """The program on a network of ``hosts`` hosts. Raises ``SpecError``."""
        raise NotImplementedError

    @property
    def asks_for_best(self) -> bool:
        """Whether some of its algorithms are chosen by their estimated time on the network."""
        return False

    def tuned(self, hosts: int, ticks: Ticks | None) -> Program:
        """The program with the algorithms of least estimated time. Raises ``SpecError``."""
        return self.program(hosts)

    def build(self, hosts: int, ticks: Ticks | None = None) -> Program:
        """The validated program on a network of ``hosts`` hosts. Raises ``SpecError``.

        ticks: estimates algorithms on the network; without it, ``best`` is the choice of a library.
        """
        return self.validated(self.program if ticks is None else lambda count: self.tuned(count, ticks), hosts)

    def validated(self, method: Callable[[int], Program], hosts: int) -> Program:
        """The program that a method returns; arrays of third-party programs are checked."""
        program = method(hosts)
        if is_third_party(self):
            require_type(program, Program, method.__name__)
            check(program)
        return program
