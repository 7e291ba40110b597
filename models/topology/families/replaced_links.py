# SPDX-License-Identifier: Apache-2.0
"""Topologies whose links are replaced, by paths or by parallel ones."""

import numpy as np
from pydantic import Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import register
from flitlab.models.topology.file_delays import notes_of_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.names import extended_names
from flitlab.models.topology.spec import TopologySpec, build_nested


@register("topology", "subdivided")
class Subdivided(TopologySpec):
    """A topology made of another one by replacing every link by a path of ``p`` links.

    ``base`` is the other topology. Its N switches keep their numbers and hosts; the new ones, p - 1 for each
    of its M links, follow path by path and have ``path_hosts`` hosts each. N + M (p - 1) switches, M p links.
    A uni-directional channel becomes a uni-directional path. Every piece has the capacity and the delay of
    the link that it replaces. ``notes`` keep the failures of the base.

    Theorem 1 counts flows between all n switches, those on the paths too: that is ``path_hosts: 1``.

    Valid: p from 1 (the base itself).

    Example: ``topology: {kind: subdivided, base: {kind: rrg, n: 16, degree: 4, seed: 1}, p: 3}``

    Source: graph B of MUT section II-B and Theorem 1 (with a 2d-regular expander as base).
    """

    base: Keys
    """The topology whose links are divided."""
    p: int = Field(ge=1)
    """Channels of the path that replaces a link."""
    path_hosts: int = Field(default=0, ge=0)
    """Hosts of every switch on such a path."""

    def graph(self) -> Topology:
        base = build_nested(self.base, "base")
        n = base.switches
        # the channels that get new switches; the reverses of others use the same ones backwards
        own = np.flatnonzero((base.reverse < 0) | (np.arange(base.channels) < base.reverse))
        limit_size(base.channels * self.p, "p")
        limit_size(len(own) * (self.p - 1) * self.path_hosts, "path_hosts", "hosts")
        inner = n + np.arange(len(own) * (self.p - 1)).reshape(len(own), -1)
        stops = np.column_stack([base.src[own], inner, base.dst[own]])  # [paths, p + 1]
        forward = np.stack([stops[:, :-1], stops[:, 1:]], axis=-1).reshape(-1, 2)
        bidirectional = np.repeat(base.reverse[own] >= 0, self.p)
        back = forward[bidirectional][:, ::-1]
        reverse = np.full(len(forward) + len(back), -1, np.int64)
        reverse[np.flatnonzero(bidirectional)] = len(forward) + np.arange(len(back))
        reverse[len(forward) :] = np.flatnonzero(bidirectional)
        of = np.repeat(own, self.p)
        of = np.concatenate([of, base.reverse[of[bidirectional]]])
        notes = {key: base.notes[key] for key in ("failed",) if key in base.notes} | extended_names(base, inner.size)
        notes |= notes_of_links(base, base.hosts + inner.size * self.path_hosts)
        if inner.size:
            notes["tiers"] = [*base.notes.get("tiers", [["base", 0, n]]), ["path", n, inner.size]]
        topology = Topology.from_channels(
            self.kind, n + inner.size, np.concatenate([forward, back]), reverse,
            capacity=base.capacity[of], delay=base.delay[of], default_weight=base.default_weight,
            columns=base.columns_of(of), notes=notes,
        )  # fmt: skip
        hosts = np.concatenate([base.host_count, np.full(inner.size, self.path_hosts)])
        delay = np.append(base.access_delay, np.zeros(inner.size * self.path_hosts, np.int64))
        return topology.with_hosts(hosts, base.host_capacity, delay)


@register("topology", "trunked")
class Trunked(TopologySpec):
    """A topology made of another one by replacing every link by ``links`` parallel ones, a trunk.

    ``of`` is the other topology. Switches keep their numbers, hosts and notes; each parallel link has the capacity and
    delay of the one that it replaces. A trunk's links fail one by one (``failures`` of this topology), and the others
    stay: one link of the whole capacity would fail as a whole.

    Valid: any topology; up to 2 * 10**7 channels.

    Example: ``topology: {kind: trunked, links: 2, of: {kind: torus, dims: [4, 4]}}``

    Source: link aggregation, IEEE 802.1AX.
    """

    links: int = Field(ge=1)
    """Parallel links in place of each link."""
    of: Keys
    """The topology whose links are replaced."""

    def graph(self) -> Topology:
        base = build_nested(self.of, "of")
        limit_size(self.links * base.channels, "links")
        copy = np.repeat(np.arange(base.channels), self.links)
        turn = np.tile(np.arange(self.links), base.channels)
        reverse = np.where(base.reverse[copy] < 0, -1, base.reverse[copy] * self.links + turn)
        topology = Topology.from_channels(
            self.kind, base.switches, np.column_stack([base.src[copy], base.dst[copy]]), reverse,
            capacity=base.capacity[copy], delay=base.delay[copy], default_weight=base.default_weight,
            columns=base.columns_of(copy), notes={key: note for key, note in base.notes.items() if key != "failed"},
        )  # fmt: skip
        return topology.with_hosts(base.host_count, base.host_capacity, base.host_delay)
