# SPDX-License-Identifier: Apache-2.0
"""Stalls of head packets in virtual cut-through."""

import numpy as np

from flitlab.models.jit import device_function, inline
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.stalls import Stall, stall_reasons
from flitlab.models.rules.tables import Selection
from flitlab.sim.engines.compiled.records import NONE
from flitlab.sim.engines.compiled.replies import may_eject
from flitlab.sim.engines.compiled.vct.credits import select_downstream_vc
from flitlab.sim.engines.compiled.vct.requests import (
    allowed_downstream_vc_range,
    allowed_ports_of_adaptive_packet,
    downstream_input_of_output,
    head_packet_feeds_from,
)


@inline
def _reasons_at_output(const, state, packet, output, is_input_busy, tick):
    """Return the reasons for which a head packet stalls that requests one output.

    packet, output: int64. is_input_busy: whether its input still sends a packet.
    """
    is_taken, lacks_credit = is_input_busy or np.int64(state.output[output].busy_until) > tick, False
    if downstream_input_of_output(state, output) != NONE:
        first_vc, end_vc = allowed_downstream_vc_range(const, state, packet, output)
        flits = np.int64(state.pool.packet[packet].flits)
        next_vc, _ = select_downstream_vc(const, state, const.reserved_vcs, output, first_vc, end_vc, flits)
        lacks_credit = next_vc == NONE
    else:
        lacks_credit = not may_eject(state.pool.replies, const, state.pool.packet[packet], tick)
    return stall_reasons(False, lacks_credit, is_taken), is_taken or lacks_credit


@device_function
def _reasons(const, state, vc, packet, tick):
    """Return the reasons for which the eligible head packet of an input VC stalls, those of all its outputs together.

    An output that it would starve does not count; if nothing hinders it at one, it loses an arbitration.
    """
    is_input_busy = const.shared_input and np.int64(state.input_busy[vc // const.vcs]) > tick
    output = np.int64(state.pool.packet[packet].output)
    if const.rule != Selection.ADAPTIVE or output != NONE:
        return _reasons_at_output(const, state, packet, output, is_input_busy, tick)[0]
    switch, reasons = np.int64(state.vc[vc].switch), 0
    ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
    while not is_empty(ports):
        output = np.int64(const.net.ports.out_base[switch]) + lowest(ports)
        ports = without_lowest(ports)
        if head_packet_feeds_from(const.output_ticks, state, packet, output) > tick:
            continue
        at_output, is_hindered = _reasons_at_output(const, state, packet, output, is_input_busy, tick)
        if not is_hindered:
            return Stall.SWITCH
        reasons |= at_output
    return reasons


@inline
def note_stalls(stalls, const, state, tick):
    """Note for every input VC of the partition why its head packet stalls in this tick unless it is granted.

    Parameters
    ----------
    stalls: ``state.stalls``.
    tick: int64.
    """
    if stalls is None:
        return
    for vc in range(stalls.first_input * const.vcs, stalls.end_input * const.vcs):
        packet = np.int64(state.vc[vc].head_packet)
        reasons = 0
        if packet != NONE and np.int64(state.vc[vc].eligible_at) <= tick:
            reasons = _reasons(const, state, vc, packet, tick)
        stalls.reasons[vc] = reasons
