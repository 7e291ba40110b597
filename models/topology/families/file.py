# SPDX-License-Identifier: Apache-2.0
"""Topologies read from a file."""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from flitlab.models.readable import Text, source_of
from flitlab.models.registry import SpecError, register, warn, warnings_below
from flitlab.models.topology.failures import subtopology
from flitlab.models.topology.formats import Attributes, FormatError, ReadFormat, read
from flitlab.models.topology.graph import NAMES, Topology
from flitlab.models.topology.names import Which, switch_names
from flitlab.models.topology.pairing import pairs_warning, unpaired_warning
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.validation import validate_topology


@register("topology", "file")
class File(TopologySpec):
    """The topology in a file, ``path``, or in a ``text`` that stands in the configuration itself.

    ``format`` (default: by the content, or else by the suffix, .json, .graphml, .gml, .anynet, .topobench,
    .topobench_servers and .topobench_capacities; an edge list otherwise):

    * edgelist: lines ``u v [capacity] [delay]``, with tabs, semicolons, commas or blanks between them and quotes around
      names that contain some; ``#`` and ``%`` start comments; ``directed`` tells whether a line is a uni-directional
      channel or a bi-directional link (default: what a comment on the first line says, as in ``# directed: false``,
      else channels); ``u -> v`` is a channel, ``u -- v`` a link; a header such as ``source,target,delay`` names the
      columns; lines of networkx may end with ``{'capacity': 2.0}``;
    * graphml, gml: node attributes label and hosts, edge attributes capacity, delay, reverse; all optional;
      ``directed`` overrides the file;
    * node_link: graphs in JSON with lists of nodes and links, as networkx, D3 and Topohub write them;
    * json: the lossless format of ``simrun topology --export x.json``;
    * anynet: BookSim 2, lines ``router 0 node 0 node 1 router 1 3 router 2``: a link named on either side is
      bi-directional, the latency (1 cycle if absent) applies to the direction in which it is written, that of a node to
      its injection and ejection channel; delay = latency - 1, and ``minimal`` uses latencies without a ``weight``;
    * topobench: lines ``switch neighbour neighbour ...``, every link bi-directional, named once or more;
      topobench_servers: ``switch servers neighbour ...``;
      topobench_capacities: ``switch servers neighbour capacity neighbour capacity ...``;
    * repetita: ``.graph`` files; channels of capacity ``bw``, IGP weights in the column ``weight``;
    * sndlib: the native format and XML; links of their pre-installed capacity, else of that of their first module;
    * ns3: topology files of HPCC, ASTRA-sim and SimAI; htsim: ``.topo`` files; astra_sim: network files of the
      analytical backend. Their capacities are relative to the rate of hosts (astra_sim: of the first dimension),
      which is the note ``link_gbps`` and the rate of links in ``switching`` by default; ``delay_ns`` is a column, and
      becomes the delay of links (``delays``);
    * interconnect: the links of Cray Gemini and Aries networks; rapidchiplet: those between chiplets.

    ``pair_directions: true`` pairs opposite channels to links, for files that list both directions of every link; equal
    channels are paired first, and capacities and delays of a pair may differ. Without the key, such a file gives
    uni-directional channels, which fail one by one, with a warning; ``false`` suppresses the warning.

    Labels 0 .. n-1 keep their numbers; others are numbered in order of appearance, ``notes`` keep them. Labels are
    accepted wherever numbers of switches or hosts are; ``names: labels`` or ``numbers`` resolves conflicts where a
    label is the number of another switch. Hosts in the file apply, even if there are none, unless hosts or
    hosts_per_switch are set; where the file does not state hosts (edgelist, topobench, graphml without hosts), a switch
    has one.
    Capacities are positive, delays ticks from 0; self-loops are dropped, with a warning.

    ``capacity_from``, ``delay_from`` and ``hosts_from`` name other attributes, such as the LinkSpeedRaw of the Topology
    Zoo; a warning names similar attributes that are not read. Numbers are not converted, delays are rounded to
    ticks, and ``capacity`` scales all capacities; ``missing`` is the unscaled capacity of edges without the attribute,
    and ``notes`` count them (``capacity_missing``). Other numbers that every edge has are columns, which ``minimal``,
    ``ecmp``, ``ksp`` and ``updown`` can use for shortest paths (``weight``).

    ``ejection`` makes it a uni-directional multistage network: the switch where each host ejects, in the order of hosts
    (by their switches of injection, those of the file or of ``hosts``); only hosts must then reach each other.

    ``component: largest`` takes the largest strongly connected component. A warning states its size; less than
    ``component_share`` (a half) of the switches, the links or the hosts is rejected.

    ``path: {glob: 'zoo/*.graphml'}`` is a sweep over all files of such names, in their order.

    Rejected, with file and line: a missing file, one of more than 1 GB, malformed lines, unknown nodes, a requested
    attribute that no edge or node has (with ``missing``, only a warning for capacities), invalid numbers,
    contradictory statements. A network that is not strongly connected serves ceilings and mode ``flow`` where every
    demand has a path, with the routings ``minimal``, ``ecmp``, ``ksp`` and ``llskr``; other uses reject it.

    Example: ``topology: {kind: file, path: models/topology/families/data/und_d3_k2_n10.txt, directed: false}``

    Source: GraphML primer, http://graphml.graphdrawing.org/primer/graphml-primer.html; the readers of BookSim 2
    (github.com/booksim/booksim2) and topobench (github.com/ankitsingla/topobench); arXiv:1710.08665 (REPETITA);
    doi:10.1002/net.20371 (SNDlib).
    """

    path: str | None = None
    """The file."""
    text: str | None = None
    """The topology itself, in place of a file."""
    format: ReadFormat | None = None
    """The format. null: by the content, or else by the suffix."""
    directed: bool | None = None
    """Whether a line is a uni-directional channel. null: what the file says."""
    pair_directions: bool | None = None
    """Whether opposite channels are a link."""
    names: Which | None = None
    """What a name means that is a label and the number of another switch."""
    capacity_from: str = "capacity"
    """Attribute with the capacity of an edge."""
    delay_from: str = "delay"
    """Attribute with the delay of an edge."""
    hosts_from: str = "hosts"
    """Attribute with the hosts of a node."""
    missing: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Capacity of edges without the attribute."""
    ejection: list[int | str] | None = None
    """Switch at which each host ejects, in a uni-directional multistage network."""
    component: Literal["all", "largest"] = "all"
    """Whether all switches are taken, or the largest strongly connected component."""
    component_share: float = Field(default=0.5, ge=0, le=1)
    """Least part of switches, links and hosts that this component must have."""

    def graph(self) -> Topology:
        key = "path" if self.text is None else "text"
        source = source_of(self.path, self.text)
        with warnings_below(key):
            topology = self._paired(self._read(source, key), str(source))
        if self.component == "largest":
            topology = self._largest(topology, str(source))
        if self.ejection is not None:
            topology = self._with_ejection(topology, self.ejection)
        notes = {**topology.notes, "file": str(source), "file_kind": topology.kind}
        if self.names == "numbers":
            notes = {name: value for name, value in notes.items() if name not in NAMES}
        elif self.names == "labels":
            notes["names"] = "labels"
        return replace(topology, kind=self.kind, notes=notes)

    def build_part_connected(self) -> Topology:
        return self.validated(self._part_connected)

    def _part_connected(self) -> Topology:
        self._check_common()
        return self._with_common_keys(validate_topology(self.graph()))

    def _read(self, source: str | Text, key: str) -> Topology:
        """Read the topology as the file describes it."""
        own = {name for name in ("capacity", "delay", "hosts") if f"{name}_from" in self.model_fields_set}
        names = Attributes(self.capacity_from, self.delay_from, self.hosts_from, self.missing, frozenset(own))
        try:
            topology = read(source, self.format, directed=self.directed, attributes=names)
        except OSError as error:
            raise SpecError(f"{source}: {error.strerror}", key=key) from None
        except FormatError as error:
            raise SpecError(str(error), key=key) from None
        if self.directed is not None and topology.channels and self.directed != topology.directed:
            direction = "uni-directional" if topology.directed else "bi-directional"
            advice = "; pair_directions: true makes links of opposite ones" if topology.directed else ""
            raise SpecError(f"{source}: its channels are {direction}{advice}", key="directed")
        return topology

    def _paired(self, topology: Topology, source: str) -> Topology:
        """Pair opposite channels to links if ``pair_directions`` is set; warn where they are probably links."""
        paired, single = topology.paired_count
        if self.pair_directions:
            topology = topology.pair_directions()
        warning = unpaired_warning(single - paired) if self.pair_directions else ""
        if self.pair_directions is None:
            warning = pairs_warning(paired, single, "pair_directions: true")
        if warning:
            warn(f"{source}: {warning}")
        return topology

    def _largest(self, topology: Topology, source: str) -> Topology:
        """Return the largest strongly connected component, if it is large enough; warn of what is omitted."""
        component = largest_component(topology)
        if component is topology:
            return topology
        links, ends = ("channels", 1) if topology.directed else ("links", 2)
        every = [
            ("switches", component.switches, topology.switches),
            (links, component.channels // ends, topology.channels // ends),
            ("hosts", component.hosts, topology.hosts),
        ]
        shares = [(what, part, whole) for what, part, whole in every if whole]
        share_texts = ", ".join(
            f"{part} of {whole} {what} ({100 * part / whole:.0f} %)" for what, part, whole in shares
        )
        if any(part < self.component_share * whole for _, part, whole in shares):
            least = f"which is less than component_share: {self.component_share:g}"
            advice = self._advice(topology)
            raise SpecError(f"{source}: the largest part has only {share_texts}, {least}{advice}", key="component")
        warn(f"{source}: the largest part is kept: {share_texts}", "component")
        return component

    def _with_ejection(self, topology: Topology, ejection: list[int | str]) -> Topology:
        """Return the topology with the hosts of ``hosts``, else of the file, which eject at other switches."""
        if "hosts_per_switch" in self.model_fields_set:
            raise SpecError("ejection needs hosts for each switch: give hosts", key="hosts_per_switch")
        if self.hosts is not None:
            topology = topology.with_hosts(self._host_counts(topology, self.hosts), topology.host_capacity)
        if not topology.hosts:
            raise SpecError("needs hosts: the file places none, and hosts is missing", key="ejection")
        if len(ejection) != topology.hosts:
            raise SpecError(f"{len(ejection)} switches for {topology.hosts} hosts", key="ejection")
        names = switch_names(topology)
        switches = [names.number(name, "ejection") for name in ejection]
        return topology.with_hosts(topology.host_count, topology.host_capacity, topology.host_delay, switches)

    def _with_hosts(self, topology: Topology) -> Topology:
        if self.ejection is None:
            return super()._with_hosts(topology)
        capacity = self.host_capacity if "host_capacity" in self.model_fields_set else topology.host_capacity
        return replace(topology, host_capacity=capacity)

    def _require_connected(self, topology: Topology) -> None:
        if (pair := topology.unreachable_pair()) is None:
            return
        names = switch_names(topology)
        u, v = (names.label(end) for end in pair)
        source, key = source_of(self.path, self.text), "path" if self.text is None else "text"
        problem = f"{source}: not strongly connected: no path from switch {u} to switch {v}{self._advice(topology)}"
        advice = "" if topology.is_multistage else "; component: largest takes the largest part"
        raise SpecError(f"{problem}{advice}", key=key)

    def _advice(self, topology: Topology) -> str:
        """Return advice about uni-directional channels, where edges may be meant as links."""
        kind = topology.notes.get("file_kind", topology.kind)
        may_be_links = kind in ("edgelist", "gml", "graphml") and self.directed is None
        if not may_be_links or not topology.directed:
            return ""
        return f"; directed: false if {'lines' if kind == 'edgelist' else 'edges'} are bi-directional links"


def largest_component(topology: Topology) -> Topology:
    """Return the largest strongly connected component; among equals the one with the first switch.

    Switches keep their order. ``notes`` state how many switches were omitted, and keep the labels of the others. A
    connected topology is returned unchanged.
    """
    n = topology.switches
    matrix = csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
    count, component_of = connected_components(matrix, directed=True, connection="strong")
    if count == 1:
        return topology
    sizes = np.bincount(component_of)
    is_member = component_of == next(one for one in component_of if sizes[one] == sizes.max())
    labels = topology.notes.get("labels", [str(v) for v in range(n)])
    whole = replace(topology, notes={**topology.notes, "labels": labels}, grid=None)
    component = subtopology(whole, is_member, is_member[topology.src] & is_member[topology.dst])
    return replace(component, notes={**component.notes, "switches_left_out": int(n - is_member.sum())})
