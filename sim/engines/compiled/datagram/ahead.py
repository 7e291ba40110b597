# SPDX-License-Identifier: Apache-2.0
"""What is about to come: which memory it takes, asked for some arrivals before.

What arrives in a tick is known all at once, and nearly all of it a tick before. Links are asked for in that tick, their
first packets when it begins, and from then on what these point to.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.datagram.links import goes_on
from flitlab.sim.engines.compiled.memory import prefetch, prefetch_line
from flitlab.sim.engines.compiled.pool import NOBODY

FEW = 2
"""Networks in which no more packets than this arrive in a tick are small: their memory is in the caches."""

AHEAD, SOON = 6, 2
"""How many arrivals ahead memory is asked for, and then for what that points to."""


@inline
def _ask_for_link(const, state, link):
    """Begin to load a link."""
    prefetch(state.link, link)
    if const.mixed:
        prefetch_line(state.link, link, 1)


@inline
def foresee_links(const, state, tick):
    """Begin to load the links whose first packets arrive in a tick to come."""
    link = np.int64(state.slot[tick & const.mask])
    while link != NOBODY:
        _ask_for_link(const, state, link)
        link = np.int64(state.after[link])


@inline
def foresee_packet(state, link):
    """Begin to load the first packet of a link."""
    prefetch(state.packet, np.int64(state.link[link].head))


@inline
def foresee(const, state, link):
    """Begin to load what is looked at when the first packet of a link arrives."""
    record = state.packet[np.int64(state.link[link].head)]
    _ask_for_link(const, state, np.int64(record.onto))
    prefetch(state.path, np.int64(record.at) + 2)
    if not goes_on(const, link):
        subflow = np.int64(record.subflow)
        prefetch(state.senders.seq, subflow)
        prefetch(state.senders.win, subflow)
        prefetch(state.senders.rtt, subflow)
        prefetch(state.senders.window, subflow)
        prefetch(state.subflow, subflow)
        prefetch(state.held, subflow)


@inline
def foresee_queue(const, state, link):
    """Begin to load the last packet on the link that the first packet of a link, or the next of its subflow, joins."""
    record = state.packet[np.int64(state.link[link].head)]
    line = state.link[np.int64(record.onto)]
    prefetch(state.packet, np.int64(line.tail))
    if const.mixed:
        prefetch(state.packet, np.int64(line.serving))
    if not goes_on(const, link):
        prefetch(state.path, np.int64(state.subflow[np.int64(record.subflow)].start))
