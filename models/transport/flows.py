# SPDX-License-Identifier: Apache-2.0
"""Flows: source, destination, size and start."""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import LARGEST_INTEGER, Ints
from flitlab.models.jit import njit
from flitlab.models.registry import SpecError
from flitlab.models.rules.arrivals import SUBTICK_BITS, Arrivals, make_arrivals, next_arrival, overload_error
from flitlab.models.rules.draw import Stream, draw
from flitlab.models.rules.packets import Packets, destination, make_packets
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.sizes import Sizes

MOST_FLOWS = 1 << 22


class Flows(NamedTuple):
    """Flows in order of their start.

    source, destination: hosts, int64 [flows]. packets: int64 [flows], 0 for a long-lived flow. start: int64 [flows],
    ticks. kind: int64 [flows], the transport of each; None: the first of all.
    """

    source: np.ndarray
    destination: np.ndarray
    packets: np.ndarray
    start: np.ndarray
    kind: np.ndarray | None = None

    @property
    def kinds(self) -> Ints:
        """The transport of each flow: int64 [flows]."""
        return np.zeros(len(self.source), np.int64) if self.kind is None else self.kind


def long_lived(traffic: Traffic, flows: int) -> Flows:
    """Long-lived flows from tick 0, ``flows`` for every communicating pair of hosts."""
    source, destination, _ = traffic.pairs()
    source, destination = (np.repeat(hosts, flows).astype(np.int64) for hosts in (source, destination))
    nothing = np.zeros(len(source), np.int64)
    return Flows(source, destination, nothing, nothing)


def together(traffic: Traffic, flows: int, sizes: Sizes, packet_bytes: int, seed: int) -> Flows:
    """Finite flows from tick 0 for every communicating pair (incast, if the pattern has one destination).

    Parameters
    ----------
    traffic: the traffic pattern.
    flows: per pair of hosts.
    sizes: the size distribution.
    packet_bytes: bytes of a packet.
    seed: of all draws.

    Returns
    -------
    The flows.
    """
    unsized = long_lived(traffic, flows)
    return unsized._replace(packets=_packets(sizes, packet_bytes, seed, len(unsized.source)))


def in_bytes(flows: Flows, sizes: Sizes, seed: int) -> Flows:
    """The flows with bytes in the place of packets, from the same draws.

    Parameters
    ----------
    flows: the flows.
    sizes: the size distribution.
    seed: of all draws.

    Returns
    -------
    The flows.
    """
    return flows._replace(packets=_packets(sizes, 1, seed, len(flows.source)))


def arriving(
    traffic: Traffic, load: float, sizes: Sizes, packet_bytes: int, mean: float, nic_ticks: Fraction, ticks: int,
    seed: int,
) -> Flows:  # fmt: skip
    """Flows that hosts open before a tick, in Poisson processes.

    The destination of each flow is drawn from the pattern.

    Parameters
    ----------
    traffic: the traffic pattern.
    load: bytes that a host of rate 1 offers, as a fraction of its network interface.
    sizes: the size distribution.
    packet_bytes: bytes of a packet.
    mean: what a flow sends, on average, in full packets.
    nic_ticks: ticks of a packet on the network interface.
    ticks: length of the run.
    seed: of all draws.

    Returns
    -------
    The flows.

    Raises
    ------
    SpecError: there are more than :data:`MOST_FLOWS`, or a host opens more than one in the time of a packet.
    """
    expected = load * float(traffic.rate.sum()) / mean * float(ticks / nic_ticks)
    if expected > MOST_FLOWS:
        raise SpecError(f"{expected:.2g} flows are more than {MOST_FLOWS}", key="loads")
    if overload_error("poisson", load, mean, traffic.rate):
        problem = f"load {load:g} in flows of {sizes.mean:g} bytes opens more than one flow per host and packet time"
        raise SpecError(f"{problem}: each sends {mean:.3g} of a full packet", key="loads")
    horizon = ceil(ticks / nic_ticks)
    arrivals = make_arrivals("poisson", load, mean, traffic.rate, 1.0, horizon)
    rows = _arrivals(arrivals, make_packets(traffic, (1,), (1.0,)), seed, int(expected * 1.5) + 1000)
    start = _in_ticks(rows[:, 0], nic_ticks) >> SUBTICK_BITS
    keep = (start < ticks) & (rows[:, 1] != rows[:, 2])
    rows, start = rows[keep], start[keep]
    order = np.lexsort((rows[:, 1], start))
    source, destination = rows[order, 1], rows[order, 2]
    return Flows(source, destination, _packets(sizes, packet_bytes, seed, len(order)), start[order])


@njit
def _arrivals(arrivals: Arrivals, packets: Packets, seed: int, capacity: int) -> Ints:
    """All arrivals before ``arrivals.end``: rows (position in sub-ticks, source, destination)."""
    rows = np.empty((capacity, 3), np.int64)
    count = 0
    for host in range(len(arrivals.keep)):
        if arrivals.keep[host] < 0:
            continue
        sequence, counter, position = 0, 0, -arrivals.base
        while True:
            counter, position = next_arrival(arrivals, packets, seed, host, counter, position)
            if position >= arrivals.end:
                break
            if count == len(rows):
                longer = np.empty((2 * count, 3), np.int64)
                longer[:count] = rows
                rows = longer
            rows[count, 0], rows[count, 1] = position, host
            rows[count, 2] = destination(packets, seed, host, sequence)
            count += 1
            sequence += 1
            counter += 1
    return rows[:count].copy()


def _in_ticks(positions: Ints, ticks: Fraction) -> Ints:
    """``positions * ticks``, rounded down, int64, at most 2**63 - 1. positions: int64, not negative."""
    over, under = ticks.numerator, ticks.denominator
    last = int(positions.max(initial=0)) * over // under
    if max(over * under, last) > LARGEST_INTEGER:  # as of a very slow host: parts of a product do not fit
        return np.array([min(one * over // under, LARGEST_INTEGER) for one in positions.tolist()], np.int64)
    quotient, rest = np.divmod(positions, under)
    products: Ints = quotient * over + rest * over // under
    return products


@njit
def _words(seed: int, words: Ints) -> None:
    """Fill ``words`` with the draw of every flow's size."""
    for flow in range(len(words)):
        words[flow] = draw(seed, Stream.FLOW_SIZE, flow, 0)


def _packets(sizes: Sizes, packet_bytes: int, seed: int, count: int) -> np.ndarray:
    """Packets of each flow, int64; the last one is as long as the others."""
    words = np.empty(count, np.int64)
    _words(seed, words)
    return -(-sizes.of((words >> 10) * 2.0**-53) // packet_bytes)
