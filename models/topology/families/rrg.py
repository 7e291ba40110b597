"""Random regular graphs (Jellyfish)."""

import numpy as np
from pydantic import Field

from models.registry import SpecError, register
from models.topology.graph import Topology
from models.topology.spec import TopologySpec
from models.topology.wiring import DRAWS, random_pairs


@register("topology", "rrg")
class Rrg(TopologySpec):
    """Random regular graph with bi-directional links, simple and connected.

    Either ``degree`` links at each of ``n`` switches; or ``n`` switches of ``ports`` ports of which
    ``hosts_total`` hosts take theirs, spread evenly (the first switches have one more), and links use the
    rest: the degrees then differ by at most one. One port, noted as ``unwired_switch``, stays free if
    their number is odd.

    Valid: 1 <= degree < n and n * degree even; or every switch left with 1 to n - 1 ports for links.

    Example: ``topology: {kind: rrg, n: 64, degree: 6, seed: 1}``

    Example: ``topology: {kind: rrg, n: 20, ports: 8, hosts_total: 50, seed: 1}``

    Source: Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012. SIN chapter 4. Drawn by pairing ports and
    swapping, not by Jellyfish's incremental construction; the statistics are the same.
    """

    n: int = Field(ge=2)
    degree: int | None = Field(default=None, ge=1)
    ports: int | None = Field(default=None, ge=1)
    hosts_total: int | None = Field(default=None, ge=1)
    seed: int = Field(default=1, ge=0)

    def graph(self) -> Topology:
        hosts, degrees = self._ports_of_each()
        notes = {}
        if degrees.sum() % 2:
            loser = int(degrees.argmax())
            degrees[loser] -= 1
            notes["unwired_switch"] = loser
        rng = np.random.default_rng(self.seed)
        for _ in range(DRAWS):
            links = random_pairs(degrees, False, rng)
            if links is None:
                break
            topology = Topology.from_links(self.kind, self.n, links, notes=notes)
            if topology.unreachable_pair() is None:
                return topology.with_hosts(hosts)
        key = "ports" if self.degree is None else "degree"
        raise SpecError(f"no connected graph among {DRAWS} drawn", key=key)

    def _ports_of_each(self) -> tuple[np.ndarray, np.ndarray]:
        """Hosts and links of every switch, int64 [n] each."""
        if self.degree is not None:
            if self.ports is not None or self.hosts_total is not None:
                raise SpecError("give either degree, or ports and hosts_total", key="degree")
            if self.degree >= self.n:
                raise SpecError(f"must be below n = {self.n}", key="degree")
            if self.n * self.degree % 2:
                near = ", ".join(str(d) for d in (self.degree - 1, self.degree + 1) if 0 < d < self.n)
                message = f"n * degree = {self.n * self.degree} is odd: no such graph; nearest {near}"
                raise SpecError(message, key="degree")
            return np.zeros(self.n, np.int64), np.full(self.n, self.degree)
        if self.ports is None or self.hosts_total is None:
            missing = "degree" if self.ports is None and self.hosts_total is None else "ports and hosts_total"
            raise SpecError(f"{missing} missing: give either degree, or ports and hosts_total")
        if self.hosts is not None or "hosts_per_switch" in self.model_fields_set:
            message = "hosts_total already says where hosts are: leave out hosts and hosts_per_switch"
            raise SpecError(message, key="hosts_total")
        hosts = self.hosts_total // self.n + (np.arange(self.n) < self.hosts_total % self.n)
        degrees = self.ports - hosts
        if degrees.min() < 1:
            raise SpecError(
                f"{self.hosts_total} hosts leave no port for links at some of {self.n} switches "
                f"with {self.ports} ports; at most {self.n * (self.ports - 1)}", key="hosts_total",
            )  # fmt: skip
        if degrees.max() >= self.n:
            raise SpecError(f"more ports left for links than the {self.n - 1} other switches", key="ports")
        return hosts, degrees
