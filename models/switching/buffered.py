# SPDX-License-Identifier: Apache-2.0
"""Input buffers with virtual channels: the common part of vct, wormhole and deflection, and its keys."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Fields, Keys
from flitlab.models.registry import SpecError, whole
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.class_ranges import certify_ranges
from flitlab.models.routing.routes import Routes, VcPolicy
from flitlab.models.switching.buffers import BufferFlits, BuffersByChannel, BufferSize, ChannelBuffers
from flitlab.models.switching.hash_form import common_form
from flitlab.models.switching.switching_mode import MAX_SUBNETS, Certify, SwitchingContext
from flitlab.models.switching.timed import Credited, CreditedSpec, FlitTimed, slowest_flit
from flitlab.models.topology.flit_times import capacity_unit, flit_times
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.source import Source


@dataclass(frozen=True, kw_only=True)
class Buffered(FlitTimed, Credited):
    """A switching mode whose packets wait in input buffers.

    vcs: virtual channels of every network and injection channel. buffer_flits: input buffer of each VC, the largest one
    where ``channel_buffers`` has a size for each channel. shared_input: an input port sends one packet at a time
    (wormhole: one flit per tick); False: all of its VCs at once. allow_deadlock: whether to run without a certificate.
    own_credit_path: whether credits take the delay of their own channel instead of its reverse. vc_policy: the VC
    policy in force (``flitlab.models.routing.routes.VcPolicy`` ...). may_deadlock: it has no certificate. allocators:
    choices of ``allocator``, the default first. priority: the first key of every arbitration: ``class``, the priority
    of a packet's class, ``age``, its creation, or ``none``. vc_ranges: the virtual channels of classes that do not take
    all, (first, one past the last), distinct and ascending.
    """

    programs: ClassVar[bool] = True
    counts_channels: ClassVar[bool] = True
    limits_replies: ClassVar[bool] = True
    allocators: ClassVar[tuple[str, ...]]

    vcs: int = 1
    buffer_flits: int = 0
    channel_buffers: ChannelBuffers | None = None
    shared_input: bool = False
    allow_deadlock: bool = False
    own_credit_path: bool = False
    vc_policy: int = VcPolicy.ANY
    may_deadlock: bool = False
    priority: str = "none"
    vc_ranges: tuple[tuple[int, int], ...] = ()

    def buffers_of(self, topology: Topology) -> Ints:
        """The buffer of each VC at the end of every channel, int64 [channels + hosts], those of hosts last.

        Parameters
        ----------
        topology: the network.
        """
        if self.channel_buffers is not None:
            return np.array(self.channel_buffers.flits, np.int64)
        return np.full(topology.channels + topology.hosts, self.buffer_flits, np.int64)

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
        injection channel: ``injection + header + credit`` and twice the host's delay. Further ticks of a flit on a
        slower channel are added. The head does not wait at the next switch. Body flits have no header delay.

        Parameters
        ----------
        topology: the network.
        """
        channel, host, _ = flit_times(topology)
        between = self.switch + self.link + topology.delay + self.credit_delays(topology) + channel - 1
        injection = self.injection + 2 * topology.access_delay + host - 1
        return np.concatenate([between, injection]) + self.header + self.credit

    def flit_ticks(self, topology: Topology) -> Ints:
        """Ticks of a flit on each channel between switches, then on each injection channel, int64 [channels + hosts].

        Parameters
        ----------
        topology: the network.
        """
        channel, host, _ = flit_times(topology)
        return np.concatenate([channel, np.full(topology.hosts, host)])

    def credit_loop(self, topology: Topology, flits: int) -> tuple[Ints, Floats]:
        """Flits that a VC sends per credit loop, int64 [channels + hosts], and the ticks of the loop, float64.

        flits: packet length. Wormhole switching uses the whole buffer, and the mean time for which its slots are away.

        Parameters
        ----------
        topology: the network.
        flits: length of the packet.
        """
        ticks = self.round_trips(topology) - self.header * (1 - 1 / flits)
        return self.buffers_of(topology), ticks.astype(np.float64)

    @property
    def allocator(self) -> str:
        """The arbitration among requests for an output, as named in the configuration."""
        return self.allocators[0]

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple[Self, str]:
        """The mode with the VC policy that ``certify`` chooses for its ``vcs``, and the certificate as text.

        Returns
        -------
        The mode, and the text.

        Raises
        ------
        SpecError: packets may deadlock, and ``allow_deadlock`` is not set.
        """
        if self.vc_ranges:
            certificate = certify_ranges(topology, routes, self.vc_ranges, self.allow_deadlock, certify)
        else:
            certificate = certify(topology, routes, self.vcs, self.allow_deadlock)
        return replace(self, vc_policy=certificate.policy, may_deadlock=not certificate.acyclic), certificate.note

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The fields in the common hash form, without further hashes."""
        own: Fields = {"own_credit_path": True} if self.own_credit_path else {}
        if self.channel_buffers is not None:
            own["channel_buffers"] = list(self.channel_buffers.flits)
        if self.priority != "none":
            own["priority"] = self.priority
        return common_form(self.mode, asdict(self)) | own, []

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The mapping ``switching:`` that describes this mode, delays in ticks; flit_ns: None if unknown."""
        of_channels = self.channel_buffers
        buffers = {
            "mode": self.mode, "vcs": self.vcs,
            "buffer_flits": self.buffer_flits if of_channels is None else dict(of_channels.keys),
            "allocator": self.allocator,
            "input_speedup": 1 if self.shared_input else "vcs", "allow_deadlock": self.allow_deadlock,
            "credit_path": "own" if self.own_credit_path else "reverse", "priority": self.priority,
        }  # fmt: skip
        return buffers | self._own_keys() | self._plain_times(flit_ns)

    def _own_keys(self) -> Keys:
        """Keys of ``switching:`` that only this mode has, with their values."""
        return {}

    def config_warnings(self, topology: Topology, routes: Routes, flits: int) -> Iterator[SpecError]:
        """Warnings: VC policy ``layered`` on a dragonfly, and buffers below the credit round trip.

        Returns
        -------
        Errors to be shown as warnings.
        """
        if routes.group is not None and routes.vc_policy == VcPolicy.LAYERED:
            problem = (
                "past saturation a dragonfly delivers less than half as much with layered as with groups or hop "
                "(docs/routing.md): do not judge the routing by it"
            )
            yield SpecError(problem, key="routing.vc_policy")
        yield from self._buffer_warnings(topology, flits)

    def _buffer_warnings(self, topology: Topology, flits: int) -> Iterator[SpecError]:
        """A warning where buffers do not cover the credit round trip and limit the channels."""
        loop_flits, ticks = self.credit_loop(topology, flits)
        rate, flit_ticks = self.vcs * loop_flits / ticks, self.flit_ticks(topology)
        short = np.flatnonzero(rate * flit_ticks < 1)
        if not len(short):
            return
        c = short[np.argmin((rate * flit_ticks)[short])]
        flits_per_vc = ceil(ticks[c] / flit_ticks[c] / self.vcs)
        needed = flits_per_vc + -flits_per_vc % flits if loop_flits[c] % flits == 0 else flits_per_vc
        full = "1" if flit_ticks.max() == 1 else "their rate"
        problem = (
            f"{self.vcs} x {loop_flits[c]} flits are too few for {_channel(topology, int(c))}: credits are back after "
            f"{ticks[c]:g} ticks, so it carries at most {rate[c]:.3g} flits a tick ({len(short)} of {len(rate)} "
            f"channels carry less than {full}); {needed} flits a VC cover the round trip"
        )
        yield SpecError(problem, key="switching.buffer_flits")

    def longest_step(self, topology: Topology, flits: int) -> int:
        """The most ticks that one step of a packet takes, if it is not blocked.

        It is the sum of all delays, those of the credit it waits for, and its flits, interleaved with those of all
        other VCs of the channel. flits: length of the packet.
        """
        flit_ticks = slowest_flit(topology)
        return self._all_delays(topology) + topology.longest_delay + ((self.vcs + 1) * flits + 1) * flit_ticks - 1

    def buffer_capacity(self, topology: Topology, flits: int) -> tuple[str, int]:
        """The key that sets the buffer size, and the flits that all buffers hold together."""
        return "switching.buffer_flits", self.vcs * int(self.buffers_of(topology).sum())


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
    ``buffer_flits``: one size, or a mapping such as ``{network: 8, injection: 4, rtt: 1.0, of: [{links: [[0, 1]],
    flits: 64}]}`` of sizes by kind of channel, whose later entries win: channels between switches, those from hosts,
    all of them by their credit round trip, single links. ``credit_path``: credits return over the ``reverse`` channel
    and take its delay (that of the channel itself where it has none), or take the channel's ``own`` delay, as in
    BookSim2. iterations: iSLIP iterations per tick. rule, hold_packets, slotted, share, reserve: keys of hot-potato
    switching, only used where the routing deflects.
    """

    sends_flits: ClassVar[bool] = True
    any_input_speedup: ClassVar[bool] = False
    """Whether ``input_speedup`` may be between 1 and vcs."""

    vcs: Annotated[int, Field(ge=1, le=64)] = 4
    """Virtual channels of every network and injection channel."""
    buffer_flits: BufferFlits | None = None
    """Input buffer of each VC, or sizes by network, injection, rtt, of. null: two packets of the greatest length."""
    allocator: (
        Literal["age", "oldest", "islip", "separable_input_first", "separable_output_first", "wavefront"] | None
    ) = None
    """Allocation. vct: age (null), or oldest, by creation; wormhole: islip (null), or one of the last three."""
    input_speedup: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] | Literal["vcs"] = 1
    """Packets (wormhole: flits) that an input port sends to the crossbar at once; vcs: one per VC."""
    allow_deadlock: bool = False
    """Run without a certificate of deadlock freedom."""
    credit_path: Literal["reverse", "own"] = "reverse"
    """Channel whose delay credits take: the reverse channel, or their own as in BookSim2."""
    rule: Literal["pool", "vc", "frame"] = "pool"
    """Which outputs are free to a packet under hot-potato routing: idle ones, or those with a free VC."""
    hold_packets: BufferSize | None = None
    """Packets in a switch from which on its hosts wait, under rule pool of hot-potato routing."""
    slotted: bool = False
    """Packets start in slots of their length, under rule pool of hot-potato routing."""
    share: Literal["packet", "flit"] | None = None
    """What the packets of a channel take turns by, under rule vc of hot-potato routing. null: packet."""
    reserve: Annotated[int, BeforeValidator(whole), Field(ge=0, le=100_000)] | None = None
    """VCs of a switch's outputs that its hosts leave free, under rule vc of hot-potato routing. null: its degree."""
    subnets: Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_SUBNETS)] = 1
    """Copies of the network, each with channels, VCs and host channels of its own."""
    iterations: Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)] = 1
    """Iterations of iSLIP per tick."""
    priority: Literal["none", "class", "age"] = "none"
    """First key of all arbitration: the priority of the class of traffic, or the earlier creation of the packet."""

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors in the keys of buffers, and capacities of ratios that are too fine.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        errors = list(speed_errors(topology))
        yield from errors
        if routes is None or flits is None:
            return
        if routes.deflection:
            if self.priority != "none":
                yield SpecError(
                    "the routing deflects, and hot-potato switching ranks packets itself; must be none",
                    key="switching.priority",
                )
            if self.subnets > 1:
                yield SpecError("must be 1 where the routing deflects", key="switching.subnets")
            if len(flits) > 1:
                yield SpecError("deflection needs packets of one length", key="traffic.packet_flits")
            yield from self._deflection_errors(topology)
            if not errors and not flit_times(topology).all_one:
                problem = "must be the same for all channels, those of hosts included, where packets are deflected"
                yield SpecError(problem, key="topology.capacity")
            return
        try:
            self.channel_flits(topology, routes, max(flits))
        except SpecError as error:
            yield error
        else:
            yield from self._buffer_errors(routes, max(flits))
        if not errors and not flit_times(topology).all_one:
            yield from self._speed_errors()

    def _speed_errors(self) -> Iterator[SpecError]:
        """Errors in keys that need channels of one speed."""
        yield from ()

    def _deflection_errors(self, topology: Topology) -> Iterator[SpecError]:
        """Errors in the keys of hot-potato switching, where the routing deflects."""
        owner = {"hold_packets": "pool", "slotted": "pool", "share": "vc", "reserve": "vc"}
        for key, rule in owner.items():
            value = getattr(self, key)
            if value is not None and value is not False and self.rule != rule:
                yield SpecError(f"is for rule {rule}, and the rule is {self.rule}", key=f"switching.{key}")
        if self.rule == "pool":
            return
        if self.vcs < 2:
            yield SpecError(f"must be at least 2 under rule {self.rule}", key="switching.vcs")
            return
        unequal = len(np.unique(topology.delay)) > 1 or len(np.unique(topology.access_delay)) > 1
        if unequal or (self.rule == "frame" and topology.has_delays):
            problem = "has channels of different delays" if unequal else "has delays of channels beside link_ticks"
            yield SpecError(f"{problem}, and rule {self.rule} needs channels that are all alike", key="topology")
        limits = packets_before_hosts_wait(topology, self.vcs, self.reserve)
        if self.rule == "vc" and limits.min() < 1:
            switch = int(np.argmin(limits))
            degree, name = int(topology.out_degree[switch]), switch_names(topology).label(switch)
            kept = degree if self.reserve is None else self.reserve
            problem = (
                f"leaves hosts no packet at switch {name}, whose {degree} channels have {degree * self.vcs} VCs, "
                f"{kept} of them reserved; needs vcs * degree - reserve >= 1"
            )
            yield SpecError(problem, key="switching.reserve")

    def _buffer_errors(self, routes: Routes, longest: int) -> Iterator[SpecError]:
        """Errors in buffers and allocator, where the routing does not deflect.

        longest: flits of the longest packet.
        """
        choices: tuple[str, ...] = getattr(self.switching_mode, "allocators", ())
        if self.allocator is not None and self.allocator not in choices:
            yield SpecError(f"is not for mode {self.mode}; choices: {', '.join(choices)}", key="switching.allocator")
        if not self.any_input_speedup and self.input_speedup not in (1, "vcs"):
            yield SpecError(
                f"must be 1 or vcs in mode {self.mode}", key="switching.input_speedup", choices=("1", "vcs")
            )
        why = "; with vc_policy escape a packet enters an adaptive VC only if all of it fits"
        if self.needs_whole_packets(routes):
            yield from self._too_small(longest, why if routes.vc_policy == VcPolicy.ESCAPE else "")

    def needs_whole_packets(self, routes: Routes) -> bool:
        """Whether every buffer must hold a whole packet.

        Parameters
        ----------
        routes: their VC policy counts.
        """
        return routes.vc_policy == VcPolicy.ESCAPE

    def _too_small(self, longest: int, why: str) -> Iterator[SpecError]:
        """Errors of buffers below one packet of ``longest`` flits. why: addition to the message."""
        keys = self.buffer_flits
        sizes = [(f".{key}", size) for key, size in keys.sizes()] if isinstance(keys, BuffersByChannel) else []
        for key, size in sizes or [("", keys if isinstance(keys, int) else 2 * longest)]:
            if size < longest:
                yield SpecError(f"must hold a whole packet, {longest} flits{why}", key=f"switching.buffer_flits{key}")

    def channel_flits(self, topology: Topology, routes: Routes, longest: int) -> Ints:
        """Flits of the buffer of a VC at the end of every channel, int64 [channels + hosts].

        ``buffer_flits``, by default two packets of the ``longest`` length.

        Parameters
        ----------
        topology: the network.
        routes: their VC policy counts.
        longest: flits of the longest packet.

        Raises
        ------
        SpecError: a link of ``of`` does not exist, or ``rtt`` gives too large a buffer.
        """
        keys, default = self.buffer_flits, 2 * longest
        if not isinstance(keys, BuffersByChannel):
            return np.full(topology.channels + topology.hosts, keys or default, np.int64)
        least = longest if self.needs_whole_packets(routes) else 1
        ticks = self.ticks(capacity_unit(topology))
        mode = self.switching_mode(own_credit_path=self.credit_path == "own", **ticks)  # type: ignore[call-arg]
        return keys.flits(topology, default, least, mode.round_trips, self.vcs)  # type: ignore[attr-defined]

    def buffers(self, setting: SwitchingContext) -> Fields:
        """Arguments of :class:`Buffered` by name, from the keys and the packet lengths."""
        flits = self.channel_flits(setting.topology, setting.routes, max(setting.flits))
        by_channel = None
        if isinstance(self.buffer_flits, BuffersByChannel) and len(np.unique(flits)) > 1:
            by_channel = ChannelBuffers(tuple(flits.tolist()), self.buffer_flits.plain())
        one_class = self.priority == "class" and not setting.classes  # of one priority
        return {
            "vcs": self.vcs, "buffer_flits": int(flits.max(initial=1)), "channel_buffers": by_channel,
            "shared_input": self.input_speedup == 1, "allow_deadlock": self.allow_deadlock,
            "priority": "none" if one_class else self.priority,
            "vc_ranges": _distinct_ranges([one.vcs for one in setting.classes], self.vcs),
            "own_credit_path": self.credit_path == "own", **self.ticks(capacity_unit(setting.topology)),
        }  # fmt: skip


