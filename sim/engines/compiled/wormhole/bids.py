# SPDX-License-Identifier: Apache-2.0
"""Arbitration shared by both allocators: contention and bids.

The record of a resource has one number, ``best_bid``: the time and, below it, either 1 or 2 (requested once, or several
times, at that time) or the highest bid. Times increase, so that nothing has to be cleared. Every step of a tick has a
time: each iteration of VC allocation, the count of crossbar requests, each iteration of switch allocation, and one at
which no bid is made. Where most requests are uncontended, bids are skipped.
"""

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.layout import ONE, U

TIME_SHIFT = U(layout.VC_BITS)
"""Bits below the time: enough for the number of an input VC."""


@inline
def crossbar_input_of(inputs_per_port, const, vc):
    """Return the crossbar input that reads an input VC. inputs_per_port: ``const.inputs_per_port``."""
    place = vc * const.crossbar_factor >> layout.CROSSBAR_SHIFT
    if inputs_per_port is None:
        return place
    return place * inputs_per_port + (vc - place * U(const.vcs)) % inputs_per_port


@inline
def time_of(const, crossbar_step, step):
    """Return the time of a step of the allocators in a step of the crossbar, which is a tick without a speed-up."""
    iterations = U(const.iterations)
    return ((U(crossbar_step) + ONE) * (iterations + iterations + U(2)) + step) << TIME_SHIFT


@inline
def add_request(record, time):
    """Count one more request for a resource."""
    record.best_bid = time + ONE + U(U(record.best_bid) >= time)
