"""Congestion as ugal sees it."""

import numpy as np

from models.jit import inner
from sim.engines.compiled.wormhole.sets import U
from sim.engines.compiled.wormhole.state import CREDITS, at


@inner
def ahead(c, s, here, port, tick):
    """Flits of credit in use for the VCs of a channel, and the switch at its end."""
    entry, flits = np.int64(c.ports.out_input[c.ports.out_base[here] + port]), np.int64(0)
    for v in range(entry * c.vcs, (entry + 1) * c.vcs):
        flits += c.buffer_flits - np.int64(s.vc[at(U(v), CREDITS)])
    return flits, np.int64(c.ports.in_switch[entry])
