# SPDX-License-Identifier: Apache-2.0
"""Nearly uniform traffic between racks."""

import numpy as np

from flitlab.models.registry import register
from flitlab.models.traffic.racks import Cluster


@register("traffic", "hadoop_like")
class HadoopLike(Cluster):
    """Demand between racks as in a Hadoop cluster: nearly the same for all pairs.

    The measured matrix is not public. It is known to be nearly uniform between racks, and was read off a plot in
    powers of ten; here nine pairs of ten (always the same ones) exchange 1 and the others 0.1. Demand inside a rack is
    left out. A rack is a switch with hosts: the cluster has 64, of which fewer are taken at even distances, and more
    follow the same rule. Split equally over the hosts of both racks. ``shuffle``: which switch is which rack is random
    (``seed``).

    Example: ``traffic: {kind: hadoop_like, shuffle: true, seed: 3}``

    Source: TM-H of MUT section IV-B, Fig. 13; Roy, Zeng, Bagga, Porter and Snoeren 2015,
    doi:10.1145/2785956.2787472.
    """

    def racks(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random((count, count)) < 0.9, 1.0, 0.1)
