# SPDX-License-Identifier: Apache-2.0
"""Topology files of the RDMA simulators on ns-3, HPCC, ASTRA-sim and SimAI, and rates and times as these write them."""

import re
from math import inf, isinf
from typing import NamedTuple

import numpy as np

from flitlab.models.delimited import is_number
from flitlab.models.readable import FilePath, Readable
from flitlab.models.topology.file_delays import LINK_GBPS, OF_HOSTS_NS, stated_delays
from flitlab.models.topology.formats.attributed import Attributes
from flitlab.models.topology.formats.common import (
    HOSTS_NS,
    PAIRS,
    GraphBuilder,
    need_links,
    omitted_directions,
    omitted_features,
    text_of,
    write_lines,
)
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE

_BITS = {"b": 1, "B": 8}
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
RATE = rf"{NUMBER}(?:[kKMGT]|Ki|Mi|Gi)?(?:bps|b/s|Bps|B/s)"
"""A rate, such as 100Gbps."""

TIME = rf"{NUMBER}(?:s|ms|us|ns|ps)"
"""A time, such as 0.0005ms."""


def gbps(text: str) -> float:
    """Return a rate in Gbit/s. Raises ``ValueError``.

    >>> gbps("100Gbps"), gbps("12.5GB/s"), gbps("500Mbps"), gbps(".5Gbps")
    (100.0, 100.0, 0.5, 0.5)
    """
    if not re.fullmatch(RATE, text):
        raise ValueError(f"{text!r} is no rate such as 100Gbps")
    number, prefix, unit = re.fullmatch(rf"({NUMBER})(.*?)([bB])(?:ps|/s)", text).groups()  # type: ignore[union-attr]
    return _finite(text, float(number) * _PREFIX[prefix] * _BITS[unit] / 1e9)


def nanoseconds(text: str) -> float:
    """Return a time in ns. Raises ``ValueError``.

    >>> nanoseconds("0.0005ms"), nanoseconds("1us")
    (500.0, 1000.0)
    """
    match = re.fullmatch(rf"({NUMBER})([a-z]+)", text)
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f"{text!r} is no time such as 500ns")
    return round(_finite(text, float(match[1]) * _SECONDS[match[2]] * 1e9), 9)


def _finite(text: str, value: float) -> float:
    """Return a value. Raises ``ValueError`` if it overflows."""
    if value == inf:
        raise ValueError(f"{text} is more than a number can hold")
    return value


class _HostLink(NamedTuple):
    """A link of a host. line: where it stands. switch: its other end. rate: Gbit/s. delay: ns."""

    line: int
    switch: int
    rate: float
    delay: float


