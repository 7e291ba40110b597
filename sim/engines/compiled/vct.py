"""Virtual cut-through, compiled.

There are no credit events. An input VC keeps the ticks at which the room of the packets that left it
becomes usable upstream, and whoever needs room reads them. For every output there is a row of the
heads that wait for it, sorted by age; an output is looked at when a head becomes eligible, when it
falls free or when room returns, each a bit on a wheel. Packets are records that are used again.
"""

from typing import NamedTuple

import numpy as np

from models.histogram import BUCKETS
from models.jit import kernel, njit
from models.routing.routes import ADAPTIVE
from models.rules.arrivals import Arrivals
from models.rules.bits import lowest
from models.rules.order import age_key
from models.rules.packets import Packets
from models.rules.ports import Ports, make_ports
from models.rules.route import fixed_port
from models.rules.vc import Rings, make_rings, vc_range
from models.scenario import Scenario
from sim.engines.base import DELIVERED_PACKETS, EVENTS, GRANTS, SCALARS
from sim.engines.compiled.records import (
    FLITS,
    H_BORN,
    H_FLITS,
    H_FREE,
    HOP,
    HOST_RECORD,
    INPUT_VC,
    LATE,
    NEXT,
    NOBODY,
    OUTPUT,
    RECORD,
    SEQUENCE,
    SOURCE,
    TARGET,
    ZERO,
    create,
    deliver,
    first_packets,
    unsigned,
)
from sim.engines.compiled.wheel import Wheel, make_wheel, wake

# Fields of an input VC record, uint32.
FRONT, BACK, LEFT, ROOM, RETURNS, FIRST_RETURN, SWITCH, UPSTREAM, WANTED, RING = range(10)
# UPSTREAM: the output that feeds it, or the number of outputs + the host. WANTED: heads that wait there for
# room in it. From RING on: pairs (tick, flits) of room on its way back upstream, a ring of them.

# What a head in an output's row wants, packed: its first VC downstream, how many VCs, its flits.
_COUNT_AT, _FLITS_AT = 32, 40
_LOW_MASK, _COUNT_MASK = 0xFFFFFFFF, 0xFF


class Constants(NamedTuple):
    """What does not change during a run: times in ticks, tables, and the draws' seed."""

    seed: int
    switches: int
    hosts: int
    vcs: int
    policy: int
    rule: int
    shared_input: bool
    header: int
    switch: int
    link: int
    injection: int
    ejection: int
    credit: int
    ring: int  # capacity of an input VC's ring of returning room, a power of two
    routes: np.ndarray
    out_start: np.ndarray
    delay: np.ndarray
    host_switch: np.ndarray
    ports: Ports
    rings: Rings
    arrivals: Arrivals
    packets: Packets


class State(NamedTuple):
    """What changes during a run."""

    packet: np.ndarray  # uint32 [packets, RECORD]
    free: np.ndarray  # uint32 [packets + 1]: a stack of unused records; its height is in the last entry
    vc: np.ndarray  # uint32 [input VCs, record]
    busy: np.ndarray  # uint32 [outputs]: held until this tick
    input_busy: np.ndarray  # uint32 [inputs]
    waiting: np.ndarray  # uint32 [outputs]: heads in the row
    rows: np.ndarray  # int64 [outputs, row]: age keys
    wants: np.ndarray  # int64 [outputs, row]: what each of them wants
    host: np.ndarray  # int64 [hosts, HOST_RECORD]
    arriving: np.ndarray  # uint32 [ticks]: first of the packets that are ready to be routed then
    leaving: np.ndarray  # uint32 [ticks]: first of the packets whose tail is delivered then
    awake: np.ndarray  # int64 [ports of a switch]: scratch of _serve_switch, as is the next
    cursor: np.ndarray
    outputs: Wheel
    senders: Wheel
    scalars: np.ndarray
    histogram: np.ndarray
    channel_flits: np.ndarray
    pairs: np.ndarray  # int64 [switches * switches]
    by_source: np.ndarray
    by_destination: np.ndarray
    log: np.ndarray  # int64 [entries, 3]; used entries are the delivered packets


