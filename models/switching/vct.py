"""Virtual cut-through: a packet goes on as soon as the next buffer has room for all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import Buffered, BufferedSpec, too_small
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.discipline import Setting
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, kw_only=True)
class Vct(Buffered):
    """Virtual cut-through with an allocator that serves the packet that has waited longest."""

    mode: ClassVar[str] = "vct"
    allocator: ClassVar[str] = "age"

    def room(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that says how much switches hold, and the packets of so many flits that all buffers hold together."""
        return "switching.buffer_flits", super().room(topology, flits)[1] // flits


@register("switching", "vct")
class VctSpec(BufferedSpec):
    """Virtual cut-through: a packet goes on when the next buffer has room for all of it, and its flits follow in turn.

    Kermani and Kleinrock 1979, doi:10.1016/0376-5075(79)90032-1.
    """

    discipline: ClassVar[type[Vct]] = Vct

    mode: Literal["vct"] = "vct"

    def _buffer_refusals(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if self.iterations > 1:
            problem = "must be 1 in vct, which visits everybody once (only islip iterates)"
            yield SpecError(problem, key="switching.iterations")
        if self.room_of(longest) < longest:
            yield too_small(longest)
        else:
            yield from super()._buffer_refusals(routes, longest)

    def build(self, setting: Setting) -> Vct | Deflection:
        """The discipline virtual cut-through; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        return Vct(**self.buffers(setting))
