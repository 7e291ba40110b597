"""The way of a packet that a host starts, which may depend on the congestion then."""

import numpy as np

from models.jit import kernel
from models.routing.routes import UGAL_GLOBAL, UGAL_LOCAL
from models.rules.ugal import MINIMALLY, better_way
from sim.engines.compiled import records
from sim.engines.compiled.records import NOBODY, SOURCE, TARGET, WAY
from sim.engines.compiled.ugal import output_by
from sim.engines.compiled.wormhole.sets import U
from sim.engines.compiled.wormhole.state import CREDITS, at


@kernel
def _in_use(c, s, entry):
    """Flits of credit in use for the VCs of an input."""
    flits = np.int64(0)
    for v in range(entry * c.vcs, (entry + 1) * c.vcs):
        flits += c.buffer_flits - np.int64(s.vc[at(U(v), CREDITS)])
    return flits


@kernel
def set_way(c, s, p):
    """As :func:`sim.engines.compiled.records.set_way`; under ugal the less congested of two ways."""
    records.set_way(c, s, p)
    if c.rule != UGAL_LOCAL and c.rule != UGAL_GLOBAL:
        return
    via = np.int64(s.packet[p, WAY])
    origin = np.int64(c.host_switch[s.packet[p, SOURCE]])
    minimal_flits, flits = np.int64(0), np.int64(0)
    for alternative in range(2):
        way = via if alternative else MINIMALLY
        minimal_flits, flits = flits, np.int64(0)
        here, hop = origin, np.int64(0)
        while True:
            output = output_by(c, s, p, way, hop, here)
            if output == NOBODY:
                break
            entry = np.int64(c.ports.out_input[output])
            flits += _in_use(c, s, entry)
            if c.rule == UGAL_LOCAL:
                break
            here = np.int64(c.ports.in_switch[entry])
            hop += 1
    target = np.int64(c.host_switch[s.packet[p, TARGET]])
    s.packet[p, WAY] = better_way(c.routes, via, origin, target, minimal_flits, flits)
