# SPDX-License-Identifier: Apache-2.0
"""Topologies whose links are bundles of parallel ones."""

import numpy as np
from pydantic import Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec, build_nested


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
