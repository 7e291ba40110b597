# SPDX-License-Identifier: Apache-2.0
"""Ideal switches, compiled.

Only earlier packets hold a packet back, so that its start on an output is known as soon as it joins the output's queue.
The packet goes to the delivery queue of the channel at once, with the tick of its arrival; a hop is hence one event.
Packets are records of a pool, which is doubled when it is used up. Their fields about channels of different speed are
used where ``IdealConstants.output_ticks`` is not None.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline, kernel
from flitlab.models.rules.adaptive import drawn_channel, drawn_tie, keeps_drawn
from flitlab.models.rules.arrivals import Arrivals, typical_gap
from flitlab.models.rules.bits import empty_set, is_empty, lowest, popcount, with_port, without_lowest
from flitlab.models.rules.classes import ClassTables, goes_before
from flitlab.models.rules.packets import Packets
from flitlab.models.rules.polarized import detour
from flitlab.models.rules.ports import make_ports
from flitlab.models.rules.route import at_destination, route_word, usable_ports
from flitlab.models.rules.tables import RouteForm, Selection, Tables
from flitlab.models.scenario import Scenario
from flitlab.models.switching.ideal import Ideal
from flitlab.models.timeline.flit_ticks import slowest_flit_of_epochs
from flitlab.models.topology.flit_times import flit_times
from flitlab.sim.engines.base import ChannelCounter, Scalar
from flitlab.sim.engines.compiled.calendar_queue import calendar_ticks
from flitlab.sim.engines.compiled.flit_times import fed_from, held_ticks, output_ticks
from flitlab.sim.engines.compiled.messages import Program, next_active_tick, record_injection
from flitlab.sim.engines.compiled.pool import Pool
from flitlab.sim.engines.compiled.records import (
    NONE,
    Net,
    RunCounters,
    Tick,
    count_flits,
    deliver_packet,
    draw_first_packets,
    ejection_channel,
    first_creation,
    inject_packet,
    log_is_full,
    make_common_state,
    make_net,
    pool_is_low,
    port_of_route,
    renamed_fields,
    run_program,
)
from flitlab.sim.engines.compiled.timing_wheel import (
    TimingWheel,
    drain,
    make_timing_wheel,
    schedule,
    schedule_all,
    wheel_ticks,
)
from flitlab.sim.engines.compiled.ugal import choose_route

IDEAL_PACKET = renamed_fields(
    {
        "input_vc": "flit_ticks",  # ticks of a flit on the channel by which it came, or is coming
        "switch": "queue_free_at",  # tick at which the queue that it has joined last was empty of earlier packets
        "eligible_at": "tail_arrives_at",  # tick at which its tail arrives at the switch that has read its header last
    }
)
"""A packet under ideal switching: PACKET with other uses of some fields."""

FRONT, BACK = range(2)
"""Columns of ``IdealState.delivery_queue``: first packet, NONE if the queue is empty, and last packet."""


class IdealConstants(NamedTuple):
    """Constants of a run of ideal switches; times are in ticks."""

    net: Net
    rule: int  # selection among several routes or ports: RANDOM ...
    inputs: int
    output_ticks: Ints | None  # int64 [outputs]: ticks of a flit, see flitlab.sim.engines.compiled.flit_times
    header_ticks: int
    transit_ticks: Ints  # int64 [outputs]: from a packet's start to the end of its delivery queue, without its flits if
    # the output ejects
    injection_ticks: Ints  # int64 [hosts]: from injection until the header has been read
    routes: Tables
    in_channel: Ints  # int64 [inputs]: the channel that ends there, or -1 if a host feeds it


class IdealState(NamedTuple):
    """State of a run of ideal switches: all that changes."""

    pool: Pool
    delivery_queue: np.ndarray  # uint32 [inputs + hosts, 2]: packets in flight to an input, or to a host
    free_at: Ints  # int64 [outputs]: tick at which the output's queue is empty
    host: np.ndarray  # HOST [hosts]
    due_queues: Ints  # int64 [inputs + hosts + 1]: scratch, delivery queues whose first packet arrives
    members: Ints  # int64 [hosts + 1]: scratch, the hosts of a tick
    queue_wheel: TimingWheel  # delivery queues, by the tick of their first packet
    host_wheel: TimingWheel  # hosts to evaluate, by tick
    program: Program | None
    counters: RunCounters


def make_constants_and_state(
    scenario: Scenario[Ideal], arrivals: Arrivals, packets: Packets, seed: int, classes: ClassTables | None = None
) -> tuple[IdealConstants, IdealState]:
    """Make the constants and the state of a run at tick 0.

    Parameters
    ----------
    scenario: topology, routes, traffic and switching parameters.
    arrivals: when hosts create packets.
    packets: lengths in flits, and destinations, of these packets.
    seed: of all draws.
    classes: of traffic, None without.
    """
    topology, model = scenario.topology, scenario.switching
    ports = make_ports(topology)
    inputs, hosts = len(ports.in_switch), topology.hosts
    ejects = ports.out_channel < 0
    extra = np.zeros(len(ejects), np.int64)
    channel_ticks, host_ticks, _ = flit_times(topology)
    extra[~ejects] = (topology.delay + channel_ticks - 1)[ports.out_channel[~ejects]]
    extra[ports.eject] = topology.access_delay  # the last flit takes as long as the others: see ``join_output``
    transit_ticks = model.switch + extra + np.where(ejects, model.ejection - 1, model.link + model.header)
    injection = model.injection + model.header + topology.access_delay + host_ticks - 1
    slowest = slowest_flit_of_epochs(topology, scenario.timeline)
    longest = (int(packets.flits.max()) + 1) * slowest
    horizon = longest + max(int(transit_ticks.max(initial=0)), int(injection.max(initial=0))) + 2
    ticks = calendar_ticks(horizon)
    fed_by_switch = ports.in_output >= 0
    constants = IdealConstants(
        net=make_net(topology, ports, arrivals, packets, seed, classes),
        rule=scenario.routes.select,
        inputs=inputs,
        output_ticks=output_ticks(scenario, ports),
        header_ticks=model.header,
        transit_ticks=transit_ticks,
        injection_ticks=injection,
        routes=model.tables(topology, scenario.routes),
        in_channel=np.where(fed_by_switch, ports.out_channel[np.where(fed_by_switch, ports.in_output, 0)], -1),
    )
    state = IdealState(
        **make_common_state(scenario, constants.net, 4 * (inputs + hosts), IDEAL_PACKET),
        delivery_queue=np.full((inputs + hosts, 2), NONE, np.uint32),
        free_at=np.zeros(len(ejects), np.int64),
        due_queues=np.zeros(inputs + hosts + 1, np.int64),
        members=np.zeros(hosts + 1, np.int64),
        queue_wheel=make_timing_wheel(inputs + hosts, ticks),
        host_wheel=make_timing_wheel(hosts, wheel_ticks(ticks, hosts, typical_gap(arrivals))),
    )
    draw_first_packets(constants, state)
    schedule_all(state.host_wheel, np.arange(hosts), 0)
    return constants, state


@inline
def _enqueue(state, packet, queue, arrives_at):
    """Append a packet to a delivery queue, which it leaves at tick ``arrives_at``."""
    record = state.pool.packet[packet]
    record.arrives_at = arrives_at
    record.next = NONE
    if state.delivery_queue[queue, FRONT] == NONE:
        state.delivery_queue[queue, FRONT] = packet
        schedule(state.queue_wheel, queue, arrives_at)
    else:
        state.pool.packet[state.delivery_queue[queue, BACK]].next = packet
    state.delivery_queue[queue, BACK] = packet


@inline
def _dequeue(state, queue):
    """Remove the first packet from a delivery queue, and return it."""
    packet = np.int64(state.delivery_queue[queue, FRONT])
    next_packet = np.int64(state.pool.packet[packet].next)
    state.delivery_queue[queue, FRONT] = next_packet
    if next_packet != NONE:
        schedule(state.queue_wheel, queue, np.int64(state.pool.packet[next_packet].arrives_at))
    return packet


@inline
def _backlog_flits(state, output, tick):
    """Return the ticks for the flits that an output has yet to send at the beginning of ``tick``."""
    return max(state.free_at[output] - tick, np.int64(0))


@inline
def queue_estimate(const, state, switch, port, tick):
    """Return the ticks for the flits that wait for a channel, and the switch at its end.

    Parameters
    ----------
    switch, port: int64, the switch that the channel leaves, and the port there.
    tick: int64.

    Returns
    -------
    (flits, switch), int64.
    """
    output = const.net.ports.out_base[switch] + port
    input_port = np.int64(const.net.ports.out_input[output])
    return _backlog_flits(state, output, tick), np.int64(const.net.ports.in_switch[input_port])


@inline
def _cost(const, state, packet, switch, dst_switch, port, tick):
    """Return the flits that an output has yet to send, plus the penalty of a polarized packet's detour.

    switch, port: of the output. dst_switch: of the packet.
    """
    output = np.int64(const.net.ports.out_base[switch]) + port
    cost = _backlog_flits(state, output, tick)
    if const.routes.form == RouteForm.POLARIZED:
        record, next_switch = state.pool.packet[packet], np.int64(const.routes.dst[const.net.ports.out_channel[output]])
        cost += detour(const.routes, np.int64(record.route), dst_switch, switch, next_switch, np.int64(record.flits))
    return cost


@inline
def _choose_port(const, state, packet, ports, switch, dst_switch, tick):
    """Choose one of the ports of a switch for an adaptive packet (see :mod:`flitlab.models.rules.adaptive`).

    A polarized packet takes the port of least cost. ports: the set of those allowed. dst_switch: as in :func:`_cost`.
    """
    if popcount(ports) == 1:
        return lowest(ports)
    record, least_cost, ties, remaining = state.pool.packet[packet], Tick.NEVER, empty_set(ports), ports
    while not is_empty(remaining):
        port = lowest(remaining)
        remaining = without_lowest(remaining)
        cost = _cost(const, state, packet, switch, dst_switch, port, tick)
        if cost < least_cost:
            least_cost, ties = cost, empty_set(ties)
        if cost == least_cost:
            ties = with_port(ties, port)
    draw = route_word(const.net.seed, np.int64(record.src_host), np.int64(record.sequence), np.int64(record.hop))
    drawn = drawn_channel(ports, draw)
    if const.routes.form != RouteForm.POLARIZED:
        output = np.int64(const.net.ports.out_base[switch]) + drawn
        length = held_ticks(const.output_ticks, output, np.int64(record.flits))
        if keeps_drawn(_backlog_flits(state, output, tick), least_cost, length):
            return drawn
    return drawn_tie(ties, draw)


@inline
def choose_output(const, state, packet, switch, tick):
    """Choose the output of a packet at a switch, and return it.

    Parameters
    ----------
    packet, switch: int64.
    tick: int64.
    """
    record = state.pool.packet[packet]
    dst_host = np.int64(record.dst_host)
    dst_switch = np.int64(const.net.ejection_switch[dst_host])
    route, hop = np.int64(record.route), np.int64(record.hop)
    if at_destination(const.routes, route, hop, switch, dst_switch):
        return np.int64(const.net.ports.eject[dst_host])
    if const.rule == Selection.ADAPTIVE:
        ports = usable_ports(const.routes, route, hop, switch, dst_switch)
        port = _choose_port(const, state, packet, ports, switch, dst_switch, tick)
        return np.int64(const.net.ports.out_base[switch]) + port
    return np.int64(const.net.ports.out_base[switch]) + port_of_route(const, record, route, switch, dst_switch, hop)


@inline
def _forward(const, state, input_port, tick):
    """Let the packet that arrives at an input join the queue of its output."""
    packet = _dequeue(state, input_port)
    if _joins_chosen_output(const.output_ticks, const, state, packet, tick):
        return
    flits = np.int64(state.pool.packet[packet].flits)
    if const.in_channel[input_port] >= 0:
        state.counters.channel_flits[const.in_channel[input_port]] += flits
        state.pool.packet[packet].hop += 1
    state.counters.scalars[Scalar.GRANTS] += 1
    output = choose_output(const, state, packet, np.int64(const.net.ports.in_switch[input_port]), tick)
    if not _waits_until_fed(const.output_ticks, const, state, packet, input_port, output, tick):
        _join_queue(const, state, packet, output, tick)


@inline
def _waits_until_fed(output_ticks, const, state, packet, input_port, output, tick):
    """Tell whether a packet would starve the output that it has chosen, and if so let it join the queue later.

    It waits at the front of the delivery queue of its input, where no other packet arrives until then.
    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return False
    record = state.pool.packet[packet]
    flits = np.int64(record.flits)
    tail_arrives_at = tick - const.header_ticks + (flits - 1) * np.int64(record.flit_ticks)
    record.output, record.tail_arrives_at = NONE, tail_arrives_at
    feeds = fed_from(output_ticks, output, tail_arrives_at, flits)
    if feeds > tick:
        record.output = output
        record.arrives_at = feeds
        record.next = state.delivery_queue[input_port, FRONT]
        if record.next == NONE:
            state.delivery_queue[input_port, BACK] = packet
        state.delivery_queue[input_port, FRONT] = packet
        schedule(state.queue_wheel, input_port, feeds)
    return feeds > tick


