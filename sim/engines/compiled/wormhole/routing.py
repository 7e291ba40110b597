# SPDX-License-Identifier: Apache-2.0
"""Where the packet at the front of an input VC may go."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.models.rules.route import at_destination, next_port, usable_ports
from flitlab.models.rules.tables import ANY, RISING
from flitlab.models.rules.vc import NOT_HELD, allowed_vcs
from flitlab.sim.engines.compiled.records import NOBODY
from flitlab.sim.engines.compiled.wormhole.state import ONE, PACKET_AT, SEVERAL, U


@inline
def front_flit(state, vc):
    """Return the flit at the front of an input VC."""
    return U(state.vc[vc].flit)


@inline
def front_packet(state, vc):
    """Find the packet of the flit at the front of an input VC."""
    return front_flit(state, vc) >> PACKET_AT


@inline
def output_of(const, state, vc, packet):
    """Find the output that the packet at the front of an input VC goes to, if routing is not adaptive."""
    record = state.pool.packet[packet]
    here, target = np.int64(state.vc[vc].switch), np.int64(record.where)
    base, ejection = U(state.vc[vc].base), U(record.output)
    if len(const.only_port):  # the common case: no branch on whether the packet is at its target
        port = U(const.only_port[U(here * const.net.switches + target)])
        if port != SEVERAL:
            return ejection if here == target else base + port
    way, hop = np.int64(record.way), np.int64(record.hop)
    if at_destination(const.routes, way, hop, here, target):
        return ejection
    source, sequence = np.int64(record.source), np.int64(record.sequence)
    destination = np.int64(record.destination)
    port = next_port(
        const.routes, way, const.net.seed, here, target, source, destination, const.net.hosts, sequence, hop
    )
    return base + U(port)


@inline
def choices_at(const, state, vc, packet, output):
    """Find the set of VCs of an output that a packet may take, a bit each, uint64; vc: the input VC that it is in."""
    record = state.pool.packet[packet]
    low, high = np.int64(0), np.int64(const.vcs)
    channel = np.int64(const.net.ports.out_channel[output])
    if const.policy != ANY and channel != NOBODY:
        here = state.vc[vc].switch
        way, hop = np.int64(record.way), np.int64(record.hop)
        source = np.int64(const.net.host_switch[record.source])
        target = np.int64(const.net.host_switch[record.destination])
        port = np.int64(output) - np.int64(const.net.ports.out_base[here])
        held = np.int64(vc % U(const.vcs)) if const.policy == RISING and hop > 0 else NOT_HELD
        low, high = allowed_vcs(
            const.routes, way, const.policy, const.vcs, hop, const.rings, source, target, channel, np.int64(here), port,
            held,
        )  # fmt: skip
    return (~U(0) >> (U(64) - U(high - low))) << U(low)


@inline
def outputs_of(const, state, vc, packet):
    """Find the outputs that an adaptive packet may take: (the first, a set of those from it on, uint64)."""
    record = state.pool.packet[packet]
    here, destination = np.int64(state.vc[vc].switch), np.int64(record.destination)
    target = np.int64(const.net.host_switch[destination])
    way, hop = np.int64(record.way), np.int64(record.hop)
    if at_destination(const.routes, way, hop, here, target):
        return U(const.net.ports.eject[U(destination)]), ONE
    return U(const.net.ports.out_base[U(here)]), usable_ports(const.routes, way, hop, here, target)
