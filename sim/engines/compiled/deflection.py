"""Hot-potato deflection, compiled.

A switch is looked at when a packet becomes eligible, an output falls free, or a host may send: one bit
of a wheel each. It keeps its packets in two lists: those whose header is being read, in order of arrival,
and the eligible ones, in order of rank.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.jit import inner, kernel
from flitlab.models.rules.arrivals import Arrivals
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.occupancy import occupancy_bound
from flitlab.models.rules.order import outranks
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import pick, route_word
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import EVENTS, GRANTS, OCCUPANCY_MAX
from flitlab.sim.engines.compiled.messages import Program, leave, make_program, next_tick
from flitlab.sim.engines.compiled.records import (
    BORN,
    DEFLECTED,
    H_BORN,
    H_FREE,
    HOP,
    HOST_RECORD,
    LATE,
    NEXT,
    NOBODY,
    SEND,
    SEQUENCE,
    SOURCE,
    TARGET,
    Net,
    Pool,
    Tally,
    create,
    deliver_all,
    first_packets,
    log_is_full,
    make_net,
    make_pool,
    make_tally,
    run_program,
)
from flitlab.sim.engines.compiled.wheel import Wheel, drain, make_wheel, wake

# This discipline's own fields of a packet record.
WHERE, ELIGIBLE = 13, 14

# Fields of a switch record, uint32.
RESIDENT, INBOUND, READING, LAST_READING, RANKED, NEXT_HOST = range(6)
SWITCH_RECORD = 8


class Constants(NamedTuple):
    """What does not change during a run: times in ticks, tables, and the draws' seed."""

    net: Net
    hold: int
    slot: int  # decisions are made at multiples of this
    flits: int
    header: int
    switch: int
    link: int
    injection: int
    ejection: int
    bound: np.ndarray  # int64 [switches]: most packets that can be resident
    routes: np.ndarray
    out_start: np.ndarray
    dst: np.ndarray
    delay: np.ndarray
    host_start: np.ndarray


class State(NamedTuple):
    """What changes during a run."""

    pool: Pool
    place: np.ndarray  # uint32 [switches, SWITCH_RECORD]
    ranked: np.ndarray  # uint32 [switches, bound]: eligible packets, first in rank first
    busy: np.ndarray  # uint32 [outputs]: held until this tick
    host: np.ndarray  # int64 [hosts, HOST_RECORD]
    asked: np.ndarray  # int64 [hosts]: the tick at which the host's switch is woken for it
    arriving: np.ndarray  # uint32 [ticks]: first of the packets whose head arrives then
    leaving: np.ndarray  # uint32 [ticks]: first of the packets whose tail is delivered then
    members: np.ndarray  # int64 [switches]: scratch, who is looked at
    awake: Wheel
    program: Program | None
    tally: Tally


def build(scenario: Scenario, arrivals: Arrivals, packets: Packets, seed: int) -> tuple[Constants, State]:
    """Constants and the state at tick 0."""
    topology, model = scenario.topology, scenario.switching
    ports, flits, hosts = make_ports(topology), int(packets.flits[0]), topology.hosts
    bound = np.array(
        [
            occupancy_bound(model.hold_packets, d, h, flits, model.header, model.injection)
            for d, h in zip(topology.in_degree.tolist(), topology.host_count.tolist(), strict=True)
        ],
        np.int64,
    )
    slowest = int(topology.delay.max(initial=0)) + model.link
    horizon = 2 * flits + model.switch + max(slowest, model.ejection, model.injection, model.header) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    constants = Constants(
        net=make_net(topology, ports, arrivals, packets, seed),
        hold=model.hold_packets,
        slot=flits if model.slotted else 1,
        flits=flits,
        header=model.header,
        switch=model.switch,
        link=model.link,
        injection=model.injection,
        ejection=model.ejection,
        bound=bound,
        routes=scenario.routes.ports,
        out_start=topology.out_start,
        dst=topology.dst,
        delay=topology.delay,
        host_start=topology.host_start,
    )
    on_channel = (model.switch + slowest) // flits + 2
    at_host = (flits + model.switch + model.ejection + model.injection) // flits + 3
    records = int(bound.sum()) + topology.channels * on_channel + hosts * at_host
    place = np.zeros((topology.switches, SWITCH_RECORD), np.uint32)
    place[:, READING] = place[:, LAST_READING] = NOBODY
    state = State(
        pool=make_pool(records),
        place=place,
        ranked=np.zeros((topology.switches, int(bound.max()) + 1), np.uint32),
        busy=np.zeros(len(ports.out_input), np.uint32),
        host=np.zeros((hosts, HOST_RECORD), np.int64),
        asked=np.full(hosts, -1, np.int64),
        arriving=np.full(ticks, NOBODY, np.uint32),
        leaving=np.full(ticks, NOBODY, np.uint32),
        members=np.zeros(topology.switches, np.int64),
        awake=make_wheel(topology.switches, ticks),
        program=make_program(scenario),
        tally=make_tally(topology),
    )
    first_packets(constants, state)
    for v in range(topology.switches):
        wake(state.awake, v, 0)
    return constants, state


