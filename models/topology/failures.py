# SPDX-License-Identifier: Apache-2.0
"""Links and switches that are out of order."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import scipy
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from flitlab.models.arrays import Bools
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import amount, drawn, numbers

Amount = Annotated[int | float, AfterValidator(amount)]
"""A share below 1 of all there are, or how many of them: what is written with a point is a share."""


class Failures(BaseModel):
    """What fails in a network: ``failures: {links: 0.15, switches: 0, seed: 3}``.

    ``links`` and ``switches`` are a fraction in [0, 1), of which the nearest whole number fails, or a
    number, written without a point. Which ones is drawn uniformly, without replacement, from the seed alone:
    the switches first, then links among those that join working switches. With the same seed, more failures
    include the fewer. A bi-directional link fails in both directions, parallel links fail each on its own, and a
    switch fails with its hosts and channels; the others are renumbered in their order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    links: Amount = 0
    switches: Amount = 0
    seed: int = Field(default=1, ge=0)

    def strike(self, topology: Topology) -> Topology:
        """The network that is left.

        ``notes["failed"]`` has the number of failed links and the numbers that the failed switches had. A
        network in which anything failed is no grid any more. Of the other notes ``tiers``, ``clusters`` and ``labels``
        are adapted; the rest tell of the network as it was built.

        Raises :class:`~flitlab.models.registry.SpecError` (keys: failures, failures.links, failures.switches) if
        there is not as much to fail or if not every switch reaches every other one afterwards.
        """
        switches = drawn(self.switches, topology.switches, [self.seed, 0], "failures.switches")
        works = np.ones(topology.switches, bool)
        works[switches] = False
        left = works[topology.src] & works[topology.dst]
        link = numbers(topology)
        links = np.unique(link[left])
        failed = links[drawn(self.links, len(links), [self.seed, 1], "failures.links")]
        rest = restricted(topology, works, left & ~np.isin(link, failed))
        _check_connected(rest, np.flatnonzero(works))
        notes = rest.notes | {"failed": {"links": len(failed), "switches": np.sort(switches).tolist()}}
        intact = works.all() and not len(failed)
        return replace(rest, notes=notes, grid=topology.grid if intact else None)


def restricted(topology: Topology, switches: np.ndarray, channels: np.ndarray) -> Topology:
    """The working switches (bool [switches]) and channels (bool [channels]) of a topology, with notes of these."""
    number = np.cumsum(switches) - 1
    place = np.append(np.cumsum(channels) - 1, -1)  # place[-1]: no reverse
    hosts = topology.host_switch[switches[topology.host_switch]]
    return replace(
        topology,
        switches=int(switches.sum()),
        src=number[topology.src[channels]],
        dst=number[topology.dst[channels]],
        capacity=topology.capacity[channels],
        delay=topology.delay[channels],
        reverse=place[topology.reverse[channels]],
        host_switch=number[hosts],
        notes=_notes(topology.notes, switches),
    )


def _check_connected(topology: Topology, number: np.ndarray) -> None:
    """Raise unless strongly connected. number: what the switches were called before the failures."""
    n = topology.switches
    if not n:
        raise SpecError("no switch is left", key="failures")
    matrix = scipy.sparse.csr_array((np.ones(topology.channels), (topology.src, topology.dst)), shape=(n, n))
    _, part = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
    pair = topology.unreachable_pair()
    if pair is not None:
        u, v = number[list(pair)].tolist()
        raise SpecError(
            f"cut {n - np.bincount(part).max()} of {n} switches off: no path from switch {u} to switch {v} "
            "(numbers before the failures); other seeds may leave the network connected",
            key="failures",
        )


def _notes(notes: dict[str, Any], works: Bools) -> dict[str, Any]:
    """Notes without the failed switches. works: bool [switches]."""
    notes = dict(notes)
    before = np.append(0, np.cumsum(works))
    for key in {"tiers", "clusters"} & notes.keys():
        parts = [[name, int(before[a]), int(before[a + k] - before[a])] for name, a, k in notes[key]]
        notes[key] = [part for part in parts if part[2]]
    if "labels" in notes:
        notes["labels"] = [label for label, works_too in zip(notes["labels"], works, strict=True) if works_too]
    return notes
