# SPDX-License-Identifier: Apache-2.0
"""Hot-potato switching: the output of a packet under the rules ``vc`` and ``frame``, and how full a switch gets."""

import numpy as np

from flitlab.models.arrays import Int, Integers, PortSet
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import empty_set, is_empty, lowest, popcount, with_port, without_lowest
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.rules.route import pick

NO_PORT = np.int64(-1)


@kernel
def least_bound_port(
    ports: PortSet, bound: Integers, first: Int, vcs: Int, seed: Int, packet_id: Int, hops: Int
) -> int:
    """Choose the output to which the fewest packets are bound; ties are drawn.

    Parameters
    ----------
    ports: set of candidate ports.
    bound: integers [outputs], packets bound to each output.
    first: the output of port 0.
    vcs: packets that may be bound to an output.
    seed: of the run.
    packet_id: of the packet that chooses.
    hops: channels between switches that it has taken.

    Returns
    -------
    Port number; -1 if every candidate has ``vcs`` packets bound.
    """
    least, ties = np.int64(vcs), empty_set(ports)
    while not is_empty(ports):
        port = lowest(ports)
        ports = without_lowest(ports)
        count = np.int64(bound[first + port])
        if count < least:
            least, ties = count, with_port(empty_set(ports), port)
        elif count == least and least < vcs:
            ties = with_port(ties, port)
    if is_empty(ties):
        return NO_PORT
    if popcount(ties) == 1:
        return lowest(ties)
    return pick(ties, draw(seed, Stream.DEFLECT, packet_id, hops))


def occupancy_bound(
    hold: int, channels: int, hosts: int, flits: int, header: int, injection: int, events: int = 0
) -> int:
    """The most packets ever resident in a hot-potato switch.

    An input brings one head in L = ``flits`` ticks, so at most D = d ceil(header / L) residents from the d channels are
    in their header delay, and at most G = min(K, h ceil(header / L)) from the h hosts, K = ``hold``. Of more than
    M = max(K, D + G) residents one is thus eligible and, as they exceed K, every free output takes a packet. Let tick t
    have more than M residents, and s be the last tick before it with at most M. After s no host starts a packet, so
    hosts bring what was in flight at s: at most F = min(K, h ceil(injection / L)). Channels bring at most
    d ceil((t - s) / L). Each of the d outputs is free within any L ticks, so it takes at least floor((t - s) / L). The
    difference is at most d; hence M + d + F. Every event may split the time of a packet, so that a channel brings one
    more packet than its counterpart takes.

    Parameters
    ----------
    hold: packets from which on hosts wait.
    channels: network inputs, and outputs, of the switch.
    hosts: its hosts.
    flits: length of packets.
    header, injection: delays, ticks.
    events: times at which channels fail or return, both directions alike.

    Returns
    -------
    Number of packets.
    """
    header_packets = -(-header // flits)
    in_header_delay = channels * header_packets + min(hold, hosts * header_packets)
    arriving = min(hold, hosts * -(-injection // flits))
    return max(hold, in_header_delay) + channels * (1 + events) + arriving


def vc_occupancy_bound(limit: int, channels: int, hosts: int, vcs: int, flits: int, header: int, injection: int) -> int:
    """The most packets ever at a switch under rule ``vc`` that shares channels packet by packet.

    With more than M packets, at most D + G are in their header delay and h V are bound to hosts, so all network outputs
    send. Since M was last exceeded no host has started a packet; hosts add at most F, and the d inputs bring at most d
    packets more than the d outputs send.

    Parameters
    ----------
    limit: packets at the switch and in flight from its hosts from which on these wait, K.
    channels: network inputs, and outputs, of the switch, d.
    hosts: its hosts, h.
    vcs: packets that may be bound to an output, V.
    flits: length of packets.
    header, injection: delays, ticks.

    Returns
    -------
    Number of packets.
    """
    header_packets = -(-header // flits)
    in_header_delay = channels * header_packets + min(limit, hosts * header_packets)
    busy = max(limit, (channels - 1) * vcs + hosts * vcs + in_header_delay)
    return busy + channels + min(limit, hosts * -(-injection // flits))
