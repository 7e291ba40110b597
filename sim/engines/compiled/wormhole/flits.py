"""How flits move: from buffer to buffer, and the credits that they leave behind."""

import numpy as np

from models.jit import inner
from models.routing.routes import ADAPTIVE, ANY, ESCAPE, ESCAPE_VC
from models.rules.bits import lowest
from models.rules.route import ON_ESCAPE, at_target, next_port, usable_ports
from models.rules.vc import allowed_vcs
from sim.engines.base import EVENTS, GRANTS
from sim.engines.compiled.records import HOP, NEXT, NOBODY, SEQUENCE, SOURCE, TARGET, WAY
from sim.engines.compiled.wheel import wake
from sim.engines.compiled.wormhole.sets import (
    LOW,
    ONE,
    SIX,
    U,
    bit,
    clear,
    drop,
    is_empty,
    put,
    put_range,
    slot,
    word_of,
)
from sim.engines.compiled.wormhole.state import (
    ASKING,
    CHANNEL,
    COUNT,
    CREDITED,
    CREDITS,
    DELAY_CLASS,
    FEEDER,
    FIRST,
    FREE,
    HEAD,
    HEADERS,
    HELD,
    HOLDER,
    MEMBER,
    NEXT_FREE,
    OUTPUT,
    PACKET_AT,
    PRESENT,
    RANGE,
    READ,
    RETURNED,
    SENDER,
    SENDER_MEMBER,
    SETS,
    SINCE,
    SWITCH,
    TAIL,
    TARGET_VC,
    at,
)


@inner
def mark(bitmap, switch):
    """Note that a switch has work."""
    bitmap[switch >> SIX] |= ONE << (switch & LOW)


@inner
def look(c, s, switch, member):
    """Have the switch allocate if the front flit of an input VC can be sent."""
    w, row = word_of(c.size, member), switch * U(SETS)
    ready = s.sets[slot(c.size, row + U(PRESENT), w)] & s.sets[slot(c.size, row + U(HELD), w)]
    ready &= s.sets[slot(c.size, row + U(CREDITED), w)] & s.sets[slot(c.size, row + U(READ), w)]
    if ready & bit(member):
        mark(s.to_switch, switch)


@inner
def later(queues, which, tick, vc):
    """Put a VC into a queue, to come out of it after the queue's delay."""
    end = queues.ends[(U(which) << ONE) | U(1)]
    queues.entries[(U(which) << queues.bits) | (end & queues.mask)] = (U(tick + queues.delay[which]) << U(32)) | vc
    queues.ends[(U(which) << ONE) | U(1)] = end + ONE


@inner
def place_flit(vcs, flits, bits, ring, vc, flit):
    """Write a flit that is on its way into the place in a buffer that it will come to."""
    place = U(vcs[at(vc, NEXT_FREE)])
    flits[(vc << bits) | place] = flit
    vcs[at(vc, NEXT_FREE)] = (place + ONE) & ring


@inner
def _land(c, s, vc):
    """A flit arrives."""
    count = s.vc[at(vc, COUNT)]
    s.vc[at(vc, COUNT)] = count + 1
    if count == 0:
        switch, member = U(s.vc[at(vc, SWITCH)]), U(s.vc[at(vc, MEMBER)])
        put(c.size, s.sets, switch * U(SETS) + U(PRESENT), member)
        if s.flits[(vc << c.ring_bits) | U(s.vc[at(vc, FIRST)])] & HEAD:
            s.fronts[s.fronts[-1]] = vc
            s.fronts[-1] += 1
        else:
            look(c, s, switch, member)


@inner
def land_all(c, s, tick):
    """Flits that arrive now."""
    now = U(tick)
    for which in range(c.queues):
        if which in (RETURNED, HEADERS):
            continue
        first, end = s.queues.ends[(U(which) << ONE) | U(0)], s.queues.ends[(U(which) << ONE) | U(1)]
        begin = first
        while first != end:
            entry = s.queues.entries[(U(which) << s.queues.bits) | (first & s.queues.mask)]
            if entry >> U(32) != now:
                break
            _land(c, s, entry & U(0xFFFFFFFF))
            first += ONE
        s.queues.ends[(U(which) << ONE) | U(0)] = first
        s.tally.scalars[EVENTS] += np.int64(first - begin)


