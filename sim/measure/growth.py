# SPDX-License-Identifier: Apache-2.0
"""Growth of backlogs in a window against the variation of arrivals: evidence of an overload, or of its absence.

The backlog of a channel that is just full is a random walk reflected at 0, with the steps of its arrivals; that of a
stable channel is smaller. So at any carried load the backlog of a channel to which N packets come grows by more than
z sqrt(N) packets (times the variation of one) with a probability of at most P(|N(0, 1)| > z).
"""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import Scalar, Snapshot
from flitlab.sim.measure.verdict import dispersion_of, noise_of, overload_score, variance_of
from flitlab.sim.measure.window import ChannelTraffic, Window

MEAN, DEVIATION = math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)
"""Mean and standard deviation of |N(0, 1)|."""

MISS_RATE_INVERSE = 100
"""A run misses one in this many overloads of its resolution."""

DETECTABLE_DEVIATIONS = 4.0
"""Detectable overload of a channel with unknown backlog, in standard deviations of its arrivals."""

SETTLING = 2.0
"""Ticks until the source queue of a host settles, in variances of its arrivals per tick over the square of its spare
rate. The mean of a reflected Brownian motion that starts at 0 is then within a tenth of its limit (Abate and Whitt,
Advances in Applied Probability 19, 1987).
"""

BUSY_SHARE = 0.5
"""Channels with this share of the greatest utilisation may saturate first."""


def channel_scores(scenario: Scenario, load: float, traffic: ChannelTraffic) -> Floats:
    """Return the growth of the backlog of each channel in a window, in deviations of its arrivals, float64
    [channels].
    """
    deviation = np.sqrt(np.maximum(traffic.created, 1) * _variance(scenario, load))
    scores: Floats = (traffic.created - traffic.delivered) / deviation
    return scores


def overloaded_channels(scenario: Scenario, load: float, traffic: ChannelTraffic | None) -> int | None:
    """Return how many channels are overloaded beyond the variation of arrivals; None if channels are not counted."""
    if traffic is None:
        return None
    return int((channel_scores(scenario, load, traffic) > overload_score(len(traffic.channel))).sum())


def total_grows(scenario: Scenario, load: float, window: Window, tests: int) -> bool:
    """Whether the total backlog grows by more than if all channels that may be just full were.

    Each such channel holds back as much as its arrivals vary. tests: windows tested in a search.
    """
    created = float(window.total[Scalar.CREATED_FLITS])
    if not created:
        return False
    each, channels = _held_back(scenario, load, window)
    bound = each * (MEAN + DEVIATION * overload_score(1, tests) / math.sqrt(channels))
    return bool(float(window.total[Scalar.CREATED_FLITS] - window.delivered_flits) > bound * created)


def hosts_grow(scenario: Scenario, load: float, window: Window, created: Ints, backlog: Ints, tests: int) -> bool:
    """Whether the backlog of some host grows by more than at channels that are just full.

    created: int64 [hosts], flits of the window. backlog: int64 [bounds, hosts], flits at bounds of its batches. tests:
    as in :func:`total_grows`.
    """
    some = created > 0
    common = MEAN * _held_back(scenario, load, window)[0] * created[some]
    own = overload_score(int(some.sum()), tests) * noise_of(scenario, load, created)[some]
    return bool(((backlog[-1] - backlog[0])[some] > common + own).any())


def _held_back(scenario: Scenario, load: float, window: Window) -> tuple[float, float]:
    """Return the relative deviation of traffic held back by channels that are just full, and the number of such
    channels.
    """
    created, busiest = float(window.total[Scalar.CREATED_FLITS]), float(window.busiest)
    passed = window.mean(Scalar.HOPS) + 1 if window.packets else 1.0
    deviation = passed * math.sqrt(_variance(scenario, load) / busiest)
    return deviation, max(passed * created / busiest, 1.0)


def source_settling(scenario: Scenario, load: float) -> float:
    """Return the ticks in which the source queue of the busiest host settles; 0 if it is full."""
    flit_ticks = scenario.host_flit_ticks
    utilisation = load * float(scenario.traffic.rate.max()) * flit_ticks
    if utilisation >= 1:
        return 0.0
    variance = float(variance_of(scenario, dispersion_of(scenario, load))) * utilisation
    return SETTLING * variance * flit_ticks / (1 - utilisation) ** 2


def resolution(scenario: Scenario, load: float, now: Snapshot) -> float:
    """Return the relative overload, at most 1, that the state of a run excludes if the run was empty at tick 0.

    With an overload d, the backlog of a channel grows like a random walk with drift, reflected at 0; the run would show
    as little as it does in one of :data:`MISS_RATE_INVERSE` cases. The greatest such d over the busy channels is
    returned. Where backlogs are unknown, those of channels or those of traffic that stays at its switch, it is
    :data:`DETECTABLE_DEVIATIONS` deviations of the arrivals.
    """
    if now.outstanding is None:
        return _detectable(scenario, load, max(now.channel_flits.max(initial=0), now.created.max(initial=0)))
    created = (now.channel_flits + now.outstanding.ungranted).astype(float)
    demand, at = scenario.traffic.at(load)
    local = demand.local_rate * at * now.tick  # of the host with the most
    filled, filled_locally = created / scenario.topology.capacity, local / scenario.topology.host_capacity
    least = BUSY_SHARE * max(filled.max(initial=0.0), filled_locally)
    excluded = _detectable(scenario, load, local) if filled_locally >= least else 0.0
    busy = (filled >= least) & (created > 0)
    if busy.any():
        deviation = np.sqrt(_variance(scenario, load) * created[busy])
        drift = _least_drift(np.maximum(now.outstanding.on_route[busy], scenario.source.mean_flits) / deviation)
        excluded = max(excluded, float((drift * deviation / created[busy]).max()))
    return min(excluded, 1.0)


def _detectable(scenario: Scenario, load: float, flits: float) -> float:
    """Return the relative overload, at most 1, that an arrival of ``flits`` shows if no backlog is known."""
    return min(DETECTABLE_DEVIATIONS * math.sqrt(_variance(scenario, load) / flits), 1.0) if flits else 1.0


def _least_drift(height: Floats) -> Floats:
    """Return the drift with which a reflected Brownian motion from 0 is at most ``height`` at time 1 in one of
    :data:`MISS_RATE_INVERSE` cases; height, drift: float64 [channels], in standard deviations.

    P(height or less) = N(h - d) - exp(2 d h) N(-h - d), N of the normal distribution (Harrison, Brownian Motion and
    Stochastic Flow Systems, 1985, section 3.6).
    """
    low, high = np.zeros_like(height), height + ndtri(1 - 1 / MISS_RATE_INVERSE)
    for _ in range(30):
        drift = (low + high) / 2
        chance = ndtr(height - drift) - np.exp(2 * drift * height + log_ndtr(-height - drift))
        low, high = (
            np.where(chance > 1 / MISS_RATE_INVERSE, drift, low),
            np.where(chance > 1 / MISS_RATE_INVERSE, high, drift),
        )
    least: Floats = high
    return least


def _variance(scenario: Scenario, load: float) -> float:
    """Return the variance of the flits that reach a channel, per flit of their mean.

    A channel gets shares of the traffic of several hosts, which brings the index of dispersion of their packets nearer
    to 1. So it is at most that of the busiest host, or 1.
    """
    return float(variance_of(scenario, max(dispersion_of(scenario, load), 1.0)))
