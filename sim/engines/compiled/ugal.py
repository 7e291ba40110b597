"""The way of a packet that a host starts, which may depend on the congestion then: the same in all disciplines."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import another_path, at_target, next_port
from flitlab.models.rules.tables import LEAST_QUEUED, UGAL_GLOBAL, UGAL_LOCAL
from flitlab.models.rules.ugal import MINIMALLY, better_way, lesser_path
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.records import DESTINATION, FLITS, SEQUENCE, SOURCE, WAY


@inner
def by_congestion(rule):
    """Tell whether the way of a packet depends on the congestion when it is sent; rule: of the routes."""
    return rule in (UGAL_LOCAL, UGAL_GLOBAL, LEAST_QUEUED)


@inner
def _congestion(const, state, packet, way, ahead, tick):
    """Count the flits queued for the first channel of a way, or (UGAL_GLOBAL) for all of them.

    ahead: see :func:`set_way`.
    """
    source, destination = np.int64(state.pool.packet[packet, SOURCE]), np.int64(state.pool.packet[packet, DESTINATION])
    here, target = np.int64(const.net.host_switch[source]), np.int64(const.net.host_switch[destination])
    sequence, hop, flits = np.int64(state.pool.packet[packet, SEQUENCE]), np.int64(0), np.int64(0)
    while not at_target(const.routes, way, hop, here, target) and (hop == 0 or const.rule == UGAL_GLOBAL):
        port = next_port(
            const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
        )
        queued, here = ahead(const, state, here, port, tick)
        flits += queued
        hop += 1
    return flits


@inner
def _set_path(const, state, packet, ahead, tick):
    """Replace the path of a packet by the best of as many as are to be drawn."""
    source, destination = np.int64(state.pool.packet[packet, SOURCE]), np.int64(state.pool.packet[packet, DESTINATION])
    origin, target = np.int64(const.net.host_switch[source]), np.int64(const.net.host_switch[destination])
    if origin == target:
        return
    sequence, length = np.int64(state.pool.packet[packet, SEQUENCE]), np.int64(state.pool.packet[packet, FLITS])
    best = np.int64(state.pool.packet[packet, WAY])
    best_flits = _congestion(const, state, packet, best, ahead, tick)
    for turn in range(1, const.routes.draws):
        other = another_path(const.routes, const.net.seed, source, sequence, origin, target, turn)
        flits = _congestion(const, state, packet, other, ahead, tick)
        if lesser_path(const.routes, best, other, best_flits, flits, length) != best:
            best, best_flits = other, flits
    state.pool.packet[packet, WAY] = best


@inner
def set_way(const, state, packet, ahead, tick):
    """Fix the way of a packet that has just been created; by congestion the better of those drawn.

    ahead: function (const, state, switch, port, tick) that gives the flits queued for a channel, and the switch at its
    end.
    """
    records.set_way(const, state, packet)
    if not by_congestion(const.rule):
        return
    if const.rule == LEAST_QUEUED:
        _set_path(const, state, packet, ahead, tick)
        return
    via = np.int64(state.pool.packet[packet, WAY])
    minimal_flits = _congestion(const, state, packet, MINIMALLY, ahead, tick)
    flits = _congestion(const, state, packet, via, ahead, tick)
    origin = np.int64(const.net.host_switch[state.pool.packet[packet, SOURCE]])
    target = np.int64(const.net.host_switch[state.pool.packet[packet, DESTINATION]])
    state.pool.packet[packet, WAY] = better_way(const.routes, via, origin, target, minimal_flits, flits)
