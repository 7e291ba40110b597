# SPDX-License-Identifier: Apache-2.0
"""Source queues that several sources share: a host sends their packets one at a time.

A source is a class of traffic at a host of a subnet, or all packets there. A class has one source queue at each host,
whatever the subnets that its packets draw. Classes may name a queue that they share; requests whose replies have no
limit, and these replies, share one if they name none. From a shared queue a host sends a packet to its tail, and then
that of the greatest priority, of these a reply first, then the oldest, though the virtual channels that it may take be
full and those of the packets behind it free: BookSim2's source queue, in which requests and replies, and the packets of
all subnets, wait for one another.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.traffic.demand import Traffic, TrafficClass


class SourceQueues(NamedTuple):
    """Which sources share a queue. Source c * hosts + h is class c at host h, hosts of all subnets.

    queue: int64 [sources], number of the shared queue, -1 of a source with a queue of its own. members: int64 [queues,
    most members], the sources of every queue ascending, -1 behind the last. priority: int64 [sources], twice that of
    the class, and 1 more for replies.
    """

    queue: Ints
    members: Ints
    priority: Ints


_REQUESTS_AND_REPLIES = -1
"""The queue of requests whose replies have no limit, and of these replies."""


def _key(classes: Sequence[TrafficClass], number: int) -> object:
    """What names the source queue of a class: a name, the number of the class, or ``_REQUESTS_AND_REPLIES``."""
    one = classes[number]
    if one.source_queue is not None:
        return one.source_queue
    limits = [
        reply.queue for k, reply in enumerate(classes) if reply.request is not None and number in (reply.request, k)
    ]
    return _REQUESTS_AND_REPLIES if limits == [None] else number


def make_source_queues(traffic: Traffic) -> SourceQueues | None:
    """Find the sources that share a queue.

    Parameters
    ----------
    traffic: the demand, in all subnets.

    Returns
    -------
    The queues; None where every source has its own.
    """
    topology = traffic.topology
    hosts, copies, classes = topology.hosts, topology.subnets, traffic.classes
    each = topology.physical_hosts
    named: dict[object, list[int]] = defaultdict(list)  # first sources, those of host 0, by name or number of the class
    for number, one in enumerate(classes):
        subnets = range(copies) if one.subnet is None or copies == 1 else [one.subnet]
        named[_key(classes, number)] += [number * hosts + subnet * each for subnet in subnets]
    if not classes:
        named[0] = [subnet * each for subnet in range(copies)]
    shared = [sorted(first) for first in named.values() if len(first) > 1]
    if not shared:
        return None
    queue = np.full(hosts * max(len(classes), 1), -1, np.int64)
    members = np.full((len(shared) * each, max(map(len, shared))), -1, np.int64)
    for number, first in enumerate(shared):
        of_host = np.arange(each)[:, None] + np.array(first)
        rows = number * each + np.arange(each)
        members[rows, : len(first)] = of_host
        queue[of_host] = rows[:, None]
    rank = [2 * one.priority + (one.request is not None) for one in classes] or [0]
    return SourceQueues(queue, members, np.repeat(np.array(rank, np.int64), hosts))
