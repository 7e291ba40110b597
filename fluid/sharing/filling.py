# SPDX-License-Identifier: Apache-2.0
"""Models that raise the rates of paths by the capacity that their links have left.

Both are stated by Faizian et al., "Throughput Models of Interconnection Networks", sections II-C and II-D.
"""

from collections.abc import Callable

import numpy as np

from flitlab.fluid.mcf.paths import Paths
from flitlab.fluid.sharing.flows import CompetingFlows
from flitlab.models.arrays import Floats

FULL = 1e-12
"""A link with less than this part of its capacity left is full."""

Increment = Callable[[np.ndarray, Paths], np.ndarray]
"""What every rising path gets per unit of its weight, from what every link has left per unit: float64 [paths]."""


def filled(flows: CompetingFlows, increment: Increment) -> Floats:
    """float64 [paths]: rates when all paths have met a full link, ``increment`` times weight added in each step.

    The increment must fill some link whenever it is called.
    """
    rate, spare = np.zeros(len(flows.paths.flow)), flows.capacity.copy()
    weight, paths = flows.path_weight, flows.paths
    rising = np.arange(len(rate))
    while len(rising):
        left = per_weight(spare, paths, weight)
        step = weight * increment(left, paths)
        rate[rising] += step
        spare -= np.bincount(paths.channel, np.repeat(step, paths.hops), len(spare))
        full = (spare <= FULL * flows.capacity) | (left <= left.min())
        spare[full] = 0.0
        stuck = np.logical_or.reduceat(full[paths.channel], paths.start[:-1])
        rising, weight, paths = rising[~stuck], weight[~stuck], _without(paths, stuck)
    return rate


def per_weight(spare: np.ndarray, paths: Paths, weight: np.ndarray) -> Floats:
    """float64 [links]: what is left of each link per unit of the weight that crosses it; inf where none does."""
    crossing = np.bincount(paths.channel, np.repeat(weight, paths.hops), len(spare))
    level: Floats = np.divide(spare, crossing, out=np.full(len(spare), np.inf), where=crossing > 0)
    return level


def least_on_path(left: Floats, paths: Paths) -> Floats:
    """float64 [paths]: the least of ``left`` on each path."""
    return np.minimum.reduceat(left[paths.channel], paths.start[:-1])


def _without(paths: Paths, dropped: np.ndarray) -> Paths:
    """One commodity of all the paths that are not dropped."""
    if not dropped.any():
        return paths
    lengths = paths.hops
    kept = lengths[~dropped]
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    first = np.array([0, len(kept)])
    return Paths(first, start, paths.channel[np.repeat(~dropped, lengths)], np.zeros(len(kept)))


def hoefler(flows: CompetingFlows) -> Floats:
    """Hoefler's model (HM): every path gets its equal share of the most crowded link that it crosses.

    float64 [paths]: weight * min over the links of the path of capacity / weight of all paths that cross it. Each path
    of a flow counts as a flow of its own, with the whole weight.

    Source: Hoefler, Schneider, Lumsdaine, CLUSTER 2008, doi:10.1109/CLUSTR.2008.4663762; with several paths a flow,
    Yuan et al., SC 2013, doi:10.1145/2503210.2503229.
    """
    left = per_weight(flows.capacity, flows.paths, flows.path_weight)
    return flows.path_weight * least_on_path(left, flows.paths)


def jain(flows: CompetingFlows) -> Floats:
    """Jain's method (JM): Hoefler's shares again and again, of what is left, for the paths that cross no full link.

    float64 [paths]: the rates once every path crosses a full link. Source: Jain, Bhatele, Ni, Wright, Kale, SC 2014,
    doi:10.1109/SC.2014.33.
    """
    return filled(flows, least_on_path)
