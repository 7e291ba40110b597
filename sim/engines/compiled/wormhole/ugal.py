# SPDX-License-Identifier: Apache-2.0
"""Congestion as ugal sees it."""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.wormhole.flits import free_credits
from flitlab.sim.engines.compiled.wormhole.state import ONE, U


@inner
def queue_estimate(const, state, switch, port, tick):
    """Measure what is ahead on a channel: (flits, the switch at its end).

    Counted are flits in the buffers whose front packet waits for the channel, and credit in use on it. here, port: the
    channel, by its switch and its port there.
    """
    switch_index, vcs, flits = U(switch), U(const.vcs), np.int64(0)
    output = U(const.net.ports.out_base[switch_index]) + U(port)
    for vc in range(
        U(const.net.ports.in_base[switch_index]) * vcs, U(const.net.ports.in_base[switch_index + ONE]) * vcs
    ):
        vc_record = state.vc[vc]
        if U(vc_record.output) == output:
            flits += np.int64(vc_record.landed) - np.int64(vc_record.front)
    first = U(state.vc_set[output].first)
    for vc in range(first, first + vcs):
        flits += const.buffer_flits - free_credits(state, vc)
    return flits, np.int64(const.switch[first])
