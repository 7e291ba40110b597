# SPDX-License-Identifier: Apache-2.0
"""What is about to come: which memory it takes, asked for some arrivals before.

What arrives in a tick is known all at once, and nearly all of it a tick before. Links are asked for in that tick, their
first packets when it begins, and from then on what these point to.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.datagram.links import is_internal
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NONE

MIN_BATCH = 2
"""Networks in which no more packets than this arrive in a tick are small: their memory is in the caches."""

PREFETCH_DISTANCE, NEAR_PREFETCH_DISTANCE = 6, 2
"""How many arrivals ahead memory is asked for, and then for what that points to."""


@inner
def _prefetch_link(const, state, link):
    """Begin to load a link."""
    prefetch(state.link, link)
    if const.mixed:
        prefetch_line(state.link, link, 1)


@inner
def prefetch_links(const, state, tick):
    """Begin to load the links whose first packets arrive in a tick to come."""
    link = np.int64(state.bucket[tick & const.mask])
    while link != NONE:
        _prefetch_link(const, state, link)
        link = np.int64(state.next_in_bucket[link])


@inner
def prefetch_packet(state, link):
    """Begin to load the first packet of a link."""
    prefetch(state.packet, np.int64(state.link[link].first_packet))


@inner
def prefetch_arrival(const, state, link):
    """Begin to load what is looked at when the first packet of a link arrives."""
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


@inner
def prefetch_queue(const, state, link):
    """Begin to load the last packet on the link that the first packet of a link, or the next of its subflow, joins."""
    record = state.packet[np.int64(state.link[link].first_packet)]
    link_record = state.link[np.int64(record.next_link)]
    prefetch(state.packet, np.int64(link_record.last_packet))
    if const.mixed:
        prefetch(state.packet, np.int64(link_record.first_in_queue))
    if not is_internal(const, link):
        prefetch(state.path, np.int64(state.subflow[np.int64(record.subflow)].path_start))
