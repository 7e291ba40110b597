# SPDX-License-Identifier: Apache-2.0
"""The rules and the state of spraying transports, laid out for compiled code.

Sizes are bytes on the wire, times are ticks. The packets of a flow are numbered from 0. Sets of packets are bits of
64-bit words.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from flitlab.models.arrays import Bytes, Int, Ints, Masks
from flitlab.models.jit import kernel


class PacketKind(IntEnum):
    """What a packet is."""

    DATA = 0
    ACK = 1
    NACK = 2
    PULL = 3
    REQUEST = 4
    CNP = 5  # of RDMA


class WindowControl(IntEnum):
    """What limits a sender's bytes in flight."""

    NONE = 0
    NSCC = 1
    DCTCP = 2
    CONSTANT = 3


class Credit(IntEnum):
    """What allows a sender to send: nothing, a receiver that grants bytes or packets, or a clock."""

    NONE = 0
    RCCC = 1
    NDP = 2
    PACED = 3


class Spread(IntEnum):
    """How a sender chooses the entropy value of a packet."""

    OBLIVIOUS = 0
    BITMAP = 1
    REPS = 2
    MIXED = 3
    REPS_LIST = 4


class Feedback(IntEnum):
    """What a sender learns about an entropy value."""

    GOOD = 0
    MARKED = 1
    TRIMMED = 2
    TIMED_OUT = 3


class Ack(NamedTuple):
    """What an acknowledgement says.

    expected: first packet that is missing at the receiver. received: distinct bytes received. number: the packet that
    caused the acknowledgement; -1: a request, PROBE: a probe. again: whether that packet was a retransmission. entropy:
    its entropy value. marked: whether it had an ECN mark. start: first packet of ``bits``. bits: received packets from
    ``start`` on.
    """

    expected: Int
    received: Int
    number: Int
    again: bool
    entropy: Int
    marked: bool
    start: Int
    bits: Int


Records: TypeAlias = np.recarray
"""Array of records with named fields."""

NEVER = np.int64(-(1 << 60))
"""Tick of an event that has not happened."""

CELLS = 8
"""Entropy values that ``reps`` stores."""


class Rules(NamedTuple):
    """The parameters by which the senders and receivers of a transport act.

    seed: of all draws. mtu: bytes of a full packet; header: its bytes without payload; control: bytes of a control
    packet. window: :class:`WindowControl`; credit: :class:`Credit`; spread: :class:`Spread`. paths: entropy
    values of a flow, a power of two. ack_bytes: received bytes that cause an acknowledgement. trims: 1 where full
    queues trim. acknowledges: 1 where receivers acknowledge. rtt0: the longest zero-load round trip, ticks; timeout,
    freeze: ticks.
    gap: ticks between packets (PACED). quantum: bytes of a unit of credit; pull_quanta: the most that a pull grants;
    empty_quanta: what the pacer waits for after a pull that grants nothing. gate: acknowledged bytes between window
    adjustments. rate: bytes per tick of a host. first_window: bytes. most_bdp: limit of windows and credits, in
    bandwidth-delay products. target: queueing delay that windows aim at, ticks. alpha, fair, eta, fast, gamma, weight:
    of NSCC. near: delay below which a queue counts as empty, ticks. byte_gap: ticks of the pacer per byte of credit.
    oversubscription: of the network; receivers throttle their credit below its rate, 1: they do not. sleek: 1 where
    senders detect losses (:mod:`flitlab.models.rules.spray.recovery`). fallible: 1 where links may fail, so that
    granted credit can be lost. weighted: 1 where switch outputs serve control and data by weighted round robin
    (:func:`~flitlab.models.rules.spray.queues.next_turn`), 0: control has strict priority.
    """

    seed: int
    mtu: int
    header: int
    control: int
    window: int
    credit: int
    spread: int
    paths: int
    ack_bytes: int
    trims: int
    acknowledges: int
    rtt0: int
    timeout: int
    freeze: int
    gap: int
    quantum: int
    pull_quanta: int
    empty_quanta: int
    gate: int
    rate: float
    first_window: float
    most_bdp: float
    target: float
    alpha: float
    fair: float
    eta: float
    fast: float
    gamma: float
    weight: float
    near: float
    byte_gap: float
    oversubscription: float
    sleek: int
    fallible: int = 0
    weighted: int = 0


