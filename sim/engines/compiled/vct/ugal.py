# SPDX-License-Identifier: Apache-2.0
"""Ways by congestion, and congestion as ugal sees it.

``const.congestion_aware`` is None where ways do not depend on congestion: where an argument is None, Numba compiles
only the
branch for that.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled import records, ugal
from flitlab.sim.engines.compiled.vct.credits import credits_in_use
from flitlab.sim.engines.compiled.vct.requests import downstream_input, request_key


@inner
def queue_estimate(const, state, switch, port, tick):
    """Measure what is ahead on a channel: (flits, the switch at its end).

    Counted are flits in the buffers whose front packet waits for the channel, and credit in use on it. here, port: the
    channel, by its switch and its port there.
    """
    output, flits = const.net.ports.out_base[switch] + port, np.int64(0)
    for i in range(np.int64(state.output[output].requests_waiting)):
        flits += np.int64(state.vc[request_key(const, state, output, i) & 0xFFFFFFFF].queued_flits)
    flits += credits_in_use(const, state, output)
    return flits, np.int64(const.net.ports.in_switch[downstream_input(state, output)])


@inner
def choose_route(congestion_aware, const, state, packet, tick):
    """Fix the way of a packet that has just been created; compares: ``const.congestion_aware``."""
    if congestion_aware is None:
        records.choose_route(const, state, packet)
    else:
        ugal.choose_route(const, state, packet, queue_estimate, tick)
