# SPDX-License-Identifier: Apache-2.0
"""Random graphs with the equipment of another topology."""

import numpy as np
from pydantic import ConfigDict, Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import register
from flitlab.models.topology.file_delays import notes_of_links
from flitlab.models.topology.graph import NAMES, Topology
from flitlab.models.topology.spec import TopologySpec, build_nested
from flitlab.models.topology.wiring import first_connected, join_parts, random_links


@register("topology", "same_equipment")
class SameEquipment(TopologySpec):
    """Random graph with the switches, ports, links and hosts of another topology.

    ``as`` is the other topology. Every switch keeps its number, its hosts and as many links as it has there
    (parallel ones count each); links that are uni-directional there are so here, with the same numbers in and
    out. Where servers forward traffic (BCube, DCell) they are switches there, so they keep their ports too.

    Ports connect to ports of equal capacity only; delays are dealt out anew among links of equal capacity.
    (A link of different capacities in its two directions counts as two uni-directional channels.) The links
    of each capacity form a simple graph wherever one has these degrees; otherwise some are parallel, as few as
    exchanging ends in pairs can make them: ``notes["parallel_links"]`` counts them, those of different
    capacity between the same two switches among them. Connected; parts are joined by exchanging two ends.

    Valid: any topology, unless its random counterparts cannot be strongly connected (SpecError at ``as``):
    very sparse uni-directional ones, or links of several capacities that only one arrangement connects.

    Example: ``topology: {kind: same_equipment, as: {kind: torus, dims: [4, 4, 4]}, seed: 1}``

    Source: MUT section IV (relative throughput); ports of equal speed: SIN section 5.3.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    as_: Keys = Field(alias="as")
    """The topology whose switches, ports, links and hosts are taken."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        reference = build_nested(self.as_, "as")
        classes = _classes(reference)
        rng = np.random.default_rng(self.seed)
        return first_connected(lambda: _drawn(self.kind, reference, classes, rng), "as")


def _classes(reference: Topology) -> list[tuple[bool, np.ndarray]]:
    """The links of equal capacity: whether they are bi-directional, and one channel of each, int64 [links]."""
    channel, reverse = np.arange(reference.channels), reference.reverse
    paired = (reverse >= 0) & (reference.capacity == reference.capacity[reverse])
    classes = []
    for capacity in np.unique(reference.capacity):
        for bidirectional, which in ((True, paired & (channel < reverse)), (False, ~paired)):
            own = np.flatnonzero(which & (reference.capacity == capacity))
            if len(own):
                classes.append((bidirectional, own))
    return classes


def _drawn(
    kind: str, reference: Topology, classes: list[tuple[bool, np.ndarray]], rng: np.random.Generator
) -> Topology:
    n = reference.switches
    wired = []
    for bidirectional, own in classes:
        tails, heads = (np.bincount(ends[own], minlength=n) for ends in (reference.src, reference.dst))
        wired.append(
            random_links(tails + heads, False, rng) if bidirectional else random_links(tails, True, rng, heads)
        )
    sizes = np.array([len(own) for _, own in classes], np.int64)
    pairs = np.concatenate([*wired, np.zeros((0, 2), np.int64)])
    join_parts(pairs, n, rng, np.repeat(np.arange(len(classes)), sizes))
    model = np.concatenate([*(rng.permutation(own) for _, own in classes), np.zeros(0, np.int64)])
    paired = np.flatnonzero(np.repeat([bidirectional for bidirectional, _ in classes], sizes))
    back = len(pairs) + np.arange(len(paired))
    reverse = np.full(len(pairs) + len(back), -1, np.int64)
    reverse[paired], reverse[back] = back, paired
    model = np.concatenate([model, model[paired]])
    ends = np.sort(pairs, axis=1) if len(paired) == len(pairs) else pairs
    names = {key: reference.notes[key] for key in NAMES if key in reference.notes}
    notes = {"parallel_links": len(pairs) - len(np.unique(ends, axis=0)), **names, **notes_of_links(reference)}
    return Topology.from_channels(
        kind, n, np.concatenate([pairs, pairs[paired][:, ::-1]]), reverse,
        capacity=reference.capacity[model], delay=reference.delay[model], default_weight=reference.default_weight,
        columns=reference.columns_of(model), notes=notes,
    ).with_hosts(reference.host_count, reference.host_capacity, reference.host_delay)  # fmt: skip