@inner
def _allow(c, s, vc, p, here, there, output):
    """Add the VCs of a network output that a packet may take."""
    low, high = np.int64(0), np.int64(c.vcs)
    if c.policy != ANY:  # asked for here already, so that a packet's record is not read in vain
        low, high = allowed_vcs(
            c.routes, np.int64(s.packet[p, WAY]), c.policy, c.vcs, np.int64(s.packet[p, HOP]), c.rings,
            np.int64(c.host_switch[s.packet[p, SOURCE]]), there, np.int64(c.ports.out_channel[output]), here,
            np.int64(output) - np.int64(c.ports.out_base[here]),
        )  # fmt: skip
    first = (output - U(c.ports.out_base[here])) * U(c.vcs) + U(low)
    put_range(c.size, s.allowed, vc, first, U(high - low))
    s.vc[at(vc, RANGE)] = c.first_out[here] + first


@inner
def _present(c, s, vc, tick):
    """The packet that has come to the front of an input VC asks for an output VC."""
    p = U(s.flits[(vc << c.ring_bits) | U(s.vc[at(vc, FIRST)])] >> PACKET_AT)
    switch, member = U(s.vc[at(vc, SWITCH)]), U(s.vc[at(vc, MEMBER)])
    here, target = np.int64(switch), U(s.packet[p, TARGET])
    there = np.int64(c.host_switch[target])
    base = U(c.ports.out_base[switch])
    clear(c.size, s.allowed, vc)
    way, hop = np.int64(s.packet[p, WAY]), np.int64(s.packet[p, HOP])
    if at_target(c.routes, way, hop, here, there):
        output = U(c.ports.eject[target])
        s.vc[at(vc, OUTPUT)] = output
        s.vc[at(vc, RANGE)] = output * U(c.vcs)
        put_range(c.size, s.allowed, vc, (output - base) * U(c.vcs), U(c.vcs))
    elif c.rule == ADAPTIVE:
        ports = usable_ports(c.routes, way, hop, here, there)
        while ports:
            _allow(c, s, vc, p, here, there, base + U(lowest(ports)))
            ports &= ports - ONE
    else:
        source, sequence = np.int64(s.packet[p, SOURCE]), np.int64(s.packet[p, SEQUENCE])
        output = base + U(
            next_port(c.routes, way, c.seed, here, there, source, np.int64(target), c.hosts, sequence, hop)
        )
        s.vc[at(vc, OUTPUT)] = output
        _allow(c, s, vc, p, here, there, output)
    s.vc[at(vc, SINCE)] = tick
    put(c.size, s.sets, switch * U(SETS) + U(ASKING), member)
    mark(s.to_assign, switch)
    if c.header > 1:
        later(s.queues, HEADERS, tick, vc)


@inner
def present_all(c, s, tick):
    """Packets that may ask for an output VC from now on; kept apart so that look-ups overlap."""
    for i in range(np.int64(s.fronts[-1])):
        _present(c, s, U(s.fronts[i]), tick)
    s.fronts[-1] = 0


@inner
def read_headers(c, s, tick):
    """Packets whose header delay ends now."""
    now, first, end = U(tick), s.queues.ends[(U(HEADERS) << ONE) | U(0)], s.queues.ends[(U(HEADERS) << ONE) | U(1)]
    while first != end:
        entry = s.queues.entries[(U(HEADERS) << s.queues.bits) | (first & s.queues.mask)]
        if entry >> U(32) != now:
            break
        vc = entry & U(0xFFFFFFFF)
        switch, member = U(s.vc[at(vc, SWITCH)]), U(s.vc[at(vc, MEMBER)])
        put(c.size, s.sets, switch * U(SETS) + U(READ), member)
        look(c, s, switch, member)
        first += ONE
    s.queues.ends[(U(HEADERS) << ONE) | U(0)] = first


