# SPDX-License-Identifier: Apache-2.0
"""Wormhole switching: flits advance one by one while the next buffer has space."""

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
    """Wormhole switching with the rotating-priority allocator iSLIP. iterations: per tick."""

    mode: ClassVar[str] = "wormhole"
    allocators: ClassVar[tuple[str, ...]] = ("islip",)

    iterations: int = 1

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode with the VC policy that ``certify`` chooses, and the certificate as text.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        certify: the function that certifies routes.

        Returns
        -------
        The mode, and the text.

        Raises
        ------
        SpecError: packets may deadlock; VC policy ``reserve``, whose proof needs buffers for whole packets.
        """
        if routes.vc_policy == RESERVE:
            problem = "reserve needs mode vct, whose buffers take whole packets (rising and hop serve wormhole)"
            raise SpecError(problem, key="vc_policy")
        return super().certified(topology, routes, certify)

    def _own_keys(self) -> dict[str, Any]:
        return {"iterations": self.iterations}


@register("switching", "wormhole")
class WormholeSpec(BufferedSpec):
    """Wormhole switching: flits advance one by one while there is space; the packet owns its VC meanwhile.

    Dally and Seitz 1987, doi:10.1109/TC.1987.1676939.
    """

    switching_mode: ClassVar[type[Wormhole]] = Wormhole

    mode: Literal["wormhole"]

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        if routes.form == POLARIZED:
            yield SpecError(
                "polarized chooses by queues of whole packets and needs switching.mode: vct", key="routing.kind"
            )
        yield from super()._buffer_errors(routes, longest)

    def build(self, setting: SwitchingContext) -> Wormhole | Deflection:
        """Wormhole switching; hot-potato switching where the routing deflects."""
        if setting.routes.deflection:
            return Deflection.of(self, setting, self.iterations)
        return Wormhole(iterations=self.iterations, **self.buffers(setting))
