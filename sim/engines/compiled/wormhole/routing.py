# SPDX-License-Identifier: Apache-2.0
"""Outputs and VCs that the packet at the front of an input VC may take."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.bits import empty_set, with_port
from flitlab.models.rules.route import at_destination, usable_ports
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs
from flitlab.sim.engines.compiled.records import NONE, port_of_route, vcs_of_packet
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.layout import U


@inline
def front_flit(state, vc):
    """Return the flit at the front of an input VC."""
    return U(state.vc[vc].front_flit)


@inline
def front_packet(state, vc):
    """Return the packet at the front of an input VC."""
    return front_flit(state, vc) >> layout.PACKET_SHIFT


@inline
def output_of(const, state, vc, packet):
    """Return the output of the packet at the front of an input VC, if routing is not adaptive."""
    record = state.pool.packet[packet]
    switch, dst_switch = np.int64(state.vc[vc].switch), np.int64(record.switch)
    first_output, ejection = U(state.vc[vc].first_output), U(record.output)
    if len(const.single_port):  # the common case, without a branch on ejection
        port = U(const.single_port[U(switch * const.net.switches + dst_switch)])
        if port != layout.MULTIPLE_PORTS:
            return ejection if switch == dst_switch else first_output + port
    route, hop = np.int64(record.route), np.int64(record.hop)
    if at_destination(const.routes, route, hop, switch, dst_switch):
        return ejection
    return first_output + U(port_of_route(const, record, route, switch, dst_switch, hop))


@inline
def allowed_vcs_at(const, state, vc, packet, output):
    """Return the VCs of an output that the VC policy allows a packet, uint64, a bit each.

    Parameters
    ----------
    vc: uint64, the input VC of the packet.
    packet, output: uint64.
    """
    record = state.pool.packet[packet]
    first, end = vcs_of_packet(const.net.classes, const, record)
    low, high = np.int64(0), end - first
    channel = np.int64(const.net.ports.out_channel[output])
    if const.policy != VcPolicy.ANY and channel != NONE:
        switch = state.vc[vc].switch
        route, hop = np.int64(record.route), np.int64(record.hop)
        src_switch = np.int64(const.net.host_switch[record.src_host])
        dst_switch = np.int64(const.net.ejection_switch[record.dst_host])
        port = np.int64(output) - np.int64(const.net.ports.out_base[switch])
        held_vc = np.int64(vc % U(const.vcs)) - first if const.policy == VcPolicy.RISING and hop > 0 else NOT_HELD
        low, high = allowed_vcs(
            const.routes, route, const.policy, high, hop, const.rings, src_switch, dst_switch, channel,
            np.int64(switch), port,
            held_vc,
        )  # fmt: skip
    return (~U(0) >> (U(64) - U(high - low))) << U(first + low)


@inline
def restricts_vcs(classes, const):
    """Tell whether packets may not take all VCs of an output. classes: ``const.net.classes``."""
    if classes is None:
        return const.policy != VcPolicy.ANY
    return True


@inline
def allowed_outputs(const, state, vc, packet):
    """Return the outputs that an adaptive packet may take: (first, set of their indices from it on)."""
    record = state.pool.packet[packet]
    switch, dst_host = np.int64(state.vc[vc].switch), np.int64(record.dst_host)
    dst_switch = np.int64(const.net.ejection_switch[dst_host])
    route, hop = np.int64(record.route), np.int64(record.hop)
    if at_destination(const.routes, route, hop, switch, dst_switch):
        return U(const.net.ports.eject[U(dst_host)]), with_port(empty_set(const.routes.ports.mask), U(0))
    return U(const.net.ports.out_base[U(switch)]), usable_ports(const.routes, route, hop, switch, dst_switch)
