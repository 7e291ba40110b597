# SPDX-License-Identifier: Apache-2.0
"""Failed links and switches."""

from dataclasses import replace
from typing import Annotated

import numpy as np
import scipy
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from flitlab.models.arrays import Bools, Ints
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import Links, amount, channels_of, draw_links, is_name, link_numbers
from flitlab.models.topology.names import Name, names_of_part, switch_names


def _switches_form(value: object) -> object:
    """Reject, with one message, anything that is no form of ``switches``."""
    if isinstance(value, list) and all(map(is_name, value)):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return amount(value)
    raise ValueError("must be a list of switches, a share below 1, or a whole number")


Switches = Annotated[list[Name] | int | float, BeforeValidator(_switches_form)]
"""Switches by name, a share below 1 of all switches, or their number; a number with a decimal point is a share."""


class Failures(BaseModel):
    """What fails in a network: ``failures: {links: 0.15, switches: 0, seed: 3}``, or ``{links: [[0, 8]]}``.

    ``links`` and ``switches`` are a share in [0, 1), rounded to the nearest whole number, a number, written without a
    decimal point, or a list: of pairs of switches, and of switches, by their numbers or labels. What is not listed is
    drawn uniformly, without replacement, from the seed alone: the switches first, then links among those that join
    working switches. With the same seed, a larger number includes the smaller one. A bi-directional link fails in both
    directions, parallel links fail independently (a pair of switches means all of its links), and a switch fails with
    its hosts and channels; the others are renumbered in order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    links: Links = 0
    switches: Switches = 0
    seed: int = Field(default=1, ge=0)

    def apply_to(self, topology: Topology) -> Topology:
        """Return the network without what fails.

        ``notes["failed"]`` has the number of failed links and the former names of the failed switches. A network with
        any failure is no grid. Of the other notes ``tiers``, ``clusters`` and names are adapted; the rest describe the
        network as built.

        Raises
        ------
        SpecError: (keys: failures, failures.links, failures.switches) there are fewer links or switches than should
            fail, or they disconnect a strongly connected network.
        """
        names, switches = switch_names(topology), self._failed_switches(topology)
        works = np.ones(topology.switches, bool)
        works[switches] = False
        working_channels = works[topology.src] & works[topology.dst]
        link = link_numbers(topology)
        failed = self._failed_links(topology, link, np.unique(link[working_channels]))
        remaining = subtopology(topology, works, working_channels & ~np.isin(link, failed))
        listed = isinstance(self.links, list) and isinstance(self.switches, list)
        if topology.unreachable_pair() is None:
            _check_connected(remaining, names.values(np.flatnonzero(works)), listed)
        failed_note = {
            "links": int(np.isin(failed, link[working_channels]).sum()),
            "switches": names.values(np.sort(switches)),
        }
        intact = works.all() and not len(failed)
        return replace(
            remaining, notes=remaining.notes | {"failed": failed_note}, grid=topology.grid if intact else None
        )

    def _failed_switches(self, topology: Topology) -> Ints:
        """Return the switches that fail, int64."""
        key = "failures.switches"
        if not isinstance(self.switches, list):
            return draw_links(self.switches, topology.switches, [self.seed, 0], key)
        names = switch_names(topology)
        listed = [names.number(name, f"{key}[{index}]") for index, name in enumerate(self.switches)]
        return np.unique(np.array(listed, np.int64))

    def _failed_links(self, topology: Topology, link: Ints, working: Ints) -> Ints:
        """Return the links that fail, int64.

        link: int64 [channels], the link number of each channel. working: int64, the links between working switches.
        """
        key = "failures.links"
        if isinstance(self.links, list):
            return np.unique(link[channels_of(topology, self.links, [], key)])
        return working[draw_links(self.links, len(working), [self.seed, 1], key)]


def subtopology(topology: Topology, switches: np.ndarray, channels: np.ndarray) -> Topology:
    """Return the part of a topology with some of its switches and channels, with adapted notes.

    Parameters
    ----------
    topology: the network.
    switches: bool [switches], those to keep.
    channels: bool [channels], those to keep; both ends are kept switches.
    """
    number = np.cumsum(switches) - 1
    new_index = np.append(np.cumsum(channels) - 1, -1)  # place[-1]: no reverse
    host_stays = switches[topology.host_switch] & switches[topology.ejection_switch]
    ejection = None if topology.ejection is None else number[topology.ejection[host_stays]]
    return replace(
        topology,
        switches=int(switches.sum()),
        src=number[topology.src[channels]],
        dst=number[topology.dst[channels]],
        capacity=topology.capacity[channels],
        delay=topology.delay[channels],
        columns=topology.columns_of(channels),
        reverse=new_index[topology.reverse[channels]],
        host_switch=number[topology.host_switch[host_stays]],
        host_delay=None if topology.host_delay is None else topology.host_delay[host_stays],
        ejection=ejection,
        notes=_notes(topology, switches),
    )


def _check_connected(topology: Topology, names: list[Name], listed: bool) -> None:
    """Raise ``SpecError`` unless strongly connected. names: of the switches as built. listed: whether no failure is
    drawn.
    """
    n = topology.switches
    if not n:
        raise SpecError("no switch is left", key="failures")
    matrix = scipy.sparse.csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
    _, component_of = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
    pair = topology.unreachable_pair()
    if pair is not None:
        u, v = (names[end] for end in pair)
        raise SpecError(
            f"cut {n - np.bincount(component_of).max()} of {n} switches off: no path from switch {u} to switch {v} "
            f"(names before the failures){'' if listed else '; other seeds may leave the network connected'}",
            key="failures",
        )


def _notes(topology: Topology, works: Bools) -> Notes:
    """Return the notes without the failed switches. works: bool [switches]."""
    notes = topology.notes | names_of_part(
        topology, works, works[topology.host_switch] & works[topology.ejection_switch]
    )
    new_index = np.append(0, np.cumsum(works))
    for key in {"tiers", "clusters"} & notes.keys():
        parts = [[name, int(new_index[a]), int(new_index[a + k] - new_index[a])] for name, a, k in notes[key]]
        notes[key] = [part for part in parts if part[2]]
    return notes
