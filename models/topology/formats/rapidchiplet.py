# SPDX-License-Identifier: Apache-2.0
"""Topologies of RapidChiplet: links between chiplets and routers of the interposer."""

import re

from flitlab.models.readable import Readable
from flitlab.models.topology.formats.common import GraphBuilder, json_of, text_of
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_SIZE

TYPES = "chiplet", "irouter"
"""Kinds of ends."""


def read_rapidchiplet(path: Readable) -> Topology:
    """Read a list of links with ends ``ep1`` and ``ep2``, each with a ``type`` and its number, ``outer_id``.

    Chiplet i is switch i, with a host; routers of the interposer follow, without hosts. Lengths and bandwidths of links
    are not in the file.

    Parameters
    ----------
    path: file or text.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: Iff et al. 2023, arXiv:2311.06081; github.com/spcl/rapidchiplet.
    """
    network = GraphBuilder(path)
    network.parallel = True
    links = json_of(path, text_of(path))
    ends = [[_end(network, i, link, name) for name in ("ep1", "ep2")] for i, link in enumerate(links)]
    chiplets = 1 + max((number for pair in ends for kind, number in pair if kind == "chiplet"), default=-1)
    routers = 1 + max((number for pair in ends for kind, number in pair if kind != "chiplet"), default=-1)
    if chiplets + routers > MAX_SIZE:
        network.fail(1, f"{chiplets} chiplets and {routers} routers by their numbers; at most {MAX_SIZE} are built")
    for chiplet in range(chiplets):
        network.node(str(chiplet))
    for pair in ends:
        u, v = (str(number if kind == "chiplet" else chiplets + number) for kind, number in pair)
        network.link(1, u, v)
    return network.topology("rapidchiplet", {label: int(int(label) < chiplets) for label in network.nodes})


def _end(network: GraphBuilder, index: int, link: object, name: str) -> tuple[str, int]:
    """Return kind and number of an end of a link."""
    end = link.get(name) if isinstance(link, dict) else None
    kind, number = (end.get("type"), end.get("outer_id")) if isinstance(end, dict) else (None, None)
    if kind not in TYPES or type(number) is not int or number < 0:
        network.fail(1, f"[{index}].{name} needs a type, {' or '.join(TYPES)}, and a number outer_id")
    return kind, number


FORMATS = (
    FileFormat(
        "rapidchiplet", sign=re.compile(r'\A\s*\[\s*\{\s*"ep[12]"\s*:'), read=without_attributes(read_rapidchiplet)
    ),
)
