# SPDX-License-Identifier: Apache-2.0
"""Invariants of deflection routing, and the records of packets whose rules have several.

A kernel that finds an invariant violated, which is a bug, returns its negative number instead of a tick.
"""

from typing import NamedTuple

import numpy as np

from flitlab.sim.engines.compiled.records import renamed_fields


class _Violation(NamedTuple):
    """Numbers of the invariants."""

    OCCUPANCY: np.int64 = np.int64(1)
    VCS: np.int64 = np.int64(2)
    LATE_START: np.int64 = np.int64(3)
    ADMISSION: np.int64 = np.int64(4)
    DEFLECTION: np.int64 = np.int64(5)
    HOPS: np.int64 = np.int64(6)
    CONSERVATION: np.int64 = np.int64(7)
    NO_SLOT: np.int64 = np.int64(8)


Violation = _Violation()

MESSAGES = {
    Violation.OCCUPANCY: "a switch holds more packets than the proven bound",
    Violation.VCS: "more packets than VCs are bound to an output",
    Violation.LATE_START: "a packet waits for more than V - 1 others of its output",
    Violation.ADMISSION: "hosts started more packets than their switch admits",
    Violation.DEFLECTION: "a packet was deflected though an output on a shortest path had a free VC",
    Violation.HOPS: "the hops of a packet do not lead to its destination",
    Violation.CONSERVATION: "packets sent are not those delivered and those in flight",
    Violation.NO_SLOT: "a packet finds no slot in a frame",
}
"""Violation -> what it is."""

# A packet under the rules ``vc`` and ``frame``: entry, the input of a switch by which it came (channel, or channels +
# host); detour, channels taken that its distance fell short by; distance, channels from its switch to its destination.
DEFLECTED_PACKET = renamed_fields({"input_vc": "entry", "route": "detour", "arrives_at": "distance"})
