# SPDX-License-Identifier: Apache-2.0
"""NDP: trimming and pulls."""

from flitlab.models.registry import register
from flitlab.models.transport.sprayed import SprayedSpec
from flitlab.models.transport.spraying import NDP, Spraying, Spread


@register("transport", "ndp")
class Ndp(SprayedSpec):
    """A first window at the rate of the host, and then a packet for each pull of the receiver.

    Each packet that arrives, trimmed or not, earns a pull, which the receiver sends at its own rate; packets that were
    trimmed are sent again first. init_window: packets, by default 15. If all transports of a run are of this kind,
    queues have space for 8 packets by default, at any rate of the channel, mark only where ``switching.ecn`` says so,
    and serve ten control packets for each data packet while both wait. There is no return to sender and no path
    penalty.

    Example: ``transport: {kind: ndp, init_window: 23}``

    Source: Handley et al., Re-architecting datacenter networks and stacks for low latency and high performance,
    SIGCOMM 2017, doi:10.1145/3098822.3098825.
    """

    spread: Spread = "oblivious"
    sack_threshold: int = 1

    def spraying(self) -> Spraying:
        spraying = self.sprayed(credit=NDP)
        return spraying if self.init_window is not None else self.model_copy(update={"init_window": 15}).spraying()