def _distinct_ranges(class_vcs: Sequence[tuple[int, int] | None], vcs: int) -> tuple[tuple[int, int], ...]:
    """The distinct ranges of virtual channels of classes, ascending; empty if all classes take all ``vcs``."""
    ranges = {vc_range or (0, vcs) for vc_range in class_vcs}
    return () if ranges <= {(0, vcs)} else tuple(sorted(ranges))


def packets_before_hosts_wait(topology: Topology, vcs: int, reserve: int | None) -> Ints:
    """Packets from which on the hosts of each switch wait under rule ``vc`` of hot-potato switching, int64 [switches].

    Parameters
    ----------
    topology: the network.
    vcs: virtual channels of an output.
    reserve: how many of those of a switch stay free, None: as many as it has outputs.
    """
    limits: Ints = vcs * topology.out_degree - (topology.out_degree if reserve is None else reserve)
    return limits


def speed_errors(topology: Topology) -> Iterator[SpecError]:
    """Errors for infinite host channels, and for capacities whose ratios need too many ticks for a flit."""
    try:
        flit_times(topology)
    except SpecError as error:
        yield error


def unit_capacity_errors(topology: Topology, mode: str) -> Iterator[SpecError]:
    """Errors for capacities other than 1, for a mode of a plugin that moves one flit per tick over every channel.

    mode: the switching mode, for the message.
    """
    if topology.host_capacity != 1:
        yield SpecError(f"must be 1 in mode {mode}", key="topology.host_capacity")
    if np.any(topology.capacity != 1):
        problem = f"must be 1 for all channels in mode {mode}, which moves one flit per tick over each"
        yield SpecError(problem, key="topology.capacity_of" if "capacity_of" in topology.notes else "topology.capacity")