def read_ns3(
    path: Readable,
    attributes: Attributes = Attributes(),  # noqa: B008 it is frozen
    directed: bool | None = None,
) -> Topology:
    """Read links ``node node rate delay error_rate`` between switches, and between a host and its switch.

    The first line is ``nodes switches links`` (SimAI: ``nodes gpus_per_server nvswitches switches links gpu``, and
    perhaps one more number), the second names the switches; all other nodes are hosts. Capacities are relative to the
    rate of hosts, which is the note ``link_gbps``; ``rate_gbps`` and ``delay_ns`` are columns, the note
    ``host_delay_ns`` has the delays of hosts. If some host has several links, as the GPUs of SimAI, each host becomes
    two switches, where it injects and ejects (labels ``0`` and ``0 receives``), with the channels that it sends or
    receives on, so that no packet passes through a host; the host injects as much as all its links take, and capacities
    are relative to the slowest of them. Without switches, each
    node is a switch with a host that sends as much as all links of the node take, capacities are relative to the rate
    of the first link, and a warning says that packets pass through nodes, which ns-3 does not let them.

    Parameters
    ----------
    path: file or text.
    attributes: not used: capacities have a unit.
    directed: not used: all links are bi-directional.

    Raises
    ------
    OSError, FormatError: as all readers; also for hosts with a link each, of different rates.

    Source: simulation/README.md of github.com/alibaba-edu/High-Precision-Congestion-Control.
    """
    network = GraphBuilder(path)
    lines = [(number, line.split()) for number, line in enumerate(text_of(path).splitlines(), 1) if line.strip()]
    if len(lines) < 2:
        network.fail(1, "expected nodes, switches and links on the first line, and the switches on the second")
    nodes, switches, links = _counts(network, *lines[0])
    if nodes < 1:
        network.fail(1, "no nodes")
    if nodes > MAX_SIZE:
        network.fail(1, f"{nodes} nodes; at most {MAX_SIZE} are built")
    (number, named), body = lines[1] if switches else (1, []), lines[1 + (switches > 0) :]
    is_switch = {network.whole(number, "switch", word) for word in named}
    if len(is_switch) != switches or max(is_switch, default=0) >= nodes:
        network.fail(number, f"{len(is_switch)} switches below {nodes} are expected to be {switches}")
    if len(body) < links:
        network.fail(lines[0][0], f"{links} links are announced, {len(body)} follow")
    if len(body) > links:
        network.warn(f"{links} links are announced: what follows them is not read", body[links][0])
        del body[links:]
    if not switches:
        network.warn("no switches: each node is one, with a host; packets pass through nodes, as they do not in ns-3")
    for switch in sorted(is_switch) or range(nodes):
        network.node(str(switch))
    host_links: dict[int, list[_HostLink]] = {}
    between = []
    lossy = [(number, words[4]) for number, words in body if len(words) == 5 and words[4].strip("0.")]
    for number, words in body:
        u, v, rate, delay = _link(network, number, words, nodes)
        if not switches or (u in is_switch and v in is_switch):
            between.append((number, u, v, rate, delay))
            continue
        host, switch = (v, u) if u in is_switch else (u, v)
        if switch not in is_switch:
            network.fail(number, f"nodes {u} and {v} are both hosts: links of hosts lead to switches")
        host_links.setdefault(host, []).append(_HostLink(number, switch, rate, delay))
    if lossy:
        network.warn(f"error_rate {lossy[0][1]} is not read: links lose no packets", lossy[0][0])
    linked = is_switch | host_links.keys() if switches else {node for _, u, v, _, _ in between for node in (u, v)}
    if unlinked := sorted(set(range(nodes)) - linked):
        network.fail(1, f"node {unlinked[0]} is no switch and has no link")
    several = next((links for links in host_links.values() if len(links) > 1), None)
    rates = sorted({link.rate for links in host_links.values() for link in links})
    if len(rates) > 1 and not several:
        advice = "make a host with a slower link a node of its own, with one host, in an edge list"
        network.fail(1, f"hosts have links of {rates[0]:g} and {rates[-1]:g} Gbit/s: one rate is read; {advice}")
    unit = rates[0] if rates else 1.0 if switches else between[0][3]
    for number, u, v, rate, delay in between:
        network.link(number, str(u), str(v), repr(rate / unit), attributes=_stated(rate, delay))
    network.parallel = True
    if several:
        network.warn(
            "a host has several links: each host is two switches, of its injection and ejection", several[1].line
        )
        return _with_switches_of_hosts(network, host_links, unit)
    hosts = dict.fromkeys(network.nodes, 0 if switches else 1)
    for (link,) in host_links.values():
        hosts[str(link.switch)] += 1
    topology = network.topology("ns3", hosts, link_gbps=unit)
    if not switches:
        of_node = np.bincount(topology.src, topology.capacity, topology.switches)
        return topology.with_hosts(topology.host_count, float(of_node.max()))
    at = {int(label): i for i, label in enumerate(topology.notes.get("labels", range(topology.switches)))}
    order = sorted(host_links, key=lambda host: (at[host_links[host][0].switch], host))
    if order != list(range(len(order))):
        topology.notes["nodes"] = order
    topology.notes[OF_HOSTS_NS] = [host_links[host][0].delay for host in order]
    return topology


def _with_switches_of_hosts(network: GraphBuilder, host_links: dict[int, list[_HostLink]], unit: float) -> Topology:
    """Return the network in which hosts inject at switches without channels to them, and eject at ones without
    channels from them.

    Parameters
    ----------
    network: with switches and the links between them.
    host_links: of each host.
    unit: Gbit/s of capacity 1.
    """
    hosts = {str(host): f"{host} receives" for host in sorted(host_links)}
    for label in (*hosts, *hosts.values()):
        network.node(label)
    for host, links in host_links.items():
        for line, switch, rate, delay in links:
            for tail, head in ((str(host), str(switch)), (str(switch), hosts[str(host)])):
                network.channel(line, tail, head, repr(rate / unit), "0", attributes=_stated(rate, delay))
    topology = network.topology("ns3", dict.fromkeys(hosts, 1), link_gbps=unit)
    most = max(sum(link.rate for link in links) for links in host_links.values())
    ejection = [network.nodes[label] for label in hosts.values()]
    return topology.with_hosts(topology.host_count, most / unit, ejection=ejection)


def _stated(rate: float, delay: float) -> dict[str, str]:
    """Return the columns of a channel of a rate in Gbit/s and a delay in ns."""
    return {"rate_gbps": repr(rate), "delay_ns": repr(delay)}


