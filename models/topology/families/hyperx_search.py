# SPDX-License-Identifier: Apache-2.0
"""The cheapest HyperX for a number of hosts."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, log2, prod
from typing import Literal

from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.families.hyperx import hyperx_degree, hyperx_links, relative_bisection
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly


@dataclass(frozen=True)
class Design:
    """Extents and multiplicities of the dimensions, and most hosts at a switch, of a HyperX."""

    dims: list[int]
    multiplicity: list[int]
    hosts_per_switch: int

    @property
    def degree(self) -> int:
        return hyperx_degree(self.dims, self.multiplicity)

    @property
    def switches(self) -> int:
        return prod(self.dims)

    @property
    def links(self) -> int:
        return self.switches * self.degree // 2


def factorizations(n: int, cost: list[int], ports: int, least: int = 2) -> Iterator[list[int]]:
    """Yield all products of non-decreasing factors that equal n, of total cost up to ``ports``.

    Parameters
    ----------
    n: the product; 1 is the empty product.
    cost: cost[f] is the cost of factor f, at least f - 1.
    ports: largest total cost.
    least: smallest factor.
    """
    if n == 1:
        yield []
        return
    for factor in range(least, min(isqrt(n), ports + 1) + 1):
        if n % factor == 0 and cost[factor] <= ports:
            for rest in factorizations(n // factor, cost, ports - cost[factor], factor):
                yield [factor, *rest]
    if n <= ports + 1 and cost[n] <= ports:
        yield [n]


def most_switches(cost: list[int], ports: int) -> int:
    """Return the largest product of factors of total cost up to ``ports``."""
    most = [1]
    for budget in range(1, ports + 1):
        products = [s * most[budget - cost[s]] for s in range(2, budget + 2) if cost[s] <= budget]
        most.append(max(products, default=1))
    return most[ports]


def designs(hosts: int, radix: int, bisection: Fraction) -> Iterator[Design]:
    """Yield all candidate HyperX by ascending number of switches, with the fewest sufficient hosts per switch.

    More hosts per switch only take ports and need wider dimensions. Beyond ``radix`` switches per host, a design
    without one of the dimensions is cheaper.

    Parameters
    ----------
    hosts: number of hosts.
    radix: ports of a switch.
    bisection: least relative bisection.
    """
    for per_switch in range(min(radix, hosts), 0, -1):
        first = -(-hosts // per_switch)
        last = -(-hosts // (per_switch - 1)) - 1 if per_switch > 1 else hosts * radix
        ports = radix - per_switch
        width = 2 * per_switch * bisection  # least K S
        multiplicity = [0, 0] + [-(-width.numerator // (width.denominator * s)) for s in range(2, ports + 2)]
        cost = [k * (s - 1) for s, k in enumerate(multiplicity)]
        for switches in range(first, min(last, most_switches(cost, ports)) + 1):
            for dims in factorizations(switches, cost, ports):
                yield Design(dims, [multiplicity[s] for s in dims], per_switch)


def cheapest(hosts: int, radix: int, bisection: Fraction, objective: str) -> Design | None:
    """Return the design of fewest switches, then links (``switches``), or the other way round (``links``).

    Parameters
    ----------
    hosts, radix, bisection: as in :func:`designs`.
    objective: ``switches`` or ``links``.
    """
    best: Design | None = None
    for design in designs(hosts, radix, bisection):
        if best is None:
            best = design
        elif objective == "switches":
            if design.switches > best.switches:
                break
            best = min(best, design, key=lambda d: d.links)
        else:
            # K (S - 1) >= log2 S, so that P switches have degree log2 P at least
            if design.switches * log2(design.switches) / 2 > best.links:
                break
            best = min(best, design, key=lambda d: (d.links, d.switches))
    return best


def nearest_radix(hosts: int, radix: int, bisection: Fraction) -> int:
    """Return the fewest ports, above ``radix``, with which a HyperX qualifies; one switch of ``hosts`` ports does.

    Parameters
    ----------
    hosts, radix, bisection: as in :func:`designs`.
    """

    def qualifies(ports: int) -> bool:
        return next(designs(hosts, ports, bisection), None) is not None

    enough = radix + 1
    while not qualifies(enough):
        enough = min(2 * enough, hosts)
    return bisect_left(range(enough), True, lo=radix + 1, key=qualifies)


@register("topology", "hyperx_search")
class HyperXSearch(TopologySpec):
    """The cheapest HyperX that gives ``hosts`` hosts the required bisection with switches of ``radix`` ports.

    A HyperX of L dimensions of S_i switches, with K_i parallel links in dimension i and T hosts at a switch
    (kind hyperx), has P = prod S_i switches and needs T + sum K_i (S_i - 1) <= radix ports, T P >= hosts, and
    a relative bisection min K_i S_i / (2 T) of at least ``bisection``; 1 lets all hosts of one half
    send to the other. All L and S_i are tried, each with the smallest T and K_i that qualify. ``objective``:
    *switches* minimises switches, then links; *links* minimises links, then switches.

    hosts is the number of hosts in all; exactly as many are attached, spread evenly over the switches.
    ``notes``: dims, multiplicity, hosts_per_switch (T), the achieved relative_bisection and the radix_used.
    One switch takes all hosts if it can: dims is empty then, and there is no bisection. Valid: whatever some
    HyperX satisfies, up to 2 * 10**7 channels; radix up to 512.

    Example: ``topology: {kind: hyperx_search, hosts: 648, radix: 24, bisection: 0.4}``

    Source: Ahn, Binkert, Davis, McLaren and Schreiber, SC 2009, doi:10.1145/1654059.1654101.
    The designs of MUT Figures 5 to 7.
    """

    # a number here; a list, as in other topologies, is accepted only for a better error message
    hosts: int | list[int]  # type: ignore[assignment]
    """Hosts in all."""
    radix: int = Field(ge=2, le=512)
    """Ports of a switch."""
    bisection: float = Field(gt=0, allow_inf_nan=False)
    """Least relative bisection; at 1 one half of the hosts can send to the other."""
    objective: Literal["switches", "links"] = "switches"
    """What is minimised first."""

    def graph(self) -> Topology:
        hosts, bisection = self._number_of_hosts(), Fraction(str(self.bisection))
        limit_size(2 * hosts, "hosts")  # those of the hosts alone
        design = cheapest(hosts, self.radix, bisection, self.objective)
        if design is None:
            nearest = nearest_radix(hosts, self.radix, bisection)
            raise SpecError(f"too few ports for {hosts} hosts at this bisection; nearest {nearest}", key="radix")
        limit_size(2 * design.links, "hosts")
        per_switch = design.hosts_per_switch
        notes = {
            "dims": design.dims,
            "multiplicity": design.multiplicity,
            "hosts_per_switch": per_switch,
            "relative_bisection": relative_bisection(design.dims, design.multiplicity, per_switch),
            "radix_used": per_switch + design.degree,
        }
        links = hyperx_links(design.dims, design.multiplicity)
        topology = Topology.from_links(self.kind, design.switches, links, notes=notes)
        return topology.with_hosts(evenly(hosts, design.switches))

    def _number_of_hosts(self) -> int:
        if isinstance(self.hosts, int) and self.hosts > 0:
            return self.hosts
        raise SpecError("must be the number of hosts in all, 1 or more", key="hosts")

    def _check_common(self) -> None:
        self._number_of_hosts()
        if "hosts_per_switch" in self.model_fields_set:
            raise SpecError("the search chooses it: leave it out", key="hosts_per_switch")
        TopologySpec._check_common(self._without_host_list())

    def _with_hosts(self, topology: Topology) -> Topology:
        return TopologySpec._with_hosts(self._without_host_list(), topology)

    def _without_host_list(self) -> "HyperXSearch":
        """The same without ``hosts``, which the base class takes for the hosts of every switch."""
        return self.model_copy(update={"hosts": None})
