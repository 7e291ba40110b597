# SPDX-License-Identifier: Apache-2.0
"""Whether a network carries what is offered at a load, as far as a run shows.

What is certain beforehand is added by those who know it, see :func:`flitlab.sim.measure.saturation.limited`.

A run shows the flits that are created and not delivered, its backlog. Of a network that carries everything, that too
goes up and down: by what arrivals vary. A host that creates N packets in the window creates N +- sqrt(I N), where I is
the index of dispersion of its arrivals: 1 - p if it creates one with probability p a tick, 1 of a Poisson process,
(2 b - 1) (1 - u)**2 with on-periods of b packets on average that fill the part u of its time (the asymptotic variance
of a renewal-reward process; Cox, Renewal Theory, 1962, section 4.5). The backlog behind a server that is just full is
what it has not worked off of that, a reflected random walk of this size; so growth is evidence of an overload where it
is larger, and where it is not, the window is too short to tell.
"""

import math
from typing import Any

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import CREATED_FLITS, DELIVERED_FLITS
from flitlab.sim.measure.batches import exceeds_noise, regroup
from flitlab.sim.measure.saturation import LOSS, SHORT, STARVING

LOST, LOST_NOISE, LOST_TOTAL = 0.01, 0.3, 2.0
"""Lost in all batches alike: this share of what is created, of the noise of a host, and of that of all together."""

LARGE, LARGE_NOISE, LARGE_TOTAL = 0.05, 1.0, 3.0
"""Lost, however unevenly: the same."""

STARVED, STARVED_NOISE, STARVED_PACKETS, STARVED_HALF = 0.05, 1.5, 12, 0.25
"""A host starves if its backlog grows by this share of what it creates, of its noise, by this many packets, and
steadily: by this part of the whole growth in either half of the window."""


def verdict(scenario: Scenario, load: float, batches: Ints, created: Ints, backlog: Ints) -> tuple[bool | None, str]:
    """(whether a point is saturated, None where the window is too short to tell; why, '' if it is not).

    batches: what each added to the scalars, int64 [batches, SCALARS]. created: flits, int64 [hosts]. backlog: flits at
    bounds of batches, int64 [bounds, hosts].
    """
    lost = lost_in_all(scenario, load, batches)
    if lost:
        return True, LOSS
    if starves(scenario, load, created, backlog):
        return True, STARVING
    return (False, "") if lost is False else (None, SHORT)


def lost_in_all(scenario: Scenario, load: float, batches: Ints) -> bool | None:
    """Whether less is delivered than created, in total; None where it is, by no more than the arrivals may vary."""
    groups = regroup(batches)
    lost = (groups[:, CREATED_FLITS] - groups[:, DELIVERED_FLITS]).astype(float)
    total = float(batches[:, CREATED_FLITS].sum())
    if not total:
        return False
    share = float((batches[:, CREATED_FLITS] - batches[:, DELIVERED_FLITS]).sum()) / total
    steadily, large = exceeds_noise(lost, LOST * groups[:, CREATED_FLITS].mean()), share > LARGE
    if not steadily and not large:
        return False
    hosts = int((scenario.traffic.rate > 0).sum())
    noise = float(noise_of(scenario, load, np.array([total / hosts]))[0]) / (total / hosts)
    of_host, of_all = (LOST_NOISE, LOST_TOTAL) if steadily else (LARGE_NOISE, LARGE_TOTAL)
    return True if share > noise * max(of_host, of_all / math.sqrt(hosts)) else None


def starves(scenario: Scenario, load: float, created: Ints, backlog: Ints) -> bool:
    """Whether some host's queue grows, which the total over all hosts need not show.

    Under a permutation a few flows pass their bottleneck's rate long before the rest do. created: flits,
    int64 [hosts]. backlog: flits at bounds of batches, int64 [bounds, hosts].
    """
    growth = backlog[-1] - backlog[0]
    halfway = backlog[len(backlog) // 2]
    steady = np.minimum(halfway - backlog[0], backlog[-1] - halfway) >= STARVED_HALF * growth
    least = np.maximum(STARVED_NOISE * noise_of(scenario, load, created), STARVED * created)
    return bool((steady & (growth > np.maximum(least, STARVED_PACKETS * scenario.source.mean_flits))).any())


def noise_of(scenario: Scenario, load: float, created: Ints | Floats) -> Floats:
    """Standard deviation of the flits that hosts create in a time in which they create so many, float64 [hosts].

    created: flits, [hosts], or of one host that is like the average.
    """
    rate = scenario.traffic.rate
    kept = rate / rate.max() if len(created) == len(rate) else np.array([rate[rate > 0].mean() / rate.max()])
    dispersion = 1 + kept * (dispersion_of(scenario, load) - 1)
    noise: Floats = np.sqrt(created * variance_of(scenario, dispersion))
    return noise


def variance_of(scenario: Scenario, dispersion: Any) -> Any:
    """Variance of flits that are created, for each flit of their mean. dispersion: index of that of packets, [...]."""
    source = scenario.source
    shares, mean = np.array(source.shares) / sum(source.shares), source.mean_flits
    spread = float(shares @ (np.array(source.flits) - mean) ** 2)
    return dispersion * mean + spread / mean


def dispersion_of(scenario: Scenario, load: float) -> float:
    """Index of dispersion of the arrivals of the busiest host; others keep each of its packets with a probability."""
    source = scenario.source
    busy = min(1.0, load * float(scenario.traffic.rate.max()))
    if source.arrivals == "onoff":
        return (2 * source.burst - 1) * (1 - busy) ** 2
    return 1 - busy / source.mean_flits if source.arrivals == "bernoulli" else 1.0