@inner
def _look(c, s, switch, tick):
    """Have a switch decide at ``tick``, or at the next slot boundary."""
    if c.slot > 1:
        tick = (tick + c.slot - 1) // c.slot * c.slot
    wake(s.awake, switch, tick)


@inner
def _arrive(c, s, p, tick):
    """A packet's head is in a switch: it is resident from now on, and eligible once its header is read."""
    v = np.int64(s.pool.packet[p, WHERE])
    if s.pool.packet[p, HOP] == 0:
        s.place[v, INBOUND] -= 1
    resident = s.place[v, RESIDENT] + 1
    s.place[v, RESIDENT] = resident
    s.tally.scalars[OCCUPANCY_MAX] = max(s.tally.scalars[OCCUPANCY_MAX], resident)
    s.pool.packet[p, ELIGIBLE] = tick + c.header
    s.pool.packet[p, NEXT] = NOBODY
    if s.place[v, READING] == NOBODY:
        s.place[v, READING] = p
    else:
        s.pool.packet[s.place[v, LAST_READING], NEXT] = p
    s.place[v, LAST_READING] = p
    _look(c, s, v, tick + c.header)
    if resident > c.hold:
        _look(c, s, v, tick)


@inner
def _rank(c, s, v, p):
    """Insert a packet among the eligible ones of a switch."""
    hops, born = s.pool.packet[p, HOP], s.pool.packet[p, BORN]
    identity = np.int64(s.pool.packet[p, SEQUENCE]) * c.net.hosts + s.pool.packet[p, SOURCE]
    i = s.place[v, RANKED]
    s.place[v, RANKED] = i + 1
    while i > 0:
        q = s.ranked[v, i - 1]
        other = np.int64(s.pool.packet[q, SEQUENCE]) * c.net.hosts + s.pool.packet[q, SOURCE]
        if outranks(s.pool.packet[q, HOP], s.pool.packet[q, BORN], other, hops, born, identity):
            break
        s.ranked[v, i] = q
        i -= 1
    s.ranked[v, i] = p


@inner
def _admit(c, s, v, tick):
    """Rank the packets whose header has been read by ``tick``."""
    p = np.int64(s.place[v, READING])
    while p != NOBODY and s.pool.packet[p, ELIGIBLE] <= tick:
        following = np.int64(s.pool.packet[p, NEXT])
        _rank(c, s, v, p)
        p = following
    s.place[v, READING] = p


@inner
def _choose(c, s, p, ports):
    """One of a non-empty set of ports, by the draw that belongs to the packet's decision at this switch."""
    if popcount(ports) == 1:
        return lowest(ports)
    source, sequence = np.int64(s.pool.packet[p, SOURCE]), np.int64(s.pool.packet[p, SEQUENCE])
    return pick(ports, route_word(c.net.seed, source, sequence, np.int64(s.pool.packet[p, HOP])))


@inner
def _hold_output(c, s, v, output, tick):
    """An output is taken for a packet's flits; the switch decides again when it falls free."""
    s.busy[output] = tick + c.flits
    s.place[v, RESIDENT] -= 1
    s.tally.scalars[GRANTS] += 1
    _look(c, s, v, tick + c.flits)


@inner
def _forward(c, s, v, p, port, tick):
    """Send a packet out of a network port."""
    _hold_output(c, s, v, c.net.ports.out_base[v] + port, tick)
    channel = c.out_start[v] + port
    minimal = c.routes[c.net.host_switch[s.pool.packet[p, TARGET]], v]
    if not (minimal >> np.uint64(port)) & np.uint64(1):
        s.pool.packet[p, DEFLECTED] += 1
    s.pool.packet[p, HOP] += 1
    s.pool.packet[p, WHERE] = c.dst[channel]
    s.tally.channel_flits[channel] += c.flits
    slot = (tick + c.switch + c.link + c.delay[channel]) & s.awake.mask
    s.pool.packet[p, NEXT] = s.arriving[slot]
    s.arriving[slot] = p


@inner
def _eject(c, s, v, p, tick):
    """Send a packet to its host, if the ejection channel is free."""
    output = c.net.ports.eject[s.pool.packet[p, TARGET]]
    if s.busy[output] > tick:
        return False
    _hold_output(c, s, v, output, tick)
    slot = (tick + c.flits - 1 + c.switch + c.ejection) & s.awake.mask
    s.pool.packet[p, NEXT] = s.leaving[slot]
    s.leaving[slot] = p
    return True


