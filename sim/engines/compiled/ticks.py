# SPDX-License-Identifier: Apache-2.0
"""Ticks stored as their low 32 bits, and differences between them.

A packet record's tick is less than 2**32 ticks in the past, a link record's less than 2**31 in the future
(:func:`flitlab.models.transport.session.check_transit`); a run may take 2**39 ticks. Hence only differences modulo
2**32 are defined. No other code may subtract or compare such ticks (tests/sim/test_ticks.py).
"""

import numpy as np

from flitlab.models.jit import inline

_LOW = np.int64(0xFFFFFFFF)


@inline
def low_bits(tick):
    """Return the low 32 bits of a tick, int64: what a record keeps of it."""
    return tick & _LOW


@inline
def elapsed(now, then):
    """Return the ticks from ``then`` to ``now``, int64 [0, 2**32); each is a tick or its low 32 bits."""
    return np.int64(np.uint32(np.uint32(now) - np.uint32(then)))


@inline
def whole_tick(low, now):
    """Return the tick within 2**31 of ``now`` whose low 32 bits are ``low``, int64. now: int64, the whole tick."""
    return now + np.int64(np.int32(np.uint32(np.uint32(low) - np.uint32(now))))
