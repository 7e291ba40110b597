# SPDX-License-Identifier: Apache-2.0
"""Skewed traffic between racks."""

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.registry import register
from flitlab.models.traffic.racks import Cluster

WEB, CACHE, OTHER = 0, 1, 2

DEMAND = np.array([[0.001, 1.0, 0.1], [1.0, 0.1, 0.1], [0.01, 0.1, 0.01]])
"""Demand from a rack of one role (row) to a rack of another (column)."""


@register("traffic", "frontend_like")
class FrontendLike(Cluster):
    """Demand between racks as in a front-end cluster: web servers and caches exchange nearly everything.

    The measured matrix is not public. It is known to be heavy at the cache racks and light at the web racks, and was
    read off a plot in powers of ten. Here, in the order of the rack numbers, three quarters of the racks are web, a
    fifth cache and the rest other (multifeed, slb, misc). A web and a cache rack send each other 1, caches each other
    0.1, web racks each other 0.001; other racks receive 0.1 from web and cache racks, and send 0.01, 0.1 to caches;
    one pair in five (always the same ones) has a tenth of that. Demand inside a rack is left out. A rack is a switch
    with hosts: the cluster has 64, of which fewer are taken at even distances, and more follow the same rule. Split
    equally over the hosts of both racks. ``shuffle``: which switch is which rack is random (``seed``).

    Example: ``traffic: {kind: frontend_like, shuffle: true, seed: 3}``

    Source: TM-F of MUT section IV-B, Fig. 14; Roy, Zeng, Bagga, Porter and Snoeren 2015,
    doi:10.1145/2785956.2787472.
    """

    def racks(self, count: int, rng: np.random.Generator) -> Floats:
        share = (np.arange(count) + 0.5) / count
        role = np.where(share < 0.75, WEB, np.where(share < 0.95, CACHE, OTHER))
        demand: Floats = DEMAND[np.ix_(role, role)] * np.where(rng.random((count, count)) < 0.8, 1.0, 0.1)
        return demand
