# SPDX-License-Identifier: Apache-2.0
"""Oversubscription: how much more the hosts of a network can send than its channels carry."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.arrays import Floats, Ints, sums
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology


def oversubscription(topology: Topology) -> float:
    """The ratio of what hosts send to what the busiest channel carries, 1 or more, under traffic between pods.

    Every host sends at its full rate, evenly to the hosts of all other pods; no host receives more than its rate. Each
    switch divides traffic evenly between its channels on shortest paths. In a tree the ratio is that of hosts to
    uplinks, of a leaf or of a pod, whichever is larger. In a direct network, where each switch is a pod, it is the
    busiest channel's load under uniform traffic.

    The tier of a switch is its distance from the nearest switch with hosts. A pod is a component of the network without
    the highest tier. Channels between the same tiers with the same load count with the median of their capacities: a
    few slow links do not make a network oversubscribed.

    Parameters
    ----------
    topology: the network.
    """
    ends = np.flatnonzero(topology.host_count)
    if len(ends) < 2:
        return 1.0
    table = distances(topology)
    tier = table[ends].min(axis=0).astype(np.int64)
    load = np.round(topology.host_capacity * _load(topology, table, ends, _pods(topology, ends, tier)), 9)
    alike = np.column_stack([tier[topology.src], tier[topology.dst], load])
    kind = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
    order = np.lexsort((topology.capacity, kind))
    first = np.searchsorted(kind[order], np.arange(kind.max() + 2))
    median = topology.capacity[order][(first[:-1] + first[1:] - 1) // 2]
    return max(1.0, float((load / median[kind]).max()))


def _pods(topology: Topology, ends: Ints, tier: Ints) -> Ints:
    """The pod of each switch in ``ends``: int64 [ends]. tier: of every switch, int64 [switches].

    Where a network stays connected without its highest tier, the next one is removed too, and so on.
    """
    for highest in range(int(tier.max()) - 1, -1, -1):
        below = np.maximum(tier[topology.src], tier[topology.dst]) <= highest
        links = topology.src[below], topology.dst[below]
        matrix = csr_array((np.ones(len(links[0])), links), shape=(topology.switches, topology.switches))
        pods: Ints = connected_components(matrix, connection="weak")[1][ends].astype(np.int64)
        if len(np.unique(pods)) > 1:
            return pods
    return np.arange(len(ends))


def _load(topology: Topology, table: np.ndarray, ends: Ints, pods: Ints) -> Floats:
    """The load of every channel under traffic between pods, for hosts of rate 1: float64 [channels].

    table: distances, integers [switches, switches]. ends: the switches with hosts; pods: of these.
    """
    hosts, load = topology.host_count[ends], np.zeros(topology.channels)
    partners = hosts.sum() - np.bincount(pods, hosts)[pods]  # of a host, in other pods
    for target, pod, count, others in zip(ends.tolist(), pods.tolist(), hosts.tolist(), partners.tolist(), strict=True):
        sent = np.zeros(topology.switches)
        sent[ends] = np.where(pods == pod, 0.0, hosts * count / np.maximum(partners, others))
        load += _towards(topology, table[:, target].astype(np.int64), sent)
    return load


def _towards(topology: Topology, hops: Ints, sent: Floats) -> Floats:
    """The load of every channel, float64 [channels], if switches send these amounts to one switch.

    hops: int64 [switches], to it.
    """
    src, dst = topology.src, topology.dst
    closer = hops[src] == hops[dst] + 1
    ports = np.bincount(src[closer], minlength=topology.switches)
    load, amount = np.zeros(topology.channels), sent.astype(float)
    for level in range(int(hops[sent > 0].max(initial=0)), 0, -1):
        level_channels = np.flatnonzero(closer & (hops[src] == level))
        load[level_channels] = amount[src[level_channels]] / ports[src[level_channels]]
        amount = amount + sums(dst[level_channels], load[level_channels], topology.switches)
    return load
