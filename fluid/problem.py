# SPDX-License-Identifier: Apache-2.0
"""A flow problem between switches as flat arrays, for compiled code and LPs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from flitlab.fluid.graph import UNRESTRICTED, Dags, Demand, Graph, Product, blocks
from flitlab.fluid.mcf.paths import Paths, cheapest, paths_of
from flitlab.fluid.pricing import price
from flitlab.fluid.symmetries import Symmetries, Translations, symmetries, translations
from flitlab.fluid.trees import dag_order
from flitlab.models.arrays import Floats, Ints, sums
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Names, host_names, switch_names
from flitlab.models.traffic.traffic import DestinationRule, Traffic


class FluidError(ValueError):
    """A ceiling is not defined for a scenario; the message says why."""


class TooLargeError(FluidError):
    """The problem does not fit into memory; the message says how much it needs."""


MAX_MEMORY = 4 << 30
"""Bytes that a solve may use."""
PAIR_BYTES = 48
"""Bytes per pair of switches with demand: its ends, amount, derived arrays and a distance."""
MAX_LISTED_PAIRS = 1_500_000
"""Pairs up to which a uniform demand is listed; solvers over paths need a list."""

MAX_DENSE_FLOW = 20_000_000
"""Entries up to which a flow by destination and channel is stored (160 MB)."""
MAX_ORBIT_PAIRS = 200_000
"""Pairs up to which representatives of the destinations pay off."""

MAX_RANGE = 1e12
"""Ratio of the largest to the least capacity, or demand, up to which bounds are certified."""


def require_memory(needed: float, subject: str, advice: str = "") -> None:
    """Raise :class:`TooLargeError` if a step would exceed ``MAX_MEMORY``.

    Parameters
    ----------
    needed : float
        Bytes that it needs.
    subject : str
        Subject of the message.
    advice : str
        End of the message: what needs less.
    """
    if needed > MAX_MEMORY:
        most = f"more than the {MAX_MEMORY / 2**30:g} GiB that a solve may use"
        raise TooLargeError(f"{subject} needs about {needed / 2**30:.2g} GiB of memory, {most}{advice}")


@dataclass(frozen=True, eq=False)
class Orbit:
    """A flow problem reduced by its symmetries: the demand for one destination of each class represents all demand.

    The average of an optimal flow over all symmetries is optimal, too. So flows for the representatives are enough,
    with each demand multiplied by the size of its class; channels of a class share the load of any of them.

    row: int64 [channels], class of each channel. capacity: float64 [classes], of all its channels. demand: of the
    representatives. translations: the symmetries, if they are translations of a Cayley graph.
    """

    row: Ints
    capacity: Floats
    demand: Demand
    translations: Translations | None = None

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic) -> "Orbit | None":
        """The orbit by the first translations that preserve the demand, else by all symmetries; None if there are
        none, and for multistage networks.
        """
        if topology.is_multistage:
            return None
        for group in translations(topology):
            if (toward := group.common_demand(traffic)) is not None:
                source = np.flatnonzero(toward)
                amount = topology.switches * toward[source]
                demand = Demand(np.zeros(1, np.int64), np.array([0, len(source)]), source, amount)
                return cls(group.generator, _of_rows(group.generator, topology.capacity), demand, group)
        if (
            traffic.law not in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF)
            or traffic.rate.min() < traffic.rate.max()
        ):
            return None
        if topology.switches * topology.channels <= MAX_DENSE_FLOW:
            return None
        classes = symmetries(topology)
        if classes is None or topology.switches * len(classes.switches) > MAX_ORBIT_PAIRS:
            return None
        return cls(classes.channel, _of_rows(classes.channel, topology.capacity), _orbit_demand(traffic, classes))

    def invariant(self, z: Floats) -> bool:
        """Whether all channels of a class have the same price.

        Parameters
        ----------
        z : float64 [channels]
            Prices.
        """
        of_row = np.zeros(len(self.capacity))
        of_row[self.row] = z
        return np.array_equal(of_row[self.row], z)


def _of_rows(row: Ints, capacity: Floats) -> Floats:
    """float64 [classes]: the total capacity of each class."""
    return sums(row, capacity, int(row.max()) + 1)


def _orbit_demand(traffic: Traffic, classes: Symmetries) -> Demand:
    """Uniform demand for the first switch with hosts of each class, times the size of the class."""
    hosts = traffic.topology.host_count
    each = traffic.rate[0] / (traffic.topology.hosts - (traffic.law == DestinationRule.UNIFORM))
    size, target = np.bincount(classes.switch), classes.switches
    target = np.sort(target[hosts[target] > 0])
    sources = [np.flatnonzero((hosts > 0) & (np.arange(len(hosts)) != t)) for t in target]
    amount = [
        each * hosts[source] * hosts[t] * size[classes.switch[t]] for source, t in zip(sources, target, strict=True)
    ]
    start = np.cumsum([0, *map(len, sources)])
    return Demand(target, start, np.concatenate(sources), np.concatenate(amount))


@dataclass(frozen=True, eq=False)
class Problem:
    """A demand to be routed over ``graph``, within ``dags`` or over ``paths``.

    compact_demand: the demand, listed or as a product. paths: the allowed paths, with the demand's shares as flow.
    orbit: the problem reduced by symmetries, if they preserve it and every channel is allowed.
    """

    graph: Graph
    compact_demand: Demand | Product
    dags: Dags = UNRESTRICTED
    paths: Paths | None = None
    orbit: Orbit | None = None

    @classmethod
    def of(cls, topology: Topology, traffic: Traffic, routes: Routes | None = None) -> "Problem":
        """The flow problem of a scenario between its switches.

        Parameters
        ----------
        topology : Topology
            The network.
        traffic : Traffic
            The demand.
        routes : Routes or None
            Restrict the flow to these routes.

        Raises
        ------
        FluidError
            Nothing is demanded, a demand has no path, capacities or demands are not positive and finite or span too
            wide a range, or next hops toward some switch form a cycle or a dead end.
        """
        check_numbers(topology, traffic)
        graph = Graph.of(topology)
        compact_demand = demand_of(traffic, listed=routes is not None)
        dags, paths = UNRESTRICTED, None
        if routes is not None and routes.paths is not None:
            paths = paths_of(routes.paths, graph, compact_demand.listed())
        elif routes is not None:
            dags = dags_of(topology, routes)
        orbit = Orbit.of(topology, traffic) if routes is None else None
        problem = cls(graph, compact_demand, dags, paths, orbit)
        problem._check_reachable(switch_names(topology))
        return problem

    def _check_reachable(self, names: Names) -> None:
        """Raise :class:`FluidError` for the first demand without a path."""
        free = self.paths is None and not self.restricted
        if free and _is_joined(self.graph):
            return
        unreachable = np.flatnonzero(np.isinf(self.distances(np.ones(self.graph.channels))))
        if len(unreachable):
            s, t = map(names.label, (self.demand.source[unreachable[0]], self.demand.destination[unreachable[0]]))
            raise FluidError(f"switch {s} has demand for switch {t} but no {'path' if free else 'route'} to it")

    @cached_property
    def demand(self) -> Demand:
        """The demand with an entry for every pair. Raises :class:`TooLargeError` if the list does not fit into
        memory.
        """
        require_memory(PAIR_BYTES * self.compact_demand.size, PAIRS)
        return self.compact_demand.listed()

    @property
    def restricted(self) -> bool:
        return len(self.dags.ports) > 0

    @property
    def by_path(self) -> bool:
        """Whether a solution must give the flow on every path: paths are given, or their number of channels is
        limited.
        """
        return self.paths is not None or self.dags.hops > 0

    @property
    def via_intermediate(self) -> bool:
        """Whether every path leads over an intermediate switch, which may be one of its ends."""
        return len(self.dags.via) > 0

    @property
    def allowed(self) -> "Dags | Paths":
        """The restriction of the flow: next hops or paths."""
        return self.dags if self.paths is None else self.paths

    def distances(self, z: Floats) -> Floats:
        """Shortest distance of every commodity under channel prices.

        Parameters
        ----------
        z : float64 [channels]
            Prices.

        Returns
        -------
        float64 [commodities]
            inf where there is no path.
        """
        return shortest_distances(self.graph, self.demand, z, self.allowed)

    def volume(self, z: Floats) -> float:
        """Sum of demand * distance under channel prices.

        Parameters
        ----------
        z : float64 [channels]
            Prices.

        Returns
        -------
        float
            inf where there is no path.
        """
        return network_cost(self.graph, self.compact_demand, z, self.allowed)


PAIRS = "the list of switch pairs with demand"


def demand_of(traffic: Traffic, listed: bool = False) -> Demand | Product:
    """The demand between different switches, as a product where a list would be very long.

    Parameters
    ----------
    traffic : Traffic
        The demand between hosts.
    listed : bool
        Whether a list is required.

    Raises
    ------
    TooLargeError
        A list does not fit into memory.
    """
    product = None if listed else Product.of_traffic(traffic)
    if product is not None and product.size > MAX_LISTED_PAIRS:
        return product
    require_memory(PAIR_BYTES * _max_pairs(traffic), PAIRS)
    return Demand.of_traffic(traffic)


def network_cost(graph: Graph, demand: Demand | Product, z: Floats, allowed: "Dags | Paths" = UNRESTRICTED) -> float:
    """Sum of demand * distance under channel prices.

    Sums do not use BLAS, whose threads would change the last digits.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand or Product
        The demand.
    z : float64 [channels]
        Prices.
    allowed : Dags or Paths
        Restriction of the flow.
    """
    whole = isinstance(demand, Demand) or isinstance(allowed, Paths)
    listed = [demand.listed()] if whole else (demand.part(*ends) for ends in blocks(demand))
    return float(sum((part.amount * shortest_distances(graph, part, z, allowed)).sum() for part in listed))


def check_joined(topology: Topology, traffic: Traffic) -> None:
    """Raise :class:`FluidError` for demand between switches without a path."""
    if not _is_joined(Graph.of(topology)):
        Problem.of(topology, traffic)


def _is_joined(graph: Graph) -> bool:
    """Whether the graph is strongly connected."""
    parts = scipy.sparse.csgraph.connected_components
    return bool(parts(graph.matrix(), connection="strong", return_labels=False) == 1)


def dags_of(topology: Topology, routes: Routes) -> Dags:
    """The next hops of routes that are no paths. Raises :class:`FluidError` for a cycle or a dead end."""
    ports = minimal_ports(topology)[0] if routes.form == RouteForm.DIGITS else routes.ports
    order = dag_order(Graph.of(topology), ports)
    cyclic = np.flatnonzero(order[:, 0] < 0)
    if len(cyclic):
        name = switch_names(topology).label(cyclic[0])
        raise FluidError(f"the next hops toward switch {name} form a cycle or a dead end")
    via = np.flatnonzero(topology.host_count) if routes.form == RouteForm.VIA else UNRESTRICTED.via
    threshold = UNRESTRICTED.threshold if routes.port_threshold is None else routes.port_threshold
    return Dags(ports, order, via, threshold=threshold)


def shortest_distances(graph: Graph, demand: Demand, z: Floats, allowed: "Dags | Paths") -> Floats:
    """Distance of every commodity under channel prices.

    Parameters
    ----------
    graph : Graph
        The graph.
    demand : Demand
        Its commodities.
    z : float64 [channels]
        Prices.
    allowed : Dags or Paths
        Restriction of the flow.

    Returns
    -------
    float64 [commodities]
        Distances; inf where there is no path.
    """
    return cheapest(allowed, z) if isinstance(allowed, Paths) else price(graph, demand, allowed, z)[0]


def _max_pairs(traffic: Traffic) -> int:
    """Upper bound on the pairs of switches with demand."""
    if traffic.law in (DestinationRule.UNIFORM, DestinationRule.UNIFORM_SELF):
        return len(traffic.topology.src_switches) * len(traffic.topology.dst_switches)
    return len(traffic.fixed) + len(traffic.column)


def check_numbers(topology: Topology, traffic: Traffic) -> None:
    """Raise :class:`FluidError` for capacities and demands on which no ceiling can be certified.

    Capacities of channels must be positive and finite; demands must be finite, not negative and not all 0. The largest
    capacity, and the largest demand, may be at most ``MAX_RANGE`` times the least (positive) one; demands are entries
    of the matrix for ``TABLE``, rates of hosts for other laws. A demand with a background is rejected, too: it does not
    grow as a whole.

    Parameters
    ----------
    topology : Topology
        The network; its host capacity is not checked.
    traffic : Traffic
        The demand on it.

    Raises
    ------
    FluidError
        One of these is violated; where a single channel or pair of hosts is at fault, the message names the first.
    """
    if traffic.background is not None:
        raise FluidError("a demand with a fixed background does not grow as a whole")
    rate = traffic.rate
    if not (np.isfinite(rate).all() and (rate >= 0).all() and (traffic.weight >= 0).all()):
        source, target, amount = traffic.pairs()
        i, j, value = next(p for p in zip(source, target, amount, strict=True) if not 0 <= p[2] < np.inf)
        i, j = map(host_names(topology).label, (i, j))
        raise FluidError(f"the demand of host {i} for host {j} is {value}: it must be finite and not negative")
    if not rate.sum() > 0:
        raise FluidError("the demand matrix is zero: nothing to bound")
    check_capacities(topology)
    entries = traffic.weight if traffic.law == DestinationRule.TABLE else rate
    _check_range("hosts have demands", entries[entries > 0])


def check_capacities(topology: Topology) -> None:
    """Raise :class:`FluidError` for capacities that are not positive and finite, or span too wide a range."""
    capacity = topology.capacity
    wrong = np.flatnonzero(~((capacity > 0) & np.isfinite(capacity)))
    if len(wrong):
        u, v = map(switch_names(topology).label, (topology.src[wrong[0]], topology.dst[wrong[0]]))
        value = capacity[wrong[0]]
        raise FluidError(f"the channel from switch {u} to switch {v} has capacity {value}: it must be positive, finite")
    _check_range("channels have capacities", capacity)


def _check_range(subject: str, value: Floats) -> None:
    if len(value) and value.max() > MAX_RANGE * value.min():
        raise FluidError(
            f"{subject} from {value.min():g} to {value.max():g}, more than a factor of {MAX_RANGE:g} apart: "
            "ceilings are certified within that"
        )
