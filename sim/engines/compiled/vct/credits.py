# SPDX-License-Identifier: Apache-2.0
"""Credits: free flits of input VCs as their upstream counts them, and credits in flight.

The free flits of all VCs behind one upstream lie together in ``VctState.free_flits``. An upstream is an output, or the
number of outputs + a host. A VC is given by its number in its input.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import device_function, inline
from flitlab.models.rules.vc import is_reserved_for_others, vc_score
from flitlab.sim.engines.compiled.calendar_queue import (
    BLOCK_ENTRIES,
    entry_in,
    prefetch_next_block,
    release_block,
    schedule_event,
    take_bucket,
)
from flitlab.sim.engines.compiled.memory import prefetch, unlikely
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.timing_wheel import schedule

# An entry of free_flits, packed: the free flits, and whether the upstream awaits credits.
_FREE_FLITS_MASK, _AWAITED = np.uint32(0x7FFFFFFF), np.uint32(1 << 31)

# A returning credit, packed: the index in free_flits, and flits.
_FLITS_SHIFT, _INDEX_MASK = 32, 0xFFFFFFFF


@inline
def _credit_index_of_downstream_vc(const, upstream, vc):
    """Return the index in ``free_flits`` of a VC behind an upstream."""
    return np.uint64((upstream << const.vc_bits) + vc)


@inline
def free_flits_of_downstream_vc(const, state, upstream, vc):
    """Return the free flits of a VC, int64, as its upstream counts them."""
    return np.int64(state.free_flits[_credit_index_of_downstream_vc(const, upstream, vc)] & _FREE_FLITS_MASK)


@inline
def consume_credits_of_downstream_vc(const, state, upstream, vc, flits):
    """Take ``flits`` credits of a VC.

    Parameters
    ----------
    upstream, vc: int64, see above.
    flits: int64, no more than are free.
    """
    state.free_flits[_credit_index_of_downstream_vc(const, upstream, vc)] -= np.uint32(flits)


@inline
def flag_credits_awaited_by_upstream(const, state, upstream, first_vc, end_vc):
    """Have an upstream scheduled when credits return to one of the VCs ``first_vc`` to ``end_vc`` - 1.

    Parameters
    ----------
    upstream, first_vc, end_vc: int64, see above.
    """
    for vc in range(first_vc, end_vc):
        state.free_flits[_credit_index_of_downstream_vc(const, upstream, vc)] |= _AWAITED


@inline
def select_downstream_vc(const, state, reserved_vcs, upstream, first_vc, end_vc, flits):
    """Select the VC with the best score among ``first_vc`` to ``end_vc`` - 1 behind an upstream.

    Parameters
    ----------
    reserved_vcs: int64; VCs below it are taken last.
    upstream, first_vc, end_vc: int64, see above.
    flits: int64, length of the packet.

    Returns
    -------
    (VC, score), int64; the VC is NONE if no VC has space. The score is :func:`flitlab.models.rules.vc.vc_score`, or the
    free flits where no VC is reserved.
    """
    best_vc = NONE
    if reserved_vcs == 0:
        best_score = flits - 1
        for vc in range(first_vc, end_vc):
            free = free_flits_of_downstream_vc(const, state, upstream, vc)
            best_vc, best_score = (vc, free) if free > best_score else (best_vc, best_score)
        return best_vc, best_score
    best_score = np.int64(0)
    for vc in range(first_vc, end_vc):
        free = free_flits_of_downstream_vc(const, state, upstream, vc)
        if free < flits or is_reserved_for_others(reserved_vcs, first_vc, vc):
            continue
        score = vc_score(reserved_vcs, vc, free, flits)
        if score > best_score:
            best_vc, best_score = vc, score
    return best_vc, best_score


@inline
def _buffer_behind(output_buffers, const, output):
    """Return the flits that a VC behind an output holds. output_buffers: ``const.output_buffers``."""
    if output_buffers is None:
        return const.buffer_flits
    return output_buffers[output]


@inline
def downstream_credits_in_use(const, state, output):
    """Return the downstream credits in use behind an output, in flits."""
    flits_in_use, size = np.int64(0), _buffer_behind(const.output_buffers, const, output)
    for vc in range(const.vcs):
        flits_in_use += size - free_flits_of_downstream_vc(const, state, output, vc)
    return flits_in_use


@inline
def schedule_credit_return(state, index, usable_at, flits):
    """Send credits to an upstream.

    Parameters
    ----------
    index: of the VC in ``free_flits``.
    usable_at: int64, tick from which on the credits are usable.
    flits: int64.
    """
    schedule_event(state.returning_credits, np.int64(index) | np.int64(flits) << _FLITS_SHIFT, usable_at)


def unpack_indices_of_returning_credits(returns: Ints) -> Ints:
    """Return the indices in ``free_flits`` of returning credits.

    Parameters
    ----------
    returns: int64 [credits], entries of ``returning_credits``.
    """
    return returns & _INDEX_MASK


@inline
def add_returned_credits_at_upstreams(const, state, tick):
    """Add the returned credits that are usable from ``tick`` on, and schedule each upstream that awaits them."""
    _add_returned_credits_of_bucket(
        const.vc_bits,
        state.returning_credits,
        state.free_flits,
        state.output,
        state.output_wheel,
        state.host_wheel,
        np.int64(tick),
    )


@inline
def add_credits_of_skipped_ticks(program, const, state, first, until):
    """Receive the credits of ticks that are not simulated, from ``first`` to ``until`` - 1.

    Parameters
    ----------
    program: ``state.program``; without a program every tick is simulated.
    first, until: int64, ticks.
    """
    if program is None:
        return
    for tick in range(first, min(until, first + state.returning_credits.mask + 1)):
        add_returned_credits_at_upstreams(const, state, tick)


@device_function
def _add_returned_credits_of_bucket(vc_bits, returning_credits, free, outputs, output_wheel, host_wheel, tick):
    """Carry out :func:`add_returned_credits_at_upstreams`; arguments are those fields of constants and state."""
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
            free[np.uint64(index)] = entry & _FREE_FLITS_MASK
            if entry & _AWAITED:
                upstream = index >> vc_bits
                if upstream >= len(outputs):
                    schedule(host_wheel, upstream - len(outputs), tick)
                elif outputs[upstream].busy_until <= tick:  # else it is scheduled when it falls free
                    schedule(output_wheel, upstream, tick)
        block, count = release_block(returning_credits, block), BLOCK_ENTRIES
