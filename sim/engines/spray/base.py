# SPDX-License-Identifier: Apache-2.0
"""The counters of a run of sprayed packets, in either engine."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.datagram import RATIO_BITS
from flitlab.models.rules.spray import layout
from flitlab.models.rules.spray.layout import Receivers, Senders
from flitlab.models.transport.fabric import SpraySession
from flitlab.sim.engines.base import ApplicationRun, MessageDropped, ProgramStatus

# Columns of Counters.flow.
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
FLOW_COUNTS = 11

# Columns of Counters.link.
ACCEPTED = 0  # packets of any kind that the link took for good, trimmed ones included
DROPS = 1  # packets of any kind
TRIMMED = 2  # packets that were trimmed
MARKED = 3  # packets that were marked
MAX_QUEUE_BYTES = 4  # largest amount of data in the queue, bytes
BUSY = 5  # ticks for which the link was sending, services that go on counted whole
LINK_COUNTS = 6


@dataclass(frozen=True)
class Counters:
    """The counters of a run up to, not including, ``tick``.

    flow: int64 [flows, FLOW_COUNTS]. link: int64 [links, LINK_COUNTS].
    """

    tick: int
    flow: Ints
    link: Ints


class Trace(NamedTuple):
    """Every untrimmed data packet received, in order: int64 [packets] each."""

    tick: Ints
    flow: Ints
    number: Ints


class SprayRun(Protocol):
    """A simulation of sprayed packets; session: the simulated session."""

    session: SpraySession

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def counters(self) -> Counters:
        """All counters, copied."""

    def ended(self) -> bool:
        """Whether every flow is complete: at its sender or, without acknowledgements, at its receiver."""

    def trace(self) -> Trace:
        """The packets received so far. Raises ``ValueError`` unless the run was started with ``trace=True``."""


class SprayApplicationRun(SprayRun, ApplicationRun, Protocol):
    """A simulation of a program over sprayed packets.

    carried: ticks for which each channel has been sending, int64 [channels].
    """


def finished_at(session: SpraySession, flow: Ints) -> Ints:
    """Return the completion ticks of flows, int64 [flows], -1 before: at the sender or, without ACKs, at the receiver.

    flow: int64 [flows, FLOW_COUNTS], as in :class:`Counters`.
    """
    finished_at: Ints = np.where(session.acknowledges, flow[:, FINISHED], flow[:, COMPLETE])
    return finished_at


def are_finished(session: SpraySession, s: Senders, g: Receivers) -> bool:
    """Whether every flow is complete, as :func:`finished_at` defines it."""
    return bool((np.where(session.acknowledges, s.seq[:, layout.FINISHED], g.got[:, layout.COMPLETE]) >= 0).all())


def check_lossless(dropped: int) -> None:
    """Raise :class:`~flitlab.sim.engines.base.MessageDropped` if packets of a program without retransmission were
    dropped.

    dropped: packets dropped or trimmed.
    """
    if dropped:
        raise MessageDropped


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
    fresh = (seq[:, layout.PACKETS] - seq[:, layout.NEXT])[seq[:, layout.STARTED] >= 0]
    missing = seq[:, layout.NEXT] - got[:, layout.EXPECTED] - got[:, layout.OUT_OF_ORDER]
    if not session.rules.acknowledges:  # constant rate: what is left has a timer
        event_pending = event_pending or bool(fresh.any())
    moved = int(got[:, layout.BYTES].sum())
    return ProgramStatus(
        moved, int(fresh.sum()), int(missing.sum()), event_pending, retransmission_ticks=retransmission_ticks
    )


def flow_table(session: SpraySession, s: Senders, g: Receivers) -> Ints:
    """Return ``Counters.flow``, int64 [flows, FLOW_COUNTS], from the state of senders and receivers."""
    seq, got = s.seq, g.got
    fresh = seq[:, layout.NEXT] * session.rules.mtu
    all_sent = seq[:, layout.NEXT] == seq[:, layout.PACKETS]
    sent = fresh - all_sent * (session.rules.mtu - seq[:, layout.LAST_SIZE])
    return np.stack(
        [
            seq[:, layout.RESENT], seq[:, layout.TIMEOUTS], got[:, layout.TRIMS], got[:, layout.MARKS],
            got[:, layout.ACKS], got[:, layout.NACKS], got[:, layout.PULLS], got[:, layout.BYTES], sent,
            seq[:, layout.FINISHED], got[:, layout.COMPLETE],
        ], axis=1,
    )  # fmt: skip
