# SPDX-License-Identifier: Apache-2.0
"""Input buffers with virtual channels: what vct, wormhole and deflection have in common, and its keys."""

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
"""Type of a key that says how much a buffer holds, 1 to 100,000: an engine's memory grows with it."""


@dataclass(frozen=True, kw_only=True)
class Buffered(Credited):
    """A discipline whose packets wait in buffers.

    vcs: virtual channels of every network and injection channel. buffer_flits: input buffer of each VC. shared_input:
    an input port sends one packet at a time (wormhole: one flit a tick); False: each of its VCs can be read at once.
    allow_deadlock: whether to run without a certificate. own_credit_path: whether the credits of a channel take the
    channel's own delay, rather than that of its reverse. vc_policy: the VC policy in force
    (``flitlab.models.routing.routes.ANY`` ...). may_deadlock: it has no certificate. allocators: choices of
    ``allocator``, the default first.
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
        """int64 [channels]: ticks that a credit for a channel between switches takes beyond ``credit``.

        They are the delay of the channel's reverse, over which the credit returns, or of the channel itself where it
        has none and under ``own_credit_path``. The credits of a host's injection channel take its ``host_delay``.
        """
        reverse = topology.reverse
        own = self.own_credit_path | (reverse < 0)
        return np.where(own, topology.delay, topology.delay[reverse])

    def round_trips(self, topology: Topology) -> Ints:
        """int64 [channels + hosts]: ticks from the grant of a head to the next one that may use the same buffer slot.

        Those of channels between switches are ``switch + link + header + credit`` and the delays of the channel and of
        its credits. Behind them stand those of injection channels, ``injection + header + credit`` and twice the host's
        delay. The head does not wait at the next switch; the flits behind it take no header delay.
        """
        between = self.switch + self.link + topology.delay + self.credit_delays(topology)
        injection = self.injection + 2 * topology.access_delay
        return np.concatenate([between, injection]) + self.header + self.credit

    def credit_loop(self, topology: Topology, flits: int) -> tuple[int, Floats]:
        """(flits that the buffer of a VC takes at a time, ticks until it can take them again).

        flits: length of packets. The ticks are float64 [channels + hosts], as of :meth:`round_trips`. Of wormhole
        switching the flits are all of the buffer, and the ticks those for which they are away on average.
        """
        ticks = self.round_trips(topology) - self.header * (1 - 1 / flits)
        return self.buffer_flits, ticks.astype(np.float64)

    @property
    def allocator(self) -> str:
        """Who goes first where several packets or flits ask for an output, by the name in a configuration."""
        return self.allocators[0]

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The discipline under the VC policy that ``certify`` finds for its ``vcs``, and the note that it gives.

        Raises ``SpecError`` where packets may deadlock, unless ``allow_deadlock``.
        """
        certificate = certify(topology, routes, self.vcs, self.allow_deadlock)
        return replace(self, vc_policy=certificate.policy, may_deadlock=not certificate.acyclic), certificate.note

    def hashed(self, source: Source) -> tuple[dict[str, Any], list[str]]:
        """The fields in the form that the disciplines of flitlab share, and no further hashes."""
        own = {"own_credit_path": True} if self.own_credit_path else {}
        return common_form(self.mode, asdict(self)) | own, []

    def plain(self, flit_ns: float | None = None) -> dict[str, Any]:
        """The mapping ``switching:`` that gives this discipline, with delays in ticks; flit_ns: None if unknown."""
        buffers = {
            "mode": self.mode, "vcs": self.vcs, "buffer_flits": self.buffer_flits, "allocator": self.allocator,
            "input_speedup": 1 if self.shared_input else "vcs", "allow_deadlock": self.allow_deadlock,
            "credit_path": "own" if self.own_credit_path else "reverse",
        }  # fmt: skip
        return buffers | self._own_keys() | self._plain_times(flit_ns)

    def _own_keys(self) -> dict[str, Any]:
        """Keys of ``switching:`` that only this discipline has, with their values."""
        return {}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """A warning where the VC policy ``layered`` is in force on a dragonfly, which then delivers little."""
        if routes.group is not None and routes.vc_policy == LAYERED:
            problem = (
                "past saturation a dragonfly delivers less than half as much with layered as with groups or hop "
                "(docs/routing.md): do not judge the routing by it"
            )
            yield SpecError(problem, key="routing.vc_policy")
        yield from self._buffer_warnings(topology, flits)

    def _buffer_warnings(self, topology: Topology, flits: int) -> Iterator[SpecError]:
        """A warning where buffers are too small for the round trip of credits, so that channels cannot be full."""
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
        """Ticks that one step of a packet of so many flits takes at most, if it can go on.

        They are all delays, there and back for the credit that it waits for, and its flits one in turn with those of
        all other VCs of the channel.
        """
        return self._all_delays(topology) + topology.longest_delay + (self.vcs + 1) * flits

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that says how much switches hold, and the flits that all buffers of the network hold together."""
        return "switching.buffer_flits", (topology.channels + topology.hosts) * self.vcs * self.buffer_flits


def _channel(topology: Topology, number: int) -> str:
    """A channel in words: one between switches or, from ``channels`` on, the injection channel of a host."""
    if number >= topology.channels:
        return f"the injection channel of host {number - topology.channels}"
    source, target = (switch_names(topology).label(end[number]) for end in (topology.src, topology.dst))
    return f"the channel from switch {source} to {target}"


class BufferedSpec(CreditedSpec):
    """Keys of the disciplines whose packets wait in buffers, and of hot-potato switching, which a sweep over routings
    may select in place of each of them.

    Defaults: 4 VCs, buffers of two packets of the greatest length, the allocator of the mode (wormhole ``islip``; vct
    ``age``, the packet first that has waited longest at the switch, or ``oldest``, that created first).
    ``credit_path``: credits return over the ``reverse`` channel and take its delay (that of the channel itself where it
    has none), or take the channel's ``own`` delay, as in BookSim2. iterations: how often iSLIP matches in a tick.
    hold_packets, slotted: keys of hot-potato switching, which mean something only where the routing deflects.
    """

    vcs: Annotated[int, Field(ge=1, le=64)] = 4
    buffer_flits: BufferSize | None = None
    allocator: Literal["age", "oldest", "islip"] | None = None
    input_speedup: Literal[1, "vcs"] = 1
    allow_deadlock: bool = False
    credit_path: Literal["reverse", "own"] = "reverse"
    hold_packets: BufferSize | None = None
    slotted: bool = False
    iterations: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] = 1

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """What is wrong with the keys of buffers, on a topology whose channels have to move one flit a tick each.

        Arguments as in :meth:`SwitchingSpec.refusals`.
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
        """What is wrong with the buffers and the allocator, where the routing does not select hot-potato switching.

        longest: flits of the longest packet.
        """
        choices: tuple[str, ...] = getattr(self.switching_mode, "allocators", ())
        if self.allocator is not None and self.allocator not in choices:
            yield SpecError(f"is not for mode {self.mode}; choices: {', '.join(choices)}", key="switching.allocator")
        if routes.vc_policy == ESCAPE and self.flits_per_vc(longest) < longest:
            why = "; vc_policy escape gives adaptive VCs to packets that fit whole"
            yield buffer_too_small(longest, why)

    def flits_per_vc(self, longest: int) -> int:
        """Flits that the buffer of one VC holds: ``buffer_flits``, by default two packets of the ``longest`` length."""
        return self.buffer_flits or 2 * longest

    def buffers(self, setting: SwitchingContext) -> dict[str, Any]:
        """Arguments of :class:`Buffered` that follow from the keys and the lengths of packets, by name."""
        return {
            "vcs": self.vcs, "buffer_flits": self.flits_per_vc(max(setting.flits)),
            "shared_input": self.input_speedup == 1, "allow_deadlock": self.allow_deadlock,
            "own_credit_path": self.credit_path == "own", **self.ticks(),
        }  # fmt: skip


def buffer_too_small(longest: int, why: str = "") -> SpecError:
    """The refusal of buffers that hold no whole packet of ``longest`` flits. why: what is added to the message."""
    return SpecError(f"must hold a whole packet, {longest} flits{why}", key="switching.buffer_flits")


def unit_capacity_errors(topology: Topology, mode: str) -> Iterator[SpecError]:
    """Refusals of the capacities of a topology, all of which must be 1 where every channel moves one flit a tick.

    mode: the discipline, for the message.
    """
    if topology.host_capacity != 1:
        problem = "must be 1 in a simulation (.inf is for experiment: ceilings)"
        yield SpecError(problem, key="topology.host_capacity")
    if np.any(topology.capacity != 1):
        problem = (
            f"must be 1 for all channels in mode {mode}, which moves one flit a tick over each; "
            "modes datagram, spray and flow, and ceilings, take channels of any capacity"
        )
        if "capacity_of" in topology.notes:
            yield SpecError(f"capacities {problem}", key="topology.capacity_of")
        else:
            yield SpecError(problem, key="topology.capacity")
