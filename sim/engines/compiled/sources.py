# SPDX-License-Identifier: Apache-2.0
"""Traffic that kernels do not store: packets created by hosts, and the outstanding traffic of channels.

A source queue is not stored: a host knows its oldest unsent packet, and draws the packets behind it again when they are
counted, by a cursor over its arrivals. Outstanding traffic, created and not delivered, is counted along the routes that
were drawn: a packet's route follows from its source host and sequence number alone, and is walked for the count.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import njit
from flitlab.models.rules.arrivals import next_arrival
from flitlab.models.rules.packets import destination, length
from flitlab.models.rules.route import at_destination, choose_route, next_port
from flitlab.models.rules.tables import Tables
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import Outstanding
from flitlab.sim.engines.compiled import Constants, State
from flitlab.sim.engines.compiled.records import Net, first_unsent, in_flight_records, processes_of

COUNTER, POSITION, SEQUENCE, FLITS = range(4)


@njit
def count_created(arrivals, packets, seed, now, sent, cursor):
    """Advance every host's cursor past the packets created before tick ``now``.

    Parameters
    ----------
    arrivals, packets: when hosts create packets, and which.
    seed: of the draws.
    now: tick.
    sent: int64 [hosts, 4], the first unsent packet: (counter, position, sequence, flits of all packets before it).
    cursor: int64 [hosts, 4], the first packet not yet created, in the same form; advanced.
    """
    for h in range(len(sent)):
        if arrivals.keep[h] < 0:
            continue
        if cursor[h, SEQUENCE] <= sent[h, SEQUENCE]:
            for column in range(4):  # copying a row costs 2 s of compilation, for its error message
                cursor[h, column] = sent[h, column]
        while cursor[h, POSITION] >> arrivals.shift < now:
            cursor[h, FLITS] += length(packets, seed, h, cursor[h, COUNTER])
            cursor[h, SEQUENCE] += 1
            counter, position = next_arrival(arrivals, packets, seed, h, cursor[h, COUNTER] + 1, cursor[h, POSITION])
            cursor[h, COUNTER] = counter
            cursor[h, POSITION] = position


def start_cursor(hosts: int) -> Ints:
    """Make cursors before the first packet: int64 [hosts, 4]."""
    cursor = np.zeros((hosts, 4), np.int64)
    cursor[:, SEQUENCE] = -1
    return cursor


class _Network(NamedTuple):
    """The network that routes are walked in: of the constants, and ``out_start`` and ``dst`` of the topology."""

    routes: Tables
    net: Net
    out_start: Ints
    dst: Ints


def outstanding_traffic(const: Constants, state: State, topology: Topology, now: int) -> Outstanding:
    """Count the outstanding traffic of each channel, in flits, for routes that are fixed at creation.

    Parameters
    ----------
    const, state: of a run in any switching mode.
    topology: of the run.
    now: tick.

    Returns
    -------
    Per channel: all outstanding flits whose route has the channel, and those that have yet to cross it.
    """
    outstanding = Outstanding(*np.zeros((2, topology.channels), np.int64))
    network = _Network(routes=const.routes, net=const.net, out_start=topology.out_start, dst=topology.dst)
    unsent, processes = first_unsent(state), processes_of(const.net)
    for number, process in enumerate(processes):
        first = unsent[number * topology.hosts : (number + 1) * topology.hosts]
        _add_source_queues(network, now, process, first, number, len(processes), outstanding)
    _add_in_flight(network, in_flight_records(state), outstanding)
    return outstanding


@njit
def _add_route(network, src_host, dst_host, sequence, flits, hop, outstanding):
    """Add a packet to the channels of its route, the first ``hop`` of which it has been granted."""
    routes, net = network.routes, network.net
    switch, dst_switch = np.int64(net.host_switch[src_host]), np.int64(net.ejection_switch[dst_host])
    route = choose_route(routes, net.seed, src_host, dst_host, net.hosts, sequence, switch, dst_switch)
    hops_walked = np.int64(0)
    while not at_destination(routes, route, hops_walked, switch, dst_switch):
        port = next_port(
            routes, route, net.seed, switch, dst_switch, src_host, dst_host, net.hosts, sequence, hops_walked
        )
        channel = network.out_start[switch] + port
        outstanding.on_route[channel] += flits
        if hops_walked >= hop:
            outstanding.ungranted[channel] += flits
        switch = network.dst[channel]
        hops_walked += 1


@njit
def _add_source_queues(network, now, process, first, number, classes, outstanding):
    """Add the packets of a class of traffic in source queues.

    process: of the class. first: int64 [hosts, 4], the first unsent packet of each (see :func:`count_created`).
    number, classes: of the class, and how many there are.
    """
    arrivals, packets, seed = process
    for host in range(network.net.hosts):
        if arrivals.keep[host] < 0:
            continue
        counter, position, sequence = first[host, 0], first[host, 1], first[host, 2]
        while position >> arrivals.shift < now:
            flits, dst_host = length(packets, seed, host, counter), destination(packets, seed, host, sequence)
            drawn_by = sequence * classes + number
            _add_route(network, host, dst_host, drawn_by, flits, np.int64(0), outstanding)
            counter, position = next_arrival(arrivals, packets, seed, host, counter + 1, position)
            sequence += 1


@njit
def _add_in_flight(network, in_flight, outstanding):
    """Add the packets in flight, PACKET [packets]."""
    for i in range(len(in_flight)):
        src_host, sequence = np.int64(in_flight[i].src_host), np.int64(in_flight[i].sequence)
        flits, hop, dst_host = np.int64(in_flight[i].flits), np.int64(in_flight[i].hop), np.int64(in_flight[i].dst_host)
        _add_route(network, src_host, dst_host, sequence, flits, hop, outstanding)
