# SPDX-License-Identifier: Apache-2.0
"""Prices of a machine, for tests of other things than prices: measuring those of a mode takes seconds."""

from typing import Any

PACKETS = {"point": 0.1, "pairs": 0.0, "idle": 1e-7, "hop": [1e-6] * 4, "growth": 0.1, "size": 100, "message": 1e-6}
FLOWS = {"point": 0.1, "hop": 1e-6, "hop_of_many": 1e-6}


def known_price(name: str) -> dict[str, Any]:
    """What ``Prices.of`` returns for an engine and a switching mode."""
    return FLOWS if "datagram" in name or "spray" in name else PACKETS
