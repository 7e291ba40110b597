# SPDX-License-Identifier: Apache-2.0
"""SimGrid platform files."""

import math
import re

import numpy as np

from flitlab.models.readable import FilePath
from flitlab.models.topology.file_delays import LINK_GBPS, stated_delays
from flitlab.models.topology.formats.common import (
    HOST_DELAYS,
    HOSTS_NS,
    omitted_features,
    write_lines,
)
from flitlab.models.topology.formats.format import FileFormat
from flitlab.models.topology.graph import Topology

UNLIMITED_BANDWIDTH = 1e6
"""The number that represents an infinite capacity."""


def write_simgrid(
    topology: Topology, path: FilePath, *, gbps: float | None = None, speed_gflops: float = 100.0,
    link_ns: float = 118.0, host_ns: float = 20.0, tick_ns: float = 2.667,
) -> list[str]:  # fmt: skip
    """Write a platform for SimGrid 3.21 and later: hosts h0, h1, ..., routers s0, s1, ... in one Dijkstra zone.

    Every channel is a link with a uni-directional route, so uni-directional networks keep their directions; SimGrid
    then routes along the fewest links. Parallel channels, of which its routing would use one, become one channel with
    their total bandwidth and least delay. A host capacity above a million, also an infinite one, is written as a
    million. The default values are those of Koibuchi et al. (CLUSTER 2017), sections III and IV. Rate and delays that
    the topology's own file states in a unit of time take their place.

    Parameters
    ----------
    topology: the network.
    path: the file; an existing one is replaced.
    gbps: bandwidth of capacity 1, Gbit/s. None: that of the topology's file, else 40.
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
    gbps = float(topology.notes.get(LINK_GBPS, 40.0)) if gbps is None else gbps
    stated = stated_delays(topology)
    if stated is None:
        latency, host_latency = link_ns + tick_ns * topology.delay, host_ns + tick_ns * topology.access_delay
        said = f"{link_ns:g} ns a channel and the switch at its end, {tick_ns:g} ns a tick of delay, {host_ns:g} ns"
        said += " a host's cable"
    else:
        (latency, host_latency), said = stated, "those of the topology's file"
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        f"<!-- {_safe(topology.kind)}: {topology.switches} switches, {topology.channels} channels, "
        f"{topology.hosts} hosts.",
        f"     Capacity 1 is {gbps:g} Gbit/s. Latencies: {said}.",
        "     SimGrid scales latencies and bandwidths by factors fitted to TCP",
        "     unless it is given the option cfg=network/model:CM02. -->",
        '<platform version="4.1">',
        '<zone id="network" routing="Dijkstra">',
    ]
    lines += [f'  <host id="h{h}" speed="{speed_gflops:g}Gf"/>' for h in range(topology.hosts)]
    lines += [f'  <router id="s{v}"/>' for v in range(topology.switches)]
    host_gbps = gbps * min(topology.host_capacity, UNLIMITED_BANDWIDTH)
    routes = [
        (end, host_gbps, delay)
        for h, (v, delay) in enumerate(zip(topology.host_switch, host_latency.tolist(), strict=True))
        for end in ((f"h{h}", f"s{v}"), (f"s{v}", f"h{h}"))
    ]
    for (u, v), (capacity, delay) in _merged(topology, latency).items():
        routes.append(((f"s{u}", f"s{v}"), gbps * capacity, delay))
    for (a, b), bandwidth, latency in routes:
        lines.append(f'  <link id="{a}-{b}" bandwidth="{bandwidth:.12g}Gbps" latency="{latency:.12g}ns"/>')
    for (a, b), _, _ in routes:
        lines.append(f'  <route src="{a}" dst="{b}" symmetrical="NO"><link_ctn id="{a}-{b}"/></route>')
    write_lines(path, [*lines, "</zone>", "</platform>"])
    missing = omitted_features(
        topology, "hosts", "host_capacity", "capacities", "delays", HOST_DELAYS, LINK_GBPS, HOSTS_NS
    )
    unlimited = math.isinf(topology.host_capacity)
    return [*missing, f"an infinite host_capacity ({UNLIMITED_BANDWIDTH:g} is written)"] if unlimited else missing


def _merged(topology: Topology, latency: np.ndarray) -> dict[tuple[int, int], tuple[float, float]]:
    """Return (src, dst) -> total capacity and least latency, ns, of parallel channels."""
    merged: dict[tuple[int, int], tuple[float, float]] = {}
    columns = (topology.src, topology.dst, topology.capacity, latency)
    for u, v, capacity, delay in zip(*(column.tolist() for column in columns), strict=True):
        before, least = merged.get((u, v), (0.0, delay))
        merged[u, v] = before + capacity, min(least, delay)
    return merged


def _safe(text: str) -> str:
    """Make a text valid in an XML comment."""
    return text.replace("--", "- -")


FORMATS = (FileFormat("simgrid", (".xml",), re.compile("<platform"), write=write_simgrid),)
