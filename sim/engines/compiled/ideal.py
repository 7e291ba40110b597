# SPDX-License-Identifier: Apache-2.0
"""The ideal switch, compiled.

As nothing holds a packet back but those before it, an output knows when a packet will start as soon as that joins its
queue. So a packet goes on at once to the line of those that will come to the other end of the channel, each with the
tick of that, and a hop is one event: the first packet of a line coming. Packets are records that are used again, and
there are more of them when none is left.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.adaptive import drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.bits import lowest, popcount
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import at_destination, next_port, route_word, usable_ports
from flitlab.models.rules.tables import ADAPTIVE, POLARIZED, Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.ideal import Ideal
from flitlab.sim.engines.base import EVENTS, GRANTS
from flitlab.sim.engines.compiled.memory import records_in_lines
from flitlab.sim.engines.compiled.messages import Program, leave, make_program, next_tick
from flitlab.sim.engines.compiled.pool import Pool, make_pool
from flitlab.sim.engines.compiled.records import (
    HOST,
    LATE,
    NEVER,
    NOBODY,
    PACKET,
    Net,
    Tally,
    create,
    deliver,
    first_packets,
    log_is_full,
    make_net,
    make_tally,
    pool_is_empty,
    run_program,
)
from flitlab.sim.engines.compiled.ugal import set_way
from flitlab.sim.engines.compiled.wheel import Wheel, drain, make_wheel, ticks_for, wake, wake_all

_ONE = np.uint64(1)

FRONT, BACK = range(2)
"""Fields of a line, uint32: its first packet and its last; NOBODY is the first of an empty one."""


class IdealConstants(NamedTuple):
    """The constants of a run of ideal switches; times are in ticks."""

    net: Net
    rule: int  # how one of several ways is chosen: RANDOM ...
    inputs: int
    header: int
    crossing: Ints  # int64 [outputs]: from the start of a packet to the end of its line, less its flits where it ejects
    injection: Ints  # int64 [hosts]: from a host until the header has been read
    routes: Tables
    in_channel: Ints  # int64 [inputs]: the channel that ends there, or -1 if a host sends


class IdealState(NamedTuple):
    """The state of a run of ideal switches: all that changes."""

    pool: Pool
    line: np.ndarray  # uint32 [inputs + hosts, 2]: of packets that come to an input, or to a host from its switch
    free: Ints  # int64 [outputs]: tick in which all of the queue is sent
    host: np.ndarray  # HOST [hosts]
    coming: Ints  # int64 [inputs + hosts + 1]: scratch, lines whose first packet is due
    members: Ints  # int64 [hosts + 1]: scratch, who is looked at
    lines: Wheel
    senders: Wheel
    program: Program | None
    tally: Tally


def build(
    scenario: Scenario[Ideal], arrivals: Arrivals, packets: Packets, seed: int
) -> tuple[IdealConstants, IdealState]:
    """Make the constants and the state of a run at tick 0.

    arrivals, packets: what hosts send. seed: of all draws.
    """
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    inputs, hosts = len(ports.in_switch), topology.hosts
    ejects = ports.out_channel < 0
    extra = np.zeros(len(ejects), np.int64)
    extra[~ejects] = topology.delay[ports.out_channel[~ejects]]
    extra[ports.eject] = topology.access_delay
    crossing = model.switch + extra + np.where(ejects, model.ejection - 1, model.link + model.header)
    injection = model.injection + model.header + topology.access_delay
    longest = int(packets.flits.max())
    horizon = longest + max(int(crossing.max(initial=0)), int(injection.max(initial=0))) + 2
    ticks = 1 << int(horizon - 1).bit_length()
    fed = ports.in_output >= 0
    constants = IdealConstants(
        net=make_net(topology, ports, arrivals, packets, seed),
        rule=scenario.routes.select,
        inputs=inputs,
        header=model.header,
        crossing=crossing,
        injection=injection,
        routes=model.tables(topology, scenario.routes),
        in_channel=np.where(fed, ports.out_channel[np.where(fed, ports.in_output, 0)], -1),
    )
    state = IdealState(
        pool=make_pool(4 * (inputs + hosts), PACKET),
        line=np.full((inputs + hosts, 2), NOBODY, np.uint32),
        free=np.zeros(len(ejects), np.int64),
        host=records_in_lines(hosts, HOST),
        coming=np.zeros(inputs + hosts + 1, np.int64),
        members=np.zeros(hosts + 1, np.int64),
        lines=make_wheel(inputs + hosts, ticks),
        senders=make_wheel(hosts, ticks_for(ticks, hosts, typical_gap(arrivals))),
        program=make_program(scenario),
        tally=make_tally(topology),
    )
    first_packets(constants, state)
    wake_all(state.senders, np.arange(hosts), 0)
    return constants, state


@inline
def _queue(state, packet, line, due):
    """Put a packet at the end of a line, at whose end it will be in tick ``due``."""
    record = state.pool.packet[packet]
    record.due = due
    record.next = NOBODY
    if state.line[line, FRONT] == NOBODY:
        state.line[line, FRONT] = packet
        wake(state.lines, line, due)
    else:
        state.pool.packet[state.line[line, BACK]].next = packet
    state.line[line, BACK] = packet


@inline
def _take(state, line):
    """Take the first packet out of a line, and return it."""
    packet = np.int64(state.line[line, FRONT])
    behind = np.int64(state.pool.packet[packet].next)
    state.line[line, FRONT] = behind
    if behind != NOBODY:
        wake(state.lines, line, np.int64(state.pool.packet[behind].due))
    return packet


@inline
def _unsent(state, output, tick):
    """Count the flits that an output has still to send when nothing of ``tick`` has been sent."""
    return max(state.free[output] - tick, np.int64(0))


@inline
def ahead(const, state, here, port, tick):
    """Measure what is ahead on a channel: (flits that wait for it, the switch at its end).

    here, port: the channel, by its switch and its port there.
    """
    output = const.net.ports.out_base[here] + port
    entry = np.int64(const.net.ports.out_input[output])
    return _unsent(state, output, tick), np.int64(const.net.ports.in_switch[entry])


@inline
def _cost(const, state, packet, here, target, port, tick):
    """Count the flits that an output has still to send, with those of a polarized packet's detour.

    here, target: switches, that of the output and that of the packet's destination. port: of the output.
    """
    output = np.int64(const.net.ports.out_base[here]) + port
    cost = _unsent(state, output, tick)
    if const.routes.form == POLARIZED:
        record, there = state.pool.packet[packet], np.int64(const.routes.dst[const.net.ports.out_channel[output]])
        cost += detour(const.routes, np.int64(record.way), target, here, there, np.int64(record.flits))
    return cost


@inline
def _choose(const, state, packet, ports, here, target, tick):
    """Choose one of the ports of switch ``here`` that an adaptive packet may take (see ``rules.adaptive``).

    A polarized packet takes that of least cost. ports: uint64, a bit each. target: as in :func:`_cost`.
    """
    if popcount(ports) == 1:
        return lowest(ports)
    record, least, tied, left = state.pool.packet[packet], NEVER, np.uint64(0), ports
    while left:
        port = lowest(left)
        left &= left - _ONE
        cost = _cost(const, state, packet, here, target, port, tick)
        if cost < least:
            least, tied = cost, np.uint64(0)
        if cost == least:
            tied |= _ONE << np.uint64(port)
    word = route_word(const.net.seed, np.int64(record.source), np.int64(record.sequence), np.int64(record.hop))
    drawn = drawn_channel(ports, word)
    if const.routes.form != POLARIZED:
        unsent = _unsent(state, np.int64(const.net.ports.out_base[here]) + drawn, tick)
        if keeps_drawn(unsent, least, np.int64(record.flits)):
            return drawn
    return drawn_tie(tied, word)


@inline
def _output(const, state, packet, here, tick):
    """Choose the output of a packet at switch ``here``."""
    record = state.pool.packet[packet]
    destination = np.int64(record.destination)
    target = np.int64(const.net.host_switch[destination])
    way, hop = np.int64(record.way), np.int64(record.hop)
    if at_destination(const.routes, way, hop, here, target):
        return np.int64(const.net.ports.eject[destination])
    if const.rule == ADAPTIVE:
        ports = usable_ports(const.routes, way, hop, here, target)
        port = _choose(const, state, packet, ports, here, target, tick)
        return np.int64(const.net.ports.out_base[here]) + port
    source, sequence = np.int64(record.source), np.int64(record.sequence)
    port = next_port(
        const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
    )
    return np.int64(const.net.ports.out_base[here]) + port


@inline
def _switch(const, state, entry, tick):
    """Let the first packet that comes to an input, and whose header has been read, join the queue of its output."""
    packet = _take(state, entry)
    flits = np.int64(state.pool.packet[packet].flits)
    if const.in_channel[entry] >= 0:
        state.tally.channel_flits[const.in_channel[entry]] += flits
        state.pool.packet[packet].hop += 1
    state.tally.scalars[GRANTS] += 1
    join(const, state, packet, np.int64(const.net.ports.in_switch[entry]), tick)


@inline
def join(const, state, packet, here, tick):
    """Let a packet at switch ``here`` join the queue of its output."""
    record = state.pool.packet[packet]
    flits = np.int64(record.flits)
    output = _output(const, state, packet, here, tick)
    start = max(state.free[output], tick)
    state.free[output] = start + flits
    end = np.int64(const.net.ports.out_input[output])
    if end == NOBODY:
        host = np.int64(record.destination)
        _queue(state, packet, const.inputs + host, start + flits + const.crossing[output])
    else:
        _queue(state, packet, end, start + const.crossing[output])


@inline
def _send(const, state, host, tick):
    """Start a host's oldest packet if that is possible, and wake the host when it may be."""
    record = state.host[host]
    ready = max(record.born, record.free)
    if ready <= tick:
        packet = create(const, state, host, tick)
        leave(state.program, state.pool.packet[packet].send, record.free)
        set_way(const, state, packet, ahead, tick)
        _queue(state, packet, np.int64(const.net.ports.inject[host]), tick + const.injection[host])
        ready = max(record.born, record.free)
    if ready < LATE:
        wake(state.senders, host, min(ready, tick + state.senders.mask))


@inline
def _notice(const, state, host, tick):
    """Have a host that has a packet to send looked at in this tick."""
    wake(state.senders, host, tick)


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns the tick reached, which is less than ``until`` if the log is full, or the records of packets are used up.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state) or pool_is_empty(const, state):
            return tick
        coming = drain(state.lines, tick, state.coming)
        last = coming
        while last > 0 and state.coming[last - 1] >= const.inputs:
            last -= 1
            deliver(const, state, _take(state, state.coming[last]), tick)
        run_program(state.program, const, state, tick, _notice)
        sending = drain(state.senders, tick, state.members)
        for i in range(sending):
            _send(const, state, state.members[i], tick)
        for i in range(last):
            _switch(const, state, state.coming[i], tick)
        state.tally.scalars[EVENTS] += coming + sending
        tick = next_tick(state.program, state, tick, until, 0)
    return tick


def moved(state: IdealState) -> int:
    """Return how many packets have joined the queue of an output so far."""
    return int(state.tally.scalars[GRANTS])


def stuck(const: IdealConstants, state: IdealState, now: int) -> bool:
    """Return False: no packet waits for room, so nothing can be stuck."""
    return False
