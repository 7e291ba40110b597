"""What patterns with one destination a host have in common."""

import numpy as np

from models.registry import SpecError
from models.topology.graph import Topology
from models.traffic.traffic import FIXED, Traffic


def fixed_traffic(kind: str, topology: Topology, target: np.ndarray) -> Traffic:
    """Host i sends to ``target[i]`` (int64 [hosts]); a host that would send to itself sends nothing.

    Rates are scaled so that the busiest row or column of T is 1. Raises ``SpecError`` if no host sends.
    """
    hosts = topology.hosts
    target = np.where(target == np.arange(hosts), -1, target)
    sends = target >= 0
    if not sends.any():
        raise SpecError("no host sends to another one", key="kind")
    busiest = np.bincount(target[sends], minlength=hosts).max()
    return Traffic(
        kind, topology, FIXED, sends / float(busiest), fixed=target.astype(np.int64),
        notes={"silent_hosts": int((~sends).sum())},
    )  # fmt: skip


def address_bits(topology: Topology) -> int:
    """log2 of the number of hosts. Raises ``SpecError`` unless it is a power of two above 1."""
    hosts = topology.hosts
    if hosts < 2 or hosts & (hosts - 1):
        raise SpecError(f"needs a power-of-two number of hosts; the topology has {hosts}", key="kind")
    return hosts.bit_length() - 1
