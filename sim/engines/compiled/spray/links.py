# SPDX-License-Identifier: Apache-2.0
"""Queues and links: two FIFOs, a server, and a fixed delay behind it.

What a server has done is found out when somebody looks at its link, at the latest when the first packet beyond it
arrives at the next place: that arrival is the only event of a packet on a link, and a link awaits one at a time.
"""

import numpy as np

from flitlab.models.jit import inline, njit
from flitlab.models.rules.datagram import rest_ticks, service_ticks
from flitlab.models.rules.spray.queues import evicts, is_marked, next_turn
from flitlab.sim.engines.compiled.awaited import await_packet, forget_packet
from flitlab.sim.engines.compiled.pool import NOBODY, free_record
from flitlab.sim.engines.compiled.spray.state import (
    BEFORE,
    BUSY,
    CONTROL,
    CUT,
    DATA,
    DEAD,
    DELAY,
    DRAWN,
    DROPS,
    ENDED,
    ENDS,
    FLYING,
    FULLS,
    HIGH,
    KIND,
    KINDS,
    LAST_HOP,
    LONG,
    LOW,
    MARK,
    MARK_HIGH,
    MARK_LOW,
    MARKED,
    MOST,
    NEXT,
    RATIO,
    REQUEST,
    ROOM,
    SERVING,
    SHORT,
    SIZE,
    TAKEN,
    TRIM,
    WHOLE,
)
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick


@inline
def is_whole(kind):
    """Tell whether a packet of this kind is data that was not trimmed."""
    return kind & (KINDS | TRIM) == DATA


@inline
def is_answer(kind):
    """Tell whether a packet of this kind goes from where its flow goes to where that comes from."""
    return kind & KINDS != DATA and kind & KINDS != REQUEST


@inline
def append(state, line, which, packet):
    """Put a packet at the end of one of the lists of a link: FLYING, CONTROL or WHOLE."""
    record = state.packet[packet]
    record[NEXT] = NOBODY
    if line[which] == NOBODY:
        line[which] = packet
    else:
        state.packet[line[which + 1], NEXT] = packet
        if which == WHOLE:
            record[BEFORE] = line[which + 1]
    line[which + 1] = packet


@inline
def take_first(state, line, which):
    """Take the first packet off one of the lists of a link, which is not empty."""
    packet = line[which]
    line[which] = np.int64(state.packet[packet, NEXT])
    return packet


@inline
def _take_youngest(state, line):
    """Take the last packet out of the low FIFO of a link, which is not empty."""
    packet = line[WHOLE + 1]
    if packet == line[WHOLE]:
        line[WHOLE] = NOBODY
    else:
        before = np.int64(state.packet[packet, BEFORE])
        state.packet[before, NEXT] = NOBODY
        line[WHOLE + 1] = before
    return packet


@inline
def begin(const, state, link, packet, tick):
    """Let the server of a link, which is idle, begin with a packet."""
    line, fixed, size = state.link[link], const.fixed[link], np.int64(state.packet[packet, SIZE])
    if size == const.rules.mtu:
        service = fixed[LONG]
    elif size == const.rules.control:
        service = fixed[SHORT]
    else:
        service = service_ticks(fixed[RATIO], size)
    line[SERVING], line[ENDS] = packet, tick + service
    line[BUSY] += service
    if line[FLYING] == NOBODY:
        await_packet(const, state, link, tick + service + fixed[DELAY])


@inline
def end_service(state, line):
    """Let the server of a link be done with its packet, which flies on; it is returned."""
    packet = line[SERVING]
    append(state, line, FLYING, packet)
    state.packet[packet, ENDED] = low_bits(line[ENDS])
    line[SERVING] = NOBODY
    return packet


@inline
def settle(const, state, link, now):
    """Find out what the server of a switch's output has done up to and in this tick."""
    line = state.link[link]
    while line[SERVING] != NOBODY and line[ENDS] <= now:
        ended, packet = line[ENDS], end_service(state, line)
        record = state.packet[packet]
        if is_whole(record[KIND]):
            line[LOW] -= np.int64(record[SIZE])
            if line[LOW] > const.fixed[link, MARK_LOW]:
                _mark(const, state, link, record)
        else:
            line[HIGH] -= np.int64(record[SIZE])
        _go_on(const, state, link, ended)


@inline
def _go_on(const, state, link, tick):
    """Let the server of a switch's output, which is idle, begin with what waits."""
    line = state.link[link]
    control = line[CONTROL] != NOBODY
    if const.rules.weighted != 0 and control and line[WHOLE] != NOBODY:
        control = state.cycle[link] != 0
        state.cycle[link] = next_turn(state.cycle[link])
    if control:
        begin(const, state, link, take_first(state, line, CONTROL), tick)
    elif line[WHOLE] != NOBODY:
        begin(const, state, link, take_first(state, line, WHOLE), tick)


