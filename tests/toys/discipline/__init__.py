"""A discipline of one's own: packets wait for the channels of hosts alone, and the network between is a fixed delay."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingMode, SwitchingSpec
from flitlab.sim.engines.table import Engines, runs


@dataclass(frozen=True)
class Pipe(SwitchingMode):
    """A network that never is in anybody's way. delay: ticks from the head's departure to its arrival."""

    mode: ClassVar[str] = "pipe"
    delay: int

    def zero_load_latency(self, topology, hops, flits):
        return self.delay + flits - 1


@register("switching", "pipe")
class PipeSpec(SwitchingSpec):
    """A network that is a fixed delay: packets wait only at the channels of hosts."""

    switching_mode: ClassVar = Pipe
    mode: Literal["pipe"]
    delay: Annotated[int, Field(ge=1, le=10**6)] = 10

    def build(self, setting: SwitchingContext) -> Pipe:
        return Pipe(self.delay)


@runs(Pipe)
def engines() -> Engines:
    from tests.toys.discipline.compiled import CompiledPipe
    from tests.toys.discipline.reference import ReferencePipe

    return Engines(ReferencePipe, CompiledPipe)
