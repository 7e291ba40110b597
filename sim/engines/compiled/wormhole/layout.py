# SPDX-License-Identifier: Apache-2.0
"""Words of wormhole switching: how flits, requests and bids are packed, flags of VCs, and numbers of delay queues."""

import numpy as np

from flitlab.models.jit import inline

U = np.uint64

PREFETCH_DISTANCE = U(12)
"""Entries of a list by which prefetching is ahead; entries behind the last are stale, but valid."""

FAR_PREFETCH_DISTANCE = U(32)
"""The same for data that determine what to prefetch ``PREFETCH_DISTANCE`` entries ahead."""

# Reasons why the front flit of an input VC cannot be sent: the VC is empty, its packet has no output VC, that VC has no
# credit, the header has not been read.
EMPTY, NO_VC, NO_CREDIT, UNREAD = U(1), U(2), U(4), U(8)

# A request: an input VC and, above, the output of its packet.
OUTPUT_SHIFT, VC_MASK = U(32), U(0xFFFFFFFF)

# A flit: the packet, and whether it is the head flit or the tail flit.
TAIL, HEAD, PACKET_SHIFT = U(1), U(2), U(2)

VC_BITS = 26
"""Bits of the number of an input VC: more records would take 4 GiB."""

CROSSBAR_SHIFT = U(VC_BITS + 8)
"""Bits to drop of the product that gives a VC's crossbar input; exact, as no more than 64 VCs share one."""

PORT_SHIFT = U(8)
"""Bits of a bid in switch allocation below the rotating distance of the output: that of the VC at its input."""

UNLIMITED_CREDITS = 1 << 30
"""Credits of a host's ejection VC."""

MULTIPLE_PORTS = U(255)
"""Entry of ``single_port`` where routes allow several ports."""

# Delay queues: returning credits, headers being read, flits in flight to hosts, to switches from hosts, and to switches
# over network channels, one queue for each delay of such a channel. Each extra delay of host channels has a queue for
# flits from hosts, behind those of the network, and one for flits to hosts, behind these. The last queues are for extra
# delays of credits.
RETURNED, HEADERS, EJECTED, INJECTED, NETWORK = np.arange(5, dtype=np.uint64)

# Arbitration of both allocators. The record of a resource has one number, ``best_bid``: the time and, below it, either
# 1 or 2 (requested once, or several times, at that time) or the highest bid. Times increase, so that nothing has to be
# cleared. Every step of a tick has a time: each iteration of VC allocation, the count of crossbar requests, each
# iteration of switch allocation, and one at which no bid is made. Where most requests are uncontended, bids are
# skipped.

TIME_SHIFT = U(VC_BITS)
"""Bits below the time: enough for the number of an input VC."""


@inline
def crossbar_input_of(inputs_per_port, const, vc):
    """Return the crossbar input that reads an input VC. inputs_per_port: ``const.inputs_per_port``."""
    place = vc * const.crossbar_factor >> CROSSBAR_SHIFT
    if inputs_per_port is None:
        return place
    return place * inputs_per_port + (vc - place * U(const.vcs)) % inputs_per_port


@inline
def time_of(const, crossbar_step, step):
    """Return the time of a step of the allocators in a step of the crossbar, which is a tick without a speed-up."""
    iterations = U(const.iterations)
    return ((U(crossbar_step) + U(1)) * (iterations + iterations + U(2)) + step) << TIME_SHIFT


@inline
def add_request(record, time):
    """Count one more request for a resource."""
    record.best_bid = time + U(1) + U(U(record.best_bid) >= time)
