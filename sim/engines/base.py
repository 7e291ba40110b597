# SPDX-License-Identifier: Apache-2.0
"""The interface between engines and measurement: runs, counters and statistics."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from flitlab.models.arrays import Floats, Ints
from flitlab.models.histogram import BUCKETS
from flitlab.models.pairs import PairCounts
from flitlab.models.rules.arrivals import LONGEST_RUN


class _Scalar(NamedTuple):
    """Indices of Snapshot.scalars. All are totals since tick 0, except the maxima."""

    CREATED_PACKETS: int = 0
    CREATED_FLITS: int = 1
    SENT_PACKETS: int = 2  # left their source queue
    DELIVERED_PACKETS: int = 3
    DELIVERED_FLITS: int = 4
    LATENCY: int = 5  # creation to tail at the destination, summed over delivered packets
    NETWORK_LATENCY: int = 6  # the same, from the tick at which the head left the source queue
    HOPS: int = 7  # channels between switches, summed over delivered packets
    HOPS_MAX: int = 8
    DEFLECTIONS: int = 9  # channels off every minimal path, summed over delivered packets
    GRANTS: int = 10  # of network and ejection channels: packet-hops
    OCCUPANCY_MAX: int = 11  # packets resident in one switch (deflection; 0 in vct)
    EVENTS: int = 12  # the engine's own measure of work; engines need not agree on it
    DROPPED_PACKETS: int = 13  # on links and in switches that failed
    DROPPED_FLITS: int = 14
    VC_WAITS: int = 15  # ticks that heads waited for an output VC, summed (deflection, rule vc)
    INPUT_PACKETS_MAX: int = 16  # packets of one input in its switch (deflection, rules vc and frame)


Scalar = _Scalar()


class _ChannelCounter(NamedTuple):
    """Columns of Snapshot.channels: totals since tick 0."""

    FLITS: int = 0  # granted; of a packet that is granted as a whole, all in the tick of the grant
    PACKETS: int = 1  # whose first flit was granted


ChannelCounter = _ChannelCounter()


class _ClassCounter(NamedTuple):
    """First columns of Snapshot.classes: totals since tick 0. Behind them is the histogram of the latency."""

    CREATED_PACKETS: int = 0
    CREATED_FLITS: int = 1
    DELIVERED_PACKETS: int = 2
    DELIVERED_FLITS: int = 3
    LATENCY: int = 4  # summed over delivered packets, as the scalar counters of these names
    NETWORK_LATENCY: int = 5
    DROPPED_PACKETS: int = 6
    DROPPED_FLITS: int = 7


ClassCounter = _ClassCounter()

CLASS_COLUMNS = len(ClassCounter) + BUCKETS
"""Columns of Snapshot.classes."""

HOP_BUCKETS = 256
"""Size of the histograms of hops and deflections; the last bucket holds all packets with more."""


class Flows(NamedTuple):
    """Flits of a set of packets by source and destination.

    pairs: by source and destination switch. sources, destinations: int64 [hosts].
    """

    pairs: PairCounts
    sources: Ints
    destinations: Ints

    def minus(self, other: "Flows") -> "Flows":
        """Return these flits without those of ``other``, a subset."""
        parts = self.sources - other.sources, self.destinations - other.destinations
        return Flows(self.pairs - other.pairs, *parts)


class Outstanding(NamedTuple):
    """Flits of packets that are created and not delivered, by channel of their route; int64 [channels] each.

    on_route: of packets whose route has the channel. ungranted: of those among them without a grant for it yet.
    """

    on_route: Ints
    ungranted: Ints


@dataclass(frozen=True)
class Snapshot:
    """Counters at the start of tick ``tick``: everything that happened in ticks [0, tick).

    scalars: int64 [scalars]. histogram: int64, packets by latency bucket (``flitlab.models.histogram``).
    hops, deflections: int64 [HOP_BUCKETS], delivered packets by their number of hops or deflections.
    created: int64 [hosts], flits by source. channel_flits: int64 [channels], flits granted.
    delivered, present: flits delivered so far, and flits in flight. outstanding: None where routes are not fixed at the
    creation of packets, and where :func:`can_count_outstanding` is False. channels: int64 [channels + 2 * hosts,
    :data:`ChannelCounter`], the traffic of the channels between switches, then of those from each host, then of those
    to each host; None unless the run counts it. stalls: int64 [channels + hosts, STALL_SETS], ticks in which flits
    stalled in the buffers at the end of each channel between switches, then of each host's injection channel, by the
    set of all reasons (:mod:`flitlab.models.rules.stalls`); None unless the run counts the traffic of channels in a
    mode with these reasons. classes: int64 [classes, :data:`CLASS_COLUMNS`], packets of each class of traffic; None
    where all packets are of one class.
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
    channels: Ints | None = None
    stalls: Ints | None = None
    classes: Ints | None = None


MAX_OUTSTANDING, OUTSTANDING_DIVISOR = 10_000, 16
"""Outstanding traffic is counted for at most ``MAX_OUTSTANDING`` packets, or created / ``OUTSTANDING_DIVISOR``.

Counting takes 1 % of a run below saturation, and would take up to a third of it beyond.
"""


