# SPDX-License-Identifier: Apache-2.0
"""Names of switches and hosts in the rows of tables, whose records have their numbers."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import Names, host_names, join_path, switch_names

HOSTS = ("host", "source", "target", "destination")
"""Columns of flows.csv and ranks.csv with the number of a host."""

PATH = "path"
"""Column of flows.csv with the numbers of switches."""


def with_names(row: Mapping[str, Any], topology: Topology) -> Mapping[str, Any]:
    """A row of flows.csv, ranks.csv or another table, with labels in place of numbers where there are any.

    row: as a record has it; numbers of hosts stand under :data:`HOSTS`, those of switches under :data:`PATH`.
    """
    hosts, switches = _names(topology)
    if not hosts.labelled and not switches.labelled:
        return row
    named = {key: hosts.value(row[key]) for key in HOSTS if isinstance(row.get(key), int)}
    if row.get(PATH):
        named[PATH] = join_path(switches.label(int(number)) for number in row[PATH].split("-"))
    return {**row, **named}


@lru_cache(maxsize=4)
def _names(topology: Topology) -> tuple[Names, Names]:
    """The names of hosts and of switches."""
    return host_names(topology), switch_names(topology)
