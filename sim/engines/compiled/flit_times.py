# SPDX-License-Identifier: Apache-2.0
"""Ticks for which packets hold channels of different speed.

Constants have ``output_ticks`` and ``input_ticks``, int64, the ticks of a flit on each output and on the channel that
ends at each input. Both are None where every channel moves a flit per tick: Numba compiles no multiplication then.
"""

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.ports import Ports, input_delays
from flitlab.models.topology.flit_times import flit_times
from flitlab.models.topology.graph import Topology

ALWAYS = np.int64(-(1 << 63))
"""A tick before all others: a maximum with it, or a comparison, is compiled to nothing."""


def port_ticks(topology: Topology, ports: Ports) -> tuple[Ints, Ints] | tuple[None, None]:
    """Return the ticks of a flit on each output and at each input; None where all are 1.

    Parameters
    ----------
    topology: of the run.
    ports: its port numbers.
    """
    times = flit_times(topology)
    if times.all_one:
        return None, None
    hosts = np.full(topology.hosts, times.host)
    outputs = np.where(ports.out_channel < 0, times.host, np.append(times.channel, 0)[ports.out_channel])
    return outputs, input_delays(ports, times.channel, hosts)


@inline
def held_ticks(port_ticks, port, flits):
    """Return the ticks for which ``flits`` hold a port; port_ticks: of all outputs or inputs, or None."""
    if port_ticks is None:
        return flits
    return flits * port_ticks[port]


@inline
def fed_from(input_ticks, output_ticks, input_port, output, arrived, flits):
    """Return the tick from which a packet never starves an output: its flits are there in time.

    Parameters
    ----------
    input_ticks, output_ticks: of the constants, not None.
    input_port, output: int64, where the packet is, and where it goes.
    arrived: int64, tick at which its head arrived.
    flits: int64, its length.
    """
    return arrived + (flits - 1) * (input_ticks[input_port] - output_ticks[output])
