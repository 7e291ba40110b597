# SPDX-License-Identifier: Apache-2.0
"""Lists of packets that are due at a tick hold what was put into them, however many there are."""

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.jit import kernel
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    NONE,
    entry_in,
    events_at,
    make_calendar_queue,
    release_block,
    schedule_event,
    take_bucket,
)

TICKS, PACKETS = 4, 100


@kernel
def let_be_due(due, packet, tick):
    """Put a packet into the list of a tick."""
    schedule_event(due, packet, tick)


@kernel
def taken(due, tick, odd, packets):
    """Take the list of a tick away, and put the odd packets back if asked to; returns how many were in it."""
    count = np.int64(0)
    chunk, filled = take_bucket(due, tick)
    while chunk != NONE:
        for i in range(filled):
            packet = entry_in(due, chunk, i)
            packets[count] = packet
            count += 1
            if odd and packet % 2:
                schedule_event(due, packet, tick)
        chunk, filled = release_block(due, chunk), BLOCK_ENTRIES
    return count


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put many", "take", "put back"]), st.integers(0, TICKS - 1)), max_size=60
)


@given(STEPS)
@settings(deadline=None, max_examples=200)
def test_packets_are_found_at_their_tick(steps):
    due, known, unused = make_calendar_queue(TICKS, PACKETS), defaultdict(list), list(range(PACKETS))
    packets = np.zeros(PACKETS, np.int64)
    for step, tick in steps:
        for _ in range(min(len(unused), {"put": 1, "put many": 30}.get(step, 0))):
            let_be_due(due, unused[-1], tick)
            known[tick].append(unused.pop())
        if step in ("take", "put back"):
            odd = step == "put back"
            found = packets[: taken(due, tick, odd, packets)].tolist()
            assert sorted(found) == sorted(known[tick])
            known[tick] = [packet for packet in known[tick] if odd and packet % 2]
            unused += [packet for packet in found if packet not in known[tick]]
        for each in range(TICKS):
            assert sorted(events_at(due, each)) == sorted(known[each])
