# SPDX-License-Identifier: Apache-2.0
"""Patterns with one destination per host."""

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import DestinationRule, Traffic


def fixed_traffic(
    kind: str,
    topology: Topology,
    target: Ints,
    weight: Floats | None = None,
    notes: Notes | None = None,
) -> Traffic:
    """Build traffic in which host i sends to ``target[i]``; a host whose target is itself sends nothing.

    Rates are scaled so that the largest row or column sum of T is 1.

    Parameters
    ----------
    kind: of the pattern.
    topology: the network.
    target: int64 [hosts], -1: none.
    weight: float64 [hosts] > 0, relative rates; equal by default.
    notes: notes of the traffic.

    Raises
    ------
    SpecError: no host sends.
    """
    hosts = topology.hosts
    target = np.where(target == np.arange(hosts), -1, target)
    sends = target >= 0
    if not sends.any():
        raise SpecError("no host sends to another one", key="kind")
    rate = np.where(sends, 1.0 if weight is None else weight, 0.0)
    busiest = max(rate.max(), np.bincount(target[sends], rate[sends], hosts).max())
    return Traffic(
        kind, topology, DestinationRule.FIXED, rate / busiest, fixed=target.astype(np.int64),
        notes={"silent_hosts": int((~sends).sum()), **(notes or {})},
    )  # fmt: skip


def address_bits(topology: Topology) -> int:
    """Return log2 of the number of hosts. Raises ``SpecError`` unless it is a power of two above 1."""
    hosts = topology.hosts
    if hosts < 2 or hosts & (hosts - 1):
        raise SpecError(f"needs a power-of-two number of hosts; the topology has {hosts}", key="kind")
    return hosts.bit_length() - 1
