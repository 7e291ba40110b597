"""Hosts: what senders send and receivers hold; the windows themselves are NewReno's."""

import numpy as np

from flitlab.models.jit import inner, routine
from flitlab.models.transport.law import INSTANT, REVERSE_PATH
from flitlab.models.transport.newreno import (
    CLOSED,
    CWND,
    DEADLINE,
    HIGH,
    NEVER,
    OPEN,
    OPENING,
    STATE,
    UNA,
    acknowledge,
    has_room,
    open_up,
    opened,
    time_out,
)
from flitlab.models.transport.newreno import NEXT as NEXT_SEQUENCE
from flitlab.models.transport.session import LATEST, SYN_BYTES
from flitlab.sim.engines.compiled.datagram.links import accept, free_packet, join, make_packet
from flitlab.sim.engines.compiled.datagram.messages import note_received, note_taken
from flitlab.sim.engines.compiled.datagram.state import (
    ACK_BIT,
    AHEAD,
    AT,
    DATA,
    EXPECTED,
    KIND,
    MARKED_ACK,
    SEQUENCE,
    SIZE,
    STAMP,
    SUBFLOW,
    SYN,
    SYN_ACK,
    TRACE,
    TRACED,
    WINDOW,
)
from flitlab.sim.engines.datagram.base import ARRIVED, RECEIVED, RESENT, RTT, SAMPLES, SENT, TIMEOUTS

_LOW = np.int64(0xFFFFFFFF)
_ONE = np.uint64(1)


@routine
def _emit(c, s, i, sequence, kind, size, stamp, at, now):
    """A packet of subflow i enters the queue of the link at a place of ``s.path``."""
    p = make_packet(s)
    record = s.packet[p]
    record[AT] = at
    record[SUBFLOW] = i
    record[SEQUENCE] = sequence
    record[STAMP] = stamp
    record[SIZE] = size
    record[KIND] = kind
    accept(c, s, np.int64(s.path[at]), p, now)


@inner
def _send(c, s, i, sequence, now):
    s.subflow_counts[i, SENT] += 1
    _emit(c, s, i, sequence, DATA, c.packet_bytes, now & _LOW, s.path_start[i], now)


@inner
def _make_room(s, sent):
    """See to it that a receiver can hold all that has been sent beyond what it is known to have."""
    if sent > 64 * s.held.shape[1]:
        s.wants[WINDOW] = max(s.wants[WINDOW], sent)


@inner
def send_on(c, s, i, now):
    """Send what the window of subflow i admits: again what has been sent before a timeout, then new data."""
    seq, flow = s.senders.seq[i], c.flow[i]
    while has_room(s.senders.win[i, CWND], seq[UNA], seq[NEXT_SEQUENCE], c.rules.mss):
        if seq[NEXT_SEQUENCE] == seq[HIGH]:
            if s.left[flow] == 0:
                return
            s.left[flow] -= 1
            seq[HIGH] += 1
            _make_room(s, seq[HIGH] - seq[UNA])
            note_taken(s.talk, c, s, flow, now)
        else:
            s.subflow_counts[i, RESENT] += 1
        _send(c, s, i, seq[NEXT_SEQUENCE], now)
        seq[NEXT_SEQUENCE] += 1


@inner
def _hear(c, s, i, kind, una, stamp, now):
    """An acknowledgement reaches the sender of subflow i."""
    state = s.senders.seq[i, STATE]
    if kind == SYN_ACK and state != OPENING:
        return
    sample = np.int64(np.uint32(now & _LOW) - np.uint32(stamp))
    counts = s.subflow_counts[i]
    counts[SAMPLES] += 1
    counts[RTT] += sample
    if state == OPENING:
        opened(c.rules, s.senders, i, sample, now)
    else:
        first, last = c.first[c.flow[i]], c.first[c.flow[i] + 1]
        marked = kind == MARKED_ACK
        if acknowledge(c.rules, s.senders, i, first, last, una, sample, marked, now):
            counts[RESENT] += 1
            _send(c, s, i, s.senders.seq[i, UNA], now)
    send_on(c, s, i, now)


@inner
def _hold(s, i, sequence):
    """Whether the receiver of subflow i did not have this packet yet."""
    mine = s.receiver[i]
    if sequence < mine[EXPECTED]:
        return False
    held = s.held[i]
    mask = np.uint64(64 * len(held) - 1)
    place = np.uint64(sequence) & mask
    if sequence > mine[EXPECTED]:
        bit = _ONE << (place & np.uint64(63))
        if held[place >> np.uint64(6)] & bit:
            return False
        held[place >> np.uint64(6)] |= bit
        mine[AHEAD] += 1
        return True
    mine[EXPECTED] += 1
    while mine[AHEAD] > 0:
        place = np.uint64(mine[EXPECTED]) & mask
        bit = _ONE << (place & np.uint64(63))
        if not held[place >> np.uint64(6)] & bit:
            break
        held[place >> np.uint64(6)] ^= bit
        mine[AHEAD] -= 1
        mine[EXPECTED] += 1
    return True


