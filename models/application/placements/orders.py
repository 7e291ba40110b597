# SPDX-License-Identifier: Apache-2.0
"""Placements by the numbers of hosts and switches, or at random."""

from typing import Literal

import numpy as np
from pydantic import Field

from flitlab.models.application.placement import PlacementSpec, require_enough_hosts
from flitlab.models.application.program import Program
from flitlab.models.arrays import Ints
from flitlab.models.collective.ring import find_ring, ring_of, ring_segment
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.draw import generator


@register("placement", "linear")
class Linear(PlacementSpec):
    """Rank r runs on host r. Hosts are numbered switch by switch, so a switch's hosts have ranks in a row.

    Example: ``placement: {kind: linear}``
    """

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return np.arange(program.ranks)


@register("placement", "round_robin")
class RoundRobin(PlacementSpec):
    """Consecutive ranks run on different switches: one on the first host of each, then one on the second, and so on.

    With one host per switch it equals ``linear``.

    Example: ``placement: {kind: round_robin}``
    """

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        switch = topology.host_switch
        index = np.arange(topology.hosts) - np.searchsorted(switch, switch)  # which of its switch's hosts it is
        return np.lexsort((switch, index))[: program.ranks]


@register("placement", "random")
class Random(PlacementSpec):
    """Ranks run on different hosts drawn from ``seed``, every placement being as likely as any other.

    Example: ``placement: {kind: random, seed: 2}``
    """

    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return generator(self.seed).permutation(topology.hosts)[: program.ranks]


@register("placement", "groups")
class Groups(PlacementSpec):
    """Ranks fill one group of switches after the other, those with most free hosts first.

    A group is ``switches`` consecutive ones: a group of a dragonfly, a pod or a rack; by default a dragonfly's group.
    Ties go to the first group or, with ``order: random``, to one drawn from ``seed``; within a group the ranks take its
    free hosts in order. So several jobs have groups of their own while there are any.

    Example: ``placement: {kind: groups, switches: 4, order: random, seed: 2}``

    Source: contiguous and random groups of Yang, Jenkins, Mubarak, Ross, Lan: Watch out for the bully, SC 2016,
    doi:10.1109/SC.2016.63.
    """

    switches: int | None = Field(default=None, ge=1)
    """Switches of a group. null: a group of a dragonfly."""
    order: Literal["linear", "random"] = "linear"
    """Whether equally free groups are taken in order, or drawn."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def hosts(self, topology: Topology, program: Program) -> Ints:
        require_enough_hosts(topology, program)
        group = topology.host_switch // self._size(topology)
        free = np.bincount(group)
        order = np.arange(len(free)) if self.order == "linear" else generator(self.seed).permutation(len(free))
        rank_of_group = np.empty(len(free), np.int64)
        rank_of_group[np.lexsort((order, -free))] = np.arange(len(free))
        return np.argsort(rank_of_group[group], kind="stable")[: program.ranks]

    def _size(self, topology: Topology) -> int:
        size = self.switches or topology.notes.get("group_size")
        if size is None:
            raise SpecError(f"is missing: this {topology.kind} does not say how many switches are a group", "switches")
        if size > topology.switches:
            raise SpecError(f"is more than the {topology.switches} switches of the topology", "switches")
        return int(size)


@register("placement", "ring")
class Ring(PlacementSpec):
    """Rank r is next to rank r + 1, and the last to the first: on the same switch, or on neighbours, where possible.

    Switches with hosts follow a Hamiltonian cycle of the network if the search finds one, and the hosts of a switch
    each other, so that a ring algorithm loads no channel twice. Without such a cycle, the order is the best one found
    by the load of the busiest channel if each rank sends to the next one by minimal routing. ``seed`` draws both
    searches, which take a few seconds at most. Fewer ranks than hosts take a part of the order, whose ends are
    neighbours if there is such a part.

    Example: ``placement: {kind: ring, seed: 1}``

    Source: Karp, SIAM J. Comput. 8 (1979), for cycles from an assignment; Posa, Discrete Mathematics 14 (1976).
    """

    seed: int = Field(default=1, ge=0)
    """Seed of the search for a cycle."""

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        require_enough_hosts(topology, program)
        return ring_segment(topology, find_ring(topology, self.seed).order, program.ranks)

    def notes(self, topology: Topology, host: Ints) -> Notes:
        ring = ring_of(topology, host)
        return {"hamiltonian": ring.hamiltonian, "ring_load": round(ring.load, 6)}
