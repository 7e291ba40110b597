# SPDX-License-Identifier: Apache-2.0
"""Why a flit stalls: it is at the front of an input VC, its header has been read, and this tick brings no grant."""

from typing import NamedTuple

from flitlab.models.jit import kernel


class _Stall(NamedTuple):
    """Reasons, a bit each."""

    CREDIT: int = 1  # its output VC has no credit (vct: no VC that it may take has buffer space for the packet)
    VC: int = 2  # its packet has no output VC (wormhole)
    SWITCH: int = 4  # its output or its input is taken, or it lost the arbitration


Stall = _Stall()

STALL_SETS = 8
"""Sets of reasons, the empty one included."""


@kernel
def stall_reasons(lacks_vc: bool, lacks_credit: bool, is_taken: bool) -> int:
    """Return the reasons, bits of :data:`Stall`, for which a flit stalls if it is not granted.

    Parameters
    ----------
    lacks_vc: whether its packet has no output VC. Then credits and output do not count yet.
    lacks_credit: whether no VC that it may use has the credits that it needs.
    is_taken: whether its output or input still sends an earlier flit, or the queue of its output is full.

    All are taken before the allocation. A flit that nothing hinders then stalls because it loses the arbitration.
    """
    if lacks_vc:
        return Stall.VC
    if lacks_credit:
        return Stall.CREDIT | Stall.SWITCH if is_taken else Stall.CREDIT
    return Stall.SWITCH
