# SPDX-License-Identifier: Apache-2.0
"""Random networks of switches whose port counts follow a power law."""

import heapq

import numpy as np
from pydantic import Field
from scipy.optimize import brentq

from flitlab.models.arrays import Floats, Ints
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_random_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import first_connected, join_parts, random_links, wireable


@register("topology", "power_law")
class PowerLaw(TopologySpec):
    """Random network of switches with power-law port counts and hosts in proportion to a power of them.

    Each of ``n`` switches has k ports with probability proportional to k**-exponent, k = ``min_ports`` ..
    ``max_ports``, independently. Instead of ``exponent`` the mean of this distribution, ``mean_ports``, may be
    set. ``hosts_total`` hosts are distributed in proportion to ports**beta (rounded by Webster's method, at
    least one port of every switch is for links): beta 0 is an equal number per switch, 1 is in proportion to
    ports. The remaining ports are wired at random: simple wherever the degrees allow it, connected; one stays
    free if their number is odd. Port counts depend on seed, n and the distribution only,
    so that networks of different beta have the same switches.

    ``notes`` has ports (of every switch), exponent, mean_ports (of those drawn), parallel_links and
    free_ports.

    Valid: 2 <= min_ports <= max_ports, hosts that leave at least 2 (n - 1) ports for links.

    Example: ``topology: {kind: power_law, n: 40, mean_ports: 8, hosts_total: 120, beta: 1, seed: 1}``

    Source: SIN section 5.2, Fig. 5.2. The thesis gives the means (6, 8, 10), not the exponent or the range of
    port counts: min_ports 4 and max_ports 32 are our choice.
    """

    n: int = Field(ge=2)
    """Switches."""
    exponent: float | None = Field(default=None, allow_inf_nan=False)
    """Exponent of the distribution of ports."""
    mean_ports: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Mean of that distribution, in place of its exponent."""
    min_ports: int = Field(default=4, ge=2)
    """The least ports of a switch."""
    max_ports: int = Field(default=32, ge=2, le=1_000_000)
    """The most ports of a switch."""
    hosts_total: int = Field(ge=1)
    """Hosts in all."""
    beta: float = Field(default=1, ge=-50, le=50, allow_inf_nan=False)
    """Hosts are in proportion to ports**beta."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        self.reject_other_hosts("hosts_total")
        limit_random_size(self.n * self.min_ports, "n")
        if self.min_ports > self.max_ports:
            raise SpecError(f"must be at most max_ports = {self.max_ports}", key="min_ports")
        sizes = np.arange(self.min_ports, self.max_ports + 1)
        exponent = self._exponent(sizes)
        ports = np.random.default_rng([self.seed, 0]).choice(sizes, size=self.n, p=_weights(sizes, exponent))
        limit_random_size(int(ports.sum()), "n")
        spare = int(ports.sum()) - 2 * (self.n - 1)
        if self.hosts_total > spare:
            message = f"these {ports.sum()} ports connect {self.n} switches and at most {spare} hosts"
            raise SpecError(message, key="hosts_total")
        hosts = shared_out(self.hosts_total, ports**self.beta, ports - 1)
        degrees = wireable(ports - hosts)
        notes = {"ports": ports.tolist(), "exponent": exponent, "mean_ports": float(ports.mean())}
        notes["free_ports"] = int((ports - hosts - degrees).sum())
        rng = np.random.default_rng([self.seed, 1])

        def draw() -> Topology:
            links = random_links(degrees, False, rng)
            join_parts(links, self.n, rng)
            parallel = len(links) - len(np.unique(np.sort(links, axis=1), axis=0))
            return Topology.from_links(self.kind, self.n, links, notes=notes | {"parallel_links": parallel})

        return first_connected(draw, "hosts_total").with_hosts(hosts)

    def _exponent(self, sizes: np.ndarray) -> float:
        if (self.exponent is None) == (self.mean_ports is None):
            raise SpecError("give either exponent or mean_ports", key="mean_ports" if self.mean_ports else "exponent")
        if self.exponent is not None:
            return self.exponent

        mean_ports = self.mean_ports or 0.0

        def excess(exponent: float) -> float:
            return float(_weights(sizes, exponent) @ sizes) - mean_ports

        low, high = excess(EXPONENTS[1]) + mean_ports, excess(EXPONENTS[0]) + mean_ports
        if not low < mean_ports < high:
            message = f"must lie between {low:.4g} and {high:.4g} for ports from {sizes[0]} to {sizes[-1]}"
            raise SpecError(message, key="mean_ports")
        return float(brentq(excess, *EXPONENTS))


EXPONENTS = (-20.0, 20.0)
"""Range of exponents in which the one of a mean is searched."""


def _weights(sizes: np.ndarray, exponent: float) -> Floats:
    """Probabilities of a truncated power law, float64 [sizes]."""
    logarithm = -exponent * np.log(sizes)
    weight = np.exp(logarithm - logarithm.max())
    share: Floats = weight / weight.sum()
    return share


def shared_out(total: int, weights: np.ndarray, most: np.ndarray) -> Ints:
    """Divide ``total`` in proportion to ``weights``, at most ``most`` each, int64 [places].

    Webster's method: the next unit goes where weight / (share + 1/2) is largest.

    Parameters
    ----------
    total: units to distribute.
    weights: float64 [places], above 0.
    most: largest share.
    """
    shares = np.zeros(len(weights), np.int64)
    queue = [(-2 * float(weight), i) for i, weight in enumerate(weights) if most[i] > 0]
    heapq.heapify(queue)
    for _ in range(total):
        _, i = heapq.heappop(queue)
        shares[i] += 1
        if shares[i] < most[i]:
            heapq.heappush(queue, (-float(weights[i]) / (shares[i] + 0.5), i))
    return shares
