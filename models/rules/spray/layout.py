# SPDX-License-Identifier: Apache-2.0
"""The rules and the state of spraying transports, laid out for compiled code.

Sizes are bytes on the wire, times are ticks. The packets of a flow are numbered from 0. Sets of packets are bits of
64-bit words.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Int, Ints, Masks
from flitlab.models.jit import kernel

# What limits a sender's bytes in flight (Rules.window).
NO_WINDOW, NSCC, DCTCP, CONSTANT = 0, 1, 2, 3

# What allows a sender to send (Rules.credit): nothing, a receiver that grants bytes or packets, or a clock.
NO_CREDIT, RCCC, NDP, PACED = 0, 1, 2, 3

# How a sender chooses the entropy value of a packet (Rules.spread).
OBLIVIOUS, BITMAP, REPS, MIXED, REPS_LIST = 0, 1, 2, 3, 4

# What a sender learns about an entropy value.
GOOD, MARKED, TRIMMED, TIMED_OUT = 0, 1, 2, 3

NEVER = np.int64(-(1 << 60))
"""Tick of an event that has not happened."""

CELLS = 8
"""Entropy values that ``reps`` stores."""


class Rules(NamedTuple):
    """The parameters by which the senders and receivers of a transport act.

    seed: of all draws. mtu: bytes of a full packet; header: its bytes without payload; control: bytes of a control
    packet. window, credit, spread: constants above. paths: entropy values of a flow, a power of two. ack_bytes:
    received bytes that cause an acknowledgement. trims: 1 where full queues trim. acknowledges: 1 where receivers
    acknowledge. rtt0: the longest zero-load round trip, ticks; timeout, freeze: ticks. gap: ticks between packets
    (PACED). quantum: bytes of a unit of credit; pull_quanta: the most that a pull grants; empty_quanta: what the pacer
    waits for after a pull that grants nothing. gate: acknowledged bytes between window adjustments. rate: bytes per
    tick of a host. first_window: bytes. most_bdp: limit of windows and credits, in bandwidth-delay products. target:
    queueing delay that windows aim at, ticks. alpha, fair, eta, fast, gamma, weight: of NSCC. near: delay below which a
    queue counts as empty, ticks. byte_gap: ticks of the pacer per byte of credit. oversubscription: of the network;
    receivers throttle their credit below its rate, 1: they do not. sleek: 1 where senders detect losses
    (:mod:`flitlab.models.rules.spray.recovery`). fallible: 1 where links may fail, so that granted credit can be lost.
    weighted: 1 where switch outputs serve control and data by weighted round robin
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


# Columns of Senders.seq, int64.
PACKETS = 0  # of the flow
LAST_SIZE = 1  # of its last packet
FIRST = 2  # index of its packet 0 in ``sent``
WORD = 3  # index of its first word in ``in_flight``, ``resend_pending`` and ``have``
UNA = 4  # first packet that is not acknowledged cumulatively
NEXT = 5  # next packet that was never sent
FLIGHT = 6  # bytes in flight, F
KNOWN = 7  # distinct bytes that the receiver is known to have, R
RESENDS_PENDING = 8  # packets that wait for retransmission, X
RESEND_FROM = 9  # no packet below waits for retransmission
BASE = 10  # least round trip so far
CREDIT = 11  # bytes, C
SPECULATES = 12  # 1 until the first response
GRANTED = 13  # quanta, cumulative
RTS_AT = 14  # tick of the last request to send
RTS_OUT = 15  # 1 while one is outstanding
ADAPT_AT = 16  # tick from which the window may adapt quickly; 0: not set
ADAPT_BYTES = 17  # received in this period
IGNORED = 18  # bytes since the last quick adaptation
IGNORE = 19  # bytes that do not count after it
TRIGGER = 20  # 1 after a trimmed packet
ADJUST = 21  # bytes since the window was adjusted
ETA_AT = 22  # tick at which it was widened by eta
CUT_AT = 23  # tick of the last decrease
IS_FAST = 24
NEAR_BYTES = 25  # received in a row with nearly no delay
WALK = 26  # index in the round of entropy values
MASK = 27
ROUND = 28  # rounds begun
DRAWN = 29  # entropy values drawn at random
HEAD = 30  # cell of ``ring`` that is written next
VALID = 31  # cells before it that may be read
WRITTEN = 32  # cells ever written, at most CELLS
FROZEN = 33  # tick until which cells are read in turn; 0: not frozen
EXPLORE = 34  # packets that still take random entropy values
READ = 35  # frozen: cell that is read next
QUEUE_HEAD = 36  # of ``queue``: entropy values taken so far
QUEUE_TAIL = 37  # and put
OPENED = 38  # packets of the first walk of REPS_LIST
FINISHED = 39  # tick at which all was acknowledged, -1 before
RESENT = 40  # packets sent again
TIMEOUTS = 41
RECOVER = 42  # SLEEK: recovery ends when all below is acknowledged; -1: no recovery
STARTED = 43  # tick at which it began, -1 before
RECOVERED = 44  # of which all below were sent again
PROBE_AT = 45  # SLEEK: tick of the next probe, -1: none
PROBED = 46  # tick of the last one
SENDER = 48

