# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching: flits go on one by one, as far as there is room for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import POLARIZED, RESERVE, Routes
from flitlab.models.switching.buffered import BufferedSpec
from flitlab.models.switching.deflection import Deflection
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.models.switching.switching_mode import Certify, SwitchingContext
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, kw_only=True)
class Wormhole(Draining):
    """Wormhole switching with an allocator by rotating priority, iSLIP. iterations: how often it matches in a tick."""

    mode: ClassVar[str] = "wormhole"
    allocators: ClassVar[tuple[str, ...]] = ("islip",)

    iterations: int = 1

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The discipline under the VC policy that ``certify`` finds, and the note that it gives.

        Raises ``SpecError`` also for ``reserve``, whose proof needs buffers that take whole packets.
        """
        if routes.vc_policy == RESERVE:
            problem = "reserve is for mode vct, where a buffer takes whole packets (rising and hop serve wormhole)"
            raise SpecError(problem, key="vc_policy")
        return super().certified(topology, routes, certify)

    def _own_keys(self) -> dict[str, Any]:
        return {"iterations": self.iterations}


@register("switching", "wormhole")
class WormholeSpec(BufferedSpec):
    """Wormhole switching: a packet's flits go on one by one, as far as there is room, and its VC is its own meanwhile.

    Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """

    switching_mode: ClassVar[type[Wormhole]] = Wormhole

    mode: Literal["wormhole"]

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if routes.form == POLARIZED:
            yield SpecError("polarized chooses by queues of whole packets and serves mode vct only", key="routing.kind")
        yield from super()._buffer_errors(routes, longest)

    def build(self, setting: SwitchingContext) -> Wormhole | Deflection:
        """The discipline wormhole switching; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        return Wormhole(iterations=self.iterations, **self.buffers(setting))
