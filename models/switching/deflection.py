# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching: a packet whose preferred channels are taken is deflected to another one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Fields, Keys
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import Buffered, BufferedSpec, packets_before_hosts_wait
from flitlab.models.switching.dynamic_topology import DynamicTopology
from flitlab.models.switching.switching_mode import SwitchingContext
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.source import Source


class _Rule(NamedTuple):
    """Rules of hot-potato switching: when a packet takes an output, and is deflected."""

    POOL: str = "pool"
    VC: str = "vc"
    FRAME: str = "frame"


Rule = _Rule()


@dataclass(frozen=True, kw_only=True)
class Deflection(DynamicTopology, Buffered):
    """Hot-potato switching, which waits for no buffer.

    rule: ``pool``: a packet takes a free output; ``vc``: a virtual channel of an output; ``frame``: one in frames of V
    packets. hold_packets: packets in a switch from which on its hosts must wait (pool). slotted: packets start in slots
    of their length (pool). by_flit: packets of a channel take turns flit by flit, else packet by packet (vc). reserve:
    packets of V times the degree that a switch keeps free, None: its degree (vc). packet_flits: length L (frame).
    buffer_flits, shared_input, allow_deadlock, iterations, and under ``pool`` vcs: keys for other routings of a sweep;
    they have no effect but are part of the content hash.
    """

    mode: ClassVar[str] = "deflection"
    allocators: ClassVar[tuple[str, ...]] = ("age",)

    hold_packets: int = 0
    slotted: bool = False
    iterations: int = 1
    rule: str = Rule.POOL
    by_flit: bool = False
    reserve: int | None = None
    packet_flits: int = 0

    @property
    def share(self) -> str:
        """Whose turn it is on a channel under ``vc``: ``packet`` or ``flit``."""
        return "flit" if self.by_flit else "packet"

    @property
    def frame_ticks(self) -> int:
        """Ticks of a frame, V packets."""
        return self.vcs * self.packet_flits

    @property
    def hop_frames(self) -> int:
        """Frames from the one in which a packet takes a slot of a channel to that in which it takes the next one."""
        return -(-(self.vcs - 1 + self.switch + self.link + self.header) // self.frame_ticks)

    def limits(self, topology: Topology) -> Ints:
        """Packets at a switch and in flight from its hosts from which on these wait (``vc``), int64 [switches].

        V times the degree, less the reserve.

        Parameters
        ----------
        topology: the network.
        """
        return packets_before_hosts_wait(topology, self.vcs, self.reserve)

    def zero_load_latency(self, topology: Topology, hops: int, flits: int) -> int:
        """Ticks from the creation of a packet to its tail at the destination host in an empty network.

        Under ``frame`` a packet that is created just in time for a frame; others wait for up to a frame.

        Parameters
        ----------
        topology: the network.
        hops: channels between switches; their own delays are not included.
        flits: length of the packet.
        """
        if self.rule != Rule.FRAME:
            return super().zero_load_latency(topology, hops, flits)
        in_frames = hops * self.hop_frames * self.frame_ticks + (flits - 1) * self.vcs
        return self.injection + self.header + in_frames + self.switch + self.ejection

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks that one step of a packet takes, if it is not blocked. flits: length of the packet."""
        frames = (1 + self.hop_frames) * self.frame_ticks if self.rule == Rule.FRAME else 0
        return super().longest_step(topology, flits) + frames

    def lookahead(self, topology: Topology, flits: int) -> int:
        """The most ticks from the grant of a packet to the arrival of its tail at the next switch."""
        return super().lookahead(topology, flits) + (self.vcs * flits if self.rule != Rule.POOL else 0)

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The fields in the common hash form, with the rule and its keys unless it is ``pool``."""
        form, hashes = super().hashed(source)
        own = {"by_flit": self.by_flit, "reserve": self.reserve} if self.rule == Rule.VC else {}
        return form | ({} if self.rule == Rule.POOL else {"rule": self.rule, **own}), hashes

    def effective(self) -> "Deflection":
        """The same mode with one value of the keys that have no effect."""
        vcs = 1 if self.rule == Rule.POOL else self.vcs
        return replace(self, vcs=vcs, buffer_flits=1, shared_input=False, allow_deadlock=False, iterations=1)

    @classmethod
    def of(cls, spec: BufferedSpec, setting: SwitchingContext, iterations: int = 1) -> "Deflection":
        """Hot-potato switching, selected by a deflecting routing, from the keys of any mode with buffers.

        Parameters
        ----------
        spec: the keys.
        setting: the rest of the configuration.
        iterations: iSLIP iterations, for the hash only.
        """
        keys = {"iterations": iterations, "rule": spec.rule, **spec.buffers(setting)}
        if spec.rule == Rule.POOL:
            return cls(hold_packets=spec.hold_packets or spec.vcs * setting.degree, slotted=spec.slotted, **keys)
        if spec.rule == Rule.VC:
            return cls(by_flit=spec.share == "flit", reserve=spec.reserve, **keys)
        return cls(packet_flits=setting.flits[0], **keys)

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for slow links, and for epochs in which a switch has more working inputs than outputs.

        Under rules ``vc`` and ``frame`` the topology cannot change.
        """
        if self.rule != Rule.POOL:
            problem = (
                f"needs switching.rule: pool; rule {self.rule} admits packets by the channels of a switch, which would "
                "change under packets that are there already"
            )
            raise SpecError(problem, key="timeline")
        if any((epoch.rate != 1).any() for epoch in timeline.epochs):
            problem = (
                "slow is not for packets that are deflected: a switch forwards all packets that arrive, so that its "
                "channels are equally fast (vct, wormhole, ideal, datagram, spray and flow take slow links)"
            )
            raise SpecError(problem, key="timeline")
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

    def _own_keys(self) -> Keys:
        if self.rule == Rule.POOL:
            return {"hold_packets": self.hold_packets, "slotted": self.slotted}
        return {"rule": self.rule, **({"share": self.share, "reserve": self.reserve} if self.rule == Rule.VC else {})}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """A warning where a switch holds fewer packets than may be in their header delay at once.

        Returns
        -------
        Errors to be shown as warnings.
        """
        arriving = 2 * int(topology.out_degree.max(initial=1)) * -(-self.header // flits)
        if self.rule == Rule.POOL and self.hold_packets < arriving:
            problem = (
                f"{self.hold_packets} packets per switch are below 2·degree·ceil(header/packet) = {arriving}: "
                "packets in their header delay alone fill it, and throughput may collapse"
            )
            yield SpecError(problem, key="switching.hold_packets")

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that limits the packets of a switch, and the packets that all switches hold together."""
        if self.rule == Rule.POOL:
            return "switching.hold_packets", topology.switches * self.hold_packets
        return "switching.vcs", 2 * self.vcs * topology.channels


@register("switching", "deflection", aliases=("hot_potato",))
class DeflectionSpec(BufferedSpec):
    """Hot-potato switching: every packet leaves in the next allocation, on a non-minimal channel if it must.

    ``rule: pool`` (default): a packet takes an output that is free, and is deflected only where its switch holds more
    than ``hold_packets`` (default: VCs times degree), from which on its hosts wait. ``vc``: a packet takes at once a
    virtual channel of an output, of any output if those on shortest paths have none free; the packets of a channel take
    turns (``share``) packet by packet or flit by flit, and hosts wait while all but ``reserve`` (default: the degree)
    of the virtual channels of a switch could be taken. ``frame``: the same in frames of one packet for every virtual
    channel, for all switches at once; no packet ever waits for a channel.

    Baran 1964, doi:10.1109/TCOM.1964.1088883. It needs ``routing.kind: deflection``, which selects it whatever the mode
    says.
    """

    switching_mode: ClassVar[type[Deflection]] = Deflection

    mode: Literal["deflection"]
    """The switching mode."""

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        yield SpecError("needs routing.kind: deflection", key="switching.mode")

    def build(self, setting: SwitchingContext) -> Deflection:
        """Hot-potato switching, for routes that deflect."""
        return Deflection.of(self, setting, self.iterations)
