# SPDX-License-Identifier: Apache-2.0
"""Conversion of graphs with node and edge attributes, as in GraphML and GML, to topologies."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from flitlab.models.delimited import number_of
from flitlab.models.topology.attributes import labels_of, unread_attributes, unread_warning
from flitlab.models.topology.formats.common import GraphBuilder
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True)
class Attributes:
    """Names of the attributes that define a topology.

    capacity, delay: of edges. hosts: of nodes. missing: capacity of edges without the attribute; None rejects such
    edges if a name other than ``capacity`` was requested. chosen: those of ``capacity``, ``delay`` and ``hosts`` whose
    name the user has set, so that no warning suggests others.
    """

    capacity: str = "capacity"
    delay: str = "delay"
    hosts: str = "hosts"
    missing: float | None = None
    chosen: frozenset[str] = frozenset()

    @property
    def has_custom_names(self) -> bool:
        """Whether names differ from the defaults, or edges may lack a capacity."""
        return (self.capacity, self.delay, self.hosts, self.missing) != ("capacity", "delay", "hosts", None)

    def by_default(self, **names: str) -> "Attributes":
        """Return these names, with others where the user has chosen none: a format's own."""
        free = {key: name for key, name in names.items() if key not in self.chosen}
        return replace(self, chosen=self.chosen | free.keys(), **free)  # type: ignore[arg-type] # names of fields

    def capacity_of(self, network: GraphBuilder, line: int, edge: str, data: Mapping[str, str]) -> str:
        """Return the capacity of an edge as text. Fails if a required attribute is missing.

        Parameters
        ----------
        network: the file, for errors.
        line: line of the edge.
        edge: its description, for errors.
        data: its attributes.
        """
        if self.capacity in data:
            return data[self.capacity]
        if self.missing is None and self.capacity != "capacity":
            names = ", ".join(sorted(data)) or "no attributes"
            network.fail(line, f"{edge} has no {self.capacity} (it has {names}); the key missing sets a default")
        return "1" if self.missing is None else repr(self.missing)

    def delay_of(self, network: GraphBuilder, line: int, data: Mapping[str, str]) -> str:
        """Return the delay of an edge in whole ticks as text: 0 without the attribute, rounded if it has a custom
        name.

        Parameters
        ----------
        network: the file, for errors.
        line: line of the edge.
        data: its attributes.
        """
        text = data.get(self.delay, "0")
        if self.delay == "delay":
            return text
        try:
            return str(round(number_of(text)))
        except (ValueError, OverflowError):
            network.fail(line, f"{self.delay} {text!r} is not a number")


@dataclass(frozen=True)
class Edge:
    """An edge of a file; ``directed``: its own attribute, None without one."""

    line: int
    source: str
    target: str
    data: dict[str, str]
    directed: bool | None = None


def repeated_link_error(source: str, target: str, before: int) -> str:
    """Return the error of a list of links with one in both directions.

    Parameters
    ----------
    source, target: ends of the link.
    before: line of the other direction.
    """
    return (
        f"link {source} {target} repeats line {before} backwards; directed: true if lines are channels, and "
        "pair_directions: true if opposite channels are links"
    )


@dataclass
class Attributed:
    """A graph of a file: nodes by id and edges, with the line and the attributes of each.

    directed: whether edges are channels, unless their own attributes say otherwise.
    """

    network: GraphBuilder
    directed: bool = False
    nodes: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def topology(self, kind: str, attributes: Attributes, directed: bool | None = None) -> Topology:
        """Convert the graph to a topology.

        Parameters
        ----------
        kind: of the topology.
        attributes: names of the attributes to read.
        directed: whether edges are channels; overrides the file unless None.

        Raises
        ------
        FormatError: a requested attribute is absent or no number, an undirected edge should be a channel, or a link
            occurs in both directions.
        """
        network, hosts = self.network, {}
        self._reject_unknown(attributes)
        for label, (line, data) in self.nodes.items():
            network.node(label)
            if (count := data.get(attributes.hosts)) is not None:
                hosts[label] = network.whole(line, attributes.hosts, count)
        links: dict[tuple[str, str], int] = {}
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in self.nodes:
                    network.fail(edge.line, f"unknown node {end!r}")
            self._add(edge, attributes, directed, links)
        self._warn_of_unread(attributes)
        labels, problem = labels_of({key: data for key, (_, data) in self.nodes.items()})
        network.warn(problem)
        return network.topology(kind, hosts or None, labels, **self._notes(attributes))

    def _add(
        self, edge: "Edge", attributes: Attributes, directed: bool | None, links: dict[tuple[str, str], int]
    ) -> None:
        """Add an edge to the network. links: ends -> line, of edges that ``directed: false`` turned into links."""
        network, source, target = self.network, edge.source, edge.target
        is_directed = self.directed if edge.directed is None else edge.directed
        capacity = attributes.capacity_of(network, edge.line, f"edge {source}-{target}", edge.data)
        about = edge.line, source, target, capacity, attributes.delay_of(network, edge.line, edge.data)
        if directed and not is_directed:
            network.fail(edge.line, "an undirected edge has no direction: leave directed: true out")
        if is_directed and (directed is not False or "reverse" in edge.data):
            network.channel(*about, edge.data.get("reverse", "-1"), edge.data)
            return
        if is_directed and source != target and (before := links.get((target, source))):
            network.fail(edge.line, repeated_link_error(source, target, before))
        links.setdefault((source, target), edge.line)
        network.link(*about, attributes=edge.data)

    def _warn_of_unread(self, attributes: Attributes) -> None:
        """Warn of attributes that resemble those that are read under another name."""
        edges, nodes = [edge.data for edge in self.edges], [data for _, data in self.nodes.values()]
        for kind in sorted({"capacity", "delay", "hosts"} - attributes.chosen):
            names = unread_attributes(nodes if kind == "hosts" else edges, kind, kind)
            self.network.warn(unread_warning(names, kind, f"{kind}_from"))

    def _notes(self, attributes: Attributes) -> dict[str, int | str]:
        """Return the note ``capacity_missing``: how many edges have the default capacity."""
        without = sum(attributes.capacity not in edge.data for edge in self.edges)
        if attributes.missing is None or not without:
            return {}
        return {"capacity_missing": "all" if without == len(self.edges) else without}

    def _reject_unknown(self, attributes: Attributes) -> None:
        of_edges = {name for edge in self.edges for name in edge.data}
        of_nodes = {name for _, data in self.nodes.values() for name in data}
        requested = [("edge", attributes.delay, "delay", of_edges), ("node", attributes.hosts, "hosts", of_nodes)]
        if attributes.missing is None:
            requested.insert(0, ("edge", attributes.capacity, "capacity", of_edges))
        for what, name, usual, present in requested:
            if name != usual and name not in present:
                choices = ", ".join(sorted(present)) or "none at all"
                self.network.fail(1, f"no {what} has an attribute {name!r}; there are {choices}")
