"""Congestion as ugal sees it."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.state import ONE, U


@inner
def ahead(c, s, here, port, tick):
    """Flits in the buffers whose front packet waits for a channel and of credit in use on it; the switch at its end."""
    switch, vcs, flits = U(here), U(c.vcs), np.int64(0)
    output = U(c.net.ports.out_base[switch]) + U(port)
    for v in range(U(c.net.ports.in_base[switch]) * vcs, U(c.net.ports.in_base[switch + ONE]) * vcs):
        vc = s.vc[v]
        if U(vc.output) == output:
            flits += np.int64(vc.landed) - np.int64(vc.front)
    first = U(s.output[output].first)
    for v in range(first, first + vcs):
        flits += c.buffer_flits - credits(s, v)
    return flits, np.int64(c.switch[first])