@inner
def _free_ports(c, s, v, tick):
    """Mask of the network outputs that are not held."""
    free = np.uint64(0)
    base = c.net.ports.out_base[v]
    for port in range(c.net.ports.network_outs[v]):
        if s.busy[base + port] <= tick:
            free |= np.uint64(1) << np.uint64(port)
    return free


@inner
def _allocate(c, s, v, tick):
    """One switch's decisions of one tick."""
    _admit(c, s, v, tick)
    free = _free_ports(c, s, v, tick)
    kept = 0
    for i in range(np.int64(s.place[v, RANKED])):
        p = np.int64(s.ranked[v, i])
        there = c.net.host_switch[s.pool.packet[p, TARGET]]
        if there == v:
            if _eject(c, s, v, p, tick):
                continue
        else:
            ports = free & c.routes[there, v]
            if ports:
                port = _choose(c, s, p, ports)
                free &= ~(np.uint64(1) << np.uint64(port))
                _forward(c, s, v, p, port, tick)
                continue
        s.ranked[v, kept] = p
        kept += 1
    while s.place[v, RESIDENT] > c.hold and free and kept > 0:
        kept -= 1
        p = np.int64(s.ranked[v, kept])
        port = _choose(c, s, p, free)
        free &= ~(np.uint64(1) << np.uint64(port))
        _forward(c, s, v, p, port, tick)
    s.place[v, RANKED] = kept
    _let_hosts_send(c, s, v, tick)


@inner
def _let_hosts_send(c, s, v, tick):
    """The hosts of a switch, in turn, start packets while the switch has room for them."""
    first, count = c.host_start[v], c.host_start[v + 1] - c.host_start[v]
    turn = np.int64(s.place[v, NEXT_HOST])
    for k in range(count):
        h = first + (turn + k) % count
        if max(s.host[h, H_BORN], s.host[h, H_FREE]) > tick:
            if s.asked[h] <= tick:
                notice(c, s, h, tick)
            continue
        if s.place[v, RESIDENT] + s.place[v, INBOUND] >= c.hold:
            continue
        p = create(c, s, h, tick)
        leave(s.program, s.pool.packet[p, SEND], tick + c.flits)
        s.place[v, INBOUND] += 1
        s.place[v, NEXT_HOST] = (h - first + 1) % count
        s.pool.packet[p, WHERE] = v
        slot = (tick + c.injection) & s.awake.mask
        s.pool.packet[p, NEXT] = s.arriving[slot]
        s.arriving[slot] = p
        notice(c, s, h, tick)


@inner
def notice(c, s, h, tick):
    """See that the switch of host h looks when the host may send its next packet, or, if that is far away, before."""
    ready = max(s.host[h, H_BORN], s.host[h, H_FREE], tick)
    if ready < LATE:
        s.asked[h] = min(ready, tick + s.awake.mask - c.slot)
        _look(c, s, np.int64(c.net.host_switch[h]), s.asked[h])


@inner
def _arrive_all(c, s, tick):
    """Packets whose head arrives now; False if a switch has come to hold more than :func:`occupancy_bound`."""
    slot = tick & s.awake.mask
    p = np.int64(s.arriving[slot])
    s.arriving[slot] = NOBODY
    within = True
    while p != NOBODY:
        following = np.int64(s.pool.packet[p, NEXT])
        _arrive(c, s, p, tick)
        within &= s.place[s.pool.packet[p, WHERE], RESIDENT] <= c.bound[s.pool.packet[p, WHERE]]
        p = following
        s.tally.scalars[EVENTS] += 1
    return within


@kernel
def advance(c, s, now, until):
    """Simulate ticks now .. until - 1; returns the tick reached, less than ``until`` if the log is full.

    Returns -1 if a switch holds more packets than :func:`occupancy_bound` allows, which is a bug.
    """
    tick = now
    while tick < until:
        if log_is_full(c, s):
            return tick
        if not _arrive_all(c, s, tick):
            return -1
        deliver_all(c, s, tick, s.awake.mask)
        run_program(s.program, c, s, tick, notice)
        count = drain(s.awake, tick, s.members)
        for i in range(count):
            _allocate(c, s, s.members[i], tick)
        s.tally.scalars[EVENTS] += count
        tick = next_tick(s.program, s, tick, until, s.awake.mask)
    return tick


def moved(s) -> int:
    """Packets granted so far."""
    return int(s.tally.scalars[GRANTS])


def stuck(c, s, now) -> bool:
    """Hot-potato waits for no buffer, so nothing can be stuck."""
    return False