@inner
def _restore(c, s, vc, tick):
    """A credit for an input VC is back with whoever sends to it."""
    credit = s.vc[at(vc, CREDITS)]
    s.vc[at(vc, CREDITS)] = credit + 1
    host = s.vc[at(vc, FEEDER)]
    if credit and (c.policy != ESCAPE or host != NOBODY):  # under ESCAPE, packets wait for more credits than one
        return
    if host != NOBODY:
        wake(s.senders, host, tick)
        return
    holder = s.vc[at(vc, HOLDER)]
    if holder != NOBODY:
        switch, member = U(s.vc[at(holder, SWITCH)]), U(s.vc[at(holder, MEMBER)])
        put(c.size, s.sets, switch * U(SETS) + U(CREDITED), member)
        look(c, s, switch, member)
    elif c.rule == ADAPTIVE:
        mark(s.to_assign, U(s.vc[at(vc, SENDER)]))


@inner
def restore_all(c, s, tick):
    """Credits that come back now."""
    now, first, end = U(tick), s.queues.ends[(U(RETURNED) << ONE) | U(0)], s.queues.ends[(U(RETURNED) << ONE) | U(1)]
    begin = first
    while first != end:
        entry = s.queues.entries[(U(RETURNED) << s.queues.bits) | (first & s.queues.mask)]
        if entry >> U(32) != now:
            break
        _restore(c, s, entry & U(0xFFFFFFFF), tick)
        first += ONE
    s.queues.ends[(U(RETURNED) << ONE) | U(0)] = first
    s.tally.scalars[EVENTS] += np.int64(first - begin)


@inner
def send(c, s, vc, tick):
    """The front flit of an input VC is granted."""
    place = U(s.vc[at(vc, FIRST)])
    flit = s.flits[(vc << c.ring_bits) | place]
    s.vc[at(vc, FIRST)] = (place + ONE) & c.ring
    left = s.vc[at(vc, COUNT)] - 1
    s.vc[at(vc, COUNT)] = left
    later(s.queues, RETURNED, tick, vc)
    switch, member = U(s.vc[at(vc, SWITCH)]), U(s.vc[at(vc, MEMBER)])
    row = switch * U(SETS)
    if left == 0:
        drop(c.size, s.sets, row + U(PRESENT), member)

    target = U(s.vc[at(vc, TARGET_VC)])
    channel = s.vc[at(target, CHANNEL)]
    p = U(flit >> PACKET_AT)
    if flit & HEAD:
        s.tally.scalars[GRANTS] += 1
    if channel != NOBODY:
        credit = s.vc[at(target, CREDITS)] - 1
        s.vc[at(target, CREDITS)] = credit
        if credit == 0:
            drop(c.size, s.sets, row + U(CREDITED), member)
        if flit & HEAD:
            s.packet[p, HOP] += 1
            if c.policy == ESCAPE and target % U(c.vcs) == U(ESCAPE_VC):
                s.packet[p, WAY] = ON_ESCAPE
        s.tally.channel_flits[channel] += 1
        place_flit(s.vc, s.flits, c.ring_bits, c.ring, target, flit)
        later(s.queues, U(s.vc[at(target, DELAY_CLASS)]), tick, target)
    elif flit & TAIL:
        slot = (tick + c.delivery) & c.leaving
        s.packet[p, NEXT] = s.leaving[slot]
        s.leaving[slot] = p

    if flit & TAIL:
        s.vc[at(target, HOLDER)] = NOBODY
        drop(c.size, s.sets, row + U(HELD), member)
        drop(c.size, s.holders, U(s.vc[at(vc, OUTPUT)]), member)
        put(c.size, s.sets, row + U(FREE), U(s.vc[at(target, SENDER_MEMBER)]))
        if c.header > 1:
            drop(c.size, s.sets, row + U(READ), member)
        if not is_empty(c.size, s.sets, row + U(ASKING)):
            mark(s.to_assign, switch)
        if left:
            s.fronts[s.fronts[-1]] = vc
            s.fronts[-1] += 1
    else:
        look(c, s, switch, member)
