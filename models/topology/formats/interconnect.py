# SPDX-License-Identifier: Apache-2.0
"""Link lists of Cray Gemini and Aries networks, as ``rtr --interconnect`` prints them."""

import re

from flitlab.models.readable import Readable
from flitlab.models.topology.formats.common import GraphBuilder, text_of
from flitlab.models.topology.formats.format import FileFormat, without_attributes
from flitlab.models.topology.graph import Topology

_TILE = r"(?P<{0}>c\d+-\d+c\d+s\d+[ag]\d+)l\d+\S*"
_LINE = re.compile(
    rf"{_TILE.format('source')}\s+(?:(?P<kind>\S+)\s+)?->\s+{_TILE.format('target')}(?:\s+LinkType:\s*(?P<type>\S+))?"
)


def read_interconnect(path: Readable) -> Topology:
    """Read lines ``c0-0c0s0a0l00(0:0:0) green -> c0-0c0s1a0l15(0:0:1)``: channels between tiles of routers.

    A router is a switch of the name before ``l``; channels between the same two are parallel, and opposite ones are
    paired to links. Tiles that are not connected are left out. The list does not state hosts.

    Parameters
    ----------
    path: file or text.

    Raises
    ------
    OSError, FormatError: as all readers.

    Source: Cray, "Network resiliency for Cray XC and XE systems", S-0041; as read by LDMS (github.com/ovis-hpc/ldms).
    """
    network = GraphBuilder(path)
    network.parallel = True
    seen: dict[str, int] = {}  # tile -> its line
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or re.search(r"->\s*(unused|processor|host)", line):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            network.fail(number, "expected tile -> tile, such as c0-0c0s0a0l00(0:0:0) green -> c0-0c0s1a0l15(0:0:1)")
        tile = re.split(r"[(\[\s]", line.strip(), maxsplit=1)[0]
        if (first := seen.setdefault(tile, number)) != number:
            network.fail(number, f"tile {tile} stands on line {first} too: a tile has one channel")
        network.channel(number, match["source"], match["target"], "1", "0")
    topology = network.topology("interconnect")
    return topology.pair_directions()


FORMATS = (
    FileFormat(
        "interconnect",
        (".interconnect",),
        re.compile(r"^[ \t]*c\d+-\d+c\d+s\d+[ag]\d+l\d+\S*\s+(\S+\s+)?->", re.MULTILINE),
        without_attributes(read_interconnect),
    ),
)
