# SPDX-License-Identifier: Apache-2.0
"""Files of known kinds that are no topologies: what they are, and the key that reads them.

Signs are looked for where a file has the sign of no format of its place.
"""

import re

from flitlab.models.flow_files import NS3_SIGN

PLACES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"\A\s*DEMANDS\s+\d{1,12}\s*\n"), "demands of REPETITA", "traffic: {kind: matrix, path: FILE}"),
    (
        re.compile(r"^[ \t]*Connections[ \t]+\d+", re.MULTILINE | re.IGNORECASE),
        "connections of htsim", "traffic: {kind: matrix, path: FILE}, or simrun convert FILE --to goal",
    ),
    (NS3_SIGN, "flows of ns-3", "traffic: {kind: matrix, path: FILE}, or simrun convert FILE --to goal"),
    (
        re.compile(r"^[ \t]*(TOPOLOGY_FILE|FLOW_FILE)[ \t]+\S", re.MULTILINE), "a configuration of ns-3 (HPCC)",
        "its TOPOLOGY_FILE as topology: {kind: file, path: FILE}, its FLOW_FILE as traffic: {kind: matrix, path: FILE}",
    ),
    (re.compile(r"\A\s*num_ranks\s+\d+"), "a program in GOAL", "application: {kind: goal, path: FILE}"),
    (re.compile(r"\A\s*(<\?xml[^>]*>\s*)?<algo\s"), "a schedule of MSCCL", "simrun schedule FILE"),
    (
        re.compile(r"\A(\s*//[^\n]*\n)*\s*\w+\s*=\s*[^\n]*;"), "a configuration of BookSim 2",
        "its network_file as topology: {kind: file, path: FILE}",
    ),
    (
        re.compile(r'\A\s*\{\s*"logical-dims"'), "the logical dimensions of ASTRA-sim",
        "the topology is the ns-3 file beside it",
    ),
    (
        re.compile(r'\A\s*\{[\s\S]*"intranode_sketch"'), "a communication sketch of TACCL",
        "simrun schedule reads the schedules that it makes (JSON, MSCCL's XML)",
    ),
    (
        re.compile(r'\A\s*\{[\s\S]*"TopologyParams"'), "an input of TE-CCL, which has the name of a network only",
        "simrun schedule reads the schedules that it makes",
    ),
    (re.compile(r'\A\s*\{[\s\S]*"6-Demand_Met"'), "a schedule of TE-CCL", "simrun schedule FILE"),
    (re.compile(r'\A\s*\{\s*"m?sccl_type"'), "a schedule of TACCL", "simrun schedule FILE"),
    (
        re.compile(r'\A\s*\{[\s\S]*"node_invbws_list"'), "costs of TACCL's links without the links",
        "write the links as an edge list for topology: {kind: file, path: FILE}",
    ),
    (
        re.compile(r"\A(\s*%[^\n]*\n)+\s*\d+\s+\d+(\s+[01]?\.\d+){2}\b"), "a traffic table of Noxim",
        "traffic: {kind: matrix, path: FILE}",
    ),
    (
        re.compile(r'\A\s*\{\s*"__tuple__:\[\d+, ?\d+\]"\s*:\s*[\d.]'), "demands of RapidChiplet",
        "traffic: {kind: matrix, path: FILE}",
    ),
    (
        re.compile(r'\A\s*\{\s*"__tuple__:\[\\"__tuple__'), "demands of units of RapidChiplet",
        "those of chiplets are read, of traffic_by_chiplet",
    ),
    (
        re.compile(r'\A\s*\{\s*("type"\s*:\s*"(default|extended)"|"table"\s*:)'), "a routing table of RapidChiplet",
        "routing: {kind: table, path: FILE}",
    ),
)  # fmt: skip
"""Sign, what a file is, and where it is read."""

CONFIGURATION = (
    re.compile(r"\A(#[^\n]*\n|\s*\n)*\s*(topology|experiment|schema|cases|name):(\s|$)"),
    "a configuration of flitlab or of ASTRA-sim", "simrun FILE, where it is one of flitlab",
)  # fmt: skip
"""The same of what is a configuration itself."""


def misplaced(head: str, configuration: bool = False) -> str:
    """What a file is that belongs elsewhere, and where; '' where that is unknown.

    Parameters
    ----------
    head: beginning of the file.
    configuration: whether it is given as a configuration.
    """
    for sign, what, place in PLACES if configuration else (*PLACES, CONFIGURATION):
        if sign.search(head):
            return f"{'this is' if what.startswith(('a ', 'an ')) else 'these are'} {what}: {place}"
    return ""
