# SPDX-License-Identifier: Apache-2.0
"""Random networks of two types of switches."""

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly, first_connected, join_parts, random_links, wireable


class SwitchType(BaseModel):
    """``count`` switches of ``ports`` ports, ``servers`` of which have a host (null: from hosts_total)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(ge=1)
    ports: int = Field(ge=1)
    servers: int | None = Field(default=None, ge=0)


class FastSwitchType(SwitchType):
    """A type of switch with ``fast_ports`` ports for links of ``line_speed``, not counted in ``ports``."""

    fast_ports: int = Field(default=0, ge=0)


@register("topology", "two_cluster")
class TwoCluster(TopologySpec):
    """Random network of large and small switches, with a chosen number of links between the two types.

    The large switches come first. A port takes a host or a link of capacity 1. Hosts: either ``servers`` at
    every switch of a type, or ``hosts_total`` in all; the large switches get ``server_ratio`` times
    the share of the ports that they have (1: in proportion to ports), spread evenly within each type.

    Of the network ports, P at large switches and Q at small ones, randomly chosen ones are linked across;
    what is left in each cluster is wired at random inside. Pairing all ports at random would put
    P Q / (P + Q - 1) links across: ``cross`` times as many are made (by default 1: no bias), or exactly ``cross_links``.
    The ``fast_ports`` of the large switches are wired at random among themselves, with links of capacity
    ``line_speed``.

    How many of a switch's links lead across is drawn first. Connected; each of the three parts, across and inside
    the clusters, is simple wherever the numbers drawn allow it (dense clusters may force some parallel links), and
    a fast link may be parallel to a slow one. A port stays free where a cluster has an odd number of them.
    ``notes`` has cross_links, cross_expected, parallel_links and free_ports.

    Valid: cross from 0 to (P + Q - 1) / max(P, Q), at least one link across.

    Example: ``topology: {kind: two_cluster, large: {count: 20, ports: 30, servers: 12}, small: {count: 40, ports: 10, servers: 4}, cross: 0.8, seed: 1}``

    Example: ``topology: {kind: two_cluster, large: {count: 20, ports: 30}, small: {count: 30, ports: 20}, hosts_total: 480, server_ratio: 1.2}``

    Example: ``topology: {kind: two_cluster, large: {count: 20, ports: 40, servers: 32, fast_ports: 3}, small: {count: 20, ports: 15, servers: 11}, line_speed: 10}``

    Source: SIN sections 5.2-5.3, Figs 5.1, 5.3-5.5.
    """  # noqa: E501

    large: FastSwitchType
    """The large switches: count, ports, servers, fast_ports."""
    small: SwitchType
    """The small switches: count, ports, servers."""
    hosts_total: int | None = Field(default=None, ge=1)
    """Hosts in all, in place of servers."""
    server_ratio: float = Field(default=1, ge=0, allow_inf_nan=False)
    """Share of hosts at large switches, over their share of ports."""
    cross: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Links between the types, over those of pairing all ports at random."""
    cross_links: int | None = Field(default=None, ge=1)
    """Links between the types, in place of cross."""
    line_speed: float = Field(default=10, gt=0, allow_inf_nan=False)
    """Capacity of the links between fast ports."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        self.reject_other_hosts("hosts_total, or servers of the types,")
        for key, own, ports in (
            ("large.count", self.large, self.large.ports + self.large.fast_ports),
            ("small.count", self.small, self.small.ports),
        ):
            limit_random_size(own.count * ports, key)
        n = self.large.count + self.small.count
        is_large = np.arange(n) < self.large.count
        total_ports = np.where(is_large, self.large.ports, self.small.ports)
        hosts = np.concatenate(self._hosts())
        network = total_ports - hosts
        expected, links = self._cross_links(int(network[is_large].sum()), int(network[~is_large].sum()))
        fast = self.large.fast_ports * is_large
        rng = np.random.default_rng(self.seed)

        def draw() -> Topology:
            across = [rng.multivariate_hypergeometric(network * own, links) for own in (is_large, ~is_large)]
            parts = [
                random_links(across[0], True, rng, into=across[1]),
                random_links(wireable((network - across[0]) * is_large), False, rng),
                random_links(wireable((network - across[1]) * ~is_large), False, rng),
                random_links(wireable(fast), False, rng),
            ]
            classes = np.repeat(np.arange(4), [len(part) for part in parts])
            pairs = np.concatenate(parts)
            join_parts(pairs, n, rng, classes)
            speed = np.where(classes == 3, self.line_speed, 1.0)
            topology = Topology.from_links(self.kind, n, pairs, capacity=speed)
            topology.notes.update(
                tiers=[["large", 0, self.large.count], ["small", self.large.count, self.small.count]],
                cross_links=links,
                cross_expected=expected,
                parallel_links=(topology.channels - len(np.unique(topology.src * n + topology.dst))) // 2,
                free_ports=int(network.sum() + fast.sum()) - topology.channels,
            )
            return topology

        return first_connected(draw, "cross").with_hosts(hosts)

    def _hosts(self) -> list[np.ndarray]:
        """Hosts of every large and of every small switch."""
        types: list[tuple[Literal["large", "small"], SwitchType]] = [("large", self.large), ("small", self.small)]
        if self.hosts_total is None:
            for key, own in types:
                if own.servers is None:
                    raise SpecError("is missing: hosts at each switch (or hosts_total)", key=f"{key}.servers")
                if own.servers >= own.ports:
                    raise SpecError(f"leaves no port for links; at most {own.ports - 1}", key=f"{key}.servers")
            return [np.full(own.count, own.servers) for _, own in types]
        for key, own in types:
            if own.servers is not None:
                raise SpecError("hosts_total already says where hosts are: leave this out", key=f"{key}.servers")
        ports = [own.count * own.ports for _, own in types]
        max_hosts = [own.count * (own.ports - 1) for _, own in types]
        if self.hosts_total > sum(max_hosts):
            raise SpecError(f"leaves switches without links; at most {sum(max_hosts)}", key="hosts_total")
        unit = self.hosts_total * ports[0] / sum(ports)
        at_large = round(self.server_ratio * unit)
        least, most = max(0, self.hosts_total - max_hosts[1]), min(max_hosts[0], self.hosts_total)
        if not least <= at_large <= most:
            raise SpecError(f"must lie between {least / unit:.4g} and {most / unit:.4g}", key="server_ratio")
        return [evenly(at_large, self.large.count), evenly(self.hosts_total - at_large, self.small.count)]

    def _cross_links(self, at_large: int, at_small: int) -> tuple[float, int]:
        """Links across that random wiring of these network ports would make, and how many to make."""
        expected = at_large * at_small / (at_large + at_small - 1)
        most = min(at_large, at_small)
        if self.cross_links is not None:
            if self.cross is not None:
                raise SpecError("give either cross or cross_links", key="cross_links")
            if self.cross_links > most:
                raise SpecError(f"at most {most}: the ports of the smaller side", key="cross_links")
            return expected, self.cross_links
        links = round(expected if self.cross is None else self.cross * expected)
        if not 1 <= links <= most:
            limits = f"between {1 / expected:.4g} (one link) and {most / expected:.4g} (every port of one side)"
            raise SpecError(f"must lie {limits}", key="cross")
        return expected, links