def can_count_outstanding(scalars: Ints) -> bool:
    """Whether outstanding packets are few enough to be counted by channel; scalars: int64 [scalars]."""
    created, delivered = int(scalars[Scalar.CREATED_PACKETS]), int(scalars[Scalar.DELIVERED_PACKETS])
    return created - delivered <= max(MAX_OUTSTANDING, created // OUTSTANDING_DIVISOR)


class PacketLog(NamedTuple):
    """Every delivered packet, sorted by id; int64 [packets] each.

    delivered: tick of the tail. hops: channels between switches. created, started: ticks at which it was created, and
    left its source queue. destination: host. flits, deflections: numbers. send: the operation whose message it belongs
    to, -1 where hosts draw their packets.
    """

    identity: Ints
    delivered: Ints
    hops: Ints
    created: Ints
    started: Ints
    destination: Ints
    flits: Ints
    deflections: Ints
    send: Ints


def check_tick_limit(until: int, classes: int = 1) -> None:
    """Raise ``ValueError`` for a tick beyond the longest run that engines support.

    classes: of traffic; the sequence numbers of their packets have 32 bits together.
    """
    longest = min(LONGEST_RUN, (1 << 32) // classes)
    if until > longest:
        name = "2**30 = " if longest == LONGEST_RUN else f"what {classes} classes allow, "
        raise ValueError(f"{until:,} ticks: no run is longer than {name}{longest:,}")


class Run(Protocol):
    """A simulation of packets."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``; raises ``ValueError`` beyond 2**30."""

    def scalars(self) -> Ints:
        """The scalar counters at this tick, int64 [scalars] (cheap; for batches)."""

    def backlog(self) -> Ints:
        """Flits created and not delivered, by source, int64 [hosts] (cheap; for batches)."""

    def snapshot(self) -> Snapshot:
        """All counters at this tick."""

    def log(self) -> PacketLog:
        """The packet log; only if the run was started with ``log=True``."""

    def deadlocked(self) -> bool:
        """Whether packets in the network wait for each other in a cycle."""


class _Cause(NamedTuple):
    """What delayed an operation last: Execution.cause is 4 * operation + one of these; -1: nothing."""

    FINISHED: int = 0  # the end of that operation
    STARTED: int = 1  # its start
    PROCESSOR: int = 2  # the processor, which the operation held
    MESSAGE: int = 3  # of a receive: the message of that send


Cause = _Cause()


@dataclass(frozen=True)
class Execution:
    """Times and causes of the operations of a program. Times are ticks / ``resolution``, -1 where not known yet.

    ready, start, finish: int64 [operations]: all dependencies are met; the processor is allocated (a receive: to take
    in the message); the operation is complete. queued: int64 [operations], of sends: the message, or its request to
    send, joined the queue of the host. delivered: int64 [operations], of sends: the receiving host has the whole
    message. cause: int64 [operations], what delayed the operation last: 4 * operation + a :data:`Cause`.
    """

    resolution: int
    ready: Ints
    start: Ints
    finish: Ints
    queued: Ints
    delivered: Ints
    cause: Ints


class ProgramStatus(NamedTuple):
    """The outstanding work of a program.

    moved: a counter that rises with every flit, or in mode datagram every packet, that makes progress. waiting: packets
    at hosts, dropped packets that await retransmission included. in_flight: packets in the network. event_pending:
    whether an event is scheduled: an operation, a message (``flow``) or a change of the network. stalled: messages
    (``flow``) on a failed link. retransmission_ticks: ticks after which retransmission timers must have made progress;
    0 without retransmission.
    """

    moved: int
    waiting: int
    in_flight: int
    event_pending: bool
    stalled: int = 0
    retransmission_ticks: int = 0


class ApplicationRun(Protocol):
    """A simulation of a program (see also :class:`Run`)."""

    @property
    def latest(self) -> int:
        """The last tick that the engine can count."""

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def done(self) -> bool:
        """Whether every operation is complete."""

    def program_status(self) -> ProgramStatus:
        """The outstanding work at this tick."""

    def execution(self) -> Execution:
        """Times and causes of the operations so far, copied."""

    def carried(self) -> Ints | Floats:
        """Flits granted to every channel between switches so far, [channels] (``flow``: float64)."""


class FluidRun(ApplicationRun, Protocol):
    """A simulation of a program whose messages are fluids (``flow``)."""

    def progress(self) -> Floats:
        """Flits of each send's message that have left their source, without requests, float64 [operations]."""


class PacketProgramRun(Run, ApplicationRun, Protocol):
    """A simulation of a program with packet counters."""


class MessageDropped(Exception):
    """A packet of a message was dropped and no transport retransmits it: the program cannot end."""

    def __init__(self) -> None:
        super().__init__(
            "packets of messages were dropped, and transport none retransmits none: the program cannot end "
            "(larger queues, a lower rate, or another transport)"
        )


class EngineMismatch(Exception):
    """The two engines disagree, which is a bug. The message names the first difference."""
