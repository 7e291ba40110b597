# SPDX-License-Identifier: Apache-2.0
"""Flows of sprayed packets, their timers, and the interface of the network that their ends use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from simpy.events import EventPriority

from flitlab.models.rules.spray.layout import PacketKind, Rules
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.reference.clock import Alarm, Clock
from flitlab.sim.engines.reference.ranks import Message
from flitlab.sim.engines.reference.spray_links import ARRIVALS, SprayHost, SprayPacket

_TIMERS = ARRIVALS + (1 << 63)

PROGRAMS = EventPriority(ARRIVALS + (1 << 64))
"""The priority of programs in a tick, after all timers."""


class _TimerKind(NamedTuple):
    """Kinds of timers, in the order in which those of a tick expire."""

    START: int = 0
    TIMEOUT: int = 1
    PACE: int = 2
    PULL: int = 3
    PROBE: int = 4
    CONTROL: int = 5  # of a congestion control
    CNP: int = 6
    WATCHDOG: int = 8


TimerKind = _TimerKind()


def set_timer(clock: Clock, tick: int, kind: int, index: int, action: Callable[[int], None]) -> None:
    """Call ``action`` with the index of a flow, host or port after the arrivals of a tick, lowest index first."""
    priority = EventPriority(_TIMERS + (kind << 32) + index)
    Alarm(clock, tick, priority, lambda alarm: action(alarm.value), index)


@dataclass(slots=True, eq=False)
class SprayFlow:
    """A flow of sprayed packets.

    rules: of its transport. source, destination: hosts. message: that it carries, None without a program or before it
    starts. awaits_timeout, awaits_probe: whether a timer for retransmission, and one for probes, is set.
    """

    rules: Rules
    source: SprayHost
    destination: SprayHost
    message: Message | None = None
    awaits_timeout: bool = False
    awaits_probe: bool = False


class FlowNetwork(Protocol):
    """The interface of the network that the ends of flows use."""

    session: SpraySession
    clock: Clock
    flows: list[SprayFlow]

    def packet(self, kind: PacketKind, flow: int, entropy: int, size: int = 0) -> SprayPacket: ...

    def first_sent(self, flow: int, number: int) -> None: ...

    def received(self, flow: int, now: int) -> None: ...

    def trace_packet(self, subflow: int, number: int) -> None: ...
