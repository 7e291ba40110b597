"""Where the packet at the front of an input VC may go."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import at_target, next_port, usable_ports
from flitlab.models.rules.tables import ANY
from flitlab.models.rules.vc import allowed_vcs
from flitlab.sim.engines.compiled.records import HOP, NOBODY, SEQUENCE, SOURCE, TARGET, WAY
from flitlab.sim.engines.compiled.wormhole.flits import place_of
from flitlab.sim.engines.compiled.wormhole.state import ONE, PACKET_AT, SEVERAL, U


@inner
def front_packet(c, s, v):
    """The packet of the flit at the front of an input VC."""
    return U(s.flits[place_of(c, v, U(s.vc[v].front))]) >> PACKET_AT


@inner
def output_of(c, s, v, p):
    """The output that a packet goes to, if routing is not adaptive."""
    here, target = np.int64(c.switch[v]), np.int64(s.pool.packet[p, TARGET])
    there = np.int64(c.net.host_switch[target])
    base, ejection = U(c.net.ports.out_base[U(here)]), U(c.net.ports.eject[U(target)])
    if len(c.only_port):  # the common case: no branch on whether the packet is at its target
        port = U(c.only_port[U(there * c.net.switches + here)])
        if port != SEVERAL:
            return ejection if here == there else base + port
    way, hop = np.int64(s.pool.packet[p, WAY]), np.int64(s.pool.packet[p, HOP])
    if at_target(c.routes, way, hop, here, there):
        return ejection
    source, sequence = np.int64(s.pool.packet[p, SOURCE]), np.int64(s.pool.packet[p, SEQUENCE])
    port = next_port(c.routes, way, c.net.seed, here, there, source, target, c.net.hosts, sequence, hop)
    return base + U(port)


@inner
def choices_at(c, s, v, p, o):
    """The set of VCs of an output that a packet may take."""
    low, high = np.int64(0), np.int64(c.vcs)
    channel = np.int64(c.net.ports.out_channel[o])
    if c.policy != ANY and channel != NOBODY:
        here, target = c.switch[v], s.pool.packet[p, TARGET]
        low, high = allowed_vcs(
            c.routes, np.int64(s.pool.packet[p, WAY]), c.policy, c.vcs, np.int64(s.pool.packet[p, HOP]), c.rings,
            np.int64(c.net.host_switch[s.pool.packet[p, SOURCE]]), np.int64(c.net.host_switch[target]), channel, np.int64(here),
            np.int64(o) - np.int64(c.net.ports.out_base[here]),
        )  # fmt: skip
    return (~U(0) >> (U(64) - U(high - low))) << U(low)


@inner
def outputs_of(c, s, v, p):
    """The outputs that an adaptive packet may take: (the first, a set of those from it on)."""
    here, target = np.int64(c.switch[v]), np.int64(s.pool.packet[p, TARGET])
    there = np.int64(c.net.host_switch[target])
    way, hop = np.int64(s.pool.packet[p, WAY]), np.int64(s.pool.packet[p, HOP])
    if at_target(c.routes, way, hop, here, there):
        return U(c.net.ports.eject[U(target)]), ONE
    return U(c.net.ports.out_base[U(here)]), usable_ports(c.routes, way, hop, here, there)
