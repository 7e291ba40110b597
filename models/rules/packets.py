# SPDX-License-Identifier: Apache-2.0
"""Destination and length of packets. Packet ids are sequence number x hosts + host."""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.traffic.demand import DestinationRule, Traffic, word_thresholds


class Packets(NamedTuple):
    """Tables for :func:`destination` and :func:`length`: a :class:`Traffic` and a packet mix, flattened.

    law, fixed, start, column, cumulative: see Traffic. flits: int64 [lengths], packet lengths; share: int64 [lengths],
    cumulative thresholds of a 63-bit word.
    """

    hosts: int
    law: int
    fixed: Ints
    start: Ints
    column: Ints
    cumulative: Ints
    flits: Ints
    share: Ints


def make_packets(traffic: Traffic, flits: tuple[int, ...], shares: tuple[float, ...]) -> Packets:
    """Tables of a traffic pattern and a packet mix.

    Parameters
    ----------
    traffic: the pattern.
    flits: packet lengths.
    shares: relative frequency of each length.

    Returns
    -------
    The tables.

    Raises
    ------
    ValueError: the traffic has a background, whose destinations depend on the load (``Traffic.at``).
    """
    if traffic.background is not None:
        raise ValueError("a demand with a background is drawn from at a load: take Scenario.at")
    share = word_thresholds(np.cumsum(shares) / np.sum(shares))
    return Packets(
        traffic.topology.hosts, traffic.law, traffic.fixed, traffic.start, traffic.column,
        traffic.cumulative, np.array(flits, np.int64), share,
    )  # fmt: skip


@kernel
def destination(p: Packets, seed: Int, host: Int, sequence: Int) -> int:
    """Destination host of a packet.

    Parameters
    ----------
    p: tables of the traffic.
    seed: of the run.
    host: the source host.
    sequence: sequence number of the packet at its host.
    """
    return destination_by(p, host, draw(seed, Stream.DESTINATION, host, sequence))


@kernel
def destination_by(p: Packets, host: Int, word: Int) -> int:
    """Destination host of a packet from its draw.

    Parameters
    ----------
    p: tables of the traffic.
    host: the source host.
    word: uniform integer in [0, 2**63).
    """
    if p.law == DestinationRule.FIXED:
        return p.fixed[host]
    if p.law == DestinationRule.UNIFORM:
        other = below(word, p.hosts - 1)
        return other + (other >= host)
    if p.law == DestinationRule.UNIFORM_SELF:
        return below(word, p.hosts)
    low, high = p.start[host], p.start[host + 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if word < p.cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return p.column[low]


@kernel
def length(p: Packets, seed: Int, host: Int, counter: Int) -> int:
    """Length in flits of the packet that a candidate arrival becomes (:mod:`flitlab.models.rules.arrivals`).

    Parameters
    ----------
    p: tables of the packet mix.
    seed: of the run.
    host: the source host.
    counter: index of the candidate arrival.
    """
    if len(p.flits) == 1:
        return p.flits[0]
    word = draw(seed, Stream.LENGTH, host, counter)
    choice = 0
    while word >= p.share[choice] and choice < len(p.flits) - 1:
        choice += 1
    return p.flits[choice]
