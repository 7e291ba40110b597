# SPDX-License-Identifier: Apache-2.0
"""How full a hot-potato switch can get."""


def occupancy_bound(
    hold: int, channels: int, hosts: int, flits: int, header: int, injection: int, events: int = 0
) -> int:
    """Most packets ever resident in a switch with ``channels`` network inputs and outputs and ``hosts`` hosts.

    Of more than max(hold, late) residents one is eligible, where ``in_header_delay`` bounds those still in their
    header delay (an input brings one packet in ``flits`` ticks); so every free output takes one, and in any
    ``flits`` ticks at least as many leave as can arrive, but for the channels' last packets. Packets that
    hosts started before the switch filled may still be on their way in. Each of so many ``events``, by which channels
    fail or return, both directions alike, may divide the time of a packet in two, of which a channel then brings one
    more than its counterpart takes. Times in ticks.
    """
    header_packets = -(-header // flits)
    in_header_delay = channels * header_packets + min(hold, hosts * header_packets)
    arriving = min(hold, hosts * -(-injection // flits))
    return max(hold, in_header_delay) + channels * (1 + events) + arriving