@inline
def _joins_chosen_output(output_ticks, const, state, packet, tick):
    """Let a packet that has waited until it does not starve its output join the queue; return whether it has.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return False
    output = np.int64(state.pool.packet[packet].output)
    if output != NONE:
        state.pool.packet[packet].output = NONE
        _join_queue(const, state, packet, output, tick)
    return output != NONE


@inline
def join_output(const, state, packet, switch, tick):
    """Let a packet at a switch choose its output, and join the queue.

    Parameters
    ----------
    packet, switch: int64.
    tick: int64.
    """
    _join_queue(const, state, packet, choose_output(const, state, packet, switch, tick), tick)


@inline
def _start_in_queue(output_ticks, state, packet, output, tick):
    """Return the tick at which a packet that joins the queue of an output starts, and keep what that depends on.

    output_ticks: ``const.output_ticks``.
    """
    start = max(state.free_at[output], tick)
    if output_ticks is None:
        return start
    record = state.pool.packet[packet]
    record.queue_free_at, record.flit_ticks = state.free_at[output], output_ticks[output]
    return max(start, fed_from(output_ticks, output, np.int64(record.tail_arrives_at), np.int64(record.flits)))


@inline
def _join_queue(const, state, packet, output, tick):
    """Let a packet join the queue of an output."""
    record = state.pool.packet[packet]
    flits = np.int64(record.flits)
    ticks = held_ticks(const.output_ticks, output, flits)
    start = _start_in_queue(const.output_ticks, state, packet, output, tick)
    state.free_at[output] = start + ticks
    next_input = np.int64(const.net.ports.out_input[output])
    if next_input == NONE:
        host = np.int64(record.dst_host)
        count_flits(state.counters.channels, ejection_channel(const, state, host), flits)
        _enqueue(state, packet, const.inputs + host, start + ticks + const.transit_ticks[output])
    else:
        count_flits(state.counters.channels, np.int64(const.net.ports.out_channel[output]), flits)
        _enqueue(state, packet, next_input, start + const.transit_ticks[output])


@inline
def _start_injection(output_ticks, const, state, host, packet, tick):
    """Let a packet hold the channel of its host, where channels differ in speed (``const.output_ticks``)."""
    if output_ticks is not None:
        record, ticks = state.pool.packet[packet], output_ticks[const.net.ports.eject[host]]
        record.output, record.flit_ticks = NONE, ticks
        state.host[host].free_at = tick + np.int64(record.flits) * ticks


@inline
def _inject(classes, const, state, host, tick):
    """Inject a host's next packet if possible, and schedule the host for when it may inject again.

    classes: ``const.net.classes``.
    """
    record = state.host[host]
    ready = max(_next_creation(classes, const, state, host), record.free_at)
    if ready <= tick:
        source = _source_to_serve(classes, const, state, host, tick)
        flits = state.host[source].flits
        packet = inject_packet(const, state, source, tick)
        record.free_at = tick + flits
        _start_injection(const.output_ticks, const, state, host, packet, tick)
        record_injection(state.program, state.pool.packet[packet].send, record.free_at)
        choose_route(const, state, packet, queue_estimate, tick)
        _enqueue(state, packet, np.int64(const.net.ports.inject[host]), tick + const.injection_ticks[host])
        ready = max(_next_creation(classes, const, state, host), record.free_at)
    if ready < Tick.LIMIT:
        schedule(state.host_wheel, host, min(ready, tick + state.host_wheel.mask))


@inline
def _next_creation(classes, const, state, host):
    """Return the tick at which a host's oldest unsent packet is created. classes: ``const.net.classes``."""
    if classes is None:
        return state.host[host].created_at
    return first_creation(const, state, host)


