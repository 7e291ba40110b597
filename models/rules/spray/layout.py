# SPDX-License-Identifier: Apache-2.0
"""The numbers and the state of spraying transports, laid out for compiled code.

Sizes are bytes on the wire, times ticks. A flow's packets are numbered from 0; sets of them are bits of 64-bit words.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Int, Ints, Masks
from flitlab.models.jit import kernel

# What limits the bytes of a sender that are under way (Rules.window).
NO_WINDOW, NSCC, DCTCP, CONSTANT = 0, 1, 2, 3

# Who allows a sender to send (Rules.credit): nobody, a receiver that grants bytes or packets, or the clock.
NO_CREDIT, RCCC, NDP, PACED = 0, 1, 2, 3

# How a sender chooses the entropy of a packet (Rules.spread).
OBLIVIOUS, BITMAP, REPS, MIXED, REPS_LIST = 0, 1, 2, 3, 4

# What a sender learns of an entropy.
GOOD, MARKED, TRIMMED, TIMED_OUT = 0, 1, 2, 3

NEVER = np.int64(-(1 << 60))
"""The tick of something that has not happened yet."""

CELLS = 8
"""Entropies that ``reps`` keeps."""


class Rules(NamedTuple):
    """The numbers by which the senders and receivers of a transport act.

    seed: of draws. mtu: a full packet; header: part of it that is no payload; control: a packet without payload.
    window, credit, spread: see above. paths: entropies of a flow, a power of two. ack_bytes: received since the last
    acknowledgement that cause one. trims: 1 where full queues trim. answers: 1 where receivers answer. rtt0: the
    longest round trip of the network without queues, ticks; timeout, freeze: ticks. gap: ticks from packet to packet
    (PACED). quantum: bytes of a unit of credit; pull_quanta: the most that a pull grants; empty_quanta: for which the
    pacer waits after a pull that grants nothing. gate: bytes acknowledged that adjust the window. rate: bytes a tick of
    a host. first_window: bytes. most_bdp: limit of windows and credits in products of bandwidth and delay. target:
    queueing delay, ticks, that windows aim at. alpha, fair, eta, fast, gamma, weight: of NSCC. near: delay, ticks,
    below which a queue counts as empty. byte_gap: ticks of the pacer for a byte of credit. oversubscription: of the
    network, below whose rate receivers throttle their credit; 1: they do not. sleek: 1 where senders find losses
    themselves (:mod:`flitlab.models.rules.spray.recovery`). fallible: 1 where links may fail, so that all the credit
    that was granted can be lost. weighted: 1 where the outputs of switches serve control and data in weighted turns
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
FIRST = 2  # place of its packet 0 in ``sent``
WORD = 3  # of its first word in ``in_flight``, ``resend_pending`` and ``have``
UNA = 4  # first packet that is not acknowledged cumulatively
NEXT = 5  # next packet that was never sent
FLIGHT = 6  # bytes under way, F
KNOWN = 7  # distinct bytes that the receiver is known to have, R
RESENDS_PENDING = 8  # packets that wait to be sent again, X
RESEND_FROM = 9  # none below waits so
BASE = 10  # least round trip so far
CREDIT = 11  # bytes, C
SPECULATES = 12  # 1 until the first answer
GRANTED = 13  # quanta, cumulative
RTS_AT = 14  # tick of the last request to send
RTS_OUT = 15  # 1 while one is not answered
ADAPT_AT = 16  # tick from which the window may adapt quickly; 0: not set
ADAPT_BYTES = 17  # received in this period
IGNORED = 18  # bytes since the last quick adaptation
IGNORE = 19  # of which so many do not count
TRIGGER = 20  # 1 after a trimmed packet
ADJUST = 21  # bytes since the window was adjusted
ETA_AT = 22  # tick at which it was widened by eta
CUT_AT = 23  # tick of the last decrease
IS_FAST = 24
NEAR_BYTES = 25  # received in a row with nearly no delay
WALK = 26  # place in the round of entropies
MASK = 27
ROUND = 28  # rounds begun
DRAWN = 29  # entropies drawn at random
HEAD = 30  # cell of ``ring`` that is written next
VALID = 31  # cells before it that may be read
WRITTEN = 32  # cells ever written, at most CELLS
FROZEN = 33  # tick until which cells are read in turn; 0: not frozen
EXPLORE = 34  # packets that take entropies at random
READ = 35  # frozen: cell that is read next
QUEUE_HEAD = 36  # of ``queue``: entropies taken so far
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
OUT_OF_ORDER = 1  # packets beyond
BYTES = 2  # distinct bytes received, R
SINCE = 3  # bytes since the last acknowledgement
ACK_REQUESTED = 4  # 1: an acknowledgement was asked for since the last hole was filled
BEGUN = 5  # 1 after the first data
COMPLETE = 6  # tick at which all had come, -1 before
TARGET = 7  # largest pull target, quanta
CREDIT_GRANTED = 8  # quanta granted
IS_ACTIVE = 9  # 1 in the pacer's list of active connections
PULLS = 11  # pulls sent
TRIMS = 12  # packets that came trimmed
MARKS = 13  # packets that came marked, whole or trimmed
ACKS = 14
NACKS = 15
WORDS = 16  # its first word in ``have``
COUNT = 17  # packets of the flow
RECEIVER = 24


