"""Whether a packet goes over an intermediate switch."""

import numpy as np

from models.jit import kernel
from models.rules.route import LEG_AT

MINIMALLY = np.int64(0)
"""The way of a packet that goes over no intermediate switch."""

_VIA_MASK = (np.int64(1) << LEG_AT) - np.int64(1)


@kernel
def better_way(r, via, origin, target, minimal_flits, via_flits):
    """MINIMALLY or ``via``, whichever has the smaller product of congestion and hops; r.threshold favours MINIMALLY.

    minimal_flits, via_flits: congestion of either. origin, target: switches of the packet.
    """
    middle = via & _VIA_MASK
    minimal_hops = np.int64(r.leg[origin, target])
    via_hops = np.int64(r.leg[origin, middle]) + np.int64(r.leg[middle, target])
    if minimal_flits * minimal_hops <= via_flits * via_hops + r.threshold:
        return MINIMALLY
    return np.int64(via)
