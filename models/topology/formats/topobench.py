# SPDX-License-Identifier: Apache-2.0
"""Graph files of topobench, the throughput tool of SIN and MUT."""

from collections import Counter
from collections.abc import Hashable
from typing import Literal, TypeVar, get_args

from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.formats.common import (
    PAIRS,
    GraphBuilder,
    need_links,
    omitted_directions,
    omitted_features,
    text_of,
    write_lines,
)
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import Topology

K = TypeVar("K", bound=Hashable)

Layout = Literal["topobench", "topobench_servers", "topobench_capacities"]
"""Fields of a line after the switch: neighbours; servers and neighbours; servers and neighbours with capacities."""


def write_topobench(topology: Topology, path: FilePath, layout: Layout = "topobench") -> list[str]:
    """Write a line for every switch with the links to switches of higher number.

    Parallel links become one, of their total capacity in ``topobench_capacities``, which holds whole numbers only:
    others are rounded, to 1 at least.

    Parameters
    ----------
    topology: the network.
    path: the file.
    layout: fields of a line.

    Returns
    -------
    The features that the file does not keep.

    Raises
    ------
    CannotWriteError: a channel is uni-directional.
    """
    need_links(topology, "topobench")
    lines, rounded = [], False
    for v in range(topology.switches):
        capacities: Counter[int] = Counter()
        for c in range(*topology.out_start[v : v + 2]):
            if topology.dst[c] > v:
                capacities[int(topology.dst[c])] += topology.capacity[c]
        words = [v] if layout == "topobench" else [v, int(topology.host_count[v])]
        for other, capacity in capacities.items():
            whole = max(1, round(capacity))
            rounded = rounded or whole != capacity
            words += [other, whole] if layout == "topobench_capacities" else [other]
        lines.append(" ".join(map(str, words)))
    write_lines(path, lines)
    match layout:
        case "topobench":
            return omitted_features(topology, PAIRS)
        case "topobench_servers":
            return omitted_features(topology, PAIRS, "hosts")
    missing = omitted_features(topology, PAIRS, "hosts", "capacities")
    missing += omitted_directions(topology, capacities=topology.capacity)
    return [*missing, "fractions of capacities"] if rounded else missing


def read_topobench(path: Readable, layout: Layout = "topobench") -> Topology:
    """Read a graph file of topobench: lines of whole numbers, each beginning with a switch, without comments.

    * ``topobench``: the switch, then its neighbours (GraphFromFile, the files of graphRepo). A switch may have
      several lines. No hosts; topobench itself gives a switch as many as it has links.
    * ``topobench_servers``: the switch, its servers, its neighbours (GraphFileServers, GraphFromFileServerDist).
    * ``topobench_capacities``: the switch, its servers, then pairs neighbour, capacity (GraphFileServers with
      heterCap).

    Every link is bi-directional and counts once however often it is named; where that is twice in the same direction a
    warning says so. Servers may be named again only if their number agrees, and so may capacities.

    Raises ``OSError`` or :class:`~flitlab.models.topology.formats.FormatError`.

    Source: lpmaker/graphs/GraphFromFile.java and GraphFileServers.java, github.com/ankitsingla/topobench.
    """
    network = GraphBuilder(path)
    servers: dict[str, tuple[str, int]] = {}
    links: dict[tuple[str, str], tuple[str, int]] = {}
    named: set[tuple[str, str]] = set()
    repeated: list[int] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        words = [str(network.whole(number, "entry", word)) for word in line.split()]
        if not words:
            continue
        switch, rest = words[0], words[1:]
        network.node(switch)
        if layout != "topobench":
            if not rest:
                network.fail(number, f"switch {switch} without its number of servers")
            count, *rest = rest
            _agree(network, number, servers, switch, count, f"servers of switch {switch}")
        step = 2 if layout == "topobench_capacities" else 1
        if len(rest) % step:
            network.fail(number, f"neighbour {rest[-1]} without a capacity")
        for i in range(0, len(rest), step):
            ends = (switch, rest[i]) if int(switch) < int(rest[i]) else (rest[i], switch)
            network.node(rest[i])
            repeated += [number] * ((switch, rest[i]) in named)
            named.add((switch, rest[i]))
            capacity = rest[i + 1] if step == 2 else "1"
            _agree(network, number, links, ends, capacity, f"capacity between {switch} and {rest[i]}")
    if repeated:
        phrase = "neighbours are" if len(repeated) > 1 else "neighbour is"
        network.warn(f"{len(repeated)} {phrase} named twice: each is one link", repeated[0])
    for (u, v), (capacity, number) in links.items():
        network.link(number, u, v, capacity)
    hosts = None
    if layout != "topobench":
        hosts = {switch: int(count) for switch, (count, _) in servers.items()}
    return network.topology(layout, hosts)


def _agree(network: GraphBuilder, number: int, known: dict[K, tuple[str, int]], key: K, value: str, what: str) -> None:
    """Store a value, or reject the line if it contradicts a stored one."""
    first, line = known.setdefault(key, (value, number))
    if first != value:
        network.fail(number, f"{what}: {value} contradicts {first} on line {line}")


def _format(layout: Layout) -> FileFormat:
    return FileFormat(
        layout,
        (f".{layout}",),
        read=without_attributes(lambda path: read_topobench(path, layout)),
        write=lambda topology, path: write_topobench(topology, path, layout),
    )


FORMATS = tuple(_format(layout) for layout in get_args(Layout))
