# SPDX-License-Identifier: Apache-2.0
"""Detection of deadlocks among head packets."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.route import at_destination
from flitlab.models.rules.tables import Selection
from flitlab.models.rules.vc import is_reserved_for_others
from flitlab.sim.engines.compiled.calendar_queue import list_events
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.replies import FRONT, may_eject, reply_source
from flitlab.sim.engines.compiled.vct.credits import free_flits_of_downstream_vc, unpack_indices_of_returning_credits
from flitlab.sim.engines.compiled.vct.requests import allowed_downstream_vc_range, allowed_ports_of_adaptive_packet
from flitlab.sim.engines.compiled.vct.state import VctConstants, VctState


def has_deadlocked_packet(const: VctConstants, state: VctState, now: int) -> bool:
    """Tell whether some head packet can never move, between ticks."""
    returning = np.zeros(len(state.free_flits), bool)
    returning[unpack_indices_of_returning_credits(list_events(state.returning_credits)[0])] = True
    return bool(_any_head_packet_blocked_forever(const, state, returning, now))


@njit
def _any_head_packet_blocked_forever(const, state, returning, now):
    """Tell whether some head packet can never move: no VC that it may take will ever have space.

    A VC will have space if it has some, if credits of it are in flight, or if its head packet can move. returning: bool
    [credit indices], whether credits are in flight. now: int64, tick.
    """
    count = len(state.vc)
    live = np.zeros(count, np.bool_)
    for vc in range(count):
        live[vc] = state.vc[vc].head_packet == NONE or returning[state.vc[vc].credit_index]
    changed = True
    while changed:
        changed = False
        for vc in range(count):
            if not live[vc] and _can_head_packet_ever_move(const, state, vc, live, now):
                live[vc] = True
                changed = True
    return not live.all()


@njit
def _can_head_packet_ever_move(const, state, vc, live, now):
    """Tell whether the head packet of a VC can move: at tick ``now``, or into a live VC; live: bool [input VCs]."""
    packet = np.int64(state.vc[vc].head_packet)
    switch = np.int64(state.vc[vc].switch)
    dst_switch = np.int64(const.net.ejection_switch[state.pool.packet[packet].dst_host])
    route, hop = np.int64(state.pool.packet[packet].route), np.int64(state.pool.packet[packet].hop)
    if at_destination(const.routes, route, hop, switch, dst_switch):
        return _can_host_ever_receive(state.pool.replies, const, state, packet, live, now)
    base = const.net.ports.out_base[switch]
    if const.rule != Selection.ADAPTIVE:
        return _will_output_ever_have_space(const, state, packet, np.int64(state.pool.packet[packet].output), live)
    ports = allowed_ports_of_adaptive_packet(const, state, packet, switch)
    while not is_empty(ports):
        if _will_output_ever_have_space(const, state, packet, base + lowest(ports), live):
            return True
        ports = without_lowest(ports)
    return False


@njit
def _can_host_ever_receive(replies, const, state, packet, live, now):
    """Tell whether the host of a packet may owe its reply, or may once a reply in its queue has left.

    replies: ``state.pool.replies``. live: bool [input VCs]. now: int64, tick.
    """
    if replies is None:
        return True
    record = state.pool.packet[packet]
    if may_eject(replies, const, record, Tick.LIMIT):
        return True
    classes = const.net.classes
    source = reply_source(const, np.int64(record.sequence) % classes.class_count, record)
    if replies.queue[source, FRONT] < 0 or np.int64(state.host[source].created_at) >= now:
        return True  # those that it owes are to come
    reply, host = source // const.net.hosts, source % const.net.hosts
    for vc in range(classes.first_vc[reply], classes.end_vc[reply]):
        free = free_flits_of_downstream_vc(const, state, len(state.output) + host, vc)
        if live[const.net.ports.inject[host] * const.vcs + vc] or free >= state.host[source].flits:
            return True
    return False


@njit
def _will_output_ever_have_space(const, state, packet, output, live):
    """Tell whether an allowed VC of an output has space, or is live; live: bool [input VCs]."""
    first = np.int64(const.net.ports.out_input[output]) * const.vcs
    first_vc, end_vc = allowed_downstream_vc_range(const, state, packet, output)
    has_space = False
    for other in range(first_vc, end_vc):
        has_space_now = (
            live[first + other]
            or free_flits_of_downstream_vc(const, state, output, other) >= state.pool.packet[packet].flits
        )
        has_space |= has_space_now and not is_reserved_for_others(const.reserved_vcs, first_vc, other)
    return has_space
