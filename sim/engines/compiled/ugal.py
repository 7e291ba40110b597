# SPDX-License-Identifier: Apache-2.0
"""Congestion-aware routes: the same for all switching modes."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.route import another_path, at_destination, route_from
from flitlab.models.rules.tables import Selection
from flitlab.models.rules.ugal import MINIMAL_ROUTE, cheaper_path, choose_leg_count, revises_route
from flitlab.sim.engines.compiled.records import draw_packet_route, port_of_route


@inline
def uses_congestion(rule):
    """Tell whether a selection rule compares congestion at injection; rule: of the routes."""
    return rule in (Selection.UGAL_LOCAL, Selection.UGAL_GLOBAL, Selection.LEAST_QUEUED, Selection.PROGRESSIVE)


@inline
def _queued_flits(const, state, packet, route, switch, hop, queue_estimate, tick):
    """Return the flits queued for the next channel of a route, or (UGAL_GLOBAL) for all of them.

    Parameters
    ----------
    route: its routing state.
    switch, hop: the switch of the packet, and the channels that it has taken.
    queue_estimate: see :func:`choose_route`.
    """
    record = state.pool.packet[packet]
    dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
    hops_before, flits = np.int64(hop), np.int64(0)
    while not at_destination(const.routes, route, hop, switch, dst_switch) and (
        hop == hops_before or const.rule == Selection.UGAL_GLOBAL
    ):
        port = port_of_route(const, record, route, switch, dst_switch, hop)
        queued, switch = queue_estimate(const, state, switch, port, tick)
        flits += queued
        hop += 1
    return flits


@inline
def _candidate_route(const, state, packet, src_switch, dst_switch, candidate):
    """Return candidate number ``candidate``; the route drawn first is in the packet's record."""
    record = state.pool.packet[packet]
    route = np.int64(record.route)
    if const.rule != Selection.LEAST_QUEUED:
        return route if candidate else MINIMAL_ROUTE
    if candidate == 0:
        return route
    src_host, sequence = np.int64(record.src_host), np.int64(record.sequence)
    return another_path(const.routes, const.net.seed, src_host, sequence, src_switch, dst_switch, candidate)


@inline
def _better_route(const, state, packet, src_switch, dst_switch, best, other, best_flits, flits):
    """Return the better of two routes; best_flits, flits: queued for them."""
    if const.rule == Selection.LEAST_QUEUED:
        length = np.int64(state.pool.packet[packet].flits)
        return cheaper_path(const.routes, best, other, best_flits, flits, length)
    return choose_leg_count(const.routes, other, src_switch, dst_switch, best_flits, flits)


@inline
def choose_route(const, state, packet, queue_estimate, tick):
    """Choose the route of a packet at injection; if congestion-aware, the best of the candidates.

    Parameters
    ----------
    packet: int64.
    queue_estimate: function (const, state, switch, port, tick) that returns (flits queued for a channel, switch at its
    end).
    tick: int64.
    """
    record = state.pool.packet[packet]
    draw_packet_route(const, state, packet)
    if not uses_congestion(const.rule):
        return
    src_switch = np.int64(const.net.host_switch[record.src_host])
    dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
    if const.rule == Selection.LEAST_QUEUED and src_switch == dst_switch:
        return
    best, best_flits = np.int64(0), np.int64(0)
    for candidate in range(
        const.routes.draws if const.rule == Selection.LEAST_QUEUED else 2
    ):  # one call, so that it is compiled once
        route = _candidate_route(const, state, packet, src_switch, dst_switch, candidate)
        flits = _queued_flits(const, state, packet, route, src_switch, np.int64(0), queue_estimate, tick)
        if (
            candidate == 0
            or _better_route(const, state, packet, src_switch, dst_switch, best, route, best_flits, flits) != best
        ):
            best, best_flits = route, flits
    record.route = best


@inline
def reroute(const, state, packet, switch, queue_estimate, tick):
    """Re-route a packet at the second switch of its group, by the queues of the previous tick.

    Parameters
    ----------
    packet, switch: int64.
    queue_estimate: see :func:`choose_route`.
    tick: int64, of the packet's arrival.
    """
    record = state.pool.packet[packet]
    route, hop = np.int64(record.route), np.int64(record.hop)
    src_host = np.int64(record.src_host)
    src_switch = np.int64(const.net.host_switch[src_host])
    dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
    if not revises_route(const.routes, route, hop, src_switch, switch, dst_switch):
        return
    sequence = np.int64(record.sequence)
    non_minimal = route_from(const.routes, const.net.seed, src_host, const.net.hosts, sequence, switch, hop)
    minimal_flits, flits = np.int64(0), np.int64(0)
    for candidate in range(2):  # one call, so that it is compiled once
        minimal_flits = flits
        flits = _queued_flits(
            const, state, packet, non_minimal if candidate else MINIMAL_ROUTE, switch, hop, queue_estimate, tick - 1
        )
    record.route = choose_leg_count(const.routes, non_minimal, switch, dst_switch, minimal_flits, flits)