@inline
def _mark(const, state, link, record):
    """Mark a packet that leaves many bytes behind it, or draw whether to."""
    line, low, high = state.link[link], const.fixed[link, MARK_LOW], const.fixed[link, MARK_HIGH]
    marked = is_marked(const.rules.seed, link, line[DRAWN], line[LOW], low, high)
    if line[LOW] <= high:
        line[DRAWN] += 1
    if marked and record[KIND] & MARK == 0:
        record[KIND] |= MARK
        line[MARKED] += 1


@inline
def take_head(const, state, link, now):
    """Take the first packet beyond the server, which arrives now, off a link that is settled; it awaits the next."""
    line = state.link[link]
    packet = take_first(state, line, FLYING)
    if line[FLYING] != NOBODY:
        later = elapsed(state.packet[line[FLYING], ENDED], state.packet[packet, ENDED])
        await_packet(const, state, link, now + later)
    elif line[SERVING] != NOBODY:
        await_packet(const, state, link, line[ENDS] + const.fixed[link, DELAY])
    return packet


@inline
def _lose(state, link, packet):
    """Lose a packet at a link."""
    state.lost[link, DROPS] += 1
    free_record(state, packet)


@inline
def accept(const, state, link, packet, now):
    """Take a packet into the queue of a switch's output, or trim or drop one where it is full."""
    settle(const, state, link, now)
    line = state.link[link]
    size, victim = np.int64(state.packet[packet, SIZE]), packet
    if is_whole(state.packet[packet, KIND]):
        victim = NOBODY
        if line[LOW] + size > const.fixed[link, ROOM]:
            if const.fixed[link, ROOM] == DEAD:
                _lose(state, link, packet)
                return
            victim = packet
            heads = evicts(const.rules.seed, link, line[FULLS])
            line[FULLS] += 1
            if heads and line[WHOLE] != NOBODY:
                victim = _take_youngest(state, line)
                line[LOW] -= np.int64(state.packet[victim, SIZE])
                line[TAKEN] -= 1
        if victim != packet:
            append(state, line, WHOLE, packet)
            line[LOW] += size
            line[TAKEN] += 1
            line[MOST] = max(line[MOST], line[LOW])
        if victim != NOBODY:
            if const.rules.trims == 0:
                _lose(state, link, victim)
                victim = NOBODY
            else:
                state.lost[link, CUT] += 1
                state.packet[victim, SIZE] = const.rules.control
                state.packet[victim, KIND] |= (TRIM | LAST_HOP) if link >= const.eject else TRIM
    if victim != NOBODY:
        size = np.int64(state.packet[victim, SIZE])
        if line[HIGH] + size > 2 * const.fixed[link, ROOM]:
            _lose(state, link, victim)
        else:
            append(state, line, CONTROL, victim)
            line[HIGH] += size
            line[TAKEN] += 1
    if line[SERVING] == NOBODY:
        _go_on(const, state, link, now)


@njit
def break_link(const, state, link, now):
    """Lose what is on a link, which is settled and takes nothing any more."""
    line, fixed = state.link[link], const.fixed[link]
    _await_no_more(const, state, link, now)
    for which in (FLYING, CONTROL, WHOLE):
        while line[which] != NOBODY:
            _lose(state, link, take_first(state, line, which))
    if line[SERVING] != NOBODY:
        line[BUSY] -= line[ENDS] - now
        _lose(state, link, line[SERVING])
        line[SERVING] = NOBODY
    line[LOW] = line[HIGH] = 0
    fixed[ROOM] = DEAD


@inline
def _await_no_more(const, state, link, now):
    """Let a link not await its first packet any more, if it does."""
    line, delay = state.link[link], const.fixed[link, DELAY]
    if line[FLYING] != NOBODY:
        forget_packet(const, state, link, whole_tick(state.packet[line[FLYING], ENDED], now) + delay)
    elif line[SERVING] != NOBODY:
        forget_packet(const, state, link, line[ENDS] + delay)


@njit
def change_link(const, state, link, ratio, room, low, high, now):
    """Let a link, which is settled, have other numbers from now on, also for the packet that it is sending."""
    line, fixed = state.link[link], const.fixed[link]
    before = fixed[RATIO]
    fixed[RATIO], fixed[ROOM], fixed[MARK_LOW], fixed[MARK_HIGH] = ratio, room, low, high
    fixed[LONG], fixed[SHORT] = service_ticks(ratio, const.rules.mtu), service_ticks(ratio, const.rules.control)
    if line[SERVING] != NOBODY:
        size = np.int64(state.packet[line[SERVING], SIZE])
        ends = now + rest_ticks(line[ENDS] - now, before, ratio, size)
        line[BUSY] += ends - line[ENDS]
        if line[FLYING] == NOBODY:
            _await_no_more(const, state, link, now)
            await_packet(const, state, link, ends + fixed[DELAY])
        line[ENDS] = ends
