# SPDX-License-Identifier: Apache-2.0
"""Packet creation at hosts."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Source:
    """Arrival process and lengths of packets.

    arrivals: ``bernoulli``, ``poisson`` or ``onoff``. flits, shares: packet lengths, and the share of packets of each.
    burst: mean packets per on-period (onoff).
    """

    arrivals: str = "bernoulli"
    flits: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)
    burst: float = 8.0

    @property
    def mean_flits(self) -> float:
        """Mean packet length in flits."""
        return float(np.dot(self.flits, self.shares) / sum(self.shares))
