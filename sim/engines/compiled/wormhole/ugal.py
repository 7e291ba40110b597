# SPDX-License-Identifier: Apache-2.0
"""Congestion as ugal sees it."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.wormhole.flits import credits
from flitlab.sim.engines.compiled.wormhole.state import ONE, U


@inline
def ahead(const, state, here, port, tick):
    """Measure what is ahead on a channel: (flits, the switch at its end).

    Counted are flits in the buffers whose front packet waits for the channel, and credit in use on it. here, port: the
    channel, by its switch and its port there.
    """
    switch, vcs, flits = U(here), U(const.vcs), np.int64(0)
    output = U(const.net.ports.out_base[switch]) + U(port)
    for vc in range(U(const.net.ports.in_base[switch]) * vcs, U(const.net.ports.in_base[switch + ONE]) * vcs):
        vc_record = state.vc[vc]
        if U(vc_record.output) == output:
            flits += np.int64(vc_record.landed) - np.int64(vc_record.front)
    first = U(state.stock[output].first)
    for vc in range(first, first + vcs):
        flits += const.buffer_flits - credits(state, vc)
    return flits, np.int64(const.switch[first])
