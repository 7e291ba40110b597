"""The way of a packet that a host starts, which may depend on the congestion then: the same in all disciplines."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.models.rules.route import at_target, next_port
from flitlab.models.rules.tables import UGAL_GLOBAL, UGAL_LOCAL
from flitlab.models.rules.ugal import MINIMALLY, better_way
from flitlab.sim.engines.compiled import records
from flitlab.sim.engines.compiled.records import SEQUENCE, SOURCE, TARGET, WAY


@inner
def by_congestion(rule):
    """Whether the way of a packet depends on the congestion when it is sent."""
    return rule in (UGAL_LOCAL, UGAL_GLOBAL)


@inner
def _congestion(c, s, p, way, ahead, tick):
    """Flits queued for the first channel of a way (UGAL_LOCAL), or for all of them."""
    source, target = np.int64(s.pool.packet[p, SOURCE]), np.int64(s.pool.packet[p, TARGET])
    here, there = np.int64(c.net.host_switch[source]), np.int64(c.net.host_switch[target])
    sequence, hop, flits = np.int64(s.pool.packet[p, SEQUENCE]), np.int64(0), np.int64(0)
    while not at_target(c.routes, way, hop, here, there) and (hop == 0 or c.rule == UGAL_GLOBAL):
        port = next_port(c.routes, way, c.net.seed, here, there, source, target, c.net.hosts, sequence, hop)
        queued, here = ahead(c, s, here, port, tick)
        flits += queued
        hop += 1
    return flits


@inner
def set_way(c, s, p, ahead, tick):
    """As :func:`flitlab.sim.engines.compiled.records.set_way`; under ugal the less congested of two ways.

    ahead: function (c, s, switch, port, tick) that gives the flits queued for a channel, and the switch at its end.
    """
    records.set_way(c, s, p)
    if not by_congestion(c.rule):
        return
    via = np.int64(s.pool.packet[p, WAY])
    minimal_flits = _congestion(c, s, p, MINIMALLY, ahead, tick)
    flits = _congestion(c, s, p, via, ahead, tick)
    origin = np.int64(c.net.host_switch[s.pool.packet[p, SOURCE]])
    target = np.int64(c.net.host_switch[s.pool.packet[p, TARGET]])
    s.pool.packet[p, WAY] = better_way(c.routes, via, origin, target, minimal_flits, flits)
