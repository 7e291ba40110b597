# SPDX-License-Identifier: Apache-2.0
"""Stalls of front flits in wormhole switching."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.stalls import stall_reasons
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.flits import waits_for_reply
from flitlab.sim.engines.compiled.wormhole.layout import U


@inline
def _sends_earlier_flit(output_ticks, state, output, tick):
    """Tell whether an output still sends its last flit. output_ticks: ``const.output_ticks``."""
    if output_ticks is None:
        return False
    return state.free_at[output] > tick


@inline
def _has_full_queue(crossbar, output):
    """Tell whether the queue of an output is full. crossbar: ``state.crossbar``."""
    if crossbar is None:
        return False
    return crossbar.queue_count[output] >= crossbar.queue_flits


@inline
def note_stalls(stalls, const, state, new_heads, tick):
    """Note for every input VC why its front flit stalls in this tick unless it is granted.

    Parameters
    ----------
    stalls: ``state.stalls``.
    new_heads: uint64, entries of ``state.new_heads`` whose headers are not read before the next tick.
    tick: int64.
    """
    if stalls is None:
        return
    for vc in range(np.int64(const.input_vcs)):
        vc_record = state.vc[vc]
        blocked, reasons = U(vc_record.blocked), 0
        if not blocked & (layout.EMPTY | layout.UNREAD):
            output = np.int64(vc_record.output)
            is_taken = _sends_earlier_flit(const.output_ticks, state, output, tick)
            is_taken |= _has_full_queue(state.crossbar, output)
            lacks_vc, lacks_credit = blocked & layout.NO_VC == layout.NO_VC, blocked & layout.NO_CREDIT != U(0)
            if not lacks_vc:
                lacks_credit |= waits_for_reply(state.pool.replies, const, state, U(vc), tick)
            reasons = stall_reasons(lacks_vc, lacks_credit, is_taken)
        stalls.reasons[vc] = reasons
    for i in range(new_heads):
        stalls.reasons[state.new_heads[i] & layout.VC_MASK] = 0
