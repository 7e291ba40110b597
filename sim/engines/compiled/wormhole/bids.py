# SPDX-License-Identifier: Apache-2.0
"""What both allocations have in common: who asks for something, and who comes first.

A record of what is asked for has one number, ``best``: the time, and below it either whether one has asked for it at
that time or several have, 1 or 2, or the highest bid made. A time is greater than all before, so nothing has to be
cleared. Every step of a tick has its own: each iteration of VC allocation, the count of who asks for the crossbar, each
iteration of its allocation, and one at which nobody bids. Where mostly nobody else asks, all bids can be spared.
"""

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.wormhole.state import ONE, VC_BITS, U

TIME_AT = U(VC_BITS)
"""Bits below the time, enough for the number of an input VC."""


@inline
def time_of(const, tick, step):
    """Return the time of a step of a tick."""
    iterations = U(const.iterations)
    return ((U(tick) + ONE) * (iterations + iterations + U(2)) + step) << TIME_AT


@inline
def ask_for(record, time):
    """Note that one more asks for something."""
    record.best = time + ONE + U(U(record.best) >= time)
