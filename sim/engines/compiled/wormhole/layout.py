# SPDX-License-Identifier: Apache-2.0
"""Words of wormhole switching: how flits and requests are packed, flags of VCs, and numbers of delay queues."""

import numpy as np

U = np.uint64
ONE = U(1)

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
