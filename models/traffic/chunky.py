# SPDX-License-Identifier: Apache-2.0
"""Chunky traffic: whole racks send to whole racks."""

import numpy as np
from pydantic import Field
from scipy import sparse

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.draw import generator, random_cycle
from flitlab.models.traffic.racks import racks_of
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec


@register("traffic", "chunky")
class Chunky(TrafficSpec):
    """``percent`` of the racks send everything to one other rack each; the other racks' hosts permute.

    A rack is a switch with hosts. Which racks are chunky, the random permutation of them (one cycle) and that of the
    other racks' hosts are drawn from ``seed``. A host of a chunky rack sends equally to all hosts of the other rack.

    Example: ``traffic: {kind: chunky, percent: 100, seed: 1}``

    Source: SIN section 5.6, Fig. 5.9b.
    """

    percent: float = Field(ge=0, le=100)
    """Part of the racks that send to one other rack each. [%]"""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def demand(self, topology: Topology) -> Traffic:
        racks, rng = racks_of(topology), generator(self.seed)
        count = round(self.percent / 100 * len(racks))
        if count == 1:
            raise SpecError(f"leaves one of {len(racks)} racks in the pattern, which takes two", key="percent")
        chunky = np.sort(rng.permutation(racks)[:count])
        host_switch, start, size = topology.host_switch, topology.host_start, topology.host_count
        peer = np.full(topology.switches, -1)
        peer[chunky] = chunky[random_cycle(rng, count)]
        sender = np.flatnonzero(peer[host_switch] >= 0)
        fan = size[peer[host_switch[sender]]]
        source = np.repeat(sender, fan)
        within = np.arange(len(source)) - np.repeat(np.cumsum(fan) - fan, fan)
        target = start[peer[host_switch[source]]] + within
        others = np.flatnonzero(peer[host_switch] < 0)
        permuted = others[random_cycle(rng, len(others))]
        moves = others != permuted  # a single host has none to send to
        flows = sparse.coo_array(
            (
                np.concatenate([np.repeat(1.0 / fan, fan), np.ones(moves.sum())]),
                (np.concatenate([source, others[moves]]), np.concatenate([target, permuted[moves]])),
            ),
            (topology.hosts, topology.hosts),
        )
        return table_traffic(self.kind, topology, flows, notes={"chunky_racks": switch_names(topology).values(chunky)})