# Columns of Senders.win, float64.
WINDOW, AVERAGE, PENDING, REAL = 0, 1, 2, 4  # bytes; delay, ticks; bytes squared, I

# Columns of Receivers.got, int64.
EXPECTED = 0  # first packet that is missing
OUT_OF_ORDER = 1  # packets received beyond it
BYTES = 2  # distinct bytes received, R
SINCE = 3  # bytes since the last acknowledgement
ACK_REQUESTED = 4  # 1: an acknowledgement was requested since the last gap was filled
BEGUN = 5  # 1 after the first data
COMPLETE = 6  # tick at which all packets had arrived, -1 before
TARGET = 7  # largest pull target, quanta
CREDIT_GRANTED = 8  # quanta granted
IS_ACTIVE = 9  # 1 in the pacer's list of active connections
PULLS = 11  # pulls sent
TRIMS = 12  # packets that arrived trimmed
MARKS = 13  # packets that arrived marked, trimmed or not
ACKS = 14
NACKS = 15
WORDS = 16  # its first word in ``have``
COUNT = 17  # packets of the flow
RECEIVER = 24


class Senders(NamedTuple):
    """The senders of all flows.

    seq: int64 [flows, SENDER]; win: float64 [flows, REAL]; the columns are above. sent: int64 [packets], tick of the
    last transmission times 4, plus the number of transmissions, at most 3. in_flight: uint64 [words], packets sent and
    neither acknowledged nor in ``resend_pending``, which holds packets to be retransmitted. penalty: uint8 [flows,
    paths] (BITMAP, MIXED). ring: int64 [flows, CELLS] (REPS). queue: uint16 [flows, a power of two], good entropy
    values (MIXED, REPS_LIST).
    """

    seq: Ints
    win: Floats
    sent: Ints
    in_flight: Masks
    resend_pending: Masks
    penalty: Bytes
    ring: Ints
    queue: "np.ndarray"


class Receivers(NamedTuple):
    """The receivers of all flows. got: int64 [flows, RECEIVER]; have: uint64 [words], packets received."""

    got: Ints
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

    seq = np.zeros((flows, SENDER), np.int64)
    seq[:, PACKETS], seq[:, LAST_SIZE] = packets, last_size
    seq[:, FIRST] = np.cumsum(packets) - packets
    words = (packets >> 6) + 2
    seq[:, WORD] = np.cumsum(words) - words
    seq[:, BASE], seq[:, SPECULATES] = r.rtt0, 1
    seq[:, CREDIT] = of_each(0 if each.credit == PACED else int(each.first_window) for each in rules)
    seq[:, [RTS_AT, CUT_AT]] = NEVER
    seq[:, [FINISHED, RECOVER, STARTED, PROBE_AT]] = -1
    seq[:, WALK] = of_each(each.paths for each in rules)  # a round is drawn with the first packet
    win = np.zeros((flows, REAL))
    win[:, WINDOW] = of_each(each.first_window for each in rules)
    listed = any(each.spread in (MIXED, REPS_LIST) for each in rules)
    penalised = max(each.paths if each.spread in (BITMAP, MIXED) else 1 for each in rules)
    cells = CELLS if any(each.spread == REPS for each in rules) else 1
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
    got = np.zeros((len(senders.seq), RECEIVER), np.int64)
    got[:, COMPLETE] = -1
    got[:, WORDS], got[:, COUNT] = senders.seq[:, WORD], senders.seq[:, PACKETS]
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
    return s.seq[i, LAST_SIZE] if number == s.seq[i, PACKETS] - 1 else np.int64(r.mtu)


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
    take(s.in_flight, seq[WORD], number)
    seq[FLIGHT] -= size_of(r, s, i, number)
    put(s.resend_pending, seq[WORD], number)
    seq[RESEND_FROM] = number if seq[RESENDS_PENDING] == 0 else min(seq[RESEND_FROM], np.int64(number))
    seq[RESENDS_PENDING] += 1
