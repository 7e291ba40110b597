# SPDX-License-Identifier: Apache-2.0
"""The way of a packet, which may depend on the congestion when it is decided: the same in all disciplines."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.route import another_path, at_destination, next_port, route_from
from flitlab.models.rules.tables import LEAST_QUEUED, PROGRESSIVE, UGAL_GLOBAL, UGAL_LOCAL
from flitlab.models.rules.ugal import MINIMAL_ROUTE, cheaper_path, choose_leg_count, revises_route
from flitlab.sim.engines.compiled import records


@inline
def by_congestion(rule):
    """Tell whether the way of a packet depends on the congestion when it is sent; rule: of the routes."""
    return rule in (UGAL_LOCAL, UGAL_GLOBAL, LEAST_QUEUED, PROGRESSIVE)


@inline
def _congestion(const, state, packet, way, here, hop, ahead, tick):
    """Count the flits queued for the next channel of a way, or (UGAL_GLOBAL) for all of them.

    here, hop: the switch where the packet is, and how many channels it has taken to come there. ahead: see
    :func:`set_way`.
    """
    record = state.pool.packet[packet]
    source, destination = np.int64(record.source), np.int64(record.destination)
    target, taken = np.int64(const.net.host_switch[destination]), np.int64(hop)
    sequence, flits = np.int64(record.sequence), np.int64(0)
    while not at_destination(const.routes, way, hop, here, target) and (hop == taken or const.rule == UGAL_GLOBAL):
        port = next_port(
            const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
        )
        queued, here = ahead(const, state, here, port, tick)
        flits += queued
        hop += 1
    return flits


@inline
def _drawn(const, state, packet, origin, target, turn):
    """Return the ``turn``-th of the ways that are compared; the packet has the way that was drawn first."""
    record = state.pool.packet[packet]
    way = np.int64(record.way)
    if const.rule != LEAST_QUEUED:
        return way if turn else MINIMAL_ROUTE
    if turn == 0:
        return way
    source, sequence = np.int64(record.source), np.int64(record.sequence)
    return another_path(const.routes, const.net.seed, source, sequence, origin, target, turn)


@inline
def _better(const, state, packet, origin, target, best, other, best_flits, flits):
    """Return the better of two ways; best_flits, flits: queued for either."""
    if const.rule == LEAST_QUEUED:
        length = np.int64(state.pool.packet[packet].flits)
        return cheaper_path(const.routes, best, other, best_flits, flits, length)
    return choose_leg_count(const.routes, other, origin, target, best_flits, flits)


@inline
def set_way(const, state, packet, ahead, tick):
    """Fix the way of a packet that has just been created; by congestion the better of those drawn.

    ahead: function (const, state, switch, port, tick) that gives the flits queued for a channel, and the switch at its
    end.
    """
    record = state.pool.packet[packet]
    records.set_way(const, state, packet)
    if not by_congestion(const.rule):
        return
    origin = np.int64(const.net.host_switch[record.source])
    target = np.int64(const.net.host_switch[record.destination])
    if const.rule == LEAST_QUEUED and origin == target:
        return
    best, best_flits = np.int64(0), np.int64(0)
    for turn in range(const.routes.draws if const.rule == LEAST_QUEUED else 2):  # one place that counts: compiled once
        way = _drawn(const, state, packet, origin, target, turn)
        flits = _congestion(const, state, packet, way, origin, np.int64(0), ahead, tick)
        if turn == 0 or _better(const, state, packet, origin, target, best, way, best_flits, flits) != best:
            best, best_flits = way, flits
    record.way = best


@inline
def think_again(const, state, packet, here, ahead, tick):
    """Decide the way of a packet once more at the second switch of its group, by what the tick before has left.

    ahead, tick: see :func:`set_way`; the tick in which the packet has been read.
    """
    record = state.pool.packet[packet]
    way, hop = np.int64(record.way), np.int64(record.hop)
    source = np.int64(record.source)
    origin = np.int64(const.net.host_switch[source])
    target = np.int64(const.net.host_switch[record.destination])
    if not revises_route(const.routes, way, hop, origin, here, target):
        return
    sequence = np.int64(record.sequence)
    via = route_from(const.routes, const.net.seed, source, const.net.hosts, sequence, here, hop)
    minimal_flits, flits = np.int64(0), np.int64(0)
    for turn in range(2):  # one place that counts: compiled once
        minimal_flits = flits
        flits = _congestion(const, state, packet, via if turn else MINIMAL_ROUTE, here, hop, ahead, tick - 1)
    record.way = choose_leg_count(const.routes, via, here, target, minimal_flits, flits)
