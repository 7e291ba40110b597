"""Draws and small decisions of the datagram discipline."""

import numpy as np

from models.jit import kernel
from models.rules.draw import draw

# Streams of draws, beside those of :mod:`models.rules.draw`.
START = np.int64(32)
SUBFLOW_PATH = np.int64(33)
EARLY_DROP = np.int64(34)
FLOW_SIZE = np.int64(35)

RATIO_BITS = 16
"""The time a channel takes for a byte is in units of 2**-16 ticks."""

NEARLY_FULL = 3
"""Packets of room below which a queue with random drop may drop."""

_ONE_IN_TEN = np.int64((1 << 63) // 10)


@kernel
def service_ticks(ratio, size):
    """Ticks that a channel takes to send ``size`` bytes."""
    return (size * ratio + 65535) >> 16


@kernel
def drops_early(seed, link, decision):
    """Whether a nearly full queue drops the packet of its so-many-th decision."""
    return draw(seed, EARLY_DROP, link, decision) < _ONE_IN_TEN