class Senders(NamedTuple):
    """The senders of all flows.

    seq: int64 [flows, SENDER]; win: float64 [flows, REAL]. sent: int64 [packets], last tick at which each was sent,
    times 4, plus how often, at most 3. flying: uint64 [words], packets that are sent and neither acknowledged nor in
    ``resend_pending``, those to be sent again. penalty: uint8 [flows, paths] (BITMAP, MIXED). ring: int64 [flows, CELLS] (REPS).
    queue: uint16 [flows, a power of two], entropies that were good (MIXED, REPS_LIST).
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
    """The receivers of all flows: got: int64 [flows, RECEIVER]; have: uint64 [words], packets received."""

    got: Ints
    have: Masks


def make_senders(rules: Sequence[Rules], kind: Ints, packets: Ints, last_size: Ints) -> Senders:
    """The senders of flows of so many packets, none of which has begun.

    rules: of each transport. kind: which of them a flow has; int64 [flows] all.
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
    """Bytes of a data packet of flow i."""
    return s.seq[i, LAST_SIZE] if number == s.seq[i, PACKETS] - 1 else np.int64(r.mtu)


@kernel
def bits_at(words: Masks, first: Int, number: Int) -> np.uint64:
    """Sixty-four bits of a set from ``number`` on; first: its first word, after whose last there is one more."""
    word, shift = first + (number >> 6), np.uint64(number & 63)
    low = words[word] >> shift
    if shift == 0:
        return low
    return low | words[word + 1] << (np.uint64(64) - shift)


@kernel
def clear_at(words: Masks, first: Int, number: Int, bits: np.uint64) -> None:
    """Take packets out of a set: those whose bits are set, of which bit 0 is packet ``number``."""
    word, shift = first + (number >> 6), np.uint64(number & 63)
    words[word] &= ~(bits << shift)
    if shift != 0:
        words[word + 1] &= ~(bits >> (np.uint64(64) - shift))


@kernel
def has(words: Masks, first: Int, number: Int) -> bool:
    """Whether a packet is in a set."""
    return (words[first + (number >> 6)] >> np.uint64(number & 63)) & np.uint64(1) != 0


@kernel
def put(words: Masks, first: Int, number: Int) -> None:
    """Put a packet into a set."""
    words[first + (number >> 6)] |= np.uint64(1) << np.uint64(number & 63)


@kernel
def take(words: Masks, first: Int, number: Int) -> None:
    """Take a packet out of a set."""
    words[first + (number >> 6)] &= ~(np.uint64(1) << np.uint64(number & 63))


@kernel
def queue_resend(r: Rules, s: Senders, i: Int, number: Int) -> None:
    """Packet ``number``, which is under way, waits to be sent again."""
    seq = s.seq[i]
    take(s.in_flight, seq[WORD], number)
    seq[FLIGHT] -= size_of(r, s, i, number)
    put(s.resend_pending, seq[WORD], number)
    seq[RESEND_FROM] = number if seq[RESENDS_PENDING] == 0 else min(seq[RESEND_FROM], np.int64(number))
    seq[RESENDS_PENDING] += 1