SENDER = np.dtype(
    [
        ("packets", np.int64),  # of the flow
        ("last_size", np.int64),  # of its last packet
        ("first", np.int64),  # index of its packet 0 in ``sent``
        ("word", np.int64),  # index of its first word in ``in_flight``, ``resend_pending`` and ``have``
        ("una", np.int64),  # first packet that is not acknowledged cumulatively
        ("next", np.int64),  # next packet that was never sent
        ("flight", np.int64),  # bytes in flight, F
        ("known", np.int64),  # distinct bytes that the receiver is known to have, R
        ("resends_pending", np.int64),  # packets that wait for retransmission, X
        ("resend_from", np.int64),  # no packet below waits for retransmission
        ("base_rtt", np.int64),  # least round trip so far
        ("credit", np.int64),  # bytes, C
        ("speculates", np.int64),  # 1 until the first response
        ("granted", np.int64),  # quanta, cumulative
        ("rts_at", np.int64),  # tick of the last request to send
        ("rts_out", np.int64),  # 1 while one is outstanding
        ("adapt_at", np.int64),  # tick from which the window may adapt quickly; 0: not set
        ("adapt_bytes", np.int64),  # received in this period
        ("ignored", np.int64),  # bytes since the last quick adaptation
        ("ignore", np.int64),  # bytes that do not count after it
        ("trigger", np.int64),  # 1 after a trimmed packet
        ("adjust", np.int64),  # bytes since the window was adjusted
        ("eta_at", np.int64),  # tick at which it was widened by eta
        ("cut_at", np.int64),  # tick of the last decrease
        ("is_fast", np.int64),
        ("near_bytes", np.int64),  # received in a row with nearly no delay
        ("walk", np.int64),  # index in the round of entropy values
        ("mask", np.int64),
        ("rounds", np.int64),  # rounds begun
        ("drawn", np.int64),  # entropy values drawn at random
        ("head", np.int64),  # cell of ``ring`` that is written next
        ("valid", np.int64),  # cells before it that may be read
        ("written", np.int64),  # cells ever written, at most CELLS
        ("frozen", np.int64),  # tick until which cells are read in turn; 0: not frozen
        ("explore", np.int64),  # packets that still take random entropy values
        ("read", np.int64),  # frozen: cell that is read next
        ("queue_head", np.int64),  # of ``queue``: entropy values taken so far
        ("queue_tail", np.int64),  # and put
        ("opened", np.int64),  # packets of the first walk of REPS_LIST
        ("finished", np.int64),  # tick at which all was acknowledged, -1 before
        ("resent", np.int64),  # packets sent again
        ("timeouts", np.int64),
        ("recover", np.int64),  # SLEEK: recovery ends when all below is acknowledged; -1: no recovery
        ("started", np.int64),  # tick at which it began, -1 before
        ("recovered", np.int64),  # of which all below were sent again
        ("probe_at", np.int64),  # SLEEK: tick of the next probe, -1: none
        ("probed", np.int64),  # tick of the last one
        ("unused", np.int64),
    ]
)
"""A sender, six cache lines."""

WIN = np.dtype(
    [
        ("window", np.float64),  # bytes
        ("average", np.float64),  # delay, ticks
        ("pending", np.float64),  # bytes squared, I
        ("unused", np.float64),
    ]
)
"""The congestion window of a sender."""

RECEIVER = np.dtype(
    [
        ("expected", np.int64),  # first packet that is missing
        ("out_of_order", np.int64),  # packets received beyond it
        ("bytes", np.int64),  # distinct bytes received, R
        ("since", np.int64),  # bytes since the last acknowledgement
        ("ack_requested", np.int64),  # 1: an acknowledgement was requested since the last gap was filled
        ("begun", np.int64),  # 1 after the first data
        ("complete", np.int64),  # tick at which all packets had arrived, -1 before
        ("target", np.int64),  # largest pull target, quanta
        ("credit_granted", np.int64),  # quanta granted
        ("is_active", np.int64),  # 1 in the pacer's list of active connections
        ("idle_entries", np.int64),  # entries in the pacer's idle list
        ("pulls", np.int64),  # pulls sent
        ("trims", np.int64),  # packets that arrived trimmed
        ("marks", np.int64),  # packets that arrived marked, trimmed or not
        ("acks", np.int64),
        ("nacks", np.int64),
        ("word", np.int64),  # its first word in ``have``
        ("packets", np.int64),  # packets of the flow
        ("unused", np.int64, 6),
    ]
)
"""A receiver, three cache lines."""


class Senders(NamedTuple):
    """The senders of all flows.

    seq: SENDER [flows]; win: WIN [flows]. sent: int64 [packets], tick of the
    last transmission times 4, plus the number of transmissions, at most 3. in_flight: uint64 [words], packets sent and
    neither acknowledged nor in ``resend_pending``, which holds packets to be retransmitted. penalty: uint8 [flows,
    paths] (BITMAP, MIXED). ring: int64 [flows, CELLS] (REPS). queue: uint16 [flows, a power of two], good entropy
    values (MIXED, REPS_LIST); a full queue accepts none.
    """

    seq: Records
    win: Records
    sent: Ints
    in_flight: Masks
    resend_pending: Masks
    penalty: Bytes
    ring: Ints
    queue: "np.ndarray"


class Receivers(NamedTuple):
    """The receivers of all flows. got: RECEIVER [flows]; have: uint64 [words], packets received."""

    got: Records
    have: Masks


