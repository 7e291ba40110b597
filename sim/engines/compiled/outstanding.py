# SPDX-License-Identifier: Apache-2.0
"""Outstanding traffic of each channel: traffic created and not delivered, along the routes that were drawn.

A packet's route follows from its source host and sequence number alone. It is walked when the counts are requested;
kernels store nothing for it.
"""

import numpy as np

from flitlab.models.jit import njit
from flitlab.models.rules.arrivals import next_arrival
from flitlab.models.rules.packets import destination, length
from flitlab.models.rules.route import at_destination, choose_route, next_port
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import Outstanding
from flitlab.sim.engines.compiled import Constants, State
from flitlab.sim.engines.compiled.records import first_unsent, in_flight_records, processes_of


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
    graph = (const.routes, const.net, topology.out_start, topology.dst)
    unsent, processes = first_unsent(state), processes_of(const.net)
    for number, process in enumerate(processes):
        first = unsent[number * topology.hosts : (number + 1) * topology.hosts]
        _add_source_queues(*graph, now, process, first, number, len(processes), *outstanding)
    _add_in_flight(*graph, in_flight_records(state), *outstanding)
    return outstanding


@njit
def _add_route(routes, net, out_start, dst, src_host, dst_host, sequence, flits, hop, total, remaining):
    """Add a packet to the channels of its route, the first ``hop`` of which it has been granted.

    total: int64 [channels], flits of all packets whose route has the channel. remaining: the same, of those yet to
    cross it.
    """
    switch, dst_switch = np.int64(net.host_switch[src_host]), np.int64(net.ejection_switch[dst_host])
    route = choose_route(routes, net.seed, src_host, dst_host, net.hosts, sequence, switch, dst_switch)
    hops_walked = np.int64(0)
    while not at_destination(routes, route, hops_walked, switch, dst_switch):
        port = next_port(
            routes, route, net.seed, switch, dst_switch, src_host, dst_host, net.hosts, sequence, hops_walked
        )
        channel = out_start[switch] + port
        total[channel] += flits
        if hops_walked >= hop:
            remaining[channel] += flits
        switch = dst[channel]
        hops_walked += 1


@njit
def _add_source_queues(routes, net, out_start, dst, now, process, first, number, classes, total, remaining):
    """Add the packets of a class of traffic in source queues.

    process: of the class. first: int64 [hosts, 4], the first unsent packet of each (see ``sources.count_created``).
    number, classes: of the class, and how many there are.
    """
    arrivals, packets, seed = process
    for host in range(net.hosts):
        if arrivals.keep[host] < 0:
            continue
        counter, position, sequence = first[host, 0], first[host, 1], first[host, 2]
        while position >> arrivals.shift < now:
            flits, dst_host = length(packets, seed, host, counter), destination(packets, seed, host, sequence)
            drawn_by = sequence * classes + number
            _add_route(routes, net, out_start, dst, host, dst_host, drawn_by, flits, np.int64(0), total, remaining)
            counter, position = next_arrival(arrivals, packets, seed, host, counter + 1, position)
            sequence += 1


@njit
def _add_in_flight(routes, net, out_start, dst, in_flight, total, remaining):
    """Add the packets in flight, PACKET [packets]."""
    for i in range(len(in_flight)):
        src_host, sequence = np.int64(in_flight[i].src_host), np.int64(in_flight[i].sequence)
        flits, hop, dst_host = np.int64(in_flight[i].flits), np.int64(in_flight[i].hop), np.int64(in_flight[i].dst_host)
        _add_route(routes, net, out_start, dst, src_host, dst_host, sequence, flits, hop, total, remaining)
