"""Granting an output to a waiting head, where each head waits for one output and outputs are independent."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import ON_ESCAPE
from flitlab.models.rules.tables import ESCAPE, ESCAPE_VC
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.records import FLITS, H_BORN, HOP, INPUT_VC, LATE, NEXT, NOBODY, WAY
from flitlab.sim.engines.compiled.ugal import by_congestion
from flitlab.sim.engines.compiled.vct.rows import dequeue, present, room_for
from flitlab.sim.engines.compiled.vct.state import (
    FIRST_RETURN,
    FRONT,
    LEFT,
    QUEUED,
    RETURNS,
    RING,
    ROOM,
    UPSTREAM,
    WANTED,
)
from flitlab.sim.engines.compiled.wheel import wake


@inner
def grant(c, s, p, v, output, next_vc, tick):
    """Move the packet at the front of input VC v to an output; next_vc NOBODY: to its host."""
    flits = np.int64(s.pool.packet[p, FLITS])
    s.tally.scalars[GRANTS] += 1
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
    if by_congestion(c.rule):
        s.vc[v, QUEUED] -= np.uint32(flits)
    if c.shared_input:
        s.input_busy[v // c.vcs] = tick + flits
    behind = np.int64(s.pool.packet[p, NEXT])
    s.vc[v, FRONT] = behind
    if behind != NOBODY:
        present(c, s, v, behind, tick + flits)

    if next_vc == NOBODY:
        slot = (tick + flits - 1 + c.switch + c.ejection) & s.outputs.mask
        s.pool.packet[p, NEXT] = s.leaving[slot]
        s.leaving[slot] = p
        return
    s.vc[next_vc, ROOM] -= flits
    s.pool.packet[p, INPUT_VC] = next_vc
    s.pool.packet[p, HOP] += 1
    if c.policy == ESCAPE and next_vc % c.vcs == ESCAPE_VC:
        s.pool.packet[p, WAY] = ON_ESCAPE
    channel = c.net.ports.out_channel[output]
    s.tally.channel_flits[channel] += flits
    slot = (tick + c.switch + c.link + c.delay[channel] + c.header) & s.outputs.mask
    s.pool.packet[p, NEXT] = s.arriving[slot]
    s.arriving[slot] = p


@inner
def serve(c, s, output, tick):
    """Grant a free output to the oldest waiting head that has room (each head waits for one output only)."""
    if s.waiting[output] == 0:
        return
    if s.busy[output] > tick:
        wake(s.outputs, output, np.int64(s.busy[output]))
        return
    ejects = c.net.ports.out_input[output] == NOBODY
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
