# SPDX-License-Identifier: Apache-2.0
"""How full a hot-potato switch can get."""


def occupancy_bound(
    hold: int, channels: int, hosts: int, flits: int, header: int, injection: int, events: int = 0
) -> int:
    """The most packets ever resident in a hot-potato switch.

    Of more than max(hold, in_header_delay) residents one is eligible, so every free output takes one. In any ``flits``
    ticks at least as many leave as can arrive, but for the channels' last packets. Packets that hosts started before
    the switch filled may still arrive. Every event may split the time of a packet, so that a channel brings one more
    packet than its counterpart takes.

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
