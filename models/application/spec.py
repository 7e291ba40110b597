"""What a program's parameters are, whatever program it is."""

from typing import Annotated

from pydantic import Field

from flitlab.models.application.program import Program
from flitlab.models.registry import Spec

Ranks = Annotated[int, Field(ge=1, le=1_000_000)]


class ApplicationSpec(Spec):
    """A program; its ranks compute at ``gflops`` (UNI, section III-C: 100).

    ranks: by default as many as there are hosts.
    """

    ranks: Ranks | None = None
    gflops: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 100.0

    def build(self, hosts: int) -> Program:
        """The program on a network of so many hosts. Raises ``SpecError``."""
        raise NotImplementedError
