# SPDX-License-Identifier: Apache-2.0
"""Routes of packets, and the queue estimate that congestion-aware routing compares.

``const.congestion_aware`` is None where routes do not depend on congestion: for a None argument Numba compiles only
that branch.
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled import records, ugal
from flitlab.sim.engines.compiled.flit_times import held_ticks
from flitlab.sim.engines.compiled.vct.credits import downstream_credits_in_use
from flitlab.sim.engines.compiled.vct.requests import downstream_input_of_output, read_age_key_of_request


@inline
def queue_estimate(const, state, switch, port, tick):
    """Return the queue estimate of a channel, in flits, and the switch at its end.

    The estimate is the flits in input buffers whose head packet requests the channel, plus the downstream credits in
    use; in ticks of the channel where channels differ in speed.

    Parameters
    ----------
    switch, port: int64, the switch that the channel leaves, and the port there.
    tick: int64.

    Returns
    -------
    (flits, switch), int64.
    """
    output, flits = const.net.ports.out_base[switch] + port, np.int64(0)
    for i in range(np.int64(state.output[output].requests_waiting)):
        flits += np.int64(state.vc[read_age_key_of_request(const, state, output, i) & 0xFFFFFFFF].queued_flits)
    flits += downstream_credits_in_use(const, state, output)
    flits = held_ticks(const.output_ticks, output, flits)
    return flits, np.int64(const.net.ports.in_switch[downstream_input_of_output(state, output)])


@inline
def choose_route_at_injection(congestion_aware, const, state, packet, tick):
    """Choose the route of a packet at injection.

    Parameters
    ----------
    congestion_aware: ``const.congestion_aware``.
    packet: int64.
    tick: int64.
    """
    if congestion_aware is None:
        records.draw_packet_route(const, state, packet)
    else:
        ugal.choose_route(const, state, packet, queue_estimate, tick)
