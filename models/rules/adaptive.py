# SPDX-License-Identifier: Apache-2.0
"""Which of the channels that it may take an adaptive packet takes.

A packet draws one of its channels at every hop, its *drawn channel*, and takes it unless another is much better: by at
least the flits of the packet, and by more than half. Then it takes the channel of least cost; ties are drawn. The cost
of a channel is the number of flits committed to it, as the switching mode counts them.

Comparing exact counts would be greedy: packets of several flits that follow one another without a gap find, at every
hop, the channel of their predecessor just idle and all others busy for a few ticks more. So flows keep to one channel
each, as under a hash, and those that meet further on stay together. Random sampling and imprecise queue lengths are the
known remedies (Kim, Dally, Abts, Adaptive routing in high-radix Clos network, SC 2006, doi:10.1145/1188455.1188552).
"""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import kernel
from flitlab.models.rules.route import pick

_RESERVED_COST = np.int64(1) << np.int64(32)
"""Added to the cost of a channel where a packet could have only a VC that is a last resort."""

_LOW_BITS = np.int64((1 << 31) - 1)


@kernel
def channel_cost(committed: Int, reserved: bool) -> int:
    """The cost of a channel to a packet; channels where it could have only a last resort cost more than all others.

    committed: flits that the channel has still to send, or for which no credit has returned, below 2**32. last_resort:
    whether the VC that the packet would take is one (:func:`~flitlab.models.rules.vc.last_resorts`).
    """
    return committed + _RESERVED_COST if reserved else np.int64(committed)


@kernel
def drawn_channel(ports: np.uint64, word: Int) -> int:
    """The port that a packet draws at a hop from all that it may take: uint64, a bit each, at least one.

    word: the :func:`~flitlab.models.rules.route.route_word` of the packet and the hop. It depends on nothing else, so
    the packet keeps its drawn channel for as long as it waits.
    """
    return pick(ports, word)


@kernel
def drawn_tie(ports: np.uint64, word: Int) -> int:
    """One of the ports of least cost, uniformly; independent of :func:`drawn_channel` by the same word."""
    return pick(ports, (word & _LOW_BITS) << 32)


@kernel
def keeps_drawn(cost: Int, least: Int, flits: Int) -> bool:
    """Whether a packet of ``flits`` takes its drawn channel, whose cost is ``cost``; least: of all that it can take."""
    return cost - least <= max(flits - 1, least & ~_RESERVED_COST)


@kernel
def waits_for_drawn(busy: Int, since: Int, flits: Int) -> bool:
    """Whether a packet of ``flits`` waits for its drawn channel, which is held by another until tick ``busy``.

    It does for the time of one packet, since the tick from which it could have been granted an idle channel.
    """
    return busy <= since + flits
