# SPDX-License-Identifier: Apache-2.0
"""Replies that hosts have yet to send: a source queue for each host and class of replies, without limit.

Functions take ``state.pool.replies`` as their first argument. It is None where no class has replies: Numba then omits
their code. The record of a source (``records.HOST``) shows the first reply of its queue.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints, Words
from flitlab.models.jit import device_function, inline
from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.rules.classes import NO_LIMIT, ClassTables, ends_of_reply, host_in_class, packets_of
from flitlab.models.rules.packets import length
from flitlab.sim.engines.classes import has_replies
from flitlab.sim.engines.compiled.pool import full_stack
from flitlab.sim.engines.compiled.timing_wheel import schedule

NEXT, DST_HOST, CREATED_AT, FLITS, SOURCE = range(5)
"""Columns of ``Replies.entry``: the next reply in the queue, or -1; where it goes, its creation, length and queue."""

FRONT, BACK = range(2)
"""Columns of ``Replies.queue``: first and last reply; FRONT is -1 where there is none."""

_NEVER = np.int64(LONGEST_RUN) << np.int64(32)


class Replies(NamedTuple):
    """Replies by source queue.

    entry: int64 [entries, 5], see NEXT. free: uint32 [entries + 1], the stack of unused entries, its height last.
    queue: int64 [sources, 2], see FRONT. made: int64 [sources, 2], replies so far, and their flits, those included that
    are created in later ticks. outstanding: int64 [sources], replies that wait, or whose request was granted.
    sending_until: int64 [sources], tick from which the last reply that was started has left the host. Both of classes
    with a limit.
    """

    entry: Ints
    free: Words
    queue: Ints
    made: Ints
    outstanding: Ints
    sending_until: Ints


def make_replies(classes: ClassTables | None) -> Replies | None:
    """Make empty queues; None where no class has replies. classes: of the run."""
    if classes is None or not has_replies(classes):
        return None
    sources, entries = classes.class_count * classes.hosts, 4 * classes.hosts + 1024
    return Replies(
        entry=np.zeros((entries, 5), np.int64),
        free=full_stack(entries),
        queue=np.full((sources, 2), -1, np.int64),
        made=np.zeros((sources, 2), np.int64),
        outstanding=np.zeros(sources, np.int64),
        sending_until=np.zeros(sources, np.int64),
    )


def doubled_replies(replies: Replies) -> Replies:
    """Return the same replies with room for twice as many."""
    entries = len(replies.entry)
    unused = replies.free[: replies.free[-1]]
    free = np.zeros(2 * entries + 1, np.uint32)
    free[: len(unused) + entries] = np.concatenate([np.arange(2 * entries - 1, entries - 1, -1), unused])
    free[-1] = len(unused) + entries
    return replies._replace(entry=np.concatenate([replies.entry, np.zeros_like(replies.entry)]), free=free)


def created_replies(replies: Replies, now: int) -> Ints:
    """Count the replies created before a tick, and their flits, int64 [sources, 2]."""
    queued = np.ones(len(replies.entry), bool)
    queued[replies.free[: replies.free[-1]]] = False
    later = replies.entry[queued & (replies.entry[:, CREATED_AT] >= now)]
    created = replies.made.copy()
    np.subtract.at(created, later[:, SOURCE], np.stack([np.ones(len(later), np.int64), later[:, FLITS]], axis=1))
    return created


def show_first_replies(replies: Replies, classes: ClassTables, host: np.ndarray) -> None:
    """Copy the creation of the first reply of every source queue into the record of the source.

    Parameters
    ----------
    replies: of the run.
    classes: of the run.
    host: HOST [sources].
    """
    sources = np.flatnonzero(np.repeat(classes.request >= 0, classes.hosts))
    first = replies.queue[sources, FRONT]
    host["created_at"][sources] = np.where(first < 0, _NEVER, replies.entry[first, CREATED_AT])


@inline
def lacks_replies(replies, hosts):
    """Tell whether there may be too few unused entries for one more tick, in which each host receives one packet."""
    if replies is None:
        return False
    return replies.free[len(replies.free) - 1] < hosts


@inline
def create_reply(replies, const, state, request, tick):
    """Create the reply to a packet that is delivered at ``tick``, if its class has replies.

    request: record of the packet.
    """
    if replies is None:
        return
    classes = const.net.classes
    sequence = np.int64(request.sequence)
    c = sequence % classes.class_count
    reply = classes.reply[c]
    if reply < 0:
        return
    host, dst_host = ends_of_reply(
        classes, classes.seed[reply], reply, np.int64(request.src_host), np.int64(request.dst_host), sequence
    )
    source = reply * const.net.hosts + host
    created_at = tick + classes.delay[c]
    flits = length(packets_of(classes, reply), classes.seed[reply], host, replies.made[source, 0])
    top = len(replies.free) - 1
    replies.free[top] -= np.uint32(1)
    place = np.int64(replies.free[replies.free[top]])
    entry = replies.entry[place]
    entry[NEXT], entry[DST_HOST], entry[CREATED_AT] = -1, dst_host, created_at
    entry[FLITS], entry[SOURCE] = flits, source
    replies.made[source, 0] += 1
    replies.made[source, 1] += flits
    if replies.queue[source, FRONT] < 0:
        replies.queue[source, FRONT] = place
        _show_first(replies, state, source)
    else:
        back = replies.queue[source, BACK]
        replies.entry[back, NEXT] = place
        if replies.entry[back, CREATED_AT] == created_at:
            _order_by_destination(replies, source, place)
    replies.queue[source, BACK] = place
    schedule(state.host_wheel, host, min(created_at, tick + state.host_wheel.mask))


@device_function
def _order_by_destination(replies, source, place):
    """Put the last reply of a queue, at ``place``, among those of its tick, to requests from other subnets."""
    added = replies.entry[place]
    e = np.int64(replies.queue[source, FRONT])
    while e != place:
        entry = replies.entry[e]
        if entry[CREATED_AT] == added[CREATED_AT] and entry[DST_HOST] > added[DST_HOST]:
            entry[DST_HOST], added[DST_HOST] = added[DST_HOST], entry[DST_HOST]
        e = entry[NEXT]


@inline
def take_reply(replies, const, state, source, packet):
    """Take the first reply of a source queue as a packet: fill in its destination; return whether there is one."""
    if replies is None:
        return False
    place = replies.queue[source, FRONT]
    if place < 0:
        return False
    state.pool.packet[packet].dst_host = replies.entry[place, DST_HOST]
    replies.queue[source, FRONT] = replies.entry[place, NEXT]
    top = len(replies.free) - 1
    replies.free[replies.free[top]] = place
    replies.free[top] += np.uint32(1)
    _show_first(replies, state, source)
    _start_limited_reply(replies, const, source)
    return True


@inline
def _start_limited_reply(replies, const, source):
    """Note that a reply of a class with a limit is being sent: it counts until :func:`end_reply`."""
    classes = const.net.classes
    if classes.reply_limit[classes.request[source // const.net.hosts]] != NO_LIMIT:
        replies.outstanding[source] -= 1
        replies.sending_until[source] = _NEVER


@inline
def end_reply(replies, const, source, tick):
    """Note the tick from which the reply that a source sends has left its host.

    Returns the output that ejects the requests of this host, for which that may make space; -1 without a limit.
    """
    if replies is None:
        return np.int64(-1)
    classes, c = const.net.classes, np.int64(source) // const.net.hosts
    request = classes.request[c]
    if request < 0 or classes.reply_limit[request] == NO_LIMIT:
        return np.int64(-1)
    replies.sending_until[np.int64(source)] = tick
    return np.int64(const.net.ports.eject[host_in_class(classes, request, np.int64(source) % const.net.hosts)])


@inline
def may_eject(replies, const, record, tick):
    """Tell whether a packet may be granted the channel to its host, which may owe no further reply.

    record: of the packet.
    """
    if replies is None:
        return True
    c = np.int64(record.sequence) % const.net.classes.class_count
    limit = const.net.classes.reply_limit[c]
    if limit == NO_LIMIT:
        return True
    source = reply_source(const, c, record)
    return replies.outstanding[source] + np.int64(replies.sending_until[source] > tick) < limit


@inline
def commit_reply(replies, const, record):
    """Count the reply to a packet that is granted the channel to its host. record: of the packet."""
    if replies is None:
        return
    c = np.int64(record.sequence) % const.net.classes.class_count
    if const.net.classes.reply_limit[c] != NO_LIMIT:
        replies.outstanding[reply_source(const, c, record)] += 1


@inline
def reply_source(const, request, record):
    """Return the source queue of the reply to a packet of class ``request``, which has a limit.

    record: of the packet.
    """
    reply = const.net.classes.reply[request]
    return reply * const.net.hosts + host_in_class(const.net.classes, reply, np.int64(record.dst_host))


@inline
def _show_first(replies, state, source):
    """Copy creation and length of the first reply of a source queue into the record of the source."""
    record, place = state.host[source], replies.queue[source, FRONT]
    record.created_at = _NEVER
    if place >= 0:
        record.created_at, record.flits = replies.entry[place, CREATED_AT], replies.entry[place, FLITS]
