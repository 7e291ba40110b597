# SPDX-License-Identifier: Apache-2.0
"""Whether a network carries the offered traffic at a load, as far as a run shows.

Certified limits are added by :func:`flitlab.sim.measure.saturation.limited`.

A run shows its backlog: flits created and not delivered. Even where all traffic is carried, the backlog varies with the
arrivals. A host that creates N packets in the window creates N +- sqrt(I N), where I is the index of dispersion of its
arrivals: 1 - p if it creates one with probability p per tick, 1 for a Poisson process, (2 b - 1) (1 - u)**2 for
on-periods of b packets on average that fill the share u of its time (the asymptotic variance of a renewal-reward
process; Cox, Renewal Theory, 1962, section 4.5), 1 - p + 2 r b (1 - a - b) / (a + b)**2 for a Markov process that
begins and ends on-periods with chances a and b, and then creates r packets per tick. The backlog behind a server that
is just full is a reflected random walk of this size. So growth beyond it is evidence of an overload; below it, the
window is too short to decide.
"""

import math
from fractions import Fraction
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.models.traffic.source import BurstRates
from flitlab.sim.engines.base import Scalar
from flitlab.sim.measure.batches import exceeds_noise, regroup
from flitlab.sim.measure.saturation import SaturatedBy

LOST, LOST_NOISE, LOST_TOTAL = 0.01, 0.3, 2.0
"""Steady loss: share of the created traffic, of the noise of a host, and of the noise of all hosts together."""

LARGE, LARGE_NOISE, LARGE_TOTAL = 0.05, 1.0, 3.0
"""Large loss, even if unsteady: the same shares."""

STARVED, STARVED_NOISE, STARVED_PACKETS, STARVED_HALF = 0.05, 1.5, 12, 0.25
"""A host may starve if its backlog grows by this share of its created traffic, of its noise, by this many packets, and
steadily: by this share of the whole growth in either half of the window. It does if the growth is beyond the noise of
all hosts, too (:func:`overload_score`).
"""

FALSE_ALARMS = 0.01
"""Probability, over all tests together, that some backlog exceeds its bound though the load is carried."""


def overload_score(count: int, tests: int = 1) -> float:
    """Return the score above which one of ``count`` backlogs shows an overload, by Bonferroni's bound on FALSE_ALARMS.

    tests: how often the backlogs are tested.
    """
    return float(ndtri(1 - FALSE_ALARMS / (2 * max(count, 1) * tests)))


def verdict(scenario: Scenario, load: float, batches: Ints, created: Ints, backlog: Ints) -> tuple[bool | None, str]:
    """Judge whether a point is saturated.

    Parameters
    ----------
    load : float
        Its load.
    batches : int64 [batches, scalars]
        Increments of the scalar counters.
    created : int64 [hosts]
        Flits created in the window.
    backlog : int64 [bounds, hosts]
        Flits at bounds of batches.

    Returns
    -------
    tuple of (bool or None, str)
        Whether it is saturated, None where the window is too short to decide; and why, '' if it is not.
    """
    lost = is_losing(scenario, load, batches)
    if lost:
        return True, SaturatedBy.LOSS
    starving = has_starving_host(scenario, load, created, backlog)
    if starving:
        return True, SaturatedBy.STARVING
    return (None, SaturatedBy.SHORT) if lost is None or starving is None else (False, "")


def is_losing(scenario: Scenario, load: float, batches: Ints) -> bool | None:
    """Whether less is delivered than created, in total; None if the difference is within the variation of arrivals.

    batches: int64 [batches, scalars].
    """
    groups = regroup(batches)
    lost = (groups[:, Scalar.CREATED_FLITS] - groups[:, Scalar.DELIVERED_FLITS]).astype(float)
    total = float(batches[:, Scalar.CREATED_FLITS].sum())
    if not total:
        return False
    share = float((batches[:, Scalar.CREATED_FLITS] - batches[:, Scalar.DELIVERED_FLITS]).sum()) / total
    steadily, large = exceeds_noise(lost, LOST * groups[:, Scalar.CREATED_FLITS].mean()), share > LARGE
    if not steadily and not large:
        return False
    hosts = int((scenario.traffic.rate > 0).sum())
    noise = float(noise_of(scenario, load, np.array([total / hosts]))[0]) / (total / hosts)
    of_host, of_all = (LOST_NOISE, LOST_TOTAL) if steadily else (LARGE_NOISE, LARGE_TOTAL)
    return True if share > noise * max(of_host, of_all / math.sqrt(hosts)) else None


def has_starving_host(scenario: Scenario, load: float, created: Ints, backlog: Ints) -> bool | None:
    """Whether some host's queue grows, which the total over all hosts need not show.

    Under a permutation a few flows exceed the rate of their bottleneck long before the others do. None where a queue
    grows, but within the bound that allows for the number of hosts (:func:`overload_score`). created: int64 [hosts],
    flits. backlog: int64 [bounds, hosts], flits at bounds of batches.
    """
    growth = backlog[-1] - backlog[0]
    halfway = backlog[len(backlog) // 2]
    steady = np.minimum(halfway - backlog[0], backlog[-1] - halfway) >= STARVED_HALF * growth
    noise = noise_of(scenario, load, created)
    least = np.maximum(STARVED_NOISE * noise, STARVED * created)
    grows = steady & (growth > np.maximum(least, STARVED_PACKETS * scenario.source.mean_flits))
    if not grows.any():
        return False
    return True if (growth > overload_score(int((created > 0).sum())) * noise)[grows].any() else None


def noise_of(scenario: Scenario, load: float, created: Ints | Floats) -> Floats:
    """Return the standard deviation of the flits that hosts create, float64 [hosts].

    created: flits created in the same time, [hosts], or those of one average host.
    """
    rate = scenario.traffic.rate
    kept = rate / rate.max() if len(created) == len(rate) else np.array([rate[rate > 0].mean() / rate.max()])
    dispersion = 1 + kept * (dispersion_of(scenario, load) - 1)
    noise: Floats = np.sqrt(created * variance_of(scenario, dispersion))
    return noise


F = TypeVar("F", float, Floats)


def variance_of(scenario: Scenario, dispersion: F) -> F:
    """Return the variance of created flits per flit of their mean.

    dispersion: index of dispersion of packets, any shape.
    """
    source = scenario.source
    shares, mean = np.array(source.shares) / sum(source.shares), source.mean_flits
    spread = float(shares @ (np.array(source.flits) - mean) ** 2)
    return dispersion * mean + spread / mean


def dispersion_of(scenario: Scenario, load: float) -> float:
    """Return the index of dispersion of the arrivals of the busiest host; other hosts thin its process."""
    source = scenario.source
    flits, flit_ticks = load * float(scenario.traffic.rate.max()), scenario.host_flit_ticks
    busy = min(1.0, flits * flit_ticks)
    packets, burst = busy / flit_ticks / source.mean_flits, source.burst
    if source.arrivals != "onoff" or (isinstance(burst, BurstRates) and packets == 0):
        return 1 - packets if source.arrivals == "bernoulli" else 1.0
    if isinstance(burst, BurstRates):
        start, end, rate = (float(chance) for chance in burst.complete(Fraction(packets)))
        return 1 - packets + 2 * rate * end * (1 - start - end) / (start + end) ** 2
    return (2 * burst - 1) * (1 - busy) ** 2
