# SPDX-License-Identifier: Apache-2.0
"""Deadlocks between requests and replies, where a host receives no request while it owes too many replies.

The channel dependency graph then has an edge from every vertex (channel, VC) from which a request leaves to a host, to
every vertex that its reply may enter there. Classes that share virtual channels, directly or through other classes,
share vertices, and within such a group packets may go from any host to any other. So the whole graph has a cycle where
a group has one, which :mod:`flitlab.models.routing.class_ranges` finds, or where the edges between groups have one.

Source: Song and Pinkston, A progressive approach to handling message-dependent deadlock, TPDS 2003,
doi:10.1109/TPDS.2003.1189584.
"""

from collections.abc import Sequence

import numpy as np
import scipy

from flitlab.models.routing.certificate import find_cycle
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names
from flitlab.models.traffic.demand import TrafficClass


def reply_cycle(topology: Topology, classes: Sequence[TrafficClass], vcs: int) -> tuple[int, str] | None:
    """Find requests and replies that may wait for one another in a cycle.

    Parameters
    ----------
    topology: the network, of one subnet.
    classes: of traffic.
    vcs: virtual channels of a channel.

    Returns
    -------
    The number of a class of requests in the cycle, and the cycle as text; None if there is none.
    """
    replies = [number for number, one in enumerate(classes) if one.request is not None and one.queue is not None]
    if not replies:
        return None
    group = _groups(classes, vcs)
    waits = [(_request(classes[reply]), reply) for reply in replies]
    edges = np.array([(group[request], group[reply]) for request, reply in waits], np.int64)
    cycle = next(([one] for one, other in edges.tolist() if one == other), None) or find_cycle(len(classes), edges)
    if cycle is None:
        return None
    steps = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    pairs = [next(pair for pair, edge in zip(waits, edges.tolist(), strict=True) if tuple(edge) == s) for s in steps]
    return pairs[0][0], _text(topology, classes, pairs, vcs)


def _request(reply: TrafficClass) -> int:
    assert reply.request is not None
    return reply.request


def _groups(classes: Sequence[TrafficClass], vcs: int) -> list[int]:
    """The group of each class: classes that share virtual channels, directly or through others."""
    share = [[_shared(one, other, vcs) is not None for other in classes] for one in classes]
    _, group = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(np.array(share)), directed=False)
    return [int(number) for number in group]


def _shared(one: TrafficClass, other: TrafficClass, vcs: int) -> int | None:
    """The lowest virtual channel that two classes share; None if they share none."""
    (first, end), (other_first, other_end) = (each.vcs or (0, vcs) for each in (one, other))
    apart = one.subnet is not None and other.subnet is not None and one.subnet != other.subnet
    lowest = max(first, other_first)
    return None if apart or lowest >= min(end, other_end) else lowest


def _text(topology: Topology, classes: Sequence[TrafficClass], pairs: list[tuple[int, int]], vcs: int) -> str:
    """A cycle as text: each request waits for its reply, which waits for the next request on the channel it shares.

    pairs: numbers of the classes of requests, and of their replies.
    """
    ends = _two_channels(topology)
    steps = []
    for i, (request, reply) in enumerate(pairs):
        following = classes[pairs[(i + 1) % len(pairs)][0]]
        before = classes[pairs[i - 1][1]]
        for one, others, where in ((classes[request], before, 0), (classes[reply], following, 1)):
            shared = _shared(one, others, vcs)
            vc = (one.vcs or (0, vcs))[0] if shared is None else shared
            steps.append(f"({one.name}, {ends[(where + i) % 2]}, VC {vc})")
    return " waits for ".join([*steps, steps[0]])


def _two_channels(topology: Topology) -> tuple[str, str]:
    """The names of a channel into a switch with hosts, and of one out of it to another switch with hosts.

    Those of one link where there is one; with hosts at a single switch, the injection channels of two of them.
    """
    has_hosts, names = topology.host_count > 0, switch_names(topology)
    if topology.is_multistage:
        return _ends_of_multistage(topology)
    both = has_hosts[topology.src] & has_hosts[topology.dst]
    links = np.flatnonzero(both & (topology.reverse >= 0))
    if len(links):
        near, far = (names.label(end[links[0]]) for end in (topology.src, topology.dst))
        return f"{near}->{far}", f"{far}->{near}"
    at = np.flatnonzero(has_hosts)
    if len(at) < 2:
        hosts, switch = host_names(topology), names.label(at[0])
        return f"host {hosts.label(0)}->{switch}", f"host {hosts.label(topology.hosts - 1)}->{switch}"
    size = (topology.switches, topology.switches)
    graph = scipy.sparse.csr_array((np.ones(topology.channels), (topology.src, topology.dst)), size)
    u, v = int(at[0]), int(at[1])
    _, before = scipy.sparse.csgraph.breadth_first_order(graph, u)
    _, behind = scipy.sparse.csgraph.breadth_first_order(graph.T.tocsr(), u)
    return f"{names.label(before[v])}->{names.label(v)}", f"{names.label(v)}->{names.label(behind[v])}"


def _ends_of_multistage(topology: Topology) -> tuple[str, str]:
    """The names of the channels from and to the first host of a network where these are at different switches."""
    hosts, names = host_names(topology), switch_names(topology)
    first, last = names.label(topology.host_switch[0]), names.label(topology.ejection_switch[0])
    return f"{last}->host {hosts.label(0)}", f"host {hosts.label(0)}->{first}"
