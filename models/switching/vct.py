# SPDX-License-Identifier: Apache-2.0
"""Virtual cut-through: a packet advances as soon as the next buffer has space for all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Fields
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import BufferedSpec
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source


@dataclass(frozen=True, kw_only=True)
class Vct(Draining):
    """Virtual cut-through with an age-based allocator.

    oldest_first: serve the packet that was created first, then the one that has waited longest; else the one that has
    waited longest. Priority ``age`` is the same; with priority ``class`` it is False.
    """

    mode: ClassVar[str] = "vct"
    has_classes: ClassVar[bool] = True
    supports_multistage: ClassVar[bool] = True
    allocators: ClassVar[tuple[str, ...]] = ("age", "oldest")

    oldest_first: bool = False

    @property
    def allocator(self) -> str:
        """``age`` or ``oldest``."""
        return self.allocators[self.oldest_first]

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The fields in the common hash form, with the allocator if it is ``oldest``."""
        form, hashes = super().hashed(source)
        return form | ({"oldest_first": True} if self.oldest_first else {}), hashes

    def credit_loop(self, topology: Topology, flits: int) -> tuple[Ints, Floats]:
        """Flits of the whole packets that a VC buffer holds, and ticks until all their credits are back."""
        ticks = self.round_trips(topology) + (flits - 1) * self.flit_ticks(topology)
        return self.buffers_of(topology) // flits * flits, ticks.astype(np.float64)

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that sets the buffer size, and the packets that all buffers hold together."""
        return "switching.buffer_flits", self.vcs * int((self.buffers_of(topology) // flits).sum())


@register("switching", "vct", aliases=("virtual_cut_through",))
class VctSpec(BufferedSpec):
    """Virtual cut-through: a packet advances when the next buffer has space for all of it.

    ``allocator: age`` serves the packet that has waited longest at the front of its buffer, ``oldest`` the one created
    first.

    Kermani and Kleinrock 1979, doi:10.1016/0376-5075(79)90032-1.
    """

    switching_mode: ClassVar[type[Vct]] = Vct
    supports_progressive: ClassVar[bool] = True

    mode: Literal["vct"] = "vct"
    """The switching mode."""

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if self.iterations > 1:
            problem = "must be 1 in mode vct: only allocator islip iterates"
            yield SpecError(problem, key="switching.iterations")
        if self.priority == "class" and self.allocator == "oldest":
            problem = "oldest serves by creation and does not go with priority class; priority age is the same order"
            yield SpecError(problem, key="switching.allocator")
        yield from super()._buffer_errors(routes, longest)

    def needs_whole_packets(self, routes: Routes) -> bool:
        """True: a packet advances only if all of it fits."""
        return True

    def build(self, setting: SwitchingContext) -> Vct | Deflection:
        """Virtual cut-through; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        oldest_first = self.allocator == "oldest" or self.priority == "age"
        return Vct(oldest_first=oldest_first, **self.buffers(setting))
