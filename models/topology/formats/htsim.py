# SPDX-License-Identifier: Apache-2.0
"""Fat trees of htsim: two or three tiers of switches by radix, speed and latency."""

import re

import numpy as np

from flitlab.models.delimited import number_of
from flitlab.models.readable import Readable
from flitlab.models.topology.file_delays import OF_HOSTS_NS
from flitlab.models.topology.formats.common import GraphBuilder, text_of
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE

TIER = {
    "downlink_speed_gbps": None, "radix_down": None, "radix_up": 0.0, "downlink_latency_ns": None,
    "switch_latency_ns": 0.0, "bundle": 1.0, "oversubscribed": 1.0, "queue_up": 0.0, "queue_down": 0.0,
}  # fmt: skip
"""Keys of a tier and their defaults; None: required."""

UNREAD = {"switch_latency_ns": "switch_ns", "queue_up": "queue_bytes", "queue_down": "queue_bytes"}
"""Keys of a tier that describe no network -> the key of ``switching`` in their place."""


def read_htsim(path: Readable) -> Topology:
    """Read a ``.topo`` file: ``Nodes``, ``Tiers`` and ``Podsize``, then ``Tier 0`` with its keys, ``Tier 1``, ...

    A switch of tier 0 has ``Radix_Down`` hosts. In a pod every switch of tier 0 has a bundle of links to each of tier
    1; the j-th switch of tier 1 in each pod has bundles to the j-th group of tier 2. Capacities are relative to the
    rate of hosts, which is the note ``link_gbps``; ``delay_ns`` is a column, the note ``host_delay_ns`` has the delays
    of hosts. ``Oversubscribed`` has to agree with the radices.

    Parameters
    ----------
    path: file or text.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: sim/datacenter/fat_tree_topology.cpp and topologies/README of github.com/Broadcom/csg-htsim.
    """
    network = GraphBuilder(path)
    whole, tiers = _sections(network, text_of(path))
    hosts, pod = whole["nodes"], whole.get("podsize", whole["nodes"])
    down = [_count(network, tier, "radix_down") for tier in tiers]
    up = [_count(network, tier, "radix_up") for tier in tiers[:-1]]
    bundle = [1, *(_count(network, tier, "bundle") for tier in tiers[1:])]
    pods = _divided(network, "Nodes", hosts, "Podsize", pod) if len(tiers) == 3 else 1
    edge = _divided(network, "Podsize" if pods > 1 else "Nodes", hosts // pods, "Radix_Down of tier 0", down[0])
    if len(tiers) == 2 and pod != hosts:
        network.fail(1, f"Podsize {pod}, but with two tiers nothing joins pods: it must be Nodes, {hosts}")
    spine = _divided(network, "Radix_Up of tier 0", up[0], "Bundle of tier 1", bundle[1])
    _agree(network, tiers[1], "radix_down", edge * bundle[1])
    counts = [pods * edge, pods * spine]
    if len(tiers) == 3:
        group = _divided(network, "Radix_Up of tier 1", up[1], "Bundle of tier 2", bundle[2])
        _agree(network, tiers[2], "radix_down", pods * bundle[2])
        counts.append(spine * group)
    for low, high, tier in zip(down, up, tiers, strict=False):
        above = tiers[tiers.index(tier) + 1]
        ratio = low * tier["downlink_speed_gbps"][1] / (high * above["downlink_speed_gbps"][1])
        if "oversubscribed" in tier and abs(tier["oversubscribed"][1] - ratio) > 1e-9 * ratio:
            network.fail(tier["oversubscribed"][0], f"Oversubscribed, but the radices give {ratio:g}")
    for key, instead in UNREAD.items():
        if line := next((tier[key][0] for tier in tiers if tier.get(key, (0, 0.0))[1]), 0):
            network.warn(f"{key} is not read: set switching.{instead}", line)
    channels = 2 * pods * spine * (edge * bundle[1] + (group * bundle[2] if len(tiers) == 3 else 0))
    if max(hosts, sum(counts), channels) > MAX_SIZE:
        size = f"{hosts} hosts, {sum(counts)} switches and {channels} channels"
        network.fail(1, f"{size}; at most {MAX_SIZE} of each are built")
    first = np.cumsum([0, *counts])
    p, e, s = (x.ravel() for x in np.meshgrid(range(pods), range(edge), range(spine), indexing="ij"))
    links = [np.repeat(np.stack([p * edge + e, first[1] + p * spine + s], 1), bundle[1], axis=0)]
    if len(tiers) == 3:
        p, s, g = (x.ravel() for x in np.meshgrid(range(pods), range(spine), range(group), indexing="ij"))
        links.append(np.repeat(np.stack([first[1] + p * spine + s, first[2] + s * group + g], 1), bundle[2], axis=0))
    unit = tiers[0]["downlink_speed_gbps"][1]
    sizes = [len(part) for part in links]
    speed = [tier["downlink_speed_gbps"][1] for tier in tiers[1:]]
    delay = [tier["downlink_latency_ns"][1] for tier in tiers[1:]]
    topology = Topology.from_links(
        "htsim", int(first[-1]), np.concatenate(links), capacity=np.repeat(speed, sizes) / unit,
        columns={"delay_ns": np.repeat(delay, sizes)}, notes={"link_gbps": unit},
    )  # fmt: skip
    topology.notes[OF_HOSTS_NS] = [tiers[0]["downlink_latency_ns"][1]] * hosts
    return topology.with_hosts(np.repeat([down[0], 0], [counts[0], sum(counts[1:])]))


Tier = dict[str, tuple[int, float]]
"""Key in lower case -> line and value."""


def _sections(network: GraphBuilder, text: str) -> tuple[dict[str, int], list[Tier]]:
    """Return the counts of the whole network, and what is said of each tier."""
    whole: dict[str, int] = {}
    tiers: list[Tier] = []
    last = 1
    for last, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        key = words[0].lower()
        if len(words) != 2:
            network.fail(last, f"{line.strip()[:40]!r} where a key and a number are expected")
        if key == "tier":
            if network.whole(last, "tier", words[1]) != len(tiers):
                network.fail(last, f"tier {words[1]} where tier {len(tiers)} is expected")
            tiers.append({})
        elif not tiers:
            if key not in ("nodes", "tiers", "podsize"):
                network.fail(last, f"unknown key {words[0]!r}; choices: Nodes, Tiers, Podsize, Tier")
            if key in whole:
                network.fail(last, f"{words[0]} is there twice")
            whole[key] = network.whole(last, words[0], words[1], 1)
        else:
            if key not in TIER:
                network.fail(last, f"unknown key {words[0]!r} of a tier; choices: {', '.join(TIER)}")
            if key in tiers[-1]:
                network.fail(last, f"{words[0]} of tier {len(tiers) - 1} stands on line {tiers[-1][key][0]} too")
            try:
                tiers[-1][key] = last, number_of(words[1])
            except ValueError:
                network.fail(last, f"{words[0]} {words[1]!r} is not a number")
            if not 0 <= tiers[-1][key][1] < float("inf"):
                network.fail(last, f"{words[0]} {words[1]} must be finite and not negative")
    for key in ("nodes", "tiers"):
        if key not in whole:
            network.fail(last, f"{key.capitalize()} is missing")
    if len(tiers) != whole["tiers"] or len(tiers) not in (2, 3):
        network.fail(last, f"{len(tiers)} tiers where Tiers is {whole['tiers']}; two or three are read")
    for number, tier in enumerate(tiers):
        for key, default in TIER.items():
            if key not in tier and default is not None:
                if key == "bundle":
                    tier[key] = last, default
            elif tier.get(key, (last, 0.0))[1] <= 0 and default is None:
                network.fail(tier.get(key, (last, 0))[0], f"tier {number} needs a positive {key}")
    return whole, tiers


def _count(network: GraphBuilder, tier: Tier, key: str) -> int:
    """Return a positive whole number of a tier."""
    line, value = tier.get(key, (1, 0.0))
    if value < 1 or value != int(value) or value > MAX_SIZE:
        network.fail(line, f"{key} {value:g} must be a whole number from 1")
    return int(value)


def _divided(network: GraphBuilder, what: str, number: int, by: str, divisor: int) -> int:
    if number % divisor:
        network.fail(1, f"{what} {number} is no multiple of {by}, {divisor}")
    return number // divisor


def _agree(network: GraphBuilder, tier: Tier, key: str, expected: int) -> None:
    line, value = tier[key]
    if value != expected:
        network.fail(line, f"{key} {value:g}, but {expected} links lead down by the tiers below")


FORMATS = (
    FileFormat(
        "htsim",
        (".topo",),
        re.compile(
            r"^[ \t]*(Downlink_speed_Gbps[ \t]|Nodes[ \t]+\d+\s[\s\S]*?^[ \t]*Tiers[ \t]+\d)",
            re.MULTILINE | re.IGNORECASE,
        ),
        without_attributes(read_htsim),
    ),
)
