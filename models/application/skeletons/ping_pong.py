# SPDX-License-Identifier: Apache-2.0
"""Ping-pong between two ranks."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from flitlab.models.application.builder import Builder
from flitlab.models.application.program import Program
from flitlab.models.application.skeletons.collective import Bytes, Repeats
from flitlab.models.application.skeletons.skeleton import Skeleton
from flitlab.models.registry import SpecError, register

Rank = Annotated[int, Field(ge=0)]


@register("application", "ping_pong")
class PingPong(Skeleton):
    """A message of ``size_bytes`` bytes from one rank to another and one back, again and again.

    Example: ``application: {kind: ping_pong, size_bytes: 1024, from: 0, to: 5, repeats: 10}``

    Source: the usual measurement of latency, as in the OSU micro-benchmarks.
    """

    model_config = ConfigDict(serialize_by_alias=True)
    rule: ClassVar[str] = "at least 2"

    size_bytes: Bytes = 1024
    """Bytes of a message."""
    source: Rank = Field(0, alias="from")
    """The rank that begins."""
    target: Rank = Field(1, alias="to")
    """The rank that answers; all others are idle."""
    repeats: Repeats = 1
    """Number of round trips."""

    def program(self, hosts: int) -> Program:
        if self.source == self.target:
            raise SpecError("must be another rank than from", "to")
        return super().program(hosts)

    def allows(self, ranks: int) -> bool:
        return ranks >= 2

    def extent(self, ranks: int) -> tuple[int, int]:
        for key, rank in (("from", self.source), ("to", self.target)):
            if rank >= ranks:
                raise SpecError(f"must be a rank, 0..{ranks - 1}", key)
        return self.repeats, self.repeats

    def iterate(self, builder: Builder) -> None:
        for name, source, target in (("ping", self.source, self.target), ("pong", self.target, self.source)):
            builder.begin(name, size=self.size_bytes, ranks=2)
            builder.exchange([source], [target], self.size_bytes)
