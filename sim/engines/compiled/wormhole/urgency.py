# SPDX-License-Identifier: Apache-2.0
"""Priorities in both allocators: of the requests for a resource only the most urgent ones bid.

Functions take ``state.urgency`` as their first argument. It is None without priorities: Numba then omits their code.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.ports import Ports
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.compiled.records import Tick
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.layout import TIME_SHIFT, U, crossbar_input_of


class Urgency(NamedTuple):
    """Urgencies: the greatest goes first.

    by_class: urgency is the priority of the packet's class of traffic; else the earlier creation is more urgent.
    everywhere: whether every choice heeds it; else only that of the VC from which a matched input sends. of_vc:
    int64 [input VCs], that of the packet at the front. of_next_vc, of_output, of_input: int64 [all VCs], [outputs],
    [crossbar inputs], the greatest of the requests for each.
    """

    by_class: bool
    everywhere: bool
    of_vc: Ints
    of_next_vc: Ints
    of_output: Ints
    of_input: Ints


def make_urgency(model: Wormhole, ports: Ports, hosts: int) -> Urgency | None:
    """Make the urgencies of a network; None without priorities.

    Parameters
    ----------
    model: its ``priority``, where that counts, and its VCs.
    ports: the port numbering.
    hosts: their number.
    """
    if model.priority == "none":
        return None
    inputs, outputs = len(ports.in_switch) * model.vcs, len(ports.out_input)
    return Urgency(
        by_class=model.priority == "class",
        everywhere=model.priority_at == "all",
        of_vc=np.zeros(inputs, np.int64),
        of_next_vc=np.zeros(inputs + hosts * model.vcs, np.int64),
        of_output=np.zeros(outputs, np.int64),
        of_input=np.zeros(len(ports.in_switch) * model.inputs_per_port, np.int64),
    )


@inline
def note_front_packet(urgency, classes, state, vc, packet):
    """Store the urgency of the packet that has come to the front of an input VC.

    Parameters
    ----------
    urgency, classes: ``state.urgency``, ``const.net.classes``.
    vc, packet: uint64.
    """
    if urgency is None:
        return
    record = state.pool.packet[packet]
    urgency.of_vc[vc] = Tick.LIMIT - np.int64(record.created_at)
    _note_priority(urgency, classes, vc, record)


@inline
def _note_priority(urgency, classes, vc, record):
    """Store the priority of the class of a packet, where that is its urgency. classes: ``const.net.classes``."""
    if classes is None:
        return
    if urgency.by_class:
        urgency.of_vc[vc] = classes.priority[np.int64(record.sequence) % classes.class_count]


@inline
def rank_vc_requests(urgency, const, state, count, requested_vcs):
    """Find the most urgent request for every free VC.

    Parameters
    ----------
    urgency: ``state.urgency``.
    count: uint64, of requests in ``state.contenders``.
    requested_vcs: function (input_first, const, state, vc, output) of the VCs that an input VC bids for.
    """
    if urgency is None:
        return
    for sets in range(2 * urgency.everywhere):
        for i in range(count):
            vc, output = state.contenders[i] & layout.VC_MASK, state.contenders[i] >> layout.OUTPUT_SHIFT
            allowed, first = requested_vcs(const.input_first, const, state, vc, output), U(state.vc_set[output].first)
            for k in range(U(const.vcs)):
                if (allowed >> k) & U(1):
                    greatest = max(urgency.of_next_vc[first + k], urgency.of_vc[vc])
                    urgency.of_next_vc[first + k] = greatest if sets else -Tick.NEVER


@inline
def bids_for_vc(urgency, vc, next_vc):
    """Tell, as 0 or 1, whether no request for an output VC is more urgent than that of an input VC."""
    if urgency is None:
        return U(1)
    return U(not urgency.everywhere or urgency.of_vc[vc] == urgency.of_next_vc[next_vc])


@inline
def _rank(of_vc, most_urgent, resource_of, bids, const, state, first, contended, time):
    """Find the most urgent of the requests that bid for every resource.

    Parameters
    ----------
    of_vc: of ``state.urgency``.
    most_urgent: int64 [resources], what is found: ``of_output`` or ``of_input`` of ``state.urgency``.
    resource_of: function (const, request) of the resource.
    bids: function (const, state, request, i, time) of whether a request bids.
    first, contended: uint64, the requests in ``state.ready``, whose bids are in ``state.bids``, and their number.
    time: of the bids: matched inputs have a higher one.
    """
    for sets in range(2):
        for i in range(contended):
            request = state.ready[first + i]
            resource = resource_of(const, request)
            most = most_urgent[resource]
            if bids(const, state, request, i, time):
                most = max(most, of_vc[request & layout.VC_MASK])
            most_urgent[resource] = most if sets else -Tick.NEVER


@inline
def _output(const, request):
    """Return the output of a request."""
    return request >> layout.OUTPUT_SHIFT


@inline
def _crossbar_input(const, request):
    """Return the crossbar input of a request."""
    return crossbar_input_of(const.inputs_per_port, const, request & layout.VC_MASK)


@inline
def _is_unmatched(const, state, request, i, time):
    """Tell whether the crossbar input of a request is not matched in this tick."""
    return const.iterations == 1 or state.crossbar_input[_crossbar_input(const, request)].best_bid < time


@inline
def _is_offered(const, state, request, i, time):
    """Tell whether the output of a request has offered itself; its bid is the ``i``-th."""
    return state.output[_output(const, request)].best_bid == state.bids[i]


@inline
def _is_selected(const, state, request, i, time):
    """Tell whether its crossbar input has selected a request, whose bid is the ``i``-th."""
    return state.bids[i] == state.crossbar_input[_crossbar_input(const, request)].best_bid


@inline
def _always(const, state, request, i, time):
    """Tell that every request bids."""
    return True


@inline
def rank_at_outputs(urgency, const, state, first, contended, time):
    """Find the most urgent request for every output, of crossbar inputs that are not matched."""
    if urgency is not None and urgency.everywhere:
        _rank(urgency.of_vc, urgency.of_output, _output, _is_unmatched, const, state, first, contended, time)


@inline
def rank_selected_at_outputs(urgency, const, state, first, contended, time):
    """Find the most urgent request for every output among those that their crossbar inputs have selected."""
    if urgency is not None:
        _rank(urgency.of_vc, urgency.of_output, _output, _is_selected, const, state, first, contended, time)


@inline
def rank_offered_at_inputs(urgency, const, state, first, contended, time):
    """Find the most urgent request of every crossbar input whose output has offered itself."""
    if urgency is not None and urgency.everywhere:
        _rank(urgency.of_vc, urgency.of_input, _crossbar_input, _is_offered, const, state, first, contended, time)


@inline
def rank_all_at_inputs(urgency, const, state, first, contended, time):
    """Find the most urgent request of every crossbar input."""
    if urgency is not None:
        _rank(urgency.of_vc, urgency.of_input, _crossbar_input, _always, const, state, first, contended, time)


@inline
def bids_for_output(urgency, vc, output):
    """Tell, as 0 or 1, whether no request for an output is more urgent than that of an input VC."""
    if urgency is None:
        return U(1)
    return U(not urgency.everywhere or urgency.of_vc[vc] == urgency.of_output[output])


@inline
def accepts_for_vc(urgency, vc, crossbar_input):
    """Tell, as 0 or 1, whether no offered request of a crossbar input is more urgent than that of one of its VCs."""
    if urgency is None:
        return U(1)
    return U(not urgency.everywhere or urgency.of_vc[vc] == urgency.of_input[crossbar_input])


@inline
def _is_for_accepted_output(const, state, request, i, time):
    """Tell whether a request, whose bid is the ``i``-th, is for the output that its crossbar input accepts."""
    best = U(state.crossbar_input[_crossbar_input(const, request)].best_bid)
    return state.bids[i] >> layout.PORT_SHIFT == best >> layout.PORT_SHIFT


@inline
def choose_urgent_vcs(urgency, const, state, first, contended, time):
    """Let crossbar inputs choose the most urgent of the VCs that request the output that they accept.

    Only where priorities count nowhere else.
    """
    if urgency is None:
        return
    if urgency.everywhere:
        return
    _rank(
        urgency.of_vc, urgency.of_input, _crossbar_input, _is_for_accepted_output, const, state, first, contended, time
    )
    for i in range(contended):
        request = state.ready[first + i]
        is_urgent = urgency.of_vc[request & layout.VC_MASK] == urgency.of_input[_crossbar_input(const, request)]
        if not _is_for_accepted_output(const, state, request, i, time) or not is_urgent:
            state.bids[i] = U(0)
    for i in range(contended):
        record = state.crossbar_input[_crossbar_input(const, state.ready[first + i])]
        if U(record.best_bid) >> TIME_SHIFT == time >> TIME_SHIFT:  # not matched in an earlier iteration
            record.best_bid = time
    for i in range(contended):
        record = state.crossbar_input[_crossbar_input(const, state.ready[first + i])]
        record.best_bid = max(record.best_bid, state.bids[i])


@inline
def order_adaptive_heads(urgency, state, waiting, new_heads):
    """List in ``state.bids`` the input VCs that adaptive routing visits: the most urgent first, then the oldest.

    Both lists are ordered by switch, and there by age.

    Parameters
    ----------
    waiting: uint64, of requests in ``state.contenders``.
    new_heads: uint64, length of ``state.new_heads``.
    """
    if urgency is None:
        return
    old, new = U(0), U(0)
    for end in range(waiting + new_heads):
        vc = state.contenders[old] & layout.VC_MASK
        if new < new_heads:
            head = state.new_heads[new] & layout.VC_MASK
            if old == waiting or state.vc[head].switch < state.vc[vc].switch:
                vc = head
        if old < waiting and vc == state.contenders[old] & layout.VC_MASK:
            old += U(1)
        else:
            new += U(1)
        place = end
        while place > U(0):
            before = state.bids[place - U(1)]
            if state.vc[before].switch != state.vc[vc].switch or not urgency.everywhere:
                break
            if urgency.of_vc[before] >= urgency.of_vc[vc]:
                break
            state.bids[place] = before
            place -= U(1)
        state.bids[place] = vc


@inline
def adaptive_head(urgency, state, waiting, i):
    """Return the ``i``-th input VC that adaptive routing visits. waiting: as in :func:`order_adaptive_heads`."""
    if urgency is None:
        return (state.contenders[i] if i < waiting else state.new_heads[i - waiting]) & layout.VC_MASK
    return state.bids[i]
