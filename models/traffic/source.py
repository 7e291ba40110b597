# SPDX-License-Identifier: Apache-2.0
"""How hosts create packets."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Source:
    """How hosts create packets.

    arrivals: ``bernoulli``, ``poisson`` or ``onoff``. flits, shares: packet lengths and the
    fraction of packets that have each. burst: mean packets of an on-period (onoff).
    """

    arrivals: str = "bernoulli"
    flits: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)
    burst: float = 8.0

    @property
    def mean_flits(self) -> float:
        """Mean packet length."""
        return float(np.dot(self.flits, self.shares) / sum(self.shares))