@inner
def _receive(c, s, i, sequence, now):
    """A data packet reaches its receiver."""
    counts = s.subflow_counts[i]
    counts[ARRIVED] += 1
    if len(s.trace):
        entry = s.trace[s.wants[TRACED]]
        entry[0], entry[1], entry[2] = now, i, sequence
        s.wants[TRACED] += 1
        if s.wants[TRACED] + c.links > len(s.trace):
            s.wants[TRACE] = 1
    if c.once or _hold(s, i, sequence):
        counts[RECEIVED] += 1
        flow = c.flow[i]
        s.missing[flow] -= 1
        if s.missing[flow] == 0:
            s.finished[flow] = now
        note_received(s.talk, c, s, flow, now)


@inner
def _answer(c, s, i, kind, una, stamp, now):
    """An acknowledgement leaves the receiver of subflow i, through the queues or past them."""
    if c.ack_path == REVERSE_PATH:
        _emit(c, s, i, una, kind, c.ack_bytes, stamp, s.back_start[i], now)
        return
    p = make_packet(s)
    record = s.packet[p]
    record[SUBFLOW], record[SEQUENCE], record[STAMP] = i, una, stamp
    record[KIND], record[SIZE] = kind, 0
    join(c, s, c.links + i, p, now)


@inner
def deliver(c, s, link, p, now):
    """A packet arrives at the host at the end of a link, or (past the links) of a pipe."""
    record = s.packet[p]
    i, kind, stamp = np.int64(record[SUBFLOW]), record[KIND], record[STAMP]
    sequence = np.int64(record[SEQUENCE])
    free_packet(s, p)
    if not kind & ACK_BIT:
        if kind != SYN:
            _receive(c, s, i, sequence, now)
        if c.paced:
            return
        kind |= ACK_BIT
        sequence = s.receiver[i, EXPECTED]
        if c.ack_path != INSTANT:
            _answer(c, s, i, kind, sequence, stamp, now)
            return
    _hear(c, s, i, kind, sequence, stamp, now)


@inner
def set_timer(s, tick, i):
    """Look at subflow i at a tick: sift it up the heap."""
    place = s.timers[len(s.timers) - 1]
    s.timers[len(s.timers) - 1] += 1
    key = min(tick, LATEST) << 24 | i
    while place > 0:
        parent = (place - 1) >> 1
        if s.timers[parent] <= key:
            break
        s.timers[place] = s.timers[parent]
        place = parent
    s.timers[place] = key


@inner
def take_timer(s):
    """The subflow at the top of the heap, removed."""
    top = s.timers[0]
    s.timers[len(s.timers) - 1] -= 1
    count = s.timers[len(s.timers) - 1]
    key = s.timers[count]
    place = np.int64(0)
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and s.timers[child + 1] < s.timers[child]:
            child += 1
        if s.timers[child] >= key:
            break
        s.timers[place] = s.timers[child]
        place = child
    s.timers[place] = key
    return top & np.int64(0xFFFFFF)


@routine
def ring(c, s, i, now):
    """Subflow i is looked at: it starts, its first packet was lost, a timeout, or the deadline has moved since.

    It is looked at no later than the shortest timeout from now, as an acknowledgement may bring the deadline forward.
    """
    if c.paced:
        pace(c, s, i, now)
        return
    seq = s.senders.seq[i]
    if seq[DEADLINE] <= now:
        if seq[STATE] <= OPENING:
            s.subflow_counts[i, TIMEOUTS] += seq[STATE]
            open_up(c.rules, s.senders, i, now)
            _emit(c, s, i, 0, SYN, SYN_BYTES, now & _LOW, s.path_start[i], now)
        elif seq[UNA] == seq[NEXT_SEQUENCE]:
            seq[DEADLINE] = NEVER
            return
        else:
            s.subflow_counts[i, TIMEOUTS] += 1
            time_out(c.rules, s.senders, i, now)
            send_on(c, s, i, now)
    set_timer(s, min(seq[DEADLINE], now + np.int64(np.ceil(c.rules.min_rto))), i)


@inner
def pace(c, s, i, now):
    """A constant-rate sender sends its next packet; it is closed as long as there is none."""
    flow, seq = c.flow[i], s.senders.seq[i]
    seq[STATE] = CLOSED
    if s.left[flow] > 0:
        s.left[flow] -= 1
        _send(c, s, i, seq[HIGH], now)
        seq[HIGH] += 1
        if not c.once:
            _make_room(s, seq[HIGH] - s.receiver[i, EXPECTED])
        note_taken(s.talk, c, s, flow, now)
        seq[STATE] = OPEN
        set_timer(s, now + c.gap[i], i)
