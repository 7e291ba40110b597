# SPDX-License-Identifier: Apache-2.0
"""Ticks for which packets hold channels of different speed.

Constants have ``output_ticks``, int64, the ticks of a flit on each output; runs with a timeline change it between calls
of a kernel. It is None where every channel always moves a flit per tick: Numba compiles no multiplication then.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.ports import Ports
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.flit_ticks import slowest_flit_of_epochs
from flitlab.models.topology.flit_times import flit_times

ALWAYS = np.int64(-(1 << 63))
"""A tick before all others: a maximum with it, or a comparison, is compiled to nothing."""


def output_ticks(scenario: Scenario, ports: Ports) -> Ints | None:
    """Return the ticks of a flit on each output as built, int64 [outputs]; None where all are always 1.

    Parameters
    ----------
    scenario: of the run.
    ports: its port numbers.
    """
    times = flit_times(scenario.topology)
    if slowest_flit_of_epochs(scenario.topology, scenario.timeline) == 1:
        return None
    return np.where(ports.out_channel < 0, times.host, np.append(times.channel, 0)[ports.out_channel])


@inline
def held_ticks(output_ticks, output, flits):
    """Return the ticks for which ``flits`` hold an output; output_ticks: of the constants.

    The injection channel of a host takes the ticks of its ejection channel.
    """
    if output_ticks is None:
        return flits
    return flits * output_ticks[output]


@inline
def fed_from(output_ticks, output, tail_arrives_at, flits):
    """Return the tick from which a packet never starves an output: its flits are there in time.

    Parameters
    ----------
    output_ticks: of the constants, not None.
    output: int64, where the packet goes.
    tail_arrives_at: int64, tick at which its last flit arrives.
    flits: int64, its length.
    """
    return tail_arrives_at - (flits - 1) * output_ticks[output]
