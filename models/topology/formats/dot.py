# SPDX-License-Identifier: Apache-2.0
"""Writer of Graphviz files."""

import json
import re

from flitlab.models.readable import FilePath
from flitlab.models.topology.formats.common import HOST_DELAYS, PAIRS, omitted_features, write_lines
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names


def write_dot(topology: Topology, path: FilePath) -> list[str]:
    """Write a Graphviz digraph: switches 0, 1, ... with their labels, hosts h0, h1, ... small and grey.

    A link is one edge without arrow heads if its channels are alike, every other channel an edge of its own.
    Capacities other than 1 and delays other than 0, also of hosts, are attributes of the edges. Returns what the file
    does not keep.

    Source: the DOT language, https://graphviz.org/doc/info/lang.html.
    """
    names = switch_names(topology)
    lines = [
        f"digraph {json.dumps(topology.kind)} {{",
        "  node [shape=circle, fixedsize=true, width=0.4, fontsize=10];",
        *(f"  {v}{_label(names.label(v)) if names.labelled else ''};" for v in range(topology.switches)),
    ]
    capacity, delay = topology.capacity.tolist(), topology.delay.tolist()
    for c, (u, v, other) in enumerate(zip(topology.src, topology.dst, topology.reverse, strict=True)):
        link = other >= 0 and (capacity[c], delay[c]) == (capacity[other], delay[other])
        if link and other < c:
            continue
        values = ["dir=none"] if link else []
        values += [f"capacity={capacity[c]!r}"] if capacity[c] != 1 else []
        values += [f"delay={delay[c]}"] if delay[c] else []
        lines.append(f"  {u} -> {v}{_attributes(values)};")
    if topology.hosts:
        lines.append("  node [shape=point, width=0.08, color=gray];")
        for h, (v, ticks) in enumerate(zip(topology.host_switch, topology.access_delay.tolist(), strict=True)):
            values = ["dir=none", "color=gray", *([f"delay={ticks}"] if ticks else [])]
            lines.append(f"  h{h} -> {v}{_attributes(values)};")
    write_lines(path, [*lines, "}"])
    return omitted_features(
        topology, "hosts", "capacities", "delays", HOST_DELAYS, "parallel channels", "labels", PAIRS
    )


def _label(text: str) -> str:
    return f" [label={json.dumps(text, ensure_ascii=False)}]"


def _attributes(values: list[str]) -> str:
    return f" [{', '.join(values)}]" if values else ""


FORMATS = (FileFormat("dot", (".dot", ".gv"), re.compile(r"\A\s*(strict\s+)?(di)?graph\b[^\[{]*\{"), write=write_dot),)
