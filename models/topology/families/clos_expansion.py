# SPDX-License-Identifier: Apache-2.0
"""A Clos network expanded under a budget, as a baseline for an expanded Jellyfish."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.arrays import LARGEST_INTEGER
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.expanded import Prices, repeated
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly

MOST_NETWORKS = 2_000_000
"""Networks that are compared in a stage; more than this take minutes."""

MOST_STAGES = 1000
"""Stages, repetitions counted: each compares networks."""

Switch = tuple[str, int, int]
"""Tier, pod (core: 0) and place in it: what a switch is called at every stage."""


class Stage(BaseModel):
    """An expansion stage: ``hosts_total`` more hosts, and a budget for them and for better connections."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    budget: float = Field(ge=0, allow_inf_nan=False)
    hosts_total: int = Field(default=0, ge=0)
    times: int = Field(default=1, ge=1)


@dataclass(frozen=True)
class Clos:
    """A three-tier folded Clos network of equal pods and equal switches.

    edges: edge switches of a pod. uplinks: ports of an edge switch for links. aggregation: switches of a pod.
    down: ports of an aggregation switch towards the edge; the others lead to the core.
    """

    ports: int
    edges: int
    uplinks: int
    pods: int
    aggregation: int
    down: int
    core: int

    @property
    def lower(self) -> int:
        """Links between edge and aggregation in a pod."""
        return min(self.edges * self.uplinks, self.aggregation * self.down)

    @property
    def upper(self) -> int:
        """Links between a pod and the core."""
        return min(self.aggregation * (self.ports - self.down), self.core * self.ports // self.pods)

    @property
    def bisection(self) -> float:
        """Estimate, in links: half of what all pods can exchange with the core."""
        return self.pods * min(self.lower, self.upper) / 2

    @property
    def switches(self) -> int:
        return self.pods * (self.edges + self.aggregation) + self.core

    def best_split(self) -> "Clos":
        """The network with ``down`` so that the bisection is largest; among equals, as near as possible to its own."""
        options = [replace(self, down=down) for down in range(1, self.ports)]
        return max(options, key=lambda option: (option.bisection, -abs(option.down - self.down)))

    def links(self) -> list[tuple[Switch, Switch]]:
        """Every pod is spread evenly over its aggregation switches, and these over the core."""
        links: list[tuple[Switch, Switch]] = []
        for pod in range(self.pods):
            links += [
                (("edge", pod, i), ("aggregation", pod, j))
                for i, j in _spread(self.lower, self.edges, self.aggregation)
            ]
        return links + [
            (("aggregation", i // self.aggregation, i % self.aggregation), ("core", 0, j))
            for i, j in _spread(self.pods * self.upper, self.pods * self.aggregation, self.core)
        ]


def _spread(links: int, left: int, right: int) -> list[tuple[int, int]]:
    """Return ends of ``links`` links between two tiers: the left switches in order, the right ones round-robin.

    Numbers of links at a switch, and between two switches, differ by at most 1. So do those between a right switch and
    equally many consecutive left ones.
    """
    tails = np.repeat(np.arange(left), evenly(links, left))
    return [(tail, k % right) for k, tail in enumerate(tails.tolist())]


def changes(old: Clos, new: Clos) -> tuple[int, int]:
    """Return (cables moved, cables bought) between one network and another."""
    before, after = old.links(), new.links()
    gone = (Counter(before) - Counter(after)).total()
    bought = max(0, len(after) - len(before))
    return min(gone, len(after) - len(before) + gone), bought


@register("topology", "clos_expansion")
class ClosExpansion(TopologySpec):
    """A three-tier Clos network that is expanded stage by stage, each under a budget.

    All switches have ``ports`` ports. An edge switch has ``servers`` hosts and uplinks on its other ports;
    ``edges_per_pod`` edge switches and some aggregation switches are a pod; pods meet in the core. Every tier
    is spread evenly over the next one. The network at first has ``hosts_total`` hosts and at most ``switches``
    switches: those above the edge are divided between aggregation and core, and aggregation ports between down
    and up, for the most bisection; switches more than that takes leave ports free for later. In each of
    ``steps`` hosts_total more hosts come, in new pods, and ``budget`` may be spent: of all numbers of
    aggregation and core switches that are affordable (none are removed) those of most bisection are bought,
    the cheapest among equals. What is left is kept for the next step. ``times`` repeats a step; ``stage``
    carries out only that many.

    Assumptions, ours: pods stay alike, so aggregation switches are bought for all pods at once. Bisection is
    estimated as half of pods * min(links below aggregation, links above it) of a pod, which is exact but for
    rounding, as traffic spread evenly over equal paths shows. ``prices``: ``switch``;
    ``cable`` for every link more than before; ``rewiring`` for every cable that connects other switches than
    before. Hosts and their cables are not counted. Each stage is the best for itself, not for those to come.

    ``notes``: tiers, steps (switches, hosts, links_moved, cost of each), initial_cost, cost (all so far),
    bisection_links (the estimate) and bisection (per hosts_total / 2: 1 is full bisection).

    Valid: hosts_total a multiple of servers * edges_per_pod, at first and in every step; 2 or more pods;
    budgets that pay for what new hosts need.

    Example: ``topology: {kind: clos_expansion, hosts_total: 480, switches: 34, steps: [{budget: 18, hosts_total: 240}, {budget: 6, times: 7}], stage: 4}``

    Source: stands in for LEGUP (Curtis, Keshav and Lopez-Ortiz, CoNEXT 2010) in SIN Fig. 4.6, whose own
    topologies, budgets and prices are unpublished: 480 servers and 34 switches, then 240 servers and some
    switches, then only switches.
    """  # noqa: E501

    hosts_total: int = Field(default=480, ge=1)
    """Hosts of the network at first."""
    switches: int = Field(default=34, ge=1)
    """The most switches of the network at first."""
    ports: int = Field(default=48, ge=2)
    """Ports of every switch."""
    servers: int = Field(default=24, ge=1)
    """Hosts of an edge switch."""
    edges_per_pod: int = Field(default=5, ge=1)
    """Edge switches of a pod."""
    steps: list[Stage] = Field(default=[])
    """What each step of the expansion adds, and its budget."""
    stage: int | None = Field(default=None, ge=0)
    """Steps that are carried out. null: all."""
    prices: Prices = Prices()
    """Prices of a switch, of a cable and of moving one."""

    def graph(self) -> Topology:
        self.reject_other_hosts("hosts_total")
        if self.servers >= self.ports:
            raise SpecError(f"leaves no uplink; at most {self.ports - 1}", key="servers")
        network = self._first()
        initial = self.prices.switch * network.switches + self.prices.cable * len(network.links())
        saved, done = 0.0, []
        for number, step in repeated(self.steps, self.stage, MOST_STAGES):
            saved += step.budget
            before = network
            network, cost = self._expanded(network, step.hosts_total, saved, f"steps[{number}]")
            saved -= cost
            moved = changes(before, network)[0]
            bought = network.switches - before.switches
            done.append({"switches": bought, "hosts": step.hosts_total, "links_moved": moved, "cost": cost})
        hosts = network.pods * self.edges_per_pod * self.servers
        notes = {
            "steps": done,
            "initial_cost": initial,
            "cost": initial + sum(step["cost"] for step in done),
            "bisection_links": network.bisection,
            "bisection": 2 * network.bisection / hosts,
        }
        return _built(self.kind, network, self.servers, notes)

    def _pods(self, hosts: int, key: str) -> int:
        pod = self.servers * self.edges_per_pod
        if hosts % pod:
            near = [k for k in (hosts // pod * pod, -(-hosts // pod) * pod) if k]
            raise SpecError(f"pods have {pod} hosts each; nearest {', '.join(map(str, near))}", key=key)
        limit_size(hosts // self.servers * self.ports, key)
        return hosts // pod

    def _first(self) -> Clos:
        pods = self._pods(self.hosts_total, "hosts_total")
        if pods < 2:
            raise SpecError(f"2 pods at least: {2 * self.servers * self.edges_per_pod} hosts", key="hosts_total")
        least = Clos(self.ports, self.edges_per_pod, self.ports - self.servers, pods, 1, max(1, self.ports // 2), 1)
        if self.switches < least.switches:
            raise SpecError(f"at least {least.switches}: {pods} pods and a core", key="switches")
        spare = self.switches - least.switches
        self._check_search((spare // pods + 1) * (spare + 1), "switches")
        options = [
            replace(least, aggregation=a, core=c).best_split()
            for a in range(1, (self.switches - 1) // pods - self.edges_per_pod + 1)
            for c in range(1, self.switches - pods * (self.edges_per_pod + a) + 1)
        ]
        return max(options, key=lambda option: (option.bisection, option.switches))

    def _expanded(self, old: Clos, hosts: int, money: float, key: str) -> tuple[Clos, float]:
        """Return the best affordable network with that many more hosts, and its cost."""
        least = replace(old, pods=old.pods + (self._pods(hosts, f"{key}.hosts_total") if hosts else 0)).best_split()
        most = least.edges * least.uplinks  # more than that above the edge cannot be used
        options = [least]
        widths = max(1, most - least.aggregation), max(1, -(-least.pods * most // self.ports) - least.core)
        affordable = int(min(money / self.prices.switch, LARGEST_INTEGER)) + 1
        self._check_search(min(widths[0], affordable) * min(widths[1], affordable), f"{key}.budget")
        for a in range(least.aggregation, max(least.aggregation, most) + 1):
            for c in range(least.core, max(least.core, -(-least.pods * most // self.ports)) + 1):
                option = replace(least, aggregation=a, core=c)
                if (option.switches - old.switches) * self.prices.switch > money:
                    break
                options.append(option.best_split())
        best, best_cost = least, self._cost(old, least)
        for option in sorted(options, key=lambda option: -option.bisection):
            if best_cost <= money and option.bisection < best.bisection:
                break
            cost = self._cost(old, option)
            if cost <= money and (best_cost > money or (-option.bisection, cost) < (-best.bisection, best_cost)):
                best, best_cost = option, cost
        if best_cost > money:
            raise SpecError(
                f"{money:.6g} at hand do not pay for {hosts} hosts; least: {self._cost(old, least):.6g}",
                key=f"{key}.budget",
            )
        return best, best_cost

    def _check_search(self, networks: int, key: str) -> None:
        """Raise ``SpecError`` for a search over too many numbers of switches, each with all divisions of ports."""
        if networks * self.ports > MOST_NETWORKS:
            raise SpecError(f"{networks * self.ports:,} networks to choose from; at most {MOST_NETWORKS:,}", key=key)

    def _cost(self, old: Clos, new: Clos) -> float:
        moved, bought = changes(old, new)
        switches = new.switches - old.switches
        return self.prices.switch * switches + self.prices.cable * bought + self.prices.rewiring * moved


def _built(kind: str, network: Clos, servers: int, notes: Notes) -> Topology:
    """Return the topology, its switches numbered tier by tier and pod by pod."""
    edges, aggregation = network.pods * network.edges, network.pods * network.aggregation
    first = {"edge": 0, "aggregation": edges, "core": edges + aggregation}
    size = {"edge": network.edges, "aggregation": network.aggregation, "core": network.core}
    links = [[first[tier] + pod * size[tier] + i for tier, pod, i in ends] for ends in network.links()]
    counts = {"edge": edges, "aggregation": aggregation, "core": network.core}
    tiers = [[tier, first[tier], count] for tier, count in counts.items()]
    topology = Topology.from_links(kind, network.switches, links, notes={"tiers": tiers, **notes})
    return topology.with_hosts([servers] * edges + [0] * (network.switches - edges))
