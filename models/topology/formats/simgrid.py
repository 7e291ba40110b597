# SPDX-License-Identifier: Apache-2.0
"""SimGrid platform files."""

import math
import re

from flitlab.models.readable import FilePath
from flitlab.models.topology.formats.common import HOST_DELAYS, omitted_features, write_lines
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology

UNLIMITED_BANDWIDTH = 1e6
"""The number that represents an infinite capacity."""


def write_simgrid(
    topology: Topology, path: FilePath, *, gbps: float = 40.0, speed_gflops: float = 100.0, link_ns: float = 118.0,
    host_ns: float = 20.0, tick_ns: float = 2.667,
) -> list[str]:  # fmt: skip
    """Write a platform for SimGrid 3.21 and later: hosts h0, h1, ..., routers s0, s1, ... in one Dijkstra zone.

    Every channel is a link with a uni-directional route, so uni-directional networks keep their directions; SimGrid
    then routes along the fewest links. Parallel channels, of which its routing would use one, become one channel with
    their total bandwidth and least delay. A host capacity above a million, also an infinite one, is written as a
    million. The default values are those of Koibuchi et al. (CLUSTER 2017), sections III and IV.

    Parameters
    ----------
    topology: the network.
    path: the file; an existing one is replaced.
    gbps: bandwidth of capacity 1, Gbit/s.
    speed_gflops: speed of a host, Gflop/s.
    link_ns: latency of a channel and the switch at its end, without the channel's own delay, ns.
    host_ns: latency of a host's cable, without its own delay, ns.
    tick_ns: duration of a tick, the unit of delays, ns.

    Returns
    -------
    The features that the file does not keep, in words; empty if it keeps all.

    Raises
    ------
    OSError: the file cannot be written.

    Source: platform reference of SimGrid, https://simgrid.org/doc/latest/Platform.html.
    """
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        f"<!-- {_safe(topology.kind)}: {topology.switches} switches, {topology.channels} channels, "
        f"{topology.hosts} hosts.",
        f"     Capacity 1 is {gbps:g} Gbit/s. Latencies: {link_ns:g} ns a channel and the switch at its end, "
        f"{tick_ns:g} ns a tick of delay, {host_ns:g} ns a host's cable.",
        "     SimGrid scales latencies and bandwidths by factors fitted to TCP",
        "     unless it is given the option cfg=network/model:CM02. -->",
        '<platform version="4.1">',
        '<zone id="network" routing="Dijkstra">',
    ]
    lines += [f'  <host id="h{h}" speed="{speed_gflops:g}Gf"/>' for h in range(topology.hosts)]
    lines += [f'  <router id="s{v}"/>' for v in range(topology.switches)]
    host_gbps = gbps * min(topology.host_capacity, UNLIMITED_BANDWIDTH)
    routes = [
        (end, host_gbps, host_ns + tick_ns * delay)
        for h, (v, delay) in enumerate(zip(topology.host_switch, topology.access_delay.tolist(), strict=True))
        for end in ((f"h{h}", f"s{v}"), (f"s{v}", f"h{h}"))
    ]
    for (u, v), (capacity, delay) in _merged(topology).items():
        routes.append(((f"s{u}", f"s{v}"), gbps * capacity, link_ns + tick_ns * delay))
    for (a, b), bandwidth, latency in routes:
        lines.append(f'  <link id="{a}-{b}" bandwidth="{bandwidth:.12g}Gbps" latency="{latency:.12g}ns"/>')
    for (a, b), _, _ in routes:
        lines.append(f'  <route src="{a}" dst="{b}" symmetrical="NO"><link_ctn id="{a}-{b}"/></route>')
    write_lines(path, [*lines, "</zone>", "</platform>"])
    missing = omitted_features(topology, "hosts", "host_capacity", "capacities", "delays", HOST_DELAYS)
    unlimited = math.isinf(topology.host_capacity)
    return [*missing, f"an infinite host_capacity ({UNLIMITED_BANDWIDTH:g} is written)"] if unlimited else missing


def _merged(topology: Topology) -> dict[tuple[int, int], tuple[float, int]]:
    """Return (src, dst) -> total capacity and least delay of parallel channels."""
    merged: dict[tuple[int, int], tuple[float, int]] = {}
    columns = (topology.src, topology.dst, topology.capacity, topology.delay)
    for u, v, capacity, delay in zip(*(column.tolist() for column in columns), strict=True):
        before, least = merged.get((u, v), (0.0, delay))
        merged[u, v] = before + capacity, min(least, delay)
    return merged


def _safe(text: str) -> str:
    """Make a text valid in an XML comment."""
    return text.replace("--", "- -")


FORMATS = (FileFormat("simgrid", (".xml",), re.compile("<platform"), write=write_simgrid),)
