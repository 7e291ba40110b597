# SPDX-License-Identifier: Apache-2.0
"""Creation of packets, and timers of flows and hosts."""

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.pool import allocate_record
from flitlab.sim.engines.compiled.spray.links import is_response
from flitlab.sim.engines.compiled.spray.state import KIND_BITS
from flitlab.sim.engines.compiled.timers import push_timer


@inline
def set_timer(const, state, tick, kind, index):
    """Set a timer of a flow or a host; timers of a tick expire by kind and then index.

    Parameters
    ----------
    tick: int64; at most ``const.latest`` is set.
    kind: Timer.
    index: int64, flow or host.
    """
    push_timer(state.timers, (min(tick, const.latest) << KIND_BITS | kind) << const.index_bits | index)


@inline
def make_packet(const, state, flow, kind, size, entropy, number):
    """Create a packet of a flow."""
    packet = allocate_record(state)
    record = state.packet[packet]
    record.kind, record.flow, record.size, record.entropy = kind, flow, size, entropy
    record.host = const.hosts_of_flow[flow, 0 if is_response(kind) else 1]
    record.hop, record.number = 0, number
    return packet