def make_senders(rules: Sequence[Rules], kind: Ints, packets: Ints, last_size: Ints) -> Senders:
    """The senders of all flows, none of which has started.

    Parameters
    ----------
    rules: of each transport.
    kind: int64 [flows], index of each flow's transport in ``rules``.
    packets: int64 [flows], packets of each flow.
    last_size: int64 [flows], bytes of each flow's last packet.

    Returns
    -------
    The senders.
    """
    flows, r = len(packets), rules[0]

    def of_each(values: Iterable[float]) -> np.ndarray:
        return np.array(list(values))[kind]

    seq = np.zeros(flows, SENDER).view(np.recarray)
    seq.packets, seq.last_size = packets, last_size
    seq.first = np.cumsum(packets) - packets
    words = (packets >> 6) + 2
    seq.word = np.cumsum(words) - words
    seq.base_rtt, seq.speculates = r.rtt0, 1
    seq.credit = of_each(0 if each.credit == Credit.PACED else int(each.first_window) for each in rules)
    seq.rts_at = seq.cut_at = NEVER
    seq.finished = seq.recover = seq.started = seq.probe_at = -1
    seq.walk = of_each(each.paths for each in rules)  # a round is drawn with the first packet
    win = np.zeros(flows, WIN).view(np.recarray)
    win.window = of_each(each.first_window for each in rules)
    listed = any(each.spread in (Spread.MIXED, Spread.REPS_LIST) for each in rules)
    penalised = max(each.paths if each.spread in (Spread.BITMAP, Spread.MIXED) else 1 for each in rules)
    cells = CELLS if any(each.spread == Spread.REPS for each in rules) else 1
    most = max(64, 4 * int(r.most_bdp * r.rtt0 * r.rate) // r.mtu)
    queue_cells = 1 << min(most, max(int(packets.max(initial=1)), 1)).bit_length() if listed else 1
    return Senders(
        seq,
        win,
        np.zeros(packets.sum(), np.int64),
        np.zeros(words.sum(), np.uint64),
        np.zeros(words.sum(), np.uint64),
        np.zeros((flows, penalised), np.uint8),
        np.zeros((flows, cells), np.int64),
        np.zeros((flows, queue_cells), np.uint16),
    )


def make_receivers(senders: Senders) -> Receivers:
    """The receivers of the flows of some senders."""
    got = np.zeros(len(senders.seq), RECEIVER).view(np.recarray)
    got.complete = -1
    got.word, got.packets = senders.seq.word, senders.seq.packets
    return Receivers(got, np.zeros(len(senders.in_flight), np.uint64))


@kernel
def size_of(r: Rules, s: Senders, i: Int, number: Int) -> int:
    """Bytes of a data packet of flow i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders.
    i: the flow.
    number: the packet.
    """
    return s.seq[i].last_size if number == s.seq[i].packets - 1 else np.int64(r.mtu)


@kernel
def bits_at(words: Masks, first: Int, number: Int) -> np.uint64:
    """Sixty-four bits of a packet set, from packet ``number`` on.

    Parameters
    ----------
    words: uint64 [words], sets of all flows.
    first: index of the flow's first word. One spare word follows its last.
    number: the packet of bit 0.
    """
    word, shift = first + (number >> 6), np.uint64(number & 63)
    low = words[word] >> shift
    if shift == 0:
        return low
    return low | words[word + 1] << (np.uint64(64) - shift)


@kernel
def clear_at(words: Masks, first: Int, number: Int, bits: np.uint64) -> None:
    """Remove packets from a set.

    Parameters
    ----------
    words: uint64 [words], changed in place.
    first: index of the flow's first word.
    number: the packet of bit 0.
    bits: the packets to remove.
    """
    word, shift = first + (number >> 6), np.uint64(number & 63)
    words[word] &= ~(bits << shift)
    if shift != 0:
        words[word + 1] &= ~(bits >> (np.uint64(64) - shift))


@kernel
def has(words: Masks, first: Int, number: Int) -> bool:
    """Whether a packet is in a set.

    Parameters
    ----------
    words: uint64 [words].
    first: index of the flow's first word.
    number: the packet.
    """
    return (words[first + (number >> 6)] >> np.uint64(number & 63)) & np.uint64(1) != 0


@kernel
def put(words: Masks, first: Int, number: Int) -> None:
    """Add a packet to a set.

    Parameters
    ----------
    words: uint64 [words], changed in place.
    first: index of the flow's first word.
    number: the packet.
    """
    words[first + (number >> 6)] |= np.uint64(1) << np.uint64(number & 63)


@kernel
def take(words: Masks, first: Int, number: Int) -> None:
    """Remove a packet from a set.

    Parameters
    ----------
    words: uint64 [words], changed in place.
    first: index of the flow's first word.
    number: the packet.
    """
    words[first + (number >> 6)] &= ~(np.uint64(1) << np.uint64(number & 63))


@kernel
def queue_resend(r: Rules, s: Senders, i: Int, number: Int) -> None:
    """Move a packet that is in flight to those that wait for retransmission.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    s: the senders, changed in place (:class:`~flitlab.models.rules.spray.layout.Senders`).
    i: the flow.
    number: the packet.
    """
    seq = s.seq[i]
    take(s.in_flight, seq.word, number)
    seq.flight -= size_of(r, s, i, number)
    put(s.resend_pending, seq.word, number)
    seq.resend_from = number if seq.resends_pending == 0 else min(seq.resend_from, np.int64(number))
    seq.resends_pending += 1
