"""Which waiting head gets an output."""

import numpy as np

from models.jit import kernel
from models.routing.routes import ADAPTIVE
from models.rules.bits import lowest
from sim.engines.base import EVENTS, GRANTS
from sim.engines.compiled.records import (
    FLITS,
    H_BORN,
    HOP,
    INPUT_VC,
    LATE,
    NEXT,
    NOBODY,
    OUTPUT,
    TARGET,
    ZERO,
)
from sim.engines.compiled.vct.rows import dequeue, first_not_before, present, room_for, withdraw
from sim.engines.compiled.vct.state import (
    FIRST_RETURN,
    FRONT,
    LEFT,
    RETURNS,
    RING,
    ROOM,
    SWITCH,
    UPSTREAM,
    WANTED,
)
from sim.engines.compiled.wheel import wake


@kernel
def grant(c, s, p, v, output, next_vc, tick):
    """Move the packet at the front of input VC v to an output; next_vc NOBODY: to its host."""
    flits = np.int64(s.packet[p, FLITS])
    s.scalars[GRANTS] += 1
    s.busy[output] = tick + flits
    if s.waiting[output]:
        wake(s.outputs, output, tick + flits)

    # The VC it leaves: room returns upstream, and the packet behind it comes to the front.
    back = tick + flits - 1 + c.credit
    last = np.int64((s.vc[v, FIRST_RETURN] + s.vc[v, RETURNS]) & (c.ring - 1))
    s.vc[v, RING + 2 * last] = back
    s.vc[v, RING + 2 * last + 1] = flits
    s.vc[v, RETURNS] += 1
    upstream = np.int64(s.vc[v, UPSTREAM])
    if upstream >= len(s.busy):  # a host
        host = upstream - len(s.busy)
        if s.host[host, H_BORN] <= back:
            wake(s.senders, host, back)
    elif s.vc[v, WANTED] and s.busy[upstream] <= back:  # if held, it is looked at when it falls free
        wake(s.outputs, upstream, back)
    s.vc[v, LEFT] = tick + flits
    if c.shared_input:
        s.input_busy[v // c.vcs] = tick + flits
    behind = np.int64(s.packet[p, NEXT])
    s.vc[v, FRONT] = behind
    if behind != NOBODY:
        present(c, s, v, behind, tick + flits)

    if next_vc == NOBODY:
        slot = (tick + flits - 1 + c.switch + c.ejection) & s.outputs.mask
        s.packet[p, NEXT] = s.leaving[slot]
        s.leaving[slot] = p
        return
    s.vc[next_vc, ROOM] -= flits
    s.packet[p, INPUT_VC] = next_vc
    s.packet[p, HOP] += 1
    channel = c.ports.out_channel[output]
    s.channel_flits[channel] += flits
    slot = (tick + c.switch + c.link + c.delay[channel] + c.header) & s.outputs.mask
    s.packet[p, NEXT] = s.arriving[slot]
    s.arriving[slot] = p


@kernel
def _serve(c, s, output, tick):
    """Grant a free output to the oldest waiting head that has room (each head waits for one output only)."""
    if s.waiting[output] == 0:
        return
    if s.busy[output] > tick:
        wake(s.outputs, output, np.int64(s.busy[output]))
        return
    ejects = c.ports.out_input[output] == NOBODY
    for i in range(np.int64(s.waiting[output])):
        key = s.rows[output, i]
        if key >> 32 > tick:
            wake(s.outputs, output, key >> 32)
            return
        next_vc = NOBODY
        if not ejects:
            next_vc, when = room_for(c, s, s.wants[output, i], tick)
            if next_vc == NOBODY:
                if when < LATE:
                    wake(s.outputs, output, when)
                continue
        dequeue(s, output, i)
        v = key & 0xFFFFFFFF
        grant(c, s, np.int64(s.vc[v, FRONT]), v, output, next_vc, tick)
        return


@kernel
def _serve_switch(c, s, count, tick):
    """Serve the first ``count`` outputs in ``s.awake``, all of one switch, visiting heads by age across them.

    Needed where outputs are not independent: heads that wait for several of them, or inputs that
    send one packet at a time.
    """
    awake, cursor = s.awake, s.cursor
    for k in range(count):
        cursor[k] = 0
        output = awake[k]
        if s.waiting[output] and s.busy[output] > tick:
            wake(s.outputs, output, np.int64(s.busy[output]))
            cursor[k] = LATE
    while True:
        oldest = np.int64(LATE) << 32
        for k in range(count):
            if cursor[k] < s.waiting[awake[k]]:
                oldest = min(oldest, s.rows[awake[k], cursor[k]])
        if oldest >> 32 > tick:
            break
        v = oldest & 0xFFFFFFFF
        p = np.int64(s.vc[v, FRONT])
        blocked_until = np.int64(s.input_busy[v // c.vcs])
        best, best_vc, most = NOBODY, NOBODY, np.int64(-1)
        for k in range(count):
            output = awake[k]
            if cursor[k] >= s.waiting[output] or s.rows[output, cursor[k]] != oldest:
                continue
            cursor[k] += 1
            if blocked_until > tick:
                wake(s.outputs, output, blocked_until)
            elif c.ports.out_input[output] == NOBODY:
                best = k
            else:
                next_vc, room = room_for(c, s, s.wants[output, cursor[k] - 1], tick)
                if next_vc != NOBODY:
                    if room > most:
                        best, best_vc, most = k, next_vc, room
                elif room < LATE:
                    wake(s.outputs, output, room)
        if best == NOBODY:
            continue
        granted = awake[best]
        if s.packet[p, OUTPUT] == NOBODY:
            here = np.int64(s.vc[v, SWITCH])
            ports = c.routes[c.host_switch[s.packet[p, TARGET]], here]
            while ports:
                withdraw(c, s, c.ports.out_base[here] + lowest(ports), oldest)
                ports &= ports - np.uint64(1)
            for k in range(count):  # rows from which it went have moved up by one
                if cursor[k] < LATE and cursor[k] > 0:
                    cursor[k] = first_not_before(s, awake[k], oldest)
        else:
            dequeue(s, granted, cursor[best] - 1)
        cursor[best] = LATE
        grant(c, s, p, v, granted, best_vc, tick)
    for k in range(count):
        output = awake[k]
        if cursor[k] < s.waiting[output]:
            wake(s.outputs, output, s.rows[output, cursor[k]] >> 32)


@kernel
def serve_all(c, s, tick):
    """Allocation: serve every output whose bit is set at this tick."""
    slot = tick & s.outputs.mask
    events = 0
    together = c.shared_input or c.rule == ADAPTIVE
    count, here_end = ZERO, ZERO
    here = np.int64(-1)
    for block in range(s.outputs.summary.shape[1]):
        words = s.outputs.summary[slot, block]
        s.outputs.summary[slot, block] = 0
        while words:
            w = block * 64 + lowest(words)
            words &= words - np.uint64(1)
            bits = s.outputs.bits[slot, w]
            s.outputs.bits[slot, w] = 0
            while bits:
                output = w * 64 + lowest(bits)
                bits &= bits - np.uint64(1)
                events += 1
                if not together:
                    _serve(c, s, output, tick)
                    continue
                if output >= here_end:
                    if count:
                        _serve_switch(c, s, count, tick)
                    count = ZERO
                    while output >= here_end:
                        here += 1
                        here_end = c.ports.out_base[here + 1]
                s.awake[count] = output
                count += 1
    if count:
        _serve_switch(c, s, count, tick)
    s.scalars[EVENTS] += events