def _counts(network: GraphBuilder, number: int, words: list[str]) -> tuple[int, int, int]:
    """Return how many nodes, switches and links the first line announces."""
    if len(words) != 3 and (len(words) not in (6, 7) or words[5].isdecimal()):
        network.fail(number, "expected: nodes switches links, or nodes gpus_per_server nvswitches switches links gpu")
    counts = [network.whole(number, "count", word) for word in words[:5]]
    if len(words) == 3:
        return counts[0], counts[1], counts[2]
    return counts[0], counts[2] + counts[3], counts[4]


def _link(network: GraphBuilder, number: int, words: list[str], nodes: int) -> tuple[int, int, float, float]:
    """Return both ends, Gbit/s and ns of a link."""
    if len(words) not in (4, 5):
        network.fail(number, f"{len(words)} fields where node node rate delay error_rate are expected")
    u, v = (network.whole(number, "node", word) for word in words[:2])
    if max(u, v) >= nodes:
        network.fail(number, f"node {max(u, v)} where nodes are 0 .. {nodes - 1}")
    if len(words) == 5 and not is_number(words[4]):
        network.fail(number, f"error_rate {words[4]!r} is not a number")
    try:
        rate, delay = gbps(words[2]), nanoseconds(words[3])
    except ValueError as error:
        network.fail(number, str(error))
    if rate <= 0:
        network.fail(number, f"rate {words[2]} must be positive")
    return u, v, rate, delay


def write_ns3(topology: Topology, path: FilePath) -> list[str]:
    """Write hosts as nodes 0 .. H - 1, then switches, with the rate of the note ``link_gbps`` (100) for capacity 1.

    A link has the delay that a file states for it; without any, 0 ns. Where each switch has one host that sends as
    much as all its links take, without a delay, as in files without switches, nodes are written without switches.
    Returns what the file does not keep. Raises :class:`~flitlab.models.topology.formats.CannotWriteError` if some
    channel is uni-directional.
    """
    need_links(topology, "ns3")
    stated = stated_delays(topology)
    delay, of_hosts = stated or (np.zeros(topology.channels), np.zeros(topology.hosts))
    unit = float(topology.notes.get(LINK_GBPS, 100.0))
    once = [c for c in range(topology.channels) if c < topology.reverse[c]]
    if stated is not None and _is_of_nodes(topology) and not of_hosts.any():
        first, lines = 0, [f"{topology.switches} 0 {len(once)}"]
    else:
        first, rate = topology.hosts, topology.host_capacity
        if isinf(rate):
            rate = max(float(topology.capacity.sum()), 1.0)
        lines = [f"{first + topology.switches} {topology.switches} {first + len(once)}"]
        lines.append(" ".join(str(first + v) for v in range(topology.switches)))
        hosts = zip(range(topology.hosts), topology.host_switch.tolist(), of_hosts.tolist(), strict=True)
        lines += [f"{h} {first + v} {unit * rate:.15g}Gbps {ns:.15g}ns 0" for h, v, ns in hosts]
    for c in once:
        ends = f"{first + topology.src[c]} {first + topology.dst[c]}"
        lines.append(f"{ends} {unit * topology.capacity[c]:.15g}Gbps {delay[c]:.15g}ns 0")
    write_lines(path, lines)
    return [
        *omitted_features(
            topology, "hosts", "host_capacity", "capacities", "parallel channels", PAIRS, LINK_GBPS, HOSTS_NS
        ),
        *omitted_directions(topology, capacities=topology.capacity, delays=delay),
        *(
            ["an infinite host_capacity (that of all channels together is written)"]
            if isinf(topology.host_capacity)
            else []
        ),
        *([] if LINK_GBPS in topology.notes else ["that the rate of links is unknown (100 Gbit/s is written)"]),
    ]


def _is_of_nodes(topology: Topology) -> bool:
    """Whether each switch is a node with one host, which sends as much as all links of the widest node take."""
    of_node = np.bincount(topology.src, topology.capacity, topology.switches)
    return bool((topology.host_count == 1).all()) and topology.host_capacity == of_node.max(initial=0.0)


FORMATS = (
    FileFormat(
        "ns3",
        sign=re.compile(
            r"\A\s*\d+[^\n]*\n([\d \t\r]*\n)?\s*\d+\s+\d+\s+([\d.]+[A-Za-z/]+\s+-?[\d.]+[a-z]*|\S*[bB](ps|/s))\s"
        ),
        suffixes=(".ns3",),
        read=read_ns3,
        write=write_ns3,
    ),
)
