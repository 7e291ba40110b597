# SPDX-License-Identifier: Apache-2.0
"""What a run of sprayed packets counts, in either engine."""

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
    """The counters of a run for everything up to, not including, ``tick``.

    flow: int64 [flows, FLOW_COUNTS]. link: int64 [links, LINK_COUNTS].
    """

    tick: int
    flow: Ints
    link: Ints


class Trace(NamedTuple):
    """Every whole data packet that reached its host, in order: int64 [packets] each."""

    tick: Ints
    flow: Ints
    number: Ints


class SprayRun(Protocol):
    """One simulation of sprayed packets under way; given: the session that is simulated."""

    session: SpraySession

    def advance(self, until: int) -> None:
        """Simulate ticks up to, not including, ``until``."""

    def counters(self) -> Counters:
        """All counters now, copied."""

    def ended(self) -> bool:
        """Whether every flow has come to its end: at its sender or, where nobody answers, at its receiver."""

    def trace(self) -> Trace:
        """The packets received so far; only if the run was started with ``trace=True``."""


class SprayApplicationRun(SprayRun, ApplicationRun, Protocol):
    """One simulation of a program over sprayed packets under way.

    carried: ticks for which each channel has been sending, int64 [channels].
    """


def finished_at(session: SpraySession, flow: Ints) -> Ints:
    """When flows came to their ends, int64 [flows], -1 before: at the sender or, where nobody answers, the receiver.

    flow: as in :class:`Counters`.
    """
    finished_at: Ints = np.where(session.answers, flow[:, FINISHED], flow[:, COMPLETE])
    return finished_at


def are_finished(session: SpraySession, s: Senders, g: Receivers) -> bool:
    """Whether every flow has come to its end, as :func:`ends` says."""
    return bool((np.where(session.answers, s.seq[:, layout.FINISHED], g.got[:, layout.COMPLETE]) >= 0).all())


def check_lossless(dropped: int) -> None:
    """Raise :class:`~flitlab.sim.engines.base.MessageLost` if packets of a program that nobody sends again were.

    lost: packets dropped or trimmed.
    """
    if dropped:
        raise MessageDropped


MAX_TIMEOUTS = 1000
"""Timeouts in a row, each and a hop of the slowest link, without which no program over sprayed packets is stalled."""


def program_status(session: SpraySession, s: Senders, g: Receivers, now: int, event_pending: bool) -> ProgramStatus:
    """What the messages that were posted still have before them at tick ``now``.

    coming: whether an operation goes on.
    """
    seq, got = s.seq, g.got
    event_pending = event_pending or any(change.tick >= now for change in session.changes)
    slowest = int((session.delay + (session.slowest * session.rules.mtu >> RATIO_BITS)).max())
    retransmission_ticks = MAX_TIMEOUTS * max(rules.timeout + rules.rtt0 + slowest for rules in session.transports)
    fresh = (seq[:, layout.PACKETS] - seq[:, layout.NEXT])[seq[:, layout.STARTED] >= 0]
    missing = seq[:, layout.NEXT] - got[:, layout.EXPECTED] - got[:, layout.OUT_OF_ORDER]
    if not session.rules.answers:  # constant rate: what is left has a timer
        event_pending = event_pending or bool(fresh.any())
    moved = int(got[:, layout.BYTES].sum())
    return ProgramStatus(
        moved, int(fresh.sum()), int(missing.sum()), event_pending, retransmission_ticks=retransmission_ticks
    )


def flow_table(session: SpraySession, s: Senders, g: Receivers) -> Ints:
    """``Counters.flow`` as senders and receivers have it."""
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
