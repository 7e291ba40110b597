# SPDX-License-Identifier: Apache-2.0
"""The interface of a simulation under way, and what engines count."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from flitlab.models.arrays import Floats, Ints
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.arrivals import LONGEST_RUN

# Places in Snapshot.scalars. All are totals since tick 0, except the two maxima.
CREATED_PACKETS = 0
CREATED_FLITS = 1
SENT_PACKETS = 2  # left their source queue
DELIVERED_PACKETS = 3
DELIVERED_FLITS = 4
LATENCY = 5  # creation to tail at the destination, summed over delivered packets
NETWORK_LATENCY = 6  # the same from the tick the head left the source queue
HOPS = 7  # channels between switches, summed over delivered packets
HOPS_MAX = 8
DEFLECTIONS = 9  # channels that were not on a shortest path, summed over delivered packets
GRANTS = 10  # of network and ejection channels: packet-hops
OCCUPANCY_MAX = 11  # packets resident in one switch (deflection; 0 in vct)
EVENTS = 12  # the engine's own measure of work; the only one that engines need not agree on
DROPPED_PACKETS = 13  # with links and switches that failed
DROPPED_FLITS = 14
SCALARS = 15

HOP_BUCKETS = 256
"""Hops, or deflections, from which on delivered packets are counted together."""


class Flows(NamedTuple):
    """Flits of a set of packets by where they come from and go to.

    pairs: by source and destination switch. sources, destinations: int64 [hosts].
    """

    pairs: PairCounts
    sources: Ints
    destinations: Ints

    def minus(self, other: "Flows") -> "Flows":
        """Take away flits that are among these, and return what is left."""
        parts = self.sources - other.sources, self.destinations - other.destinations
        return Flows(self.pairs - other.pairs, *parts)


class Outstanding(NamedTuple):
    """Flits of packets that are created and not delivered, by the channels of their routes; int64 [channels] each.

    crossing: of those whose route has the channel. ahead: of those among them that have not been granted it yet.
    """

    on_route: Ints
    ungranted: Ints


@dataclass(frozen=True)
class Snapshot:
    """Counters at the start of tick ``tick``: everything that happened in ticks [0, tick).

    scalars: int64 [SCALARS]. histogram: int64, packets by latency bucket (``flitlab.models.histogram``).
    hops, deflections: int64 [LONG], delivered packets by how many they had; the last counts all that had more, too.
    created: int64 [hosts], flits by source. channel_flits: int64 [channels], flits granted.
    delivered, present: flits delivered so far, and flits in the network (sent, not delivered). owed: None where routes
    are not fixed when packets are created, and where not :func:`few_owed`.
    """

    tick: int
    scalars: Ints
    histogram: Ints
    hops: Ints
    deflections: Ints
    created: Ints
    channel_flits: Ints
    delivered: Flows
    present: Flows
    outstanding: Outstanding | None = None


MAX_OUTSTANDING, OUTSTANDING_DIVISOR = 10_000, 16
"""What is owed to channels is counted up to so many packets, or up to this part of those created: below saturation that
takes 1 % of the time of a run, and past it would take up to a third."""


def can_count_outstanding(scalars: Ints) -> bool:
    """Whether so few packets are created and not delivered that what they owe to channels is counted."""
    created, delivered = int(scalars[CREATED_PACKETS]), int(scalars[DELIVERED_PACKETS])
    return created - delivered <= max(MAX_OUTSTANDING, created // OUTSTANDING_DIVISOR)


class PacketLog(NamedTuple):
    """Every delivered packet, sorted by id; int64 [packets] each. delivered: tick of the tail; hops: channels."""

    identity: Ints
    delivered: Ints
    hops: Ints


def check_tick_limit(until: int) -> None:
    """Raise ``ValueError`` for a tick up to which no engine counts."""
    if until > LONGEST_RUN:
        raise ValueError(f"{until:,} ticks: no run is longer than 2**30 = {LONGEST_RUN:,}")


class Run(Protocol):
    """One simulation of packets under way."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; raises ``ValueError`` beyond 2**30."""

    def scalars(self) -> Ints:
        """The scalar counters now, int64 [SCALARS] (cheap; for batches)."""

    def backlog(self) -> Ints:
        """Flits that each host has created and that are not delivered, int64 [hosts] (cheap; for batches)."""

    def snapshot(self) -> Snapshot:
        """All counters now."""

    def log(self) -> PacketLog:
        """The packet log; only if the run was started with ``log=True``."""

    def deadlocked(self) -> bool:
        """Whether some packet in the network can never move again."""


# Why an operation did not begin or end earlier (Execution.cause is 4 * operation + one of these; -1: for no reason).
FINISHED, STARTED = 0, 1  # it waited for the end, or the start, of that operation
PROCESSOR = 2  # it waited for the processor that the operation held
MESSAGE = 3  # a receive: it waited for the message of that send


@dataclass(frozen=True)
class Execution:
    """What became of the operations of a program: times in ticks / ``resolution``, -1 where it is not known yet.

    ready, start, finish: int64 [operations]: when all dependencies were met; when it gets its processor (a receive: to
    take the message in), known once it has asked for it; when it was done. delivered: int64 [operations], of sends,
    when the receiver's host had all of the message; queued: of sends, when the message joined the host's queue
    (rendezvous: its request to send).
    cause: int64 [operations], see above.
    """

    resolution: int
    ready: Ints
    start: Ints
    finish: Ints
    queued: Ints
    delivered: Ints
    cause: Ints


class ProgramStatus(NamedTuple):
    """What a run of a program still has before it.

    moved: a count that rises whenever a flit, or in mode datagram a packet that arrives, goes on. waiting, travelling:
    packets at hosts, among them dropped ones that are to be sent again, and in the network. coming: whether it is known
    when something will happen next, because an operation goes on, or (``flow``) a message does, or the network changes.
    stalled: messages (``flow``) that wait for a link that does not work. patience: ticks in which retransmission timers
    let something move if anything can; 0 in modes that do not retransmit.
    """

    moved: int
    waiting: int
    in_flight: int
    event_pending: bool
    stalled: int = 0
    retransmission_ticks: int = 0


class ApplicationRun(Protocol):
    """A run of a program under way (see also :class:`Run`)."""

    @property
    def latest(self) -> int:
        """The tick up to which the engine counts."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def done(self) -> bool:
        """Whether every operation is done."""

    def program_status(self) -> ProgramStatus:
        """What there still is to be done at this tick."""

    def execution(self) -> Execution:
        """What became of the operations so far, copied."""

    def carried(self) -> Ints | Floats:
        """Flits granted to every channel between switches so far, [channels] (``flow``: float64)."""


class FluidRun(ApplicationRun, Protocol):
    """A run of a program under way whose messages are fluids (``flow``)."""

    def progress(self) -> Floats:
        """Flits of each send's message that have left their source so far, without requests, float64 [operations]."""


class PacketProgramRun(Run, ApplicationRun, Protocol):
    """A run of a program under way whose packets are counted, too."""


class MessageDropped(Exception):
    """A packet of a message was dropped, and nobody sends it again, so that the program would never end."""

    def __init__(self) -> None:
        super().__init__(
            "packets of messages were dropped, and transport none sends none again: the program would wait for ever "
            "(larger queues, a lower rate, or another transport)"
        )


class EngineMismatch(Exception):
    """The two engines disagree: a bug. The message names the first packet that differs."""
