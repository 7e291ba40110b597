# SPDX-License-Identifier: Apache-2.0
"""BookSim 2 network files (``topology = anynet``)."""

import re
from dataclasses import replace

import numpy as np

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.common import (
    BY_DELAY,
    HOST_DELAYS,
    PAIRS,
    GraphBuilder,
    need_links,
    omitted_features,
    text_of,
    write_lines,
)
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import DELAY, HOPS, Topology


def write_anynet(topology: Topology, path: FilePath) -> list[str]:
    """Write a line ``router r node h ... router s [latency] ...`` for every switch, all neighbours with latencies.

    The latency of a channel and of a node, in cycles, is the delay + 1, left out where it is 1, BookSim's own. Parallel
    links become one of their least delay. Returns what the file does not keep, among it that packets are routed by hops
    where latencies differ: BookSim routes such a file by these.

    Raises :class:`~flitlab.models.topology.formats.CannotWriteError` if some channel is uni-directional.
    """
    need_links(topology, "anynet")
    lines: list[str] = []
    written: set[int] = set()
    for v in range(topology.switches):
        hosts = range(*topology.host_start[v : v + 2])
        words = [f"router {v}", *(_with_latency(f"node {h}", int(topology.access_delay[h])) for h in hosts)]
        delays: dict[int, int] = {}
        for c in range(*topology.out_start[v : v + 2]):
            other, delay = int(topology.dst[c]), int(topology.delay[c])
            delays[other] = min(delay, delays.get(other, delay))
        written.update(delays.values())
        words += [_with_latency(f"router {w}", delay) for w, delay in delays.items()]
        lines.append(" ".join(words))
    write_lines(path, lines)
    by_hops = len(written) > 1 and topology.default_weight == HOPS
    return omitted_features(topology, "hosts", "delays", HOST_DELAYS, PAIRS, BY_DELAY) + ["routing by hops"] * by_hops


def _with_latency(item: str, delay: int) -> str:
    """
    >>> _with_latency("node 0", 4), _with_latency("router 1", 0)
    ('node 0 5', 'router 1')
    """
    return f"{item} {delay + 1}" if delay else item


def read_anynet(path: Readable) -> Topology:
    """Read a BookSim 2 network file.

    A line is ``router R`` followed by any number of ``node H`` and ``router S [latency]``, or ``node H`` followed by
    ``router R``. Naming a router once, on either line, makes a bi-directional link; a latency (cycles, 1 if
    absent) holds for the direction in which it is written, that of a node for both its injection and its ejection
    channel. The delay is the latency - 1. Where channels between routers differ in latency, ``default_weight`` is
    ``delay``: BookSim routes such a file by latencies. Hosts are numbered switch by switch; where the file numbers its
    nodes otherwise, notes["nodes"] lists their numbers in our order.

    Raises ``OSError`` or :class:`~flitlab.models.topology.formats.FormatError`, also where BookSim would take the last
    of two contradicting statements.

    Source: src/networks/anynet.cpp and src/examples/anynet/README of BookSim 2, github.com/booksim/booksim2.
    """
    reader = _AnynetReader(path)
    for number, line in enumerate(text_of(path).splitlines(), 1):
        reader.line(number, line.lower().split())
    return reader.topology()


class _AnynetReader:
    def __init__(self, path: Readable) -> None:
        self.network = GraphBuilder(path)
        self.latency: dict[tuple[str, str], tuple[int, int]] = {}  # (from, to) -> latency, line
        self.router_of: dict[int, tuple[str, int, int]] = {}  # node -> router, latency, line

    def line(self, number: int, words: list[str]) -> None:
        """Parse one line: nothing, or a router or node and what is joined to it."""
        if not words:
            return
        head, *body = self._items(number, words)
        if head[0] == "router":
            self.network.node(head[1])
        if head[2] is not None:
            self.network.fail(number, f"{head[2]} where 'node' or 'router' is expected")
        for item in body:
            match head[0], item[0]:
                case "router", "router":
                    self._join(number, head[1], item[1], item[2])
                case "router", "node":
                    self._place(number, item[1], head[1], item[2])
                case "node", "router":
                    self._place(number, head[1], item[1], item[2])
                case _:
                    self.network.fail(number, f"node {head[1]} cannot be joined to node {item[1]}")

    def _items(self, number: int, words: list[str]) -> list[tuple[str, str, int | None]]:
        """Return triples (type, id, latency or None)."""
        items: list[tuple[str, str, int | None]] = []
        rest = iter(words)
        for word in rest:
            if word in ("router", "node"):
                label = next(rest, None)
                if label is None:
                    self.network.fail(number, f"{word} without a number at the end of the line")
                items.append((word, str(self.network.whole(number, word, label)), None))
            elif items and items[-1][2] is None and word.lstrip("-").isdigit():
                items[-1] = (*items[-1][:2], self.network.whole(number, "latency", word, 1))
            else:
                self.network.fail(number, f"{word!r} where 'node' or 'router' is expected")
        return items

    def _join(self, number: int, u: str, v: str, latency: int | None) -> None:
        for label in (u, v):
            self.network.node(label)
        value = latency or 1
        known, line = self.latency.setdefault((u, v), (value, number))
        if known != value:
            self.network.fail(number, f"latency {value} from router {u} to {v} contradicts {known} on line {line}")

    def _place(self, number: int, node: str, router: str, latency: int | None) -> None:
        self.network.node(router)
        value = latency or 1
        known, known_latency, line = self.router_of.setdefault(int(node), (router, value, number))
        if known != router:
            self.network.fail(
                number,
                f"node {node} is at router {known} by line {line}: it cannot be at {router} too "
                "(in an edge list, a host with several links is two switches, the second one named by ejection)",
            )
        if known_latency != value:
            self.network.fail(number, f"latency {value} of node {node} contradicts {known_latency} on line {line}")

    def topology(self) -> Topology:
        network = self.network
        for (u, v), (latency, line) in self.latency.items():
            back, _ = self.latency.get((v, u), (1, line))
            if u < v or (v, u) not in self.latency:
                network.link(line, u, v, delay=str(latency - 1), back=str(back - 1))
            elif u == v:
                network.channel(line, u, v, "1", "0")
        hosts = dict.fromkeys(network.nodes, 0)
        for router, _, _ in self.router_of.values():
            hosts[router] += 1
        topology = network.topology("anynet", hosts)
        labels = topology.notes.get("labels", [str(v) for v in range(topology.switches)])
        index_of = {label: i for i, label in enumerate(labels)}
        nodes = sorted(self.router_of, key=lambda node: (index_of[self.router_of[node][0]], node))
        if not np.array_equal(nodes, range(len(nodes))):
            topology.notes["nodes"] = nodes
        delay = [self.router_of[node][1] - 1 for node in nodes]
        weight = DELAY if len(np.unique(topology.delay)) > 1 else HOPS
        return replace(topology.with_hosts(topology.host_count, topology.host_capacity, delay), default_weight=weight)


FORMATS = (
    FileFormat(
        "anynet",
        (".anynet",),
        re.compile(r"^[ \t]*(router\s+\d+\s+(node|router)|node\s+\d+\s+router)\s+\d", re.MULTILINE | re.IGNORECASE),
        without_attributes(read_anynet),
        write_anynet,
    ),
)
