# SPDX-License-Identifier: Apache-2.0
"""Network files of ASTRA-sim's analytical backend: a product of rings, full meshes and switches."""

import re
from collections.abc import Iterator
from math import isfinite, prod
from typing import Any

import numpy as np
import yaml

from flitlab.models.mappings import JsonObject
from flitlab.models.readable import Readable
from flitlab.models.topology.formats.common import GraphBuilder, text_of
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE

BLOCKS = ("Ring", "FullyConnected", "Switch")
"""Kinds of a dimension."""

FIRST_KEYS = {
    "topology": "topologies-per-dim", "npus_count": "units-count", "bandwidth": "link-bandwidth",
    "latency": "link-latency",
}  # fmt: skip
"""Keys of today, and those of ASTRA-sim 1.0."""


def read_astra_sim(path: Readable) -> Topology:
    """Read lists ``topology``, ``npus_count``, ``bandwidth`` (GB/s) and ``latency`` (ns), one entry per dimension.

    NPU i has the coordinates of i, the first dimension changing fastest. Each is a switch with one host, which passes
    on what is not for it, as the backend has it; a dimension ``Switch`` adds a switch without hosts to every line of
    NPUs. Links are bi-directional, each of the bandwidth of its dimension. Capacities are relative to the first
    dimension's, which is the note ``link_gbps``; a host sends as much as all links of its NPU take. ``delay_ns`` is a
    column.

    Files of ASTRA-sim 1.0 have :data:`FIRST_KEYS`, and the links of an NPU in a dimension, ``links-count``: where these
    are more than its neighbours there, a link has the bandwidth of several.

    Parameters
    ----------
    path: file or text, YAML or JSON.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: Won et al. 2023, doi:10.1109/ISPASS57527.2023.00035; github.com/astra-sim/astra-network-analytical.
    """
    network = GraphBuilder(path)
    blocks, sizes, bandwidth, latency = _dimensions(network, text_of(path))
    npus, nodes = prod(sizes), prod(sizes)
    degrees = (2 if block == "Switch" else _neighbours(block, size) for block, size in zip(blocks, sizes, strict=True))
    channels = npus * sum(degrees)
    if max(npus, channels) > MAX_SIZE:
        network.fail(1, f"{npus} NPUs and {channels} channels; at most {MAX_SIZE} of each are built")
    ends, of_dimension = [], []
    for dimension, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        stride = prod(sizes[:dimension])
        corner = np.flatnonzero(np.arange(npus) // stride % size == 0)
        line = corner[:, None] + stride * np.arange(size)  # int64 [lines, size]
        links, added = _links(block, line, nodes)
        nodes += added
        ends.append(links)
        of_dimension += [dimension] * len(links)
    chosen = np.array(of_dimension)
    capacity = np.array(bandwidth)[chosen] / bandwidth[0]
    arcs = np.concatenate(ends)
    of_npu = np.bincount(arcs.ravel(), np.repeat(capacity, 2), nodes)[:npus]
    topology = Topology.from_links(
        "astra_sim", nodes, arcs, capacity=capacity, columns={"delay_ns": np.array(latency)[chosen]},
        notes={"link_gbps": 8 * bandwidth[0]},
    )  # fmt: skip
    return topology.with_hosts(np.repeat([1, 0], [npus, nodes - npus]), float(of_npu.max()))


def _neighbours(block: str, size: int) -> int:
    """Return the links of an NPU in a dimension."""
    return {"Ring": min(size - 1, 2), "FullyConnected": size - 1}.get(block, 1)


def _links(block: str, line: np.ndarray, nodes: int) -> tuple[np.ndarray, int]:
    """Return the links, int64 [links, 2], that join every line of NPUs, and how many switches they add."""
    lines, size = line.shape
    match block:
        case "Ring":
            steps = size if size > 2 else size - 1
            return np.stack([line[:, :steps].ravel(), np.roll(line, -1, axis=1)[:, :steps].ravel()], 1), 0
        case "FullyConnected":
            u, v = np.triu_indices(size, 1)
            return np.stack([line[:, u].ravel(), line[:, v].ravel()], 1), 0
        case _:
            return np.stack([line.ravel(), np.repeat(nodes + np.arange(lines), size)], 1), lines


def _dimensions(network: GraphBuilder, text: str) -> tuple[list[str], list[int], list[float], list[float]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root, data = yaml.compose(text, loader), yaml.load(text, loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        network.fail(mark.line + 1 if mark else 1, "not YAML")
    if not isinstance(data, dict):
        network.fail(1, "expected keys topology, npus_count, bandwidth and latency")
    seen: set[str] = set()
    for key, _ in root.value:
        if key.value in seen:
            network.fail(key.start_mark.line + 1, f"{key.value} is there twice")
        seen.add(key.value)
    for one in (item for _, values in root.value if isinstance(values, yaml.SequenceNode) for item in values.value):
        if isinstance(one, yaml.ScalarNode) and re.fullmatch(r"[-+.0-9]*[_:][-+.0-9_:]*", one.value):
            network.fail(one.start_mark.line + 1, f"{one.value} is a number in YAML 1.1 only, not in ASTRA-sim")
    is_first = FIRST_KEYS["topology"] in data
    keys = list(FIRST_KEYS.values() if is_first else FIRST_KEYS)
    names, sizes, bandwidth, latency = (list(_entries(network, data, key)) for key in keys)
    blocks = ["FullyConnected" if name == "AllToAll" else name for name in names]
    for block in blocks:
        if block not in BLOCKS:
            network.fail(_line(text, keys[0]), f"{block!r}: choices are {', '.join(BLOCKS)}")
    links = list(_entries(network, data, "links-count")) if is_first else []
    numbers = [*zip(keys[1:], (sizes, bandwidth, latency), strict=True), *[("links-count", links)] * is_first]
    for key, values in numbers:
        if len(values) != len(blocks):
            network.fail(_line(text, key), f"{len(values)} values of {key} for {len(blocks)} dimensions")
        least = 2 if key == keys[1] else 0 if key == keys[3] else 1e-100
        for value in values:
            whole = key not in (keys[1], "links-count") or isinstance(value, int)
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not whole:
                network.fail(_line(text, key), f"{key} {value!r} is not a number")
            if value < least:
                network.fail(_line(text, key), f"{key} {value} must be {least:g} or more")
    if not blocks:
        network.fail(1, "no dimensions")
    if is_first:
        degrees = map(_neighbours, blocks, sizes)
        bandwidth = [one * count / degree for one, count, degree in zip(bandwidth, links, degrees, strict=True)]
    return blocks, sizes, [float(one) for one in bandwidth], [float(one) for one in latency]


def _entries(network: GraphBuilder, data: JsonObject, key: str) -> Iterator[Any]:
    if not isinstance(data.get(key), list):
        network.fail(1, f"{key} must be a list with an entry for each dimension")
    yield from data[key]


def _line(text: str, key: str) -> int:
    match = re.search(rf"\b{key}\b", text)
    return 1 if match is None else text.count("\n", 0, match.start()) + 1


FORMATS = (
    FileFormat(
        "astra_sim",
        sign=re.compile(r"\b(npus_count|topologies-per-dim)\"?\s*:"),
        read=without_attributes(read_astra_sim),
    ),
)
