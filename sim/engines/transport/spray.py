# SPDX-License-Identifier: Apache-2.0
"""The counters of a run of mode spray, in either engine."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.rules.lossless import Ports
from flitlab.models.rules.spray.layout import Receivers, Senders
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.base import ProgramStatus
from flitlab.sim.engines.transport.run import TransportRun


class FlowCount(IntEnum):
    """Columns of :attr:`Counters.flow`."""

    RESENT = 0  # packets that were sent again
    TIMEOUTS = 1
    TRIMS = 2  # packets that came trimmed
    MARKS = 3  # packets that came with a mark, whole or trimmed, those that the receiver had already included
    ACKS = 4
    NACKS = 5
    PULLS = 6
    RECEIVED = 7  # bytes on the wire, each packet counted once
    SENT = 8  # bytes on the wire of packets sent at least once
    FINISHED = 9  # tick at which the sender knew that all had arrived, -1 before
    COMPLETE = 10  # tick at which all had arrived, -1 before


class LinkCount(IntEnum):
    """Columns of :attr:`Counters.link`."""

    ACCEPTED = 0  # packets of any kind that the link took for good, trimmed ones included
    DROPS = 1  # packets of any kind
    TRIMMED = 2  # packets that were trimmed
    MARKED = 3  # packets that were marked
    MAX_QUEUE_BYTES = 4  # largest amount of data in the queue, bytes
    BUSY = 5  # ticks for which the link was sending, services that go on counted whole


class PauseCount(IntEnum):
    """Columns of :attr:`Counters.pause`, of a channel and class."""

    FRAMES = 0  # PAUSE frames that the input port at the end of the channel sent
    PAUSED = 1  # ticks for which the server of the channel was paused
    LONGEST = 2  # ticks of its longest pause
    PEAK = 3  # largest charge of the input port, bytes
    FIRED = 4  # expirations of the watchdog of the server


class PauseCause(IntEnum):
    """Columns of :attr:`Counters.causes`."""

    LINK = 0  # the port whose server was paused
    QUEUE = 1  # the port before which most of the packets waited that came by the channel; NO_QUEUE: a host sent PAUSE
    FRAMES = 2  # PAUSE frames
    PAUSED = 3  # ticks of these pauses
    FIRST = 4  # tick of the start of the first pause
    LAST = 5  # tick of the end of the last one


NO_QUEUE = -1


@dataclass(frozen=True)
class Counters:
    """The counters of a run up to, not including, ``tick``.

    flow: int64 [flows, FlowCount]. link: int64 [links, LinkCount]. pause: int64 [ports, PauseCount], None without
    lossless queues; a port is a link or, with several classes, a link and a class: ``link * classes + class``. cnps:
    int64 [flows], None without RDMA transports. most_paused: servers paused at the same time, each for every class.
    causes: int64 [pairs, PauseCause], by port and queue of a port, as ``pause``. held: int64 [flows, columns], ticks of
    pauses of the links of :func:`~flitlab.models.transport.flow_links.links_of_flows` for which a packet of the flow
    waited when they ended; None where those are not known.
    """

    tick: int
    flow: Ints
    link: Ints
    pause: Ints | None = None
    cnps: Ints | None = None
    most_paused: int = 0
    causes: Ints | None = None
    held: Ints | None = None


def pause_table(ports: "Ports | None", tick: int) -> Ints | None:
    """Return ``Counters.pause`` from the state of lossless ports, None without them; pauses may not have ended."""
    if ports is None:
        return None
    lasting = np.where(ports.paused_at >= 0, tick - ports.paused_at, 0)
    table: Ints = np.stack(
        [ports.frames, ports.paused + lasting, np.maximum(ports.longest, lasting), ports.peak, ports.fired], axis=1
    )
    return table


def cause_table(pairs: Ints, paused_at: Ints, current: Ints, tick: int) -> Ints:
    """Return ``Counters.causes``; pauses may not have ended.

    pairs: int64 [pairs, PauseCause], without the pauses that last. paused_at: int64 [ports], tick since which a server is
    paused, -1: it is not. current: int64 [ports], row of the cause of that pause in ``pairs``.
    """  # noqa: E501
    table = pairs.copy()
    for link in np.flatnonzero((paused_at >= 0) & (current >= 0)):
        count_pause(table[current[link]], int(paused_at[link]), tick)
    known = table[table[:, PauseCause.FRAMES] > 0]
    return known[np.lexsort((known[:, PauseCause.QUEUE], known[:, PauseCause.LINK]))]


def count_pause(row: Ints, start: int, end: int) -> None:
    """Add a pause to the row of its cause, int64 [PauseCause]."""
    if row[PauseCause.PAUSED] == 0:
        row[PauseCause.FIRST] = start
    row[PauseCause.PAUSED] += end - start
    row[PauseCause.LAST] = end


def outputs_of_switches(topology: Topology) -> tuple[Ints, Ints]:
    """Return the links that leave each switch, in order: int64 [links], and the first of each, int64 [switches + 1]."""
    links = np.concatenate(
        [np.arange(topology.channels), topology.channels + topology.hosts + np.arange(topology.hosts)]
    )
    switch = np.concatenate([topology.src, topology.host_switch])
    first = np.searchsorted(np.sort(switch), np.arange(topology.switches + 1))
    return links[np.argsort(switch, kind="stable")], first.astype(np.int64)


def later_changes(session: SpraySession, tick: int) -> bool:
    """Whether links or routes change at a tick or later, which may end what would be a deadlock."""
    return any(change.tick >= tick and change.storm is None for change in session.changes)


def deadlock_cycle(waits: dict[int, set[int]]) -> tuple[int, ...]:
    """Return the ports of a cycle of paused servers, in order; () if nothing keeps them from going on.

    waits: port whose server is paused -> the ports in whose queues the packets charged to its end wait. It is called
    when no packet moves, so that every queue that is not empty is paused.
    """
    seen: dict[int, int] = {}
    port = min(waits, default=-1)
    while port >= 0 and port not in seen:
        seen[port] = len(seen)
        port = min((other for other in waits.get(port, ()) if other in waits), default=-1)
    return tuple(seen)[seen[port] :] if port >= 0 else ()


class SprayRun(TransportRun, Protocol):
    """A simulation of sprayed packets."""

    session: SpraySession

    def counters(self, causes: bool = True) -> Counters:
        """All counters, copied; causes: also ``causes`` and ``held``, which take longer than the others."""

    def pauses(self) -> Ints | None:
        """The pauses of all ports, as in ``Counters.pause``."""

    def advance_to_end(self, until: int) -> None:
        """Advance to tick ``until``, or to that after which the last flow ended."""

    def ended(self) -> bool:
        """Whether every flow is complete: at its sender or, without acknowledgements, at its receiver."""


def finished_at(session: SpraySession, flow: Ints) -> Ints:
    """Return the completion ticks of flows, int64 [flows], -1 before: at the sender or, without ACKs, at the receiver.

    flow: int64 [flows, FlowCount], as in :class:`Counters`.
    """
    finished_at: Ints = np.where(session.acknowledges, flow[:, FlowCount.FINISHED], flow[:, FlowCount.COMPLETE])
    return finished_at


def are_finished(session: SpraySession, s: Senders, g: Receivers) -> bool:
    """Whether every flow is complete, as :func:`finished_at` defines it."""
    return bool((np.where(session.acknowledges, s.seq.finished, g.got.complete) >= 0).all())


MAX_TIMEOUTS = 1000
"""Consecutive timeouts, each plus a hop of the slowest link, after which a program over sprayed packets counts as
stalled.
"""


def program_status(session: SpraySession, s: Senders, g: Receivers, now: int, event_pending: bool) -> ProgramStatus:
    """Return the outstanding work of the posted messages at tick ``now``.

    event_pending: whether an operation has a scheduled event.
    """
    seq, got = s.seq, g.got
    event_pending = event_pending or any(change.tick >= now for change in session.changes)
    slowest = int((session.delay + (session.slowest * session.rules.mtu >> RATIO_BITS)).max())
    retransmission_ticks = MAX_TIMEOUTS * max(rules.timeout + rules.rtt0 + slowest for rules in session.transports)
    fresh = (seq.packets - seq.next)[seq.started >= 0]
    missing = seq.next - got.expected - got.out_of_order
    if not session.rules.acknowledges:  # constant rate: what is left has a timer
        event_pending = event_pending or bool(fresh.any())
    moved = int(got.bytes.sum())
    return ProgramStatus(
        moved, int(fresh.sum()), int(missing.sum()), event_pending, retransmission_ticks=retransmission_ticks
    )


def flow_table(session: SpraySession, s: Senders, g: Receivers) -> Ints:
    """Return ``Counters.flow``, int64 [flows, FlowCount], from the state of senders and receivers."""
    seq, got = s.seq, g.got
    fresh = seq.next * session.rules.mtu
    all_sent = seq.next == seq.packets
    sent = fresh - all_sent * (session.rules.mtu - seq.last_size)
    return np.stack(
        [
            seq.resent, seq.timeouts, got.trims, got.marks,
            got.acks, got.nacks, got.pulls, got.bytes, sent,
            seq.finished, got.complete,
        ], axis=1,
    )  # fmt: skip
