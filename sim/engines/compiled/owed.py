# SPDX-License-Identifier: Apache-2.0
"""What a run owes each channel: traffic that is created and not delivered, by the routes that it has drawn.

The route of a packet follows from its host and its sequence number alone, so it is walked when somebody asks, and the
kernels keep nothing for it.
"""

from typing import Any

import numpy as np

from flitlab.models.jit import njit
from flitlab.models.rules.arrivals import next_arrival
from flitlab.models.rules.packets import destination, length
from flitlab.models.rules.route import at_target, choose_way, next_port
from flitlab.models.topology.graph import Topology
from flitlab.sim.engines.base import Outstanding
from flitlab.sim.engines.compiled.records import packets_in_network, sent


def owed(const: Any, state: Any, topology: Topology, now: int) -> Outstanding:
    """Return what a run owes each channel at tick ``now``, whose routes are fixed when packets are created."""
    found = Outstanding(*np.zeros((2, topology.channels), np.int64))
    graph = (const.routes, const.net, topology.out_start, topology.dst)
    _at_hosts(*graph, now, sent(state), *found)
    _in_network(*graph, packets_in_network(state), *found)
    return found


@njit
def _walk(routes, net, out_start, dst, source, sequence, flits, hop, crossing, ahead):
    """Add a packet to what is owed to the channels of its route, of which it has been granted the first ``hop``."""
    to = destination(net.packets, net.seed, source, sequence)
    here, target = np.int64(net.host_switch[source]), np.int64(net.host_switch[to])
    way = choose_way(routes, net.seed, source, to, net.hosts, sequence, here, target)
    taken = np.int64(0)
    while not at_target(routes, way, taken, here, target):
        port = next_port(routes, way, net.seed, here, target, source, to, net.hosts, sequence, taken)
        channel = out_start[here] + port
        crossing[channel] += flits
        if taken >= hop:
            ahead[channel] += flits
        here = dst[channel]
        taken += 1


@njit
def _at_hosts(routes, net, out_start, dst, now, first, crossing, ahead):
    """Add the packets that wait at their hosts.

    first: int64 [hosts, 4], the first unsent packet of each (see ``sources.count_created``).
    """
    arrivals, packets = net.arrivals, net.packets
    for host in range(net.hosts):
        if arrivals.keep[host] < 0:
            continue
        counter, position, sequence = first[host, 0], first[host, 1], first[host, 2]
        while position >> arrivals.shift < now:
            flits = length(packets, net.seed, host, counter)
            _walk(routes, net, out_start, dst, host, sequence, flits, np.int64(0), crossing, ahead)
            counter, position = next_arrival(arrivals, packets, net.seed, host, counter + 1, position)
            sequence += 1


@njit
def _in_network(routes, net, out_start, dst, sent, crossing, ahead):
    """Add packets that have been sent, PACKET [packets]."""
    for i in range(len(sent)):
        source, sequence = np.int64(sent[i].source), np.int64(sent[i].sequence)
        flits, hop = np.int64(sent[i].flits), np.int64(sent[i].hop)
        _walk(routes, net, out_start, dst, source, sequence, flits, hop, crossing, ahead)
