"""The heads that wait for an output, sorted by age, and the room that they wait for."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.order import age_key
from flitlab.models.rules.route import usable_ports
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.rules.vc import allowed_vcs, appeal
from flitlab.sim.engines.compiled.records import FLITS, HOP, INPUT_VC, LATE, NOBODY, OUTPUT, SOURCE, TARGET, WAY, ZERO
from flitlab.sim.engines.compiled.vct.state import FIRST_RETURN, RETURNS, RING, ROOM, SWITCH, WANTED
from flitlab.sim.engines.compiled.wheel import wake

# What a head in an output's row wants, packed: its first VC downstream, how many VCs, its flits.
_COUNT_AT, _FLITS_AT = 32, 40
_LOW_MASK, _COUNT_MASK = 0xFFFFFFFF, 0xFF


@inner
def reclaim(c, s, v, tick):
    """Take back the room of packets that has become usable by ``tick``; the room of input VC v."""
    while s.vc[v, RETURNS] > 0:
        first = s.vc[v, FIRST_RETURN]
        if s.vc[v, RING + 2 * first] > tick:
            break
        s.vc[v, ROOM] += s.vc[v, RING + 2 * first + 1]
        s.vc[v, FIRST_RETURN] = (first + 1) & (c.ring - 1)
        s.vc[v, RETURNS] -= 1
    return s.vc[v, ROOM]


@inner
def preferred(c, s, policy, low, high, flits, tick):
    """(VC, its appeal) of the one preferred in low .. high - 1, (NOBODY, tick of the next return) if none has room."""
    best, most, soonest = NOBODY, ZERO, LATE
    for v in range(low, high):
        room = np.int64(reclaim(c, s, v, tick))
        if room >= flits:
            worth = appeal(policy, v % c.vcs, room, flits)
            if worth > most:
                best, most = v, worth
        elif s.vc[v, RETURNS] > 0:
            soonest = min(soonest, np.int64(s.vc[v, RING + 2 * s.vc[v, FIRST_RETURN]]))
    if best == NOBODY:
        return NOBODY, soonest
    return best, most


@inner
def vcs_of(c, s, p, output):
    """The input VCs at the far end of a network output that a packet may take: (first, one past the last)."""
    channel = c.net.ports.out_channel[output]
    source, target = c.net.host_switch[s.pool.packet[p, SOURCE]], c.net.host_switch[s.pool.packet[p, TARGET]]
    here = np.int64(s.vc[s.pool.packet[p, INPUT_VC], SWITCH])
    low, high = allowed_vcs(
        c.routes, np.int64(s.pool.packet[p, WAY]), c.policy, c.vcs, np.int64(s.pool.packet[p, HOP]), c.rings, source, target,
        channel, here, output - c.net.ports.out_base[here],
    )  # fmt: skip
    base = c.net.ports.out_input[output] * c.vcs
    return base + low, base + high


@inner
def ports_of(c, s, p, here):
    """The set of ports that an adaptive packet may take at a switch."""
    there = np.int64(c.net.host_switch[s.pool.packet[p, TARGET]])
    return usable_ports(c.routes, np.int64(s.pool.packet[p, WAY]), np.int64(s.pool.packet[p, HOP]), here, there)


@inner
def _want(c, s, p, output):
    """What a packet wants of an output: VCs and flits, packed; no VC of an ejection channel."""
    flits = np.int64(s.pool.packet[p, FLITS]) << _FLITS_AT
    if c.net.ports.out_input[output] == NOBODY:
        return flits
    low, high = vcs_of(c, s, p, output)
    return flits | ((high - low) << _COUNT_AT) | low


@inner
def room_for(c, s, want, tick):
    """As :func:`preferred`, for a packed want."""
    low = want & _LOW_MASK
    return preferred(c, s, c.policy, low, low + ((want >> _COUNT_AT) & _COUNT_MASK), want >> _FLITS_AT, tick)


@inner
def enqueue(c, s, p, output, eligible, key):
    """Insert a head into an output's row, which is sorted, and see that the output is looked at."""
    i = np.int64(s.waiting[output])
    s.waiting[output] = i + 1
    while i > 0 and s.rows[output, i - 1] > key:
        s.rows[output, i] = s.rows[output, i - 1]
        s.wants[output, i] = s.wants[output, i - 1]
        i -= 1
    s.rows[output, i] = key
    want = _want(c, s, p, output)
    s.wants[output, i] = want
    low = want & _LOW_MASK
    for v in range(low, low + ((want >> _COUNT_AT) & _COUNT_MASK)):
        s.vc[v, WANTED] += 1
    wake(s.outputs, output, max(eligible, np.int64(s.busy[output])))


@inner
def dequeue(s, output, i):
    """Remove entry i of an output's row."""
    want = s.wants[output, i]
    low = want & _LOW_MASK
    for v in range(low, low + ((want >> _COUNT_AT) & _COUNT_MASK)):
        s.vc[v, WANTED] -= 1
    count = np.int64(s.waiting[output]) - 1
    s.waiting[output] = count
    while i < count:
        s.rows[output, i] = s.rows[output, i + 1]
        s.wants[output, i] = s.wants[output, i + 1]
        i += 1


@inner
def withdraw(c, s, output, key):
    """Take a head out of an output's row."""
    for i in range(np.int64(s.waiting[output])):
        if s.rows[output, i] == key:
            dequeue(s, output, i)
            return


@inner
def first_not_before(s, output, key):
    """How many heads of a row are older than ``key``."""
    i = 0
    while i < s.waiting[output] and s.rows[output, i] < key:
        i += 1
    return i


@inner
def present(c, s, v, p, eligible):
    """The packet at the front of input VC v asks for its output (adaptive: for all it may take)."""
    key = age_key(eligible, v)
    if c.rule == ADAPTIVE and s.pool.packet[p, OUTPUT] == NOBODY:
        here = np.int64(s.vc[v, SWITCH])
        base = c.net.ports.out_base[here]
        ports = ports_of(c, s, p, here)
        while ports:
            output = base + lowest(ports)
            ports &= ports - np.uint64(1)
            enqueue(c, s, p, output, eligible, key)
    else:
        enqueue(c, s, p, np.int64(s.pool.packet[p, OUTPUT]), eligible, key)
