"""What the programs that are a single collective have in common."""

from typing import Annotated, ClassVar

from pydantic import Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.skeletons.skeleton import Skeleton, everyone

Bytes = Annotated[int, Field(ge=0, le=10**12)]
Repeats = Annotated[int, Field(ge=1, le=1_000_000)]


class CollectiveProgram(Skeleton):
    """A collective of all ranks, again and again.

    A rank begins the next one as soon as it is through with the one before. A reduction takes an operation for 8 bytes.
    """

    collective: ClassVar[str]

    algorithm: str | None = None
    repeats: Repeats = 1

    def extent(self, ranks: int) -> tuple[int, int]:
        return self.repeats, self.repeats

    def size(self) -> int:
        """Bytes that a rank has to give."""
        return 0

    def iterate(self, builder: Builder) -> None:
        collective(builder, self.collective, everyone(builder), self.size(), self.algorithm, self.ns_per_byte)


class SizedCollective(CollectiveProgram):
    """A collective of ``size_bytes`` bytes."""

    size_bytes: Bytes = 65536

    def size(self) -> int:
        return self.size_bytes
