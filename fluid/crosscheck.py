# SPDX-License-Identifier: Apache-2.0
"""The check that ties a simulation to a certificate, exact and free of noise."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flitlab.fluid.certificate import Certificate, switch_distances
from flitlab.models.arrays import Ints
from flitlab.models.pairs import PairCounts
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class FlowCount:
    """Flits of a set of packets, counted three ways.

    pairs: by source and destination switch. sources, destinations: int64 [hosts].
    """

    pairs: PairCounts
    sources: Ints
    destinations: Ints


@lru_cache(maxsize=8)
def _distances(topology: Topology, certificate: Certificate) -> np.ndarray:
    """One table serves all points of a scenario."""
    return switch_distances(topology, certificate.network)


def slack(topology: Topology, certificate: Certificate, ticks: int, delivered: FlowCount, present: FlowCount) -> float:
    """How far a run stayed below what the lengths allow, relative to what they allow.

    Every flit delivered in a window of ``ticks`` covered at least its distance, within the window or, if it
    was ``present`` in the network when the window began, partly before it; a tick offers capacity * z of
    length. The result is negative only if the simulation or the certificate is wrong (allow -1e-9).
    """
    distance = _distances(topology, certificate)

    def travelled(count: FlowCount) -> float:
        source, target = np.divmod(count.pairs.place, topology.switches)
        between = distance[source, target] @ count.pairs.amount.astype(float)
        hosts = count.sources @ certificate.injection + count.destinations @ certificate.ejection
        return float(between + hosts)

    allowed = ticks * certificate.capacity_worth(topology) + travelled(present)
    return (allowed - travelled(delivered)) / allowed if allowed > 0 else 0.0
