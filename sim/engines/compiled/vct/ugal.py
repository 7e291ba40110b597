# SPDX-License-Identifier: Apache-2.0
"""Ways by congestion, and congestion as ugal sees it.

``const.compares`` is None where ways do not depend on congestion: where an argument is None, Numba compiles only the
branch for that.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled import records, ugal
from flitlab.sim.engines.compiled.vct.room import used_behind
from flitlab.sim.engines.compiled.vct.rows import entry_of, key_at


@inline
def ahead(const, state, here, port, tick):
    """Measure what is ahead on a channel: (flits, the switch at its end).

    Counted are flits in the buffers whose front packet waits for the channel, and credit in use on it. here, port: the
    channel, by its switch and its port there.
    """
    output, flits = const.net.ports.out_base[here] + port, np.int64(0)
    for i in range(np.int64(state.rows[output].waiting)):
        flits += np.int64(state.vc[key_at(const, state, output, i) & 0xFFFFFFFF].queued)
    flits += used_behind(const, state, output)
    return flits, np.int64(const.net.ports.in_switch[entry_of(state, output)])


@inline
def set_way(compares, const, state, packet, tick):
    """Fix the way of a packet that has just been created; compares: ``const.compares``."""
    if compares is None:
        records.set_way(const, state, packet)
    else:
        ugal.set_way(const, state, packet, ahead, tick)
