# SPDX-License-Identifier: Apache-2.0
"""Placement that minimises the distance of communicating ranks."""

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Op, Program
from flitlab.models.arrays import Integers
from flitlab.models.jit import device_function, inline
from flitlab.models.registry import SpecError, register
from flitlab.models.rules.draw import Stream, philox
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology

MOST_SWITCHES = 10_000
"""Switches for which all distances are computed."""

WORK = 1_000_000_000
"""Approximate number of evaluated pairs of ranks; some seconds."""

START = 0.5
"""The initial threshold, in typical gains of an exchange."""

BLOCK = 1 << 22
"""Operations that are read together."""


@register("placement", "optimised")
class Optimised(PlacementSpec):
    """Ranks are exchanged until the sum over all messages of bytes times hops is small; never above that of ``linear``.

    Hops are those of shortest paths between switches. The best placement is a quadratic assignment problem, unsolvable
    at these sizes. This is threshold accepting, from ``linear``: ``sweeps`` times as many random exchanges as there are
    pairs of a rank and a host (fewer where that would take more than some seconds) are made if they add less than a
    threshold, which falls to 0; then all exchanges with a gain. ``seed`` draws them.

    Example: ``placement: {kind: optimised, seed: 1}``

    Source: Hoefler, Snir 2011, Generic topology mapping strategies, doi:10.1145/1995896.1995909 (the problem and its
    measure); Dueck, Scheuer 1990, Threshold accepting, doi:10.1016/0021-9991(90)90201-B.
    """

    seed: int = Field(default=1, ge=0)
    """Seed of the exchanges."""
    sweeps: int = Field(default=100, ge=1, le=100_000)
    """Exchanges that are tried, per pair of a rank and a host."""

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        if topology.switches > MOST_SWITCHES:
            raise SpecError(f"{topology.switches} switches; at most {MOST_SWITCHES} are optimised for", "kind")
        between = bytes_between(program)
        both = sparse.csr_array(between + 1j * between.T)  # of every rank: bytes out (real) and in (imaginary)
        links = tuple(part.astype(np.int64) for part in (both.indptr, both.indices, both.data.real, both.data.imag))
        host_switch = topology.host_switch
        hops = distances(topology).astype(np.int16)
        most = int(WORK * program.ranks / (2 * both.nnz + program.ranks))
        proposals = min(self.sweeps * program.ranks * topology.hosts, most)
        host, holder = _linear(program.ranks, topology.hosts)
        gain = _accept(links, host_switch, hops, host, holder, proposals, self.seed)
        gain += _descend(links, host_switch, hops, host, holder, most)
        if gain < 0:
            host, holder = _linear(program.ranks, topology.hosts)
            _descend(links, host_switch, hops, host, holder, most)
        return host


def _linear(ranks: int, hosts: int) -> tuple[np.ndarray, np.ndarray]:
    """(host of each rank, rank of each host, -1 for none)."""
    host, holder = np.arange(ranks), np.full(hosts, -1)
    holder[host] = host
    return host, holder


def bytes_between(program: Program) -> sparse.csr_array:
    """Bytes of all messages from each rank to each other one: int64 [ranks, ranks].

    Parameters
    ----------
    program: the program.
    """
    shape = (program.ranks, program.ranks)
    total = sparse.csr_array(shape, dtype=np.int64)
    for first in range(0, program.operations, BLOCK):
        send = first + np.flatnonzero(program.kind[first : first + BLOCK] == Op.SEND)
        source = np.searchsorted(program.start, send, side="right") - 1
        target = program.peer[send]
        apart = source != target
        ends = source[apart], target[apart]
        total = total + sparse.csr_array(sparse.coo_array((program.amount[send][apart], ends), shape))
    return total


@inline
def _gain(
    links: tuple[Integers, Integers, Integers, Integers],
    host_switch: Integers,
    hops: Integers,
    host: Integers,
    rank: int,
    to: int,
    other: int,
) -> int:
    """The decrease of the sum when a rank moves to another host, and ``other`` (-1: none) to its host.

    Without the messages of ``other`` to third ranks; messages between the two count on the lower rank's side.
    """
    start, peer, out, into = links
    switch, next_switch = host_switch[host[rank]], host_switch[to]
    gain = 0
    for k in range(start[rank], start[rank + 1]):
        if peer[k] != other:
            end = host_switch[host[peer[k]]]
            gain += out[k] * (hops[switch, end] - hops[next_switch, end]) + into[k] * (
                hops[end, switch] - hops[end, next_switch]
            )
        elif rank < other:
            gain += (out[k] - into[k]) * (hops[switch, next_switch] - hops[next_switch, switch])
    return gain


@inline
def _exchange_gain(
    links: tuple[Integers, Integers, Integers, Integers],
    host_switch: Integers,
    hops: Integers,
    host: Integers,
    holder: Integers,
    rank: int,
    to: int,
) -> int:
    """The decrease of the sum when a rank and the rank on host ``to`` change places."""
    other = holder[to]
    gain = _gain(links, host_switch, hops, host, rank, to, other)
    if other >= 0:
        gain += _gain(links, host_switch, hops, host, other, host[rank], rank)
    return gain


@inline
def _exchange(host: Integers, holder: Integers, rank: int, to: int) -> None:
    other, old_host = holder[to], host[rank]
    holder[old_host], holder[to] = other, rank
    host[rank] = to
    if other >= 0:
        host[other] = old_host


@device_function
def _accept(
    links: tuple[Integers, Integers, Integers, Integers],
    host_switch: Integers,
    hops: Integers,
    host: Integers,
    holder: Integers,
    proposals: int,
    seed: int,
) -> int:
    """Threshold accepting: changes host and holder (the rank on a host); returns the decrease of the sum."""
    ranks, hosts = len(host), len(holder)
    samples = min(proposals, 1000)
    typical = 0.0
    for i in range(samples):
        one, other, _, _ = philox(seed, Stream.PLACEMENT, 1, i)
        typical += abs(_exchange_gain(links, host_switch, hops, host, holder, one * ranks >> 32, other * hosts >> 32))
    typical /= samples
    total = 0
    for i in range(proposals):
        one, other, _, _ = philox(seed, Stream.PLACEMENT, 0, i)
        rank, to = one * ranks >> 32, other * hosts >> 32
        if host_switch[host[rank]] != host_switch[to]:
            gain = _exchange_gain(links, host_switch, hops, host, holder, rank, to)
            if gain >= 0 or -gain < START * typical * (1 - i / proposals):
                _exchange(host, holder, rank, to)
                total += gain
    return total


@device_function
def _descend(
    links: tuple[Integers, Integers, Integers, Integers],
    host_switch: Integers,
    hops: Integers,
    host: Integers,
    holder: Integers,
    proposals: int,
) -> int:
    """Make exchanges with a gain until there is none, or the limit is reached; returns the gain."""
    ranks, hosts = len(host), len(holder)
    since, evaluated, total = 0, 0, 0
    while since < ranks * hosts and evaluated < proposals:
        rank, to = evaluated // hosts % ranks, evaluated % hosts
        evaluated += 1
        since += 1
        if host_switch[host[rank]] != host_switch[to]:
            gain = _exchange_gain(links, host_switch, hops, host, holder, rank, to)
            if gain > 0:
                _exchange(host, holder, rank, to)
                total += gain
                since = 0
    return total
