# SPDX-License-Identifier: Apache-2.0
"""Virtual cut-through: a packet goes on as soon as the next buffer has room for all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import BufferedSpec, buffer_too_small
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source


@dataclass(frozen=True, kw_only=True)
class Vct(Draining):
    """Virtual cut-through with an allocator that serves the packet that has waited longest.

    oldest_first: it serves the packet that was created first instead, of several the one that has waited longest.
    """

    mode: ClassVar[str] = "vct"
    allocators: ClassVar[tuple[str, ...]] = ("age", "oldest")

    oldest_first: bool = False

    @property
    def allocator(self) -> str:
        """``age`` or ``oldest``."""
        return self.allocators[self.oldest_first]

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """The fields in the form that the disciplines of flitlab share, with the allocator if it is ``oldest``."""
        form, more = super().hashed(source)
        return form | ({"oldest_first": True} if self.oldest_first else {}), more

    def credit_loop(self, topology: Topology, flits: int) -> tuple[int, Floats]:
        """(flits of the packets that the buffer of a VC holds, ticks until all its credits are back)."""
        ticks = self.round_trips(topology) + flits - 1
        return self.buffer_flits // flits * flits, ticks.astype(np.float64)

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that says how much switches hold, and the packets of so many flits that all buffers hold together."""
        return "switching.buffer_flits", super().buffer_capacity(topology, flits)[1] // flits


@register("switching", "vct")
class VctSpec(BufferedSpec):
    """Virtual cut-through: a packet goes on when the next buffer has room for all of it, and its flits follow in turn.

    ``allocator: age`` serves the packet first that has waited longest at the front of its buffer, ``oldest`` that which
    was created first.

    Kermani and Kleinrock 1979, doi:10.1016/0376-5075(79)90032-1.
    """

    switching_mode: ClassVar[type[Vct]] = Vct
    supports_progressive: ClassVar[bool] = True

    mode: Literal["vct"] = "vct"

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if self.iterations > 1:
            problem = "must be 1 in vct, which visits everybody once (only islip iterates)"
            yield SpecError(problem, key="switching.iterations")
        if self.flits_per_vc(longest) < longest:
            yield buffer_too_small(longest)
        else:
            yield from super()._buffer_errors(routes, longest)

    def build(self, setting: SwitchingContext) -> Vct | Deflection:
        """The discipline virtual cut-through; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        return Vct(oldest_first=self.allocator == "oldest", **self.buffers(setting))
