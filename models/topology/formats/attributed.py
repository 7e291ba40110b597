# SPDX-License-Identifier: Apache-2.0
"""Graphs whose nodes and edges have attributes, as GraphML and GML have them, made to topologies."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flitlab.models.topology.formats.common import Network
from flitlab.models.topology.graph import Topology


@dataclass(frozen=True)
class Attributes:
    """The names of the attributes that say what a topology needs.

    capacity, delay: of edges. hosts: of nodes. missing: capacity of edges without the attribute, all of them if none
    has it; None refuses those where a name other than ``capacity`` was asked for.
    """

    capacity: str = "capacity"
    delay: str = "delay"
    hosts: str = "hosts"
    missing: float | None = None

    def capacity_of(self, network: Network, line: int, edge: str, given: Mapping[str, str]) -> str:
        """The capacity of an edge, still text. Fails where it has none that is asked for."""
        if self.capacity in given:
            return given[self.capacity]
        if self.missing is None and self.capacity != "capacity":
            there = ", ".join(sorted(given)) or "no attributes"
            network.fail(line, f"{edge} has no {self.capacity} (it has {there}); missing: says what it is then")
        return "1" if self.missing is None else repr(self.missing)

    def delay_of(self, network: Network, line: int, given: Mapping[str, str]) -> str:
        """The delay of an edge in whole ticks, still text: 0 without the attribute, rounded if it was asked for."""
        text = given.get(self.delay, "0")
        if self.delay == "delay":
            return text
        try:
            return str(round(float(text)))
        except (ValueError, OverflowError):
            network.fail(line, f"{self.delay} {text!r} is not a number")


@dataclass
class Attributed:
    """A graph as a file has it: nodes by label and edges, with the line and the attributes of each."""

    network: Network
    directed: bool = False
    nodes: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    edges: list[tuple[int, dict[str, str], dict[str, str]]] = field(default_factory=list)

    def topology(self, kind: str, attributes: Attributes) -> Topology:
        """The topology of this graph. Fails where an attribute that was asked for is nowhere, or no number."""
        network, hosts = self.network, {}
        self._refuse_unknown(attributes)
        for label, (line, data) in self.nodes.items():
            network.node(label)
            if (count := data.get(attributes.hosts)) is not None:
                hosts[label] = network.whole(line, attributes.hosts, count)
        for line, ends, data in self.edges:
            for end in ends.values():
                if end not in self.nodes:
                    network.fail(line, f"unknown node {end!r}")
            source, target = ends["source"], ends["target"]
            capacity = attributes.capacity_of(network, line, f"edge {source}-{target}", data)
            about = line, source, target, capacity, attributes.delay_of(network, line, data)
            if self.directed:
                network.channel(*about, data.get("reverse", "-1"))
            else:
                network.link(*about)
        return network.topology(kind, hosts or None, **self._notes(attributes))

    def _notes(self, attributes: Attributes) -> dict[str, int | str]:
        """``capacity_missing``: how many edges took the capacity of those without the attribute, if any did."""
        without = sum(attributes.capacity not in data for _, _, data in self.edges)
        if attributes.missing is None or not without:
            return {}
        return {"capacity_missing": "all" if without == len(self.edges) else without}

    def _refuse_unknown(self, attributes: Attributes) -> None:
        of_edges = {name for _, _, data in self.edges for name in data}
        of_nodes = {name for _, data in self.nodes.values() for name in data}
        asked = [("edge", attributes.delay, "delay", of_edges), ("node", attributes.hosts, "hosts", of_nodes)]
        if attributes.missing is None:
            asked.insert(0, ("edge", attributes.capacity, "capacity", of_edges))
        for what, name, usual, there in asked:
            if name != usual and name not in there:
                choices = ", ".join(sorted(there)) or "none at all"
                self.network.fail(1, f"no {what} has an attribute {name!r}; there are {choices}")
