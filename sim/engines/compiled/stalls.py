# SPDX-License-Identifier: Apache-2.0
"""Ticks in which the front flits of the VCs of an input stall (:mod:`flitlab.models.rules.stalls`).

Before an allocation a switching mode notes for every VC why its front flit stalls unless it is granted; a grant clears
the note. Functions take ``state.stalls`` as their first argument: without counters it is None, and Numba omits their
code.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.stalls import STALL_SETS


class StallCounters(NamedTuple):
    """Counters of a partition of a network.

    first_input, end_input: its inputs. reasons: uint8 [input VCs], notes of the current allocation, bits of
    :data:`~flitlab.models.rules.stalls.Stall`; 0 where no flit stalls. ticks: int64 [inputs, STALL_SETS], ticks in
    which flits of the input stalled, by the set of all their reasons. Partitions share both arrays.
    """

    first_input: int
    end_input: int
    reasons: np.ndarray
    ticks: Ints


def make_stall_counters(inputs: int, vcs: int) -> StallCounters:
    """Make counters that are zero, of all inputs.

    Parameters
    ----------
    inputs: of the network.
    vcs: of an input.
    """
    return StallCounters(
        first_input=0,
        end_input=inputs,
        reasons=np.zeros(inputs * vcs, np.uint8),
        ticks=np.zeros((inputs, STALL_SETS), np.int64),
    )


@inline
def end_stall(stalls, vc):
    """Clear the note of an input VC whose front flit is granted."""
    if stalls is None:
        return
    stalls.reasons[vc] = 0


@inline
def count_stalls(stalls, const):
    """Count the notes of a tick, after its allocation."""
    if stalls is None:
        return
    for entry in range(stalls.first_input, stalls.end_input):
        reasons = 0
        for vc in range(entry * const.vcs, (entry + 1) * const.vcs):
            reasons |= np.int64(stalls.reasons[vc])
        if reasons:
            stalls.ticks[entry, reasons] += 1
