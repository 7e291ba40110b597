# SPDX-License-Identifier: Apache-2.0
"""Names of switches and hosts in the rows of tables; records have their numbers."""

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
    """A row of a table with labels in place of numbers, if the topology has labels.

    row: of a record; :data:`HOSTS` are numbers of hosts, :data:`PATH` has numbers of switches.
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