@inline
def _source_to_serve(classes, const, state, host, tick):
    """Choose the source queue that a host serves; one has a packet. classes: ``const.net.classes``."""
    if classes is None:
        return host
    best = np.int64(-1)
    for k in range(1, classes.class_count + 1):
        c = (state.host[host].last_class + k) % classes.class_count
        if state.host[c * const.net.hosts + host].created_at <= tick and goes_before(classes.priority, c, best):
            best = c
    state.host[host].last_class = best
    return best * const.net.hosts + host


@inline
def _schedule_host(const, state, host, tick):
    """Schedule the evaluation of a host that has packets to send."""
    schedule(state.host_wheel, host, tick)


@inline
def _has_arrived(output_ticks, state, packet):
    """Tell whether a packet of a delivery queue is at its switch, and waits until it does not starve its next output.

    output_ticks: ``const.output_ticks``.
    """
    if output_ticks is None:
        return False
    return np.int64(state.pool.packet[packet].output) != NONE


@kernel
def settle_channels(const, state, tick, channels):
    """Subtract packets that start from ``tick`` on from the counters of their channels, in place.

    A packet is counted when it joins the queue of its output.

    Parameters
    ----------
    const, state: of the run.
    tick: int64.
    channels: int64 [rows, counters], as in :class:`~flitlab.sim.engines.base.Snapshot`.
    """
    for queue in range(const.inputs + const.net.hosts):
        row = np.int64(-1)
        if queue >= const.inputs:
            host = queue - const.inputs
            row, output = ejection_channel(const, state, host), np.int64(const.net.ports.eject[host])
        elif const.in_channel[queue] >= 0:
            row, output = const.in_channel[queue], np.int64(const.net.ports.in_output[queue])
        packet = np.int64(state.delivery_queue[queue, FRONT])
        while row >= 0 and packet != NONE:
            record = state.pool.packet[packet]
            start = np.int64(record.arrives_at) - const.transit_ticks[output]
            if queue >= const.inputs:
                start -= held_ticks(const.output_ticks, output, np.int64(record.flits))
            if start >= tick and not _has_arrived(const.output_ticks, state, packet):
                channels[row, ChannelCounter.FLITS] -= np.int64(record.flits)
                channels[row, ChannelCounter.PACKETS] -= 1
            packet = np.int64(record.next)


@kernel
def advance(const, state, now, until):
    """Simulate the ticks from ``now`` to ``until`` - 1.

    Returns
    -------
    The tick reached: less than ``until`` if the log is full or the pool is low.
    """
    tick = now
    while tick < until:
        if log_is_full(const, state) or pool_is_low(const, state):
            return tick
        arriving = drain(state.queue_wheel, tick, state.due_queues)
        network_queues = arriving
        while network_queues > 0 and state.due_queues[network_queues - 1] >= const.inputs:
            network_queues -= 1
            deliver_packet(const, state, _dequeue(state, state.due_queues[network_queues]), tick)
        run_program(state.program, const, state, tick, _schedule_host)
        sending = drain(state.host_wheel, tick, state.members)
        for i in range(sending):
            _inject(const.net.classes, const, state, state.members[i], tick)
        for i in range(network_queues):
            _forward(const, state, state.due_queues[i], tick)
        state.counters.scalars[Scalar.EVENTS] += arriving + sending
        tick = next_active_tick(state.program, state, tick, until, 0)
    return tick
