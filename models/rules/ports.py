# SPDX-License-Identifier: Apache-2.0
"""The canonical numbering of ports, which decides ties in arbitration.

Outputs of a switch: its network channels in channel order, then the ejection channels of its hosts. Inputs: its network
channels in channel order, then the injection channels of its hosts. Both are numbered switch by switch.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Integers, Ints
from flitlab.models.topology.graph import Topology


class Ports(NamedTuple):
    """Port numbers; all int64.

    out_base, in_base: [switches + 1], first output and input of each switch. network_outs: [switches].
    out_input: [outputs], the input that a network output feeds, -1 for ejection.
    out_channel: [outputs], -1 for ejection. in_output: [inputs], the output that feeds it, or
    -1 - host for an injection channel. in_switch: [inputs]. eject, inject: [hosts], the output and
    the input of each host.
    """

    out_base: Integers
    in_base: Integers
    network_outs: Integers
    out_input: Integers
    out_channel: Integers
    in_output: Integers
    in_switch: Integers
    eject: Integers
    inject: Integers


def make_ports(topology: Topology) -> Ports:
    """The port numbering of a topology.

    Parameters
    ----------
    topology: the network.
    """
    zero = np.zeros(1, np.int64)
    out_base = np.concatenate([zero, np.cumsum(topology.out_degree + topology.ejection_count)])
    in_base = np.concatenate([zero, np.cumsum(topology.in_degree + topology.host_count)])
    channel = np.arange(topology.channels)
    output = out_base[topology.src] + channel - topology.out_start[topology.src]
    rank = np.empty(topology.channels, np.int64)
    rank[topology.in_channels] = channel - topology.in_start[topology.dst[topology.in_channels]]
    entry = in_base[topology.dst] + rank
    switch = topology.host_switch
    nth = np.arange(topology.hosts) - topology.host_start[switch]
    eject = _ejection_outputs(topology, out_base)
    inject = in_base[switch] + topology.in_degree[switch] + nth

    out_input = np.full(out_base[-1], -1, np.int64)
    out_input[output] = entry
    out_channel = np.full(out_base[-1], -1, np.int64)
    out_channel[output] = channel
    in_output = np.empty(in_base[-1], np.int64)
    in_output[entry] = output
    in_output[inject] = -1 - np.arange(topology.hosts)
    in_switch = np.repeat(np.arange(topology.switches), np.diff(in_base))
    return Ports(out_base, in_base, topology.out_degree, out_input, out_channel, in_output, in_switch, eject, inject)


def _ejection_outputs(topology: Topology, out_base: Ints) -> Ints:
    """The output of each host's ejection channel, int64 [hosts]; those of a switch follow the numbers of hosts.

    out_base: int64 [switches + 1], first output of each switch.
    """
    order = np.argsort(topology.ejection_switch, kind="stable")
    switch = topology.ejection_switch[order]
    output = np.empty(topology.hosts, np.int64)
    output[order] = (out_base + np.append(topology.out_degree, 0))[switch] + (
        np.arange(topology.hosts) - np.searchsorted(switch, switch)
    )
    return output


def channel_inputs(ports: Ports) -> Ints:
    """The input at the end of each channel between switches, then of each host's injection channel.

    Parameters
    ----------
    ports: the port numbering.

    Returns
    -------
    int64 [channels + hosts].
    """
    return np.concatenate([ports.out_input[ports.out_channel >= 0], ports.inject])


def input_delays(ports: Ports, of_channels: Ints, of_hosts: Ints) -> Ints:
    """A value of the channel that feeds each input, int64 [inputs].

    Parameters
    ----------
    ports: the port numbering.
    of_channels: int64 [channels], values of network channels.
    of_hosts: int64 [hosts], values of injection channels.
    """
    delays = np.zeros(len(ports.in_switch), np.int64)
    leads_on = ports.out_channel >= 0
    delays[ports.out_input[leads_on]] = of_channels[ports.out_channel[leads_on]]
    delays[ports.inject] = of_hosts
    return delays
