# SPDX-License-Identifier: Apache-2.0
"""The choice of an adaptive packet among the channels that it may take.

A packet draws one of its channels at every hop, its *drawn channel*. It takes that channel unless another is clearly
better: by at least the flits of the packet, and by more than half. Then it takes the channel of least cost; ties are
drawn. The cost of a channel is the flits committed to it, as the switching mode counts them.

Exact comparison would be greedy. Packets of several flits that follow each other without a gap find, at every hop, the
channel of their predecessor just idle, and all others busy for a few ticks more. Flows would keep to one channel each,
as under a hash, and flows that meet downstream would stay together. Random sampling and imprecise queue lengths are the
known remedies (Kim, Dally, Abts, Adaptive routing in high-radix Clos network, SC 2006, doi:10.1145/1188455.1188552).
"""

import numpy as np

from flitlab.models.arrays import Int, PortSet
from flitlab.models.jit import kernel
from flitlab.models.rules.route import pick

_RESERVED_COST = np.int64(1) << np.int64(32)
"""Cost added to a channel where a packet could have only a reserved VC."""

_LOW_BITS = np.int64((1 << 31) - 1)


@kernel
def channel_cost(committed: Int, reserved: bool) -> int:
    """The cost of a channel to a packet. Channels with only a reserved VC cost more than all others.

    committed: flits that the channel has still to send, or whose credit has not returned, below 2**32. reserved:
    whether the packet would take a reserved VC (:func:`~flitlab.models.rules.vc.reserved_vcs`).
    """
    return committed + _RESERVED_COST if reserved else np.int64(committed)


@kernel
def drawn_channel(ports: PortSet, word: Int) -> int:
    """The port that a packet draws at a hop from the set of all that it may take, at least one.

    word: the :func:`~flitlab.models.rules.route.route_word` of the packet and the hop. Nothing else enters, so the
    packet keeps its drawn channel while it waits.
    """
    return pick(ports, word)


@kernel
def drawn_tie(ports: PortSet, word: Int) -> int:
    """One of the ports of least cost, uniformly; independent of :func:`drawn_channel` with the same word."""
    return pick(ports, (word & _LOW_BITS) << 32)


@kernel
def keeps_drawn(cost: Int, least: Int, flits: Int) -> bool:
    """Whether a packet takes its drawn channel.

    Parameters
    ----------
    cost: cost of the drawn channel.
    least: least cost of all channels that it can take.
    flits: length of the packet.
    """
    return cost - least <= max(flits - 1, least & ~_RESERVED_COST)


@kernel
def waits_for_drawn(busy: Int, since: Int, flits: Int) -> bool:
    """Whether a packet waits for its drawn channel, for at most the time of one packet.

    Parameters
    ----------
    busy: tick until which another packet holds the channel.
    since: tick from which an idle channel could have been granted.
    flits: length of the packet.
    """
    return busy <= since + flits
