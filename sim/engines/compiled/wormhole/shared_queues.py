# SPDX-License-Identifier: Apache-2.0
"""Source queues that several sources share (see :mod:`flitlab.models.rules.source_queues`).

Functions take ``state.shared_queues`` as their first argument. It is None where every source has a queue of its own:
Numba then omits their code.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.allocate import outranks
from flitlab.models.rules.source_queues import make_source_queues
from flitlab.models.traffic.demand import Traffic
from flitlab.sim.engines.compiled.timing_wheel import schedule


class SharedQueues(NamedTuple):
    """Shared source queues; queue, members, priority: as in :class:`~flitlab.models.rules.source_queues.SourceQueues`.

    is_sending: int64 [queues], 1 while flits of a packet are left, else 0. free_at: int64 [queues], tick from which the
    next packet may start.
    """

    queue: Ints
    members: Ints
    priority: Ints
    is_sending: Ints
    free_at: Ints


def make_shared_queues(traffic: Traffic) -> SharedQueues | None:
    """Make empty queues; None where every source has its own. traffic: the demand, in all subnets."""
    queues = make_source_queues(traffic)
    if queues is None:
        return None
    count = len(queues.members)
    return SharedQueues(**queues._asdict(), is_sending=np.zeros(count, np.int64), free_at=np.zeros(count, np.int64))


@inline
def may_start(shared, state, source, tick):
    """Tell whether the first packet of a source, created by ``tick``, is the next one of its queue, which is free."""
    if shared is None:
        return True
    q, number = shared.queue[source], np.int64(source)
    if q < 0:
        return True
    is_first = shared.is_sending[q] == 0 and shared.free_at[q] <= tick
    priority, created = shared.priority[number], np.int64(state.host[source].created_at)
    for k in range(shared.members.shape[1]):
        other = shared.members[q, k]
        if other < 0 or other == number:
            continue
        other_created = np.int64(state.host[other].created_at)
        if other_created <= tick and outranks(shared.priority[other], other_created, other, priority, created, number):
            is_first = False
    return is_first


@inline
def occupy(shared, source):
    """Note that the first packet of a source leaves its queue."""
    if shared is not None and shared.queue[source] >= 0:
        shared.is_sending[shared.queue[source]] = 1


@inline
def release(shared, const, state, source, tick):
    """Let the next packet of a source's queue start from ``tick`` on, and schedule the hosts that may send it."""
    if shared is None:
        return
    q = shared.queue[source]
    if q < 0:
        return
    shared.is_sending[q], shared.free_at[q] = 0, tick
    for k in range(shared.members.shape[1]):
        if shared.members[q, k] >= 0:
            schedule(state.host_wheel, shared.members[q, k] % const.net.hosts, tick)


def release_interrupted(shared: SharedQueues | None, sources: Ints) -> Ints:
    """Release the shared queues of sources whose packet was dropped on its way out of the host.

    sources: int64, of these packets. Returns the sources of their queues, which may start now.
    """
    if shared is None:
        return np.zeros(0, np.int64)
    queues = shared.queue[sources]
    queues = queues[queues >= 0]
    shared.is_sending[queues] = 0
    members: Ints = shared.members[queues]
    return members[members >= 0]
