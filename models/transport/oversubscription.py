# SPDX-License-Identifier: Apache-2.0
"""How much more hosts can send than the network between their switches carries."""

import numpy as np

from flitlab.models.arrays import Floats, sums
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


def oversubscription(topology: Topology) -> float:
    """The load of the busiest channel, 1 or more, if hosts send all they can evenly to all hosts of other switches.

    Each switch passes on what it has evenly over its channels towards the destination. A leaf-spine network with as
    many links up as hosts a leaf has 1, one with a quarter of them 4. Of channels with the same load all count as fast
    as the fastest: a few slow links do not make a network oversubscribed.
    """
    hosts, table = topology.host_count, distances(topology)
    ends = np.flatnonzero(hosts)
    load = np.zeros(topology.channels)
    for target in ends.tolist():
        others = np.maximum(topology.hosts - hosts, 1)
        sent = topology.host_capacity * hosts * hosts[target] / others
        sent[target] = 0.0
        load += _towards(topology, table[:, target].astype(np.int64), sent)
    _, alike = np.unique(np.round(load, 9), return_inverse=True)
    fastest = np.zeros(alike.max(initial=0) + 1)
    np.maximum.at(fastest, alike, topology.capacity)
    return max(1.0, float((load / fastest[alike]).max(initial=0.0)))


def _towards(topology: Topology, hops: np.ndarray, sent: Floats) -> Floats:
    """The load of every channel, float64 [channels], if switches send such amounts to one.

    hops: int64 [switches], to it.
    """
    src, dst = topology.src, topology.dst
    down = hops[src] == hops[dst] + 1
    ways = np.bincount(src[down], minlength=topology.switches)
    load, amount = np.zeros(topology.channels), sent.astype(float)
    for level in range(int(hops[sent > 0].max(initial=0)), 0, -1):
        here = np.flatnonzero(down & (hops[src] == level))
        load[here] = amount[src[here]] / ways[src[here]]
        amount = amount + sums(dst[here], load[here], topology.switches)
    return load