def build(scenario: Scenario, arrivals: Arrivals, packets: Packets, seed: int) -> tuple[Constants, State]:
    """Constants and the state at tick 0."""
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    outputs, inputs, hosts = len(ports.out_input), len(ports.in_switch), topology.hosts
    shortest, longest = int(packets.flits.min()), int(packets.flits.max())
    slots = model.buffer_flits // shortest
    input_vcs = inputs * model.vcs
    horizon = longest + model.credit + model.switch + model.header + int(topology.delay.max(initial=0))
    horizon += max(model.link, model.ejection, model.injection) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    row = int(np.diff(ports.in_base).max(initial=1)) * model.vcs
    ring = 1 << (slots - 1).bit_length()
    constants = Constants(
        seed, topology.switches, hosts, model.vcs, scenario.vc_policy, scenario.routes.select,
        model.shared_input, model.header, model.switch, model.link, model.injection, model.ejection,
        model.credit, ring, scenario.routes.ports, topology.out_start,
        topology.delay, topology.host_switch.astype(np.uint32), unsigned(ports), make_rings(topology),
        arrivals, packets,
    )  # fmt: skip
    # Credits bound what is in buffers and on its way to them, the ejection channel's rate what is leaving.
    leaving = hosts * ((longest + model.switch + model.ejection) // shortest + 2)
    records = input_vcs * slots + leaving
    vc = np.zeros((input_vcs, -(-(RING + 2 * ring) // 16) * 16), np.uint32)  # whole cache lines
    vc[:, FRONT] = vc[:, BACK] = NOBODY
    vc[:, ROOM] = model.buffer_flits
    vc[:, SWITCH] = np.repeat(ports.in_switch, model.vcs)
    upstream = np.where(ports.in_output >= 0, ports.in_output, outputs - 1 - ports.in_output)
    vc[:, UPSTREAM] = np.repeat(upstream, model.vcs)
    state = State(
        packet=np.zeros((records, RECORD), np.uint32),
        free=np.append(np.arange(records)[::-1], records).astype(np.uint32),
        vc=vc,
        busy=np.zeros(outputs, np.uint32),
        input_busy=np.zeros(inputs, np.uint32),
        waiting=np.zeros(outputs, np.uint32),
        rows=np.zeros((outputs, -(-row // 8) * 8), np.int64),
        wants=np.zeros((outputs, -(-row // 8) * 8), np.int64),
        host=np.zeros((hosts, HOST_RECORD), np.int64),
        arriving=np.full(ticks, NOBODY, np.uint32),
        leaving=np.full(ticks, NOBODY, np.uint32),
        awake=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        cursor=np.zeros(int(np.diff(ports.out_base).max()), np.int64),
        outputs=make_wheel(outputs, ticks),
        senders=make_wheel(hosts, ticks),
        scalars=np.zeros(SCALARS, np.int64),
        histogram=np.zeros(BUCKETS, np.int64),
        channel_flits=np.zeros(topology.channels, np.int64),
        pairs=np.zeros(topology.switches**2, np.int64),
        by_source=np.zeros(hosts, np.int64),
        by_destination=np.zeros(hosts, np.int64),
        log=np.zeros((0, 3), np.int64),
    )
    first_packets(constants, state)
    for h in range(hosts):
        wake(state.senders, h, 0)
    return constants, state


@kernel
def _reclaim(c, s, v, tick):
    """Take back the room of packets that has become usable by ``tick``; the room of input VC v."""
    while s.vc[v, RETURNS] > 0:
        first = s.vc[v, FIRST_RETURN]
        if s.vc[v, RING + 2 * first] > tick:
            break
        s.vc[v, ROOM] += s.vc[v, RING + 2 * first + 1]
        s.vc[v, FIRST_RETURN] = (first + 1) & (c.ring - 1)
        s.vc[v, RETURNS] -= 1
    return s.vc[v, ROOM]


@kernel
def _roomiest(c, s, low, high, flits, tick):
    """(VC, room) of the VC in low .. high - 1 with most room, (NOBODY, tick of the next return) if none has enough."""
    best, most, soonest = NOBODY, flits - 1, LATE
    for v in range(low, high):
        room = _reclaim(c, s, v, tick)
        if room > most:
            best, most = v, room
        elif s.vc[v, RETURNS] > 0:
            soonest = min(soonest, np.int64(s.vc[v, RING + 2 * s.vc[v, FIRST_RETURN]]))
    if best == NOBODY:
        return NOBODY, soonest
    return best, most


@kernel
def _enqueue(c, s, p, output, eligible, key):
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


@kernel
def _dequeue(s, output, i):
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


@kernel
def _present(c, s, v, p, eligible):
    """The packet at the front of input VC v asks for its output (adaptive: for all it may take)."""
    key = age_key(eligible, v)
    if c.rule == ADAPTIVE and s.packet[p, OUTPUT] == NOBODY:
        here = np.int64(s.vc[v, SWITCH])
        base = c.ports.out_base[here]
        ports = c.routes[c.host_switch[s.packet[p, TARGET]], here]
        while ports:
            output = base + lowest(ports)
            ports &= ports - np.uint64(1)
            _enqueue(c, s, p, output, eligible, key)
    else:
        _enqueue(c, s, p, np.int64(s.packet[p, OUTPUT]), eligible, key)


@kernel
def _route(c, s, p):
    """Set the output of a packet that has come to a switch; NOBODY if that is decided every tick."""
    here = np.int64(s.vc[s.packet[p, INPUT_VC], SWITCH])
    target = np.int64(s.packet[p, TARGET])
    there = c.host_switch[target]
    if there == here:
        s.packet[p, OUTPUT] = c.ports.eject[target]
    elif c.rule == ADAPTIVE:
        s.packet[p, OUTPUT] = NOBODY
    else:
        source, sequence = np.int64(s.packet[p, SOURCE]), np.int64(s.packet[p, SEQUENCE])
        hop = np.int64(s.packet[p, HOP])
        port = fixed_port(
            c.routes[there, here], c.rule, c.seed, here, source, target, c.hosts, sequence, hop
        )
        s.packet[p, OUTPUT] = c.ports.out_base[here] + port


@kernel
def _arrive(c, s, p, tick):
    """A packet's header has been read: it joins its VC, and asks for its output if it is at the front."""
    v = np.int64(s.packet[p, INPUT_VC])
    s.packet[p, NEXT] = NOBODY
    if s.vc[v, FRONT] == NOBODY:
        s.vc[v, FRONT] = p
        s.vc[v, BACK] = p
        _present(c, s, v, p, max(tick, np.int64(s.vc[v, LEFT])))
    else:
        s.packet[s.vc[v, BACK], NEXT] = p
        s.vc[v, BACK] = p


@kernel
def _send(c, s, h, tick):
    """Host h starts its oldest packet if it can, and is woken when that may change."""
    host = s.host[h]
    if host[H_BORN] > tick:
        wake(s.senders, h, min(host[H_BORN], tick + s.senders.mask))
        return
    if host[H_FREE] > tick:
        wake(s.senders, h, host[H_FREE])
        return
    flits = host[H_FLITS]
    first = c.ports.inject[h] * c.vcs
    v, when = _roomiest(c, s, first, first + c.vcs, flits, tick)
    if v == NOBODY:
        if when < LATE:
            wake(s.senders, h, when)
        return
    p = create(c, s, h, tick)
    s.packet[p, INPUT_VC] = v
    s.vc[v, ROOM] -= flits
    ready = (tick + c.injection + c.header) & s.senders.mask
    s.packet[p, NEXT] = s.arriving[ready]
    s.arriving[ready] = p
    wake(s.senders, h, min(max(host[H_BORN], tick + flits), tick + s.senders.mask))


@kernel
def _vcs_of(c, s, p, output):
    """The input VCs at the far end of a network output that a packet may take: (first, one past the last)."""
    channel = c.ports.out_channel[output]
    source, target = c.host_switch[s.packet[p, SOURCE]], c.host_switch[s.packet[p, TARGET]]
    here = np.int64(s.vc[s.packet[p, INPUT_VC], SWITCH])
    low, high = vc_range(c.policy, c.vcs, np.int64(s.packet[p, HOP]), c.rings, source, target, channel, here)
    base = c.ports.out_input[output] * c.vcs
    return base + low, base + high


@kernel
def _want(c, s, p, output):
    """What a packet wants of an output: VCs and flits, packed; no VC of an ejection channel."""
    flits = np.int64(s.packet[p, FLITS]) << _FLITS_AT
    if c.ports.out_input[output] == NOBODY:
        return flits
    low, high = _vcs_of(c, s, p, output)
    return flits | ((high - low) << _COUNT_AT) | low


@kernel
def _room_for(c, s, want, tick):
    """As :func:`_roomiest`, for a packed want."""
    low = want & _LOW_MASK
    return _roomiest(c, s, low, low + ((want >> _COUNT_AT) & _COUNT_MASK), want >> _FLITS_AT, tick)


@kernel
def _grant(c, s, p, v, output, next_vc, tick):
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
        _present(c, s, v, behind, tick + flits)

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
            next_vc, when = _room_for(c, s, s.wants[output, i], tick)
            if next_vc == NOBODY:
                if when < LATE:
                    wake(s.outputs, output, when)
                continue
        _dequeue(s, output, i)
        v = key & 0xFFFFFFFF
        _grant(c, s, np.int64(s.vc[v, FRONT]), v, output, next_vc, tick)
        return


@kernel
def _withdraw(c, s, output, key):
    """Take a head out of an output's row."""
    for i in range(np.int64(s.waiting[output])):
        if s.rows[output, i] == key:
            _dequeue(s, output, i)
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
                next_vc, room = _room_for(c, s, s.wants[output, cursor[k] - 1], tick)
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
                _withdraw(c, s, c.ports.out_base[here] + lowest(ports), oldest)
                ports &= ports - np.uint64(1)
            for k in range(count):  # rows from which it went have moved up by one
                if cursor[k] < LATE and cursor[k] > 0:
                    cursor[k] = _first_not_before(s, awake[k], oldest)
        else:
            _dequeue(s, granted, cursor[best] - 1)
        cursor[best] = LATE
        _grant(c, s, p, v, granted, best_vc, tick)
    for k in range(count):
        output = awake[k]
        if cursor[k] < s.waiting[output]:
            wake(s.outputs, output, s.rows[output, cursor[k]] >> 32)


@kernel
def _first_not_before(s, output, key):
    """How many heads of a row are older than ``key``."""
    i = 0
    while i < s.waiting[output] and s.rows[output, i] < key:
        i += 1
    return i


@kernel
def _serve_all(c, s, tick):
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


@kernel
def _send_all(c, s, tick):
    """Let every host send whose bit is set at this tick."""
    slot = tick & s.senders.mask
    for block in range(s.senders.summary.shape[1]):
        words = s.senders.summary[slot, block]
        s.senders.summary[slot, block] = 0
        while words:
            w = block * 64 + lowest(words)
            words &= words - np.uint64(1)
            bits = s.senders.bits[slot, w]
            s.senders.bits[slot, w] = 0
            while bits:
                _send(c, s, w * 64 + lowest(bits), tick)
                bits &= bits - np.uint64(1)
                s.scalars[EVENTS] += 1


@kernel
def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full."""
    mask = s.outputs.mask
    for tick in range(now, until):
        if len(s.log) and s.scalars[DELIVERED_PACKETS] + c.hosts > len(s.log):
            return tick
        slot = tick & mask
        p = np.int64(s.arriving[slot])
        if p != NOBODY:
            s.arriving[slot] = NOBODY
            first = p
            while p != NOBODY:
                _route(c, s, p)
                p = np.int64(s.packet[p, NEXT])
            p = first
            while p != NOBODY:
                following = np.int64(s.packet[p, NEXT])
                _arrive(c, s, p, tick)
                p = following
                s.scalars[EVENTS] += 1
        p = np.int64(s.leaving[slot])
        if p != NOBODY:
            s.leaving[slot] = NOBODY
            while p != NOBODY:
                following = np.int64(s.packet[p, NEXT])
                deliver(c, s, p, tick)
                p = following
                s.scalars[EVENTS] += 1
        _send_all(c, s, tick)
        _serve_all(c, s, tick)
    return until


@njit
def stuck(c, s, now):
    """Whether the packet at the front of some VC can never move: no VC it may take will ever have room.

    A VC will have room if it has it, if room is on its way back, if a packet on its way into it will
    come to its front, or if the packet at its front can move.
    """
    count = len(s.vc)
    live = np.zeros(count, np.bool_)
    for v in range(count):
        live[v] = s.vc[v, FRONT] == NOBODY or s.vc[v, RETURNS] > 0
    changed = True
    while changed:
        changed = False
        for v in range(count):
            if not live[v] and _can_move(c, s, v, live, now):
                live[v] = True
                changed = True
    return not live.all()


@kernel
def _can_move(c, s, v, live, now):
    """Whether the front packet of VC v finds room now or in a VC known to be live."""
    p = np.int64(s.vc[v, FRONT])
    here = np.int64(s.vc[v, SWITCH])
    there = c.host_switch[s.packet[p, TARGET]]
    if there == here:
        return True
    base = c.ports.out_base[here]
    ports = c.routes[there, here]
    if c.rule != ADAPTIVE:
        ports = np.uint64(1) << np.uint64(s.packet[p, OUTPUT] - base)
    while ports:
        low, high = _vcs_of(c, s, p, base + lowest(ports))
        ports &= ports - np.uint64(1)
        for w in range(low, high):
            if live[w] or _reclaim(c, s, w, now) >= s.packet[p, FLITS]:
                return True
    return False
