# SPDX-License-Identifier: Apache-2.0
"""Rotating priority, by which iSLIP matches the inputs of a switch to the outputs that they request.

iSLIP (McKeown 1999, doi:10.1109/90.769767): every output grants one of the inputs that request it, and every input
accepts one of its grants, both by rotating priority: the last match comes last. Priorities advance only with accepted
grants, and only in the first iteration of a tick; otherwise an input could starve.
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.bits import lowest

_ALL_BUT_FIRST = np.uint64(0xFFFFFFFFFFFFFFFE)


@kernel
def above(mask: Int, last: Int) -> np.uint64:
    """The members of a 64-bit set that are greater than ``last`` (0 .. 63)."""
    return np.uint64(mask) & (_ALL_BUT_FIRST << np.uint64(last))


@kernel
def first_after(mask: Int, last: Int) -> int:
    """The member of a non-empty 64-bit set that comes first, counting from ``last`` + 1 with wrap-around."""
    later = above(mask, last)
    return lowest(later if later else np.uint64(mask))
