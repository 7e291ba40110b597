# SPDX-License-Identifier: Apache-2.0
"""The room of input VCs, as those who feed them know it, and room that is on its way back to them.

Room is counted by who sends: that of all VCs behind an output, or behind a host, stands together. A sender is an
output, or the number of outputs + a host.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inner, routine
from flitlab.models.rules.vc import appeal, is_kept
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE, ZERO
from flitlab.sim.engines.compiled.timing_wheel import schedule

# What is counted of a VC, packed: its room in flits, and whether the sender waits for more.
_FREE_FLITS, _AWAITED = np.uint32(0x7FFFFFFF), np.uint32(1 << 31)

# Room that returns, packed: where it is counted, and flits.
_FLITS_SHIFT, _INDEX_MASK = 32, 0xFFFFFFFF


@inner
def _credit_index(const, upstream, vc):
    """Find where the room of a VC behind a sender is counted; vc: its number in its input."""
    return np.uint64((upstream << const.vc_bits) + vc)


@inner
def free_flits(const, state, upstream, vc):
    """Return the room of a VC behind a sender, in flits, as far as that knows; vc: its number in its input."""
    return np.int64(state.free_flits[_credit_index(const, upstream, vc)] & _FREE_FLITS)


@inner
def consume_credits(const, state, upstream, vc, flits):
    """Let a sender use room of a VC; vc: its number in its input."""
    state.free_flits[_credit_index(const, upstream, vc)] -= np.uint32(flits)


@inner
def await_credits(const, state, upstream, first_vc, end_vc):
    """Have a sender looked at when room returns to it in one of the VCs from ``first_vc`` to ``end_vc`` - 1."""
    for vc in range(first_vc, end_vc):
        state.free_flits[_credit_index(const, upstream, vc)] |= _AWAITED


@inner
def select_vc(const, state, reserved_vcs, upstream, first_vc, end_vc, flits):
    """Find the VC that a packet prefers among those from ``first_vc`` to ``end_vc`` - 1 behind a sender.

    resorts: how many of the first VCs are taken last. flits: length of the packet. Returns (the VC, its appeal); the
    VC is NOBODY if none has room.
    """
    best_vc = NONE
    if reserved_vcs == 0:
        best_score = flits - 1
        for vc in range(first_vc, end_vc):
            free = free_flits(const, state, upstream, vc)
            best_vc, best_score = (vc, free) if free > best_score else (best_vc, best_score)
        return best_vc, best_score
    best_score = ZERO
    for vc in range(first_vc, end_vc):
        free = free_flits(const, state, upstream, vc)
        if free < flits or is_kept(reserved_vcs, first_vc, vc):
            continue
        score = appeal(reserved_vcs, vc, free, flits)
        if score > best_score:
            best_vc, best_score = vc, score
    return best_vc, best_score


@inner
def credits_in_use(const, state, output):
    """Count the credit in use on the channel of an output, in flits."""
    in_use = ZERO
    for vc in range(const.vcs):
        in_use += const.buffer_flits - free_flits(const, state, output, vc)
    return in_use


@inner
def return_credits(state, index, usable_at, flits):
    """Let room return to who feeds a VC, where it is usable from tick ``usable_at`` on; place: where it is counted."""
    schedule_event(state.returning_credits, np.int64(index) | np.int64(flits) << _FLITS_SHIFT, usable_at)


def credit_indices(returns: Ints) -> Ints:
    """Return where room that returns is counted."""
    return returns & _INDEX_MASK


@inner
def collect_credits(const, state, tick):
    """Take in the room that is usable from a tick on, and wake who waits for it."""
    _collect_credits(
        const.vc_bits,
        state.returning_credits,
        state.free_flits,
        state.output,
        state.output_wheel,
        state.host_wheel,
        np.int64(tick),
    )


@inner
def collect_skipped(program, const, state, first, until):
    """Take in what room returns in ticks that are not simulated, from ``first`` to ``until`` - 1.

    program: ``state.program``; without one all are simulated.
    """
    if program is None:
        return
    for tick in range(first, min(until, first + state.returning_credits.mask + 1)):
        collect_credits(const, state, tick)


@routine
def _collect_credits(vc_bits, returning_credits, free, outputs, output_wheel, host_wheel, tick):
    """Take in the room that is usable from a tick on; arguments: of a run's constants and state."""
    block, count = take_bucket(returning_credits, tick)
    while block != NONE:
        prefetch_next_block(returning_credits, block)
        if unlikely(count == BLOCK_ENTRIES):
            for i in range(BLOCK_ENTRIES):
                prefetch(free, entry_in(returning_credits, block, i) & _INDEX_MASK)
        for i in range(count):
            returns = entry_in(returning_credits, block, i)
            index = returns & _INDEX_MASK
            entry = free[np.uint64(index)] + np.uint32(returns >> _FLITS_SHIFT)
            free[np.uint64(index)] = entry & _FREE_FLITS
            if entry & _AWAITED:
                upstream = index >> vc_bits
                if upstream >= len(outputs):
                    schedule(host_wheel, upstream - len(outputs), tick)
                elif outputs[upstream].busy_until <= tick:  # else it is looked at when it falls free
                    schedule(output_wheel, upstream, tick)
        block, count = release_block(returning_credits, block), BLOCK_ENTRIES
