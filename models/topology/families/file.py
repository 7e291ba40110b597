# SPDX-License-Identifier: Apache-2.0
"""Topologies read from a file."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from flitlab.models.readable import source_of
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.component import largest_component
from flitlab.models.topology.formats import Attributes, FormatError, ReadFormat, read
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec


@register("topology", "file")
class File(TopologySpec):
    """The topology in a file, ``path``, or in a ``text`` that stands in the configuration itself.

    ``format`` (default: by suffix, .json, .graphml, .anynet, .topobench, .topobench_servers and
    .topobench_capacities, an edge list otherwise; a text of JSON or XML is known by its first character):

    * edgelist: lines ``u v [capacity] [delay]`` (or with commas or semicolons), ``#`` and ``%`` start comments;
      ``directed`` tells whether a line is a uni-directional channel or a bi-directional link (default: what a comment
      on the first line says, as in ``# directed: false``, else channels); ``u -> v`` is a channel, ``u -- v`` a link;
      lines of networkx may end with ``{'capacity': 2.0}``;
    * graphml, gml: node attribute hosts, edge attributes capacity, delay, reverse; all optional;
    * json: what ``simrun topology --export x.json`` writes; nothing is lost;
    * anynet: BookSim 2, lines ``router 0 node 0 node 1 router 1 3 router 2``: a link named on either side goes
      both ways, the latency (1 cycle if absent) belongs to the way in which it is written; delay = latency - 1;
    * topobench: lines ``switch neighbour neighbour ...``, every link bi-directional, named once or more;
      topobench_servers: ``switch servers neighbour ...``;
      topobench_capacities: ``switch servers neighbour capacity neighbour capacity ...``.

    Labels 0 .. n-1 keep their numbers; others are numbered in order of appearance, ``notes`` keeps them. Hosts
    in the file count, also if there are none, unless hosts or hosts_per_switch are given; where the file does not
    tell (edgelist, topobench, graphml without hosts), a switch has one. Capacities
    are positive, delays ticks from 0; self-loops are dropped.

    ``capacity_from``, ``delay_from`` and ``hosts_from`` name other attributes, such as the LinkSpeedRaw of the Topology
    Zoo. Numbers are taken as they are, delays rounded to ticks, and ``capacity`` scales all capacities; ``missing`` is
    the capacity of edges without the attribute, before that, and ``notes`` count them (``capacity_missing``).
    ``component: largest`` takes the largest part that is strongly connected.

    ``path: {glob: 'zoo/*.graphml'}`` is a sweep over all files of such names, in their order.

    Refused, with file and line: a missing file, one of more than 1 GB, malformed lines, unknown nodes, an attribute
    that is asked for and nowhere (of capacities only without ``missing``; with it, a warning tells), bad numbers,
    statements that contradict each other, a network that is not strongly connected.

    Example: ``topology: {kind: file, path: models/topology/families/data/und_d3_k2_n10.txt, directed: false}``

    Source: GraphML primer, http://graphml.graphdrawing.org/primer/graphml-primer.html; the readers of BookSim 2
    (github.com/booksim/booksim2) and topobench (github.com/ankitsingla/topobench).
    """

    path: str | None = None
    text: str | None = None
    format: ReadFormat | None = None
    directed: bool | None = None
    capacity_from: str = "capacity"
    delay_from: str = "delay"
    hosts_from: str = "hosts"
    missing: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    component: Literal["all", "largest"] = "all"

    def graph(self) -> Topology:
        key = "path" if self.text is None else "text"
        source = source_of(self.path, self.text)
        try:
            names = Attributes(self.capacity_from, self.delay_from, self.hosts_from, self.missing)
            topology = read(source, self.format, directed=self.directed, attributes=names)
        except OSError as error:
            raise SpecError(f"{source}: {error.strerror}", key=key) from None
        except FormatError as error:
            raise SpecError(str(error), key=key) from None
        if self.directed is not None and self.directed != topology.directed:
            found = "uni-directional" if topology.directed else "bi-directional"
            raise SpecError(f"{source}: its channels are {found}", key="directed")
        if self.component == "largest":
            topology = largest_component(topology)
        if pair := topology.unreachable_pair():
            labels = topology.notes.get("labels", range(topology.switches))
            u, v = (labels[end] for end in pair)
            message = f"{source}: not strongly connected: no path from switch {u} to switch {v}"
            if topology.kind == "edgelist" and topology.directed and self.directed is None:
                message += "; directed: false if lines are bi-directional links"
            message += "; component: largest takes the largest part"
            raise SpecError(message, key=key)
        notes = {**topology.notes, "file": str(source), "file_kind": topology.kind}
        return replace(topology, kind=self.kind, notes=notes)
