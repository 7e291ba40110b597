# SPDX-License-Identifier: Apache-2.0
"""Permutations of the hosts, drawn at random, by an offset or by the bits of numbers, and matchings of servers."""

from typing import Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import PermutationSet, generator, random_cycle, random_permutation
from flitlab.models.traffic.fixed import address_bits, fixed_traffic
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec, require_two_hosts
from flitlab.models.traffic.units import Units


@register("traffic", "permutation", aliases=("random_permutation",))
class Permutation(TrafficSpec):
    """A random permutation of the hosts, drawn from ``seed``.

    ``among: cycle`` (the default) is one long cycle of all hosts in random order (Sattolo's algorithm);
    ``derangement`` is drawn among all permutations without fixed points. In both every host sends and receives
    exactly 1. ``any`` is drawn among all permutations: a host that is mapped to itself sends nothing.

    Example: ``traffic: {kind: permutation, seed: 7}``

    Example: ``traffic: {kind: permutation, among: derangement, seed: 7}``

    Source: Sattolo 1986, doi:10.1016/0020-0190(86)90073-6.
    """

    among: PermutationSet = "cycle"
    """The permutations among which one is drawn."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        target = random_permutation(generator(self.seed), topology.hosts, self.among)
        return fixed_traffic(self.kind, topology, target)


@register("traffic", "perm")
class Perm(TrafficSpec):
    """perm(x): ``x`` random permutations of the hosts superposed, drawn one after another from ``seed``.

    T[i, j] = (how many of the permutations lead from i to j) / x. ``among`` says among which permutations each is
    drawn, as in ``permutation``, which is perm(1); by default no permutation leads from a host to itself. What ``any``
    maps to itself is not sent, and T is scaled so that its largest row or column sum is 1.

    Example: ``traffic: {kind: perm, x: 4, seed: 2}``

    Source: GBU section III.
    """

    x: int = Field(ge=1, le=1000)
    """Permutations that are superposed."""
    among: PermutationSet = "cycle"
    """The permutations among which one is drawn."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        hosts, rng = topology.hosts, generator(self.seed)
        target = np.concatenate([random_permutation(rng, hosts, self.among) for _ in range(self.x)])
        source = np.tile(np.arange(hosts), self.x)
        sends = source != target
        flows = sparse.coo_array((np.ones(sends.sum()), (source[sends], target[sends])), (hosts, hosts))
        return table_traffic(self.kind, topology, flows)


@register("traffic", "random_matching")
class RandomMatching(TrafficSpec):
    """RM(servers): a random matching in which every switch has ``servers`` servers, each of which sends to one.

    The servers are virtual, so their number is independent of the hosts of a switch: the switch-level demand is
    (servers at s matched to servers at t) / servers, per host. The matching is one random cycle through all servers
    (no server sends to itself; two of one switch may be matched, and what they exchange needs no network). A switch
    with more hosts than others has in proportion more servers. The k-th hosts of two switches talk to each other.

    Example: ``traffic: {kind: random_matching, servers: 10, seed: 1}``

    Source: MUT section II-C.
    """

    servers: int = Field(default=1, ge=1, le=10_000)
    """Virtual servers of a switch."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        units = Units.of(topology)
        servers = units.count * self.servers
        target = random_cycle(generator(self.seed), servers) // self.servers
        source = np.arange(servers) // self.servers
        flows = sparse.coo_array((np.ones(servers), (source, target)), (units.count, units.count))
        return table_traffic(self.kind, topology, units.host_matrix(flows / self.servers))


@register("traffic", "shift")
class Shift(TrafficSpec):
    """Host i sends to host (i + by) mod hosts; ``by: random`` draws it from 1 to hosts - 1 (``seed``; see ``notes``).

    Example: ``traffic: {kind: shift, by: 17}``

    Example: ``traffic: {kind: shift, by: random, seed: 3}``

    Source: DBG section IV-B.
    """

    by: int | Literal["random"]
    """Hosts between sender and receiver, or random."""
    seed: int = Field(default=1, ge=0)
    """Seed of a random distance."""

    def demand(self, topology: Topology) -> Traffic:
        require_two_hosts(topology)
        by = int(generator(self.seed).integers(1, topology.hosts)) if self.by == "random" else self.by
        if by % topology.hosts == 0:
            raise SpecError(f"sends every host to itself ({topology.hosts} hosts)", key="by")
        host = np.arange(topology.hosts)
        return fixed_traffic(self.kind, topology, (host + by % topology.hosts) % topology.hosts, notes={"by": by})


@register("traffic", "bit_complement", aliases=("bitcomp",))
class BitComplement(TrafficSpec):
    """Every bit of the host number is inverted.

    Example: ``traffic: {kind: bit_complement, packet_flits: 1}``

    Source: Dally and Towles, section 3.2.
    """

    def demand(self, topology: Topology) -> Traffic:
        address_bits(topology)
        return fixed_traffic(self.kind, topology, topology.hosts - 1 - np.arange(topology.hosts))


@register("traffic", "bit_reversal", aliases=("bitrev",))
class BitReversal(TrafficSpec):
    """The bits of the host number are reversed; hosts with palindromic numbers send nothing.

    Example: ``traffic: {kind: bit_reversal, packet_flits: 33}``

    Source: Dally and Towles, section 3.2; UNI Fig. 7.
    """

    def demand(self, topology: Topology) -> Traffic:
        bits, host = address_bits(topology), np.arange(topology.hosts)
        reverse = np.zeros_like(host)
        for b in range(bits):
            reverse |= ((host >> b) & 1) << (bits - 1 - b)
        return fixed_traffic(self.kind, topology, reverse)


@register("traffic", "transpose")
class Transpose(TrafficSpec):
    """Matrix transpose: the two halves of the host number's bits are swapped (an even number of bits).

    Hosts whose halves are equal send nothing.

    Example: ``traffic: {kind: transpose, packet_flits: 33}``

    Source: Dally and Towles, section 3.2; UNI Fig. 6.
    """

    def demand(self, topology: Topology) -> Traffic:
        bits = address_bits(topology)
        if bits % 2:
            raise SpecError(
                f"needs an even power of two of hosts (4, 16, 64, ...); the topology has {topology.hosts}",
                key="kind",
            )
        half, host = bits // 2, np.arange(topology.hosts)
        return fixed_traffic(self.kind, topology, (host >> half) | ((host & ((1 << half) - 1)) << half))
