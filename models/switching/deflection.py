# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching: a packet whose preferred channels are taken is deflected to another one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import Buffered, BufferedSpec
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


@dataclass(frozen=True, kw_only=True)
class Deflection(DynamicTopology, Buffered):
    """Hot-potato switching, which waits for no buffer.

    hold_packets: packets in a switch from which on its hosts must wait. slotted: packets start in slots of their
    length. vcs, buffer_flits, shared_input, allow_deadlock, iterations: keys for other routings of a sweep; they have
    no effect but are part of the content hash.
    """

    mode: ClassVar[str] = "deflection"
    allocators: ClassVar[tuple[str, ...]] = ("age",)

    hold_packets: int
    slotted: bool = False
    iterations: int = 1

    @classmethod
    def of(cls, spec: BufferedSpec, setting: SwitchingContext, iterations: int = 1) -> "Deflection":
        """Hot-potato switching, selected by a deflecting routing, from the keys of any mode with buffers.

        Parameters
        ----------
        spec: the keys.
        setting: the rest of the configuration.
        iterations: iSLIP iterations, for the hash only.
        """
        hold = spec.hold_packets or spec.vcs * setting.degree
        return cls(hold_packets=hold, slotted=spec.slotted, iterations=iterations, **spec.buffers(setting))

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for slow links, and for epochs in which a switch has more working inputs than outputs.

        Parameters
        ----------
        timeline: events of the network during the run; None: it does not change.
        routes: its routes.
        """
        super().check_timeline(timeline, routes)
        topology = timeline.topology
        for epoch in timeline.epochs:
            works = epoch.works(topology)
            into, out = (np.bincount(ends[works], minlength=topology.switches) for ends in (topology.dst, topology.src))
            for switch in np.flatnonzero(into != out)[:1]:
                name = switch_names(topology).label(switch)
                counts = f"of switch {name} {into[switch]} channels into it and {out[switch]} out of it"
                problem = f"leaves {counts} at tick {epoch.tick}, and mode {self.mode} needs as many of both"
                raise SpecError(problem, key="timeline")

    def _own_keys(self) -> dict[str, Any]:
        return {"hold_packets": self.hold_packets, "slotted": self.slotted}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """A warning where a switch holds fewer packets than may be in their header delay at once.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        flits: the first packet length.

        Returns
        -------
        Errors to be shown as warnings.
        """
        arriving = 2 * int(topology.out_degree.max(initial=1)) * -(-self.header // flits)
        if self.hold_packets < arriving:
            problem = (
                f"{self.hold_packets} packets per switch are below 2·degree·ceil(header/packet) = {arriving}: "
                "packets in their header delay alone fill it, and throughput may collapse"
            )
            yield SpecError(problem, key="switching.hold_packets")

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that limits the packets of a switch, and the packets that all switches hold together.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return "switching.hold_packets", topology.switches * self.hold_packets


@register("switching", "deflection")
class DeflectionSpec(BufferedSpec):
    """Hot-potato switching: every packet leaves in the next allocation, on a non-minimal channel if it must.

    Baran 1964, doi:10.1109/TCOM.1964.1088883. It needs ``routing.kind: deflection``, which selects it whatever the mode
    says. hold_packets: packets of a switch from which on its hosts wait (default: VCs times degree).
    """

    switching_mode: ClassVar[type[Deflection]] = Deflection

    mode: Literal["deflection"]

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        yield SpecError("needs routing.kind: deflection", key="switching.mode")

    def build(self, setting: SwitchingContext) -> Deflection:
        """Hot-potato switching, for routes that deflect."""
        return Deflection.of(self, setting, self.iterations)
