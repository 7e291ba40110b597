# SPDX-License-Identifier: Apache-2.0
"""Input buffers with virtual channels: the common part of vct, wormhole and deflection, and its keys."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError, whole
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import ANY, ESCAPE, LAYERED, Routes
from flitlab.models.switching.hash_form import common_form
from flitlab.models.switching.switching_mode import Certify, SwitchingContext
from flitlab.models.switching.timed import Credited, CreditedSpec
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.source import Source

BufferSize = Annotated[int, BeforeValidator(whole), Field(ge=1, le=100_000)]
"""Type of a key for a buffer size, 1 to 100,000. The engines' memory grows with it."""


@dataclass(frozen=True, kw_only=True)
class Buffered(Credited):
    """A switching mode whose packets wait in input buffers.

    vcs: virtual channels of every network and injection channel. buffer_flits: input buffer of each VC. shared_input:
    an input port sends one packet at a time (wormhole: one flit per tick); False: all of its VCs at once.
    allow_deadlock: whether to run without a certificate. own_credit_path: whether credits take the delay of their own
    channel instead of its reverse. vc_policy: the VC policy in force (``flitlab.models.routing.routes.ANY`` ...).
    may_deadlock: it has no certificate. allocators: choices of ``allocator``, the default first.
    """

    programs: ClassVar[bool] = True
    allocators: ClassVar[tuple[str, ...]]

    vcs: int = 1
    buffer_flits: int = 0
    shared_input: bool = False
    allow_deadlock: bool = False
    own_credit_path: bool = False
    vc_policy: int = ANY
    may_deadlock: bool = False

    def credit_delays(self, topology: Topology) -> Ints:
        """Delay of the credits of each channel between switches, beyond ``credit``: ticks, int64 [channels].

        Credits return over the reverse channel and take its delay. They take the channel's own delay if there is no
        reverse, or with ``own_credit_path``. Credits of a host's injection channel take its ``host_delay``.

        Parameters
        ----------
        topology: the network.
        """
        reverse = topology.reverse
        own = self.own_credit_path | (reverse < 0)
        return np.where(own, topology.delay, topology.delay[reverse])

    def round_trips(self, topology: Topology) -> Ints:
        """Credit round trips: ticks from using a buffer slot to using it again, int64 [channels + hosts].

        For a channel between switches: ``switch + link + header + credit``, its delay and that of its credits. For an
        injection channel: ``injection + header + credit`` and twice the host's delay. The head does not wait at the
        next switch. Body flits have no header delay.

        Parameters
        ----------
        topology: the network.
        """
        between = self.switch + self.link + topology.delay + self.credit_delays(topology)
        injection = self.injection + 2 * topology.access_delay
        return np.concatenate([between, injection]) + self.header + self.credit

    def credit_loop(self, topology: Topology, flits: int) -> tuple[int, Floats]:
        """Flits that a VC sends per credit loop, and the ticks of the loop, float64 [channels + hosts].

        flits: packet length. Wormhole switching uses the whole buffer, and the mean time for which its slots are away.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        ticks = self.round_trips(topology) - self.header * (1 - 1 / flits)
        return self.buffer_flits, ticks.astype(np.float64)

    @property
    def allocator(self) -> str:
        """The arbitration among requests for an output, as named in the configuration."""
        return self.allocators[0]

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode with the VC policy that ``certify`` chooses for its ``vcs``, and the certificate as text.

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
        SpecError: packets may deadlock, and ``allow_deadlock`` is not set.
        """
        certificate = certify(topology, routes, self.vcs, self.allow_deadlock)
        return replace(self, vc_policy=certificate.policy, may_deadlock=not certificate.acyclic), certificate.note

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """The fields in the common hash form, without further hashes."""
        own = {"own_credit_path": True} if self.own_credit_path else {}
        return common_form(self.mode, asdict(self)) | own, []

    def plain(self, flit_ns: float | None = None) -> dict[str, Any]:
        """The mapping ``switching:`` that describes this mode, delays in ticks; flit_ns: None if unknown."""
        buffers = {
            "mode": self.mode, "vcs": self.vcs, "buffer_flits": self.buffer_flits, "allocator": self.allocator,
            "input_speedup": 1 if self.shared_input else "vcs", "allow_deadlock": self.allow_deadlock,
            "credit_path": "own" if self.own_credit_path else "reverse",
        }  # fmt: skip
        return buffers | self._own_keys() | self._plain_times(flit_ns)

    def _own_keys(self) -> dict[str, Any]:
        """Keys of ``switching:`` that only this mode has, with their values."""
        return {}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """Warnings: VC policy ``layered`` on a dragonfly, and buffers below the credit round trip.

        Parameters
        ----------
        topology: the network.
        routes: its routes.
        flits: the first packet length.

        Returns
        -------
        Errors to be shown as warnings.
        """
        if routes.group is not None and routes.vc_policy == LAYERED:
            problem = (
                "past saturation a dragonfly delivers less than half as much with layered as with groups or hop "
                "(docs/routing.md): do not judge the routing by it"
            )
            yield SpecError(problem, key="routing.vc_policy")
        yield from self._buffer_warnings(topology, flits)

    def _buffer_warnings(self, topology: Topology, flits: int) -> Iterator[SpecError]:
        """A warning where buffers do not cover the credit round trip and limit the channels."""
        loop_flits, ticks = self.credit_loop(topology, flits)
        rate = self.vcs * loop_flits / ticks
        short = np.flatnonzero(rate < 1)
        if not len(short):
            return
        c = short[np.argmin(rate[short])]
        flits_per_vc = -(-ceil(ticks[c]) // self.vcs)
        needed = flits_per_vc + -flits_per_vc % flits if loop_flits % flits == 0 else flits_per_vc
        problem = (
            f"{self.vcs} x {loop_flits} flits are too few for {_channel(topology, int(c))}: credits are back after "
            f"{ticks[c]:g} ticks, so it carries at most {rate[c]:.3g} flits a tick ({len(short)} of {len(rate)} "
            f"channels carry less than 1); {needed} flits a VC cover the round trip"
        )
        yield SpecError(problem, key="switching.buffer_flits")

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks that one step of a packet takes, if it is not blocked.

        It is the sum of all delays, those of the credit it waits for, and its flits, interleaved with those of all
        other VCs of the channel. flits: length of the packet.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return self._all_delays(topology) + topology.longest_delay + (self.vcs + 1) * flits

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that sets the buffer size, and the flits that all buffers hold together.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        return "switching.buffer_flits", (topology.channels + topology.hosts) * self.vcs * self.buffer_flits


def _channel(topology: Topology, number: int) -> str:
    """The name of a channel in messages. Numbers from ``channels`` on are injection channels of hosts."""
    if number >= topology.channels:
        return f"the injection channel of host {number - topology.channels}"
    source, target = (switch_names(topology).label(end[number]) for end in (topology.src, topology.dst))
    return f"the channel from switch {source} to {target}"


class BufferedSpec(CreditedSpec):
    """Keys of the switching modes with input buffers, and of hot-potato switching, which a deflecting routing selects.

    Defaults: 4 VCs, buffers of two packets of the greatest length, the allocator of the mode (wormhole: ``islip``; vct:
    ``age``, the packet that has waited longest at the switch first, or ``oldest``, the packet created first).
    ``credit_path``: credits return over the ``reverse`` channel and take its delay (that of the channel itself where it
    has none), or take the channel's ``own`` delay, as in BookSim2. iterations: iSLIP iterations per tick. hold_packets,
    slotted: keys of hot-potato switching, only used where the routing deflects.
    """

    vcs: Annotated[int, Field(ge=1, le=64)] = 4
    """Virtual channels of every network and injection channel."""
    buffer_flits: BufferSize | None = None
    """Input buffer of each VC. null: two packets of the greatest length."""
    allocator: Literal["age", "oldest", "islip"] | None = None
    """Switch allocation. null: age in vct, islip in wormhole. oldest: by creation."""
    input_speedup: Literal[1, "vcs"] = 1
    """Packets (wormhole: flits) that an input sends to the crossbar at once; vcs: one per VC."""
    allow_deadlock: bool = False
    """Run without a certificate of deadlock freedom."""
    credit_path: Literal["reverse", "own"] = "reverse"
    """Channel whose delay credits take: the reverse channel, or their own as in BookSim2."""
    hold_packets: BufferSize | None = None
    """Packets in a switch from which on its hosts wait, under hot-potato routing."""
    slotted: bool = False
    """Packets start in slots of their length, under hot-potato routing."""
    iterations: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] = 1
    """Iterations of iSLIP per tick."""

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors in the keys of buffers, and capacities other than one flit per tick.

        Parameters
        ----------
        topology: the network.
        routes: its routes, None if other errors prevent them.
        flits: packet lengths, None if other errors prevent them.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        yield from unit_capacity_errors(topology, self.mode)
        if routes is None or flits is None:
            return
        if routes.deflection:
            if len(flits) > 1:
                yield SpecError("deflection needs packets of one length", key="traffic.packet_flits")
            return
        yield from self._buffer_errors(routes, max(flits))

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        """Errors in buffers and allocator, where the routing does not deflect.

        longest: flits of the longest packet.
        """
        choices: tuple[str, ...] = getattr(self.switching_mode, "allocators", ())
        if self.allocator is not None and self.allocator not in choices:
            yield SpecError(f"is not for mode {self.mode}; choices: {', '.join(choices)}", key="switching.allocator")
        if routes.vc_policy == ESCAPE and self.flits_per_vc(longest) < longest:
            why = "; with vc_policy escape a packet enters an adaptive VC only if all of it fits"
            yield buffer_too_small(longest, why)

    def flits_per_vc(self, longest: int) -> int:
        """Flits of the buffer of one VC: ``buffer_flits``, by default two packets of the ``longest`` length."""
        return self.buffer_flits or 2 * longest

    def buffers(self, setting: SwitchingContext) -> dict[str, Any]:
        """Arguments of :class:`Buffered` by name, from the keys and the packet lengths."""
        return {
            "vcs": self.vcs, "buffer_flits": self.flits_per_vc(max(setting.flits)),
            "shared_input": self.input_speedup == 1, "allow_deadlock": self.allow_deadlock,
            "own_credit_path": self.credit_path == "own", **self.ticks(),
        }  # fmt: skip


def buffer_too_small(longest: int, why: str = "") -> SpecError:
    """The error of buffers below one packet of ``longest`` flits. why: addition to the message."""
    return SpecError(f"must hold a whole packet, {longest} flits{why}", key="switching.buffer_flits")


def unit_capacity_errors(topology: Topology, mode: str) -> Iterator[SpecError]:
    """Errors for capacities other than 1, where every channel moves one flit per tick.

    mode: the switching mode, for the message.
    """
    if topology.host_capacity != 1:
        problem = "must be 1 in a simulation (.inf is for experiment: ceilings)"
        yield SpecError(problem, key="topology.host_capacity")
    if np.any(topology.capacity != 1):
        problem = (
            f"must be 1 for all channels in mode {mode}, which moves one flit per tick over each; "
            "modes datagram, spray and flow, and ceilings, take channels of any capacity"
        )
        if "capacity_of" in topology.notes:
            yield SpecError(f"capacities {problem}", key="topology.capacity_of")
        else:
            yield SpecError(problem, key="topology.capacity")
