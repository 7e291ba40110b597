# SPDX-License-Identifier: Apache-2.0
"""Random regular graphs (Jellyfish)."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Cut, Equipment
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size, limit_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import join_parts, random_pairs

DRAWS = 10
"""Graphs drawn before the parts of one that is not connected are joined."""


@register("topology", "rrg", aliases=("jellyfish", "random_regular"))
class Rrg(TopologySpec):
    """Random regular graph with bi-directional links, simple and connected.

    Either ``degree`` links at each of ``n`` switches; or ``n`` switches of ``ports`` ports of which
    ``hosts_total`` hosts take theirs, spread evenly (the first switches have one more), and links use the
    rest: the degrees then differ by at most one. One port, noted as ``unwired_switch``, stays free if
    their number is odd. With ``split`` a port without a host makes that many links; give ``capacity: 1 / split``
    if they share its rate.

    Valid: 2 <= degree < n (or degree 1, n 2) and n * degree even; or every switch left with 1 to n - 1 ports for
    links, at least 2 (n - 1) in all. Up to 5 * 10**6 channels.

    Example: ``topology: {kind: rrg, n: 64, degree: 6, seed: 1}``

    Example: ``topology: {kind: rrg, n: 20, ports: 8, hosts_total: 50, seed: 1}``

    Source: Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012. SIN chapter 4. Drawn by pairing ports and
    swapping, not by Jellyfish's incremental construction; the statistics are the same. Where ten such graphs are
    not connected, as is usual with two links a switch, the parts of the next one are joined by exchanging ends.
    """

    n: int = Field(ge=2)
    """Switches."""
    degree: int | None = Field(default=None, ge=1)
    """Links of every switch; else ports and hosts_total."""
    ports: int | None = Field(default=None, ge=1)
    """Ports of every switch, for links and hosts."""
    hosts_total: int | None = Field(default=None, ge=1)
    """Hosts in all, spread evenly."""
    split: int = Field(default=1, ge=1)
    """Links that a port without a host makes."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any number of switches, with a link at every port that has no host."""
        hosts, ports, split = equipment.hosts, equipment.ports, equipment.split
        for n in range(2, min(hosts, equipment.most_switches) + 1):
            each, least = equipment.each(n), hosts // n
            ends = sum(equipment.links(h) * count for h, count in ((each, hosts % n), (least, n - hosts % n)))
            links = [equipment.links(h) for h in (each, least)]
            if min(links) < 1 or max(links) >= n or ends < 2 * (n - 1):
                continue
            keys = {"kind": "rrg", "n": n, "ports": ports, "hosts_total": hosts}
            yield Candidate(
                keys | ({} if split == 1 else {"split": split}), n, ends // 2, n, max(links), 1, max(links),
                (Cut(each, least, links[0]),),
            )  # fmt: skip

    @classmethod
    def larger(cls, candidate: Candidate, today: Equipment, equipment: Equipment) -> Iterator[Candidate]:
        """The same graph with further switches, each put into links of it: see ``expanded``."""
        more, ports, split = equipment.hosts - today.hosts, equipment.ports, equipment.split
        for added in range(1, min(more, equipment.most_switches - candidate.switches) + 1):
            each, full = divmod(more, added)
            steps, links = [], candidate.links
            for hosts, switches in ((each + 1, full), (each, added - full)):
                own = (ports - hosts) * split
                if switches and own < 2:
                    break
                if switches:
                    steps.append({"switches": switches, "ports": hosts + own, "servers": hosts})
                    links += switches * (own // 2)
            else:
                keys = {"kind": "expanded", "base": candidate.parameters, "steps": steps}
                degree = max(candidate.degree, (ports - each) * split)
                switches = candidate.switches + added
                yield Candidate(keys, switches, links, switches, degree)

    def graph(self) -> Topology:
        hosts, degrees = self._ports_of_each()
        notes = {}
        if degrees.sum() % 2:
            loser = int(degrees.argmax())
            degrees[loser] -= 1
            notes["unwired_switch"] = loser
        rng = np.random.default_rng(self.seed)
        for draw in range(DRAWS + 1):
            links = random_pairs(degrees, False, rng)
            if links is None:
                raise SpecError("no simple graph found", key="hosts_total" if self.degree is None else "degree")
            if draw == DRAWS:  # sparse graphs are hardly ever connected
                join_parts(links, self.n, rng)
            topology = Topology.from_links(self.kind, self.n, links, notes=notes)
            if topology.unreachable_pair() is None:
                break
        return topology if hosts is None else topology.with_hosts(hosts)

    def _ports_of_each(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Hosts (None: as the common keys say) and links of every switch, int64 [n] each."""
        if self.degree is not None:
            if self.split > 1:
                raise SpecError("goes with ports and hosts_total", key="split")
            if self.ports is not None or self.hosts_total is not None:
                raise SpecError("give either degree, or ports and hosts_total", key="degree")
            if self.degree >= self.n:
                raise SpecError(f"must be below n = {self.n}", key="degree")
            limit_random_size(self.n * self.degree, "n")
            if self.n * self.degree % 2:
                near = ", ".join(str(d) for d in (self.degree - 1, self.degree + 1) if 0 < d < self.n)
                message = f"n * degree = {self.n * self.degree} is odd: no such graph; nearest {near}"
                raise SpecError(message, key="degree")
            if self.degree == 1 and self.n > 2:
                raise SpecError("connects no more than 2 switches; nearest 2", key="degree")
            return None, np.full(self.n, self.degree)
        if self.ports is None or self.hosts_total is None:
            missing = "degree" if self.ports is None and self.hosts_total is None else "ports and hosts_total"
            raise SpecError(f"{missing} missing: give either degree, or ports and hosts_total")
        if self.hosts is not None or "hosts_per_switch" in self.model_fields_set:
            message = "hosts_total already says where hosts are: leave out hosts and hosts_per_switch"
            raise SpecError(message, key="hosts_total")
        most = self.n * self.ports - -(-2 * (self.n - 1) // self.split)
        if most < 1:
            raise SpecError("must be 2 or more", key="ports")
        if self.hosts_total > most:
            message = f"leave too few ports of {self.n * self.ports} to connect {self.n} switches; at most {most}"
            raise SpecError(message, key="hosts_total")
        limit_size(self.hosts_total, "hosts_total", "hosts")
        widest = (self.n - 1) // self.split + self.hosts_total // self.n
        if self.ports > widest:
            message = f"more ports left for links than the {self.n - 1} other switches; at most {widest}"
            raise SpecError(message, key="ports")
        limit_random_size((self.n * self.ports - self.hosts_total) * self.split, "n")
        hosts = self.hosts_total // self.n + (np.arange(self.n) < self.hosts_total % self.n)
        return hosts, (self.ports - hosts) * self.split
