# SPDX-License-Identifier: Apache-2.0
"""Queue estimate that congestion-aware routing compares."""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.wormhole.flits import buffer_of, free_credits
from flitlab.sim.engines.compiled.wormhole.layout import ONE, U


@inline
def queue_estimate(const, state, switch, port, tick):
    """Return the queue estimate of a channel, in flits, and the switch at its end.

    The estimate is the flits in input buffers whose packet at the front requests the channel, plus the downstream
    credits in use; in ticks of the channel where channels differ in speed.

    Parameters
    ----------
    switch, port: int64, the switch that the channel leaves, and the port there.
    tick: int64.

    Returns
    -------
    (flits, switch), int64.
    """
    switch_index, vcs, flits = U(switch), U(const.vcs), np.int64(0)
    output = U(const.net.ports.out_base[switch_index]) + U(port)
    for vc in range(
        U(const.net.ports.in_base[switch_index]) * vcs, U(const.net.ports.in_base[switch_index + ONE]) * vcs
    ):
        vc_record = state.vc[vc]
        if U(vc_record.output) == output:
            flits += np.int64(vc_record.write_index) - np.int64(vc_record.read_index)
    first = U(state.vc_set[output].first)
    for vc in range(first, first + vcs):
        flits += buffer_of(const.vc_buffers, const, vc) - free_credits(state, vc)
    return held_ticks(const.output_ticks, output, flits), np.int64(const.switch[first])
