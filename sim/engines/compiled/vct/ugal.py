"""Congestion as ugal sees it."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.vct.rows import reclaim
from flitlab.sim.engines.compiled.vct.state import QUEUED


@inner
def ahead(c, s, here, port, tick):
    """Flits in the buffers whose front packet waits for a channel and of credit in use on it; the switch at its end."""
    output, flits = c.net.ports.out_base[here] + port, np.int64(0)
    for i in range(np.int64(s.waiting[output])):
        flits += np.int64(s.vc[s.rows[output, i] & 0xFFFFFFFF, QUEUED])
    entry = np.int64(c.net.ports.out_input[output])
    for v in range(entry * c.vcs, (entry + 1) * c.vcs):
        flits += c.buffer_flits - np.int64(reclaim(c, s, v, tick))
    return flits, np.int64(c.net.ports.in_switch[entry])
