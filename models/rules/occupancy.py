# SPDX-License-Identifier: Apache-2.0
"""How full a hot-potato switch can get."""


def occupancy_bound(hold: int, channels: int, hosts: int, flits: int, header: int, injection: int) -> int:
    """Most packets ever resident in a switch with ``channels`` network inputs and outputs and ``hosts`` hosts.

    Of more than max(hold, late) residents one is eligible, where ``late`` bounds those still in their
    header delay (an input brings one packet in ``flits`` ticks); so every free output takes one, and in any
    ``flits`` ticks at least as many leave as can arrive, but for the channels' last packets. Packets that
    hosts started before the switch filled may still be on their way in. Times in ticks.
    """
    reading = -(-header // flits)
    late = channels * reading + min(hold, hosts * reading)
    coming = min(hold, hosts * -(-injection // flits))
    return max(hold, late) + channels + coming
