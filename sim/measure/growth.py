# SPDX-License-Identifier: Apache-2.0
"""How much backlogs grow in a window, against what arrivals vary: whether that shows an overload, or rules one out.

The backlog of a channel that is just full is a random walk reflected at 0, with the steps of its arrivals; that
of a stable one is smaller. So at any load that is carried the backlog of a channel to which N packets come grows by
more than z sqrt(N) packets (times the variation of one) with a probability of at most that of |N(0, 1)| > z.
"""

import math

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from flitlab.models.arrays import Floats, Ints
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import CREATED_FLITS, HOPS, Snapshot
from flitlab.sim.measure.verdict import dispersion_of, noise_of, variance_of
from flitlab.sim.measure.window import ChannelTraffic, Window

FALSE_ALARMS = 0.01
"""Probability that something grows beyond its bound though the load is carried, in all tests together."""

MEAN, DEVIATION = math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi)
"""Of |N(0, 1)|."""

UNSEEN = 100
"""One of so many overloads of the resolution of a run is not seen in it."""

SEEN = 4.0
"""Standard deviations of the arrivals of a channel that an overload must amount to where its backlog is not known."""

BUSY = 0.5
"""Channels with this part of the greatest utilisation may be those that are full first."""


def overload_score(count: int, tests: int = 1) -> float:
    """The score above which one of ``count`` backlogs shows an overload, by Bonferroni's bound on FALSE_ALARMS.

    tests: how often so many are tested.
    """
    return float(ndtri(1 - FALSE_ALARMS / (2 * max(count, 1) * tests)))


def channel_scores(scenario: Scenario, load: float, found: ChannelTraffic) -> Floats:
    """Growth of the backlog of each channel in a window, in deviations of its arrivals, float64 [channels]."""
    deviation = np.sqrt(np.maximum(found.created, 1) * _variance(scenario, load))
    scores: Floats = (found.created - found.delivered) / deviation
    return scores


def overloaded_channels(scenario: Scenario, load: float, found: ChannelTraffic | None) -> int | None:
    """How many channels are overloaded, beyond what arrivals vary; None where nothing is known of channels."""
    if found is None:
        return None
    return int((channel_scores(scenario, load, found) > overload_score(len(found.channel))).sum())


def total_grows(scenario: Scenario, load: float, window: Window, tests: int) -> bool:
    """Whether the backlog of the whole network grows by more than at channels that are just full, if all are.

    A packet passes so many channels that all may be just full; each then holds back as much as its arrivals vary.
    """
    created = float(window.total[CREATED_FLITS])
    if not created:
        return False
    each, channels = _held_back(scenario, load, window)
    bound = each * (MEAN + DEVIATION * overload_score(1, tests) / math.sqrt(channels))
    return bool(float(window.total[CREATED_FLITS] - window.delivered_flits) > bound * created)


def hosts_grow(scenario: Scenario, load: float, window: Window, created: Ints, backlog: Ints, tests: int) -> bool:
    """Whether the backlog of some host grows by more than it would at such channels.

    created: flits of the window, int64 [hosts]. backlog: flits at bounds of its batches, int64 [bounds, hosts].
    """
    some = created > 0
    common = MEAN * _held_back(scenario, load, window)[0] * created[some]
    own = overload_score(int(some.sum()), tests) * noise_of(scenario, load, created)[some]
    return bool(((backlog[-1] - backlog[0])[some] > common + own).any())


def _held_back(scenario: Scenario, load: float, window: Window) -> tuple[float, float]:
    """(deviation of what channels that are just full hold back of the traffic; how many such channels there may be)."""
    created, busiest = float(window.total[CREATED_FLITS]), float(window.busiest)
    passed = window.mean(HOPS) + 1 if window.packets else 1.0
    deviation = passed * math.sqrt(_variance(scenario, load) / busiest)
    return deviation, max(passed * created / busiest, 1.0)


def resolution(scenario: Scenario, load: float, now: Snapshot) -> float:
    """The relative overload that a run which is empty at tick 0 rules out by what it holds at a tick, at most 1.

    An overload d of a channel lets its backlog grow like a random walk with drift, reflected at 0, of which the run
    would show as little as it does in one of :data:`UNSEEN` cases. The greatest such d over the busy channels counts.
    Where the backlog of channels is not known it is :data:`SEEN` deviations of the arrivals of the busiest.
    """
    if now.outstanding is None:
        flits = max(now.channel_flits.max(initial=0), now.created.max(initial=0))
        return min(SEEN * math.sqrt(_variance(scenario, load) / flits), 1.0) if flits else 1.0
    given = (now.channel_flits + now.outstanding.ungranted).astype(float)
    filled = given / scenario.topology.capacity
    busy = (filled >= BUSY * filled.max(initial=0.0)) & (given > 0)
    if not busy.any():
        return 0.0  # all traffic stays at its switch
    deviation = np.sqrt(_variance(scenario, load) * given[busy])
    drift = _least_drift(now.outstanding.on_route[busy] / deviation)
    return float(min((drift * deviation / given[busy]).max(), 1.0))


def _least_drift(height: Floats) -> Floats:
    """The drift with which a reflected Brownian motion that starts at 0 is at most ``height`` at time 1 in one of
    :data:`UNSEEN` cases; height, drift: in standard deviations, float64 [channels].

    P(height or less) = N(h - d) - exp(2 d h) N(-h - d), N of the normal distribution (Harrison, Brownian Motion and
    Stochastic Flow Systems, 1985, section 3.6).
    """
    low, high = np.zeros_like(height), height + ndtri(1 - 1 / UNSEEN)
    for _ in range(30):
        drift = (low + high) / 2
        chance = ndtr(height - drift) - np.exp(2 * drift * height + log_ndtr(-height - drift))
        low, high = np.where(chance > 1 / UNSEEN, drift, low), np.where(chance > 1 / UNSEEN, high, drift)
    least: Floats = high
    return least


def _variance(scenario: Scenario, load: float) -> float:
    """Variance of the flits that come to a channel, for each flit of their mean.

    A channel gets a share of what each of several hosts creates, which brings the index of dispersion of their packets
    nearer to 1. So it is at most that of the busiest host, or 1.
    """
    return float(variance_of(scenario, max(dispersion_of(scenario, load), 1.0)))
