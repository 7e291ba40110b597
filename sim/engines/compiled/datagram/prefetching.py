# SPDX-License-Identifier: Apache-2.0
"""Prefetching of what arrivals will touch.

All arrivals of a tick are known at its beginning, and nearly all a tick before. Links are prefetched a tick ahead,
their first packets at the beginning of the tick, and then what these refer to.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.datagram.links import is_internal
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NONE

MIN_BATCH = 2
"""Prefetching pays for more arrivals in a tick than this: smaller networks fit into the caches."""


@inline
def _prefetch_link(const, state, link):
    """Prefetch the record of a link."""
    prefetch(state.link, link)
    if const.mixed:
        prefetch_line(state.link, link, 1)


@inline
def prefetch_links(const, state, tick):
    """Prefetch the links with an arrival in a later tick."""
    link = np.int64(state.bucket[tick & const.mask])
    while link != NONE:
        _prefetch_link(const, state, link)
        link = np.int64(state.next_in_bucket[link])


@inline
def prefetch_packet(state, link):
    """Prefetch the first packet of a link."""
    prefetch(state.packet, np.int64(state.link[link].first_packet))


@inline
def prefetch_arrival(const, state, link):
    """Prefetch what the arrival of the first packet of a link touches."""
    record = state.packet[np.int64(state.link[link].first_packet)]
    _prefetch_link(const, state, np.int64(record.next_link))
    prefetch(state.path, np.int64(record.path_index) + 2)
    if not is_internal(const, link):
        subflow = np.int64(record.subflow)
        prefetch(state.senders.seq, subflow)
        prefetch(state.senders.win, subflow)
        prefetch(state.senders.rtt, subflow)
        prefetch(state.senders.window, subflow)
        prefetch(state.subflow, subflow)
        prefetch(state.reorder_bits, subflow)


@inline
def prefetch_queue(const, state, link):
    """Prefetch the last packet of the next link of a link's first packet, or the path of its subflow."""
    record = state.packet[np.int64(state.link[link].first_packet)]
    link_record = state.link[np.int64(record.next_link)]
    prefetch(state.packet, np.int64(link_record.last_packet))
    if const.mixed:
        prefetch(state.packet, np.int64(link_record.first_in_queue))
    if not is_internal(const, link):
        prefetch(state.path, np.int64(state.subflow[np.int64(record.subflow)].path_start))
