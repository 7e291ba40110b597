# SPDX-License-Identifier: Apache-2.0
"""Cross-check of a simulation against a certificate, exact and free of noise."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from flitlab.fluid.certificate import Certificate, switch_distances
from flitlab.models.arrays import Ints
from flitlab.models.pairs import PairCounts
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True, eq=False)
class FlowCount:
    """Flits of a set of packets, counted in three ways.

    pairs: by source and destination switch. sources, destinations: int64 [hosts].
    """

    pairs: PairCounts
    sources: Ints
    destinations: Ints


@lru_cache(maxsize=8)
def _distances(topology: Topology, certificate: Certificate) -> np.ndarray:
    """Distances under the prices of a certificate; cached for all points of a scenario."""
    return switch_distances(topology, certificate.network)


def slack(topology: Topology, certificate: Certificate, ticks: int, delivered: FlowCount, present: FlowCount) -> float:
    """Relative margin between what a run delivered and what channel prices allow.

    Every delivered flit cost at least its distance, within the window or, if it was ``present`` at the start of the
    window, partly before. A tick provides capacity worth capacity * z.

    Parameters
    ----------
    topology : Topology
        The network.
    certificate : Certificate
        Channel prices.
    ticks : int
        Length of the window.
    delivered : FlowCount
        Flits delivered in the window.
    present : FlowCount
        Flits in the network at the start of the window.

    Returns
    -------
    float
        Negative only if the simulation or the certificate is wrong (allow -1e-9).
    """
    distance = _distances(topology, certificate)

    def travelled(count: FlowCount) -> float:
        source, target = np.divmod(count.pairs.place, topology.switches)
        between = distance[source, target] @ count.pairs.amount.astype(float)
        hosts = count.sources @ certificate.injection + count.destinations @ certificate.ejection
        return float(between + hosts)

    allowed = ticks * certificate.capacity_worth(topology) + travelled(present)
    return (allowed - travelled(delivered)) / allowed if allowed > 0 else 0.0
