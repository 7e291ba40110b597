# SPDX-License-Identifier: Apache-2.0
"""Detection of deadlocks among the flits at the front of input VCs."""

import numpy as np

from flitlab.models.jit import njit
from flitlab.models.rules.bits import is_empty, lowest, without_lowest
from flitlab.models.rules.tables import Selection
from flitlab.sim.engines.compiled.records import NONE, Tick
from flitlab.sim.engines.compiled.replies import FRONT, reply_source
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.flits import buffer_of, waits_for_reply
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.routing import allowed_outputs, allowed_vcs_at, front_packet


@njit
def has_deadlocked_packet(const, state, now):
    """Tell whether the front flit of some input VC can never move.

    It can move if the downstream buffer has space, or can itself move a flit; without an output VC, if an allowed VC is
    free, or its holder can move. (Adaptive routing also requires space in a free VC.)
    """
    live = state.vc.write_index[: const.input_vcs] == state.vc.read_index[: const.input_vcs]
    changed = True
    while changed:
        changed = False
        for vc in range(const.input_vcs):
            if not live[vc] and _can_move(const, state, vc, live, now):
                live[vc] = True
                changed = True
    return not live.all()


@njit
def _drains(const, state, next_vc, live):
    """Tell whether the buffer of an output VC will take a flit; live: bool [input VCs]."""
    if next_vc >= const.input_vcs or live[next_vc]:
        return True
    used = np.int64(state.vc[next_vc].write_index) - np.int64(state.vc[next_vc].read_index)
    return used < buffer_of(const.vc_buffers, const, next_vc)


@njit
def _will_get_vc(const, state, output, allowed, live):
    """Tell whether a packet will be granted one of some VCs of an output.

    allowed: the VCs, a bit each. live: bool [input VCs].
    """
    while allowed:
        next_vc = U(state.vc_set[output].first) + U(lowest(allowed))
        allowed &= allowed - U(1)
        holder = U(state.vc[next_vc].holder)
        if holder != U(NONE):
            if live[holder]:
                return True
        elif const.rule != Selection.ADAPTIVE or _drains(const, state, next_vc, live):
            return True
    return False


@njit
def _host_receives(replies, const, state, vc, live, now):
    """Tell whether the host of the packet at the front of a VC may owe its reply, or may once one has left the host.

    replies: ``state.pool.replies``. live: bool [input VCs]. now: int64, tick.
    """
    if replies is None:
        return True
    if not waits_for_reply(replies, const, state, vc, Tick.LIMIT):
        return True
    classes, record = const.net.classes, state.pool.packet[front_packet(state, vc)]
    source = reply_source(const, np.int64(record.sequence) % classes.class_count, record)
    reply, host = source // const.net.hosts, source % const.net.hosts
    base = U(const.net.ports.inject[host]) * U(const.vcs)
    if state.injecting[source].packet != NONE:
        return _drains(const, state, U(state.injecting[source].vc), live)
    if replies.queue[source, FRONT] < 0 or np.int64(state.host[source].created_at) >= now:
        return True  # those that it owes are to come
    drains = False
    for k in range(classes.first_vc[reply], classes.end_vc[reply]):
        drains |= _drains(const, state, base + U(k), live)
    return drains


@njit
def _can_move(const, state, vc, live, now):
    """Tell whether the front flit of a VC can move, given the live VCs; live: bool [input VCs]. now: int64, tick."""
    vc_record = state.vc[vc]
    if not U(vc_record.blocked) & layout.NO_VC:
        return _drains(const, state, U(vc_record.next_vc), live) and _host_receives(
            state.pool.replies, const, state, U(vc), live, now
        )
    if const.rule != Selection.ADAPTIVE:
        return _will_get_vc(const, state, U(vc_record.output), U(vc_record.allowed_vcs), live)
    packet = front_packet(state, vc)
    base, ports = allowed_outputs(const, state, vc, packet)
    while not is_empty(ports):
        output = base + U(lowest(ports))
        ports = without_lowest(ports)
        if _will_get_vc(const, state, output, allowed_vcs_at(const, state, vc, packet, output), live):
            return True
    return False
