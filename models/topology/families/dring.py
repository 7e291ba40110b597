# SPDX-License-Identifier: Apache-2.0
"""DRing: supernodes of top-of-rack switches on a ring."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from flitlab.models.registry import SpecError, register
from flitlab.models.topology.candidates import Candidate, Equipment, flat
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.wiring import evenly

REACH = 2
"""Places along the ring that a supernode is linked over."""


@register("topology", "dring")
class DRing(TopologySpec):
    """DRing: a flat network of supernodes on a ring, each fully linked to the next two on either side.

    The ``switches`` are divided evenly over the ``supernodes``. Every switch is linked to every switch of the
    supernodes one and two places away on the ring, and to none of its own. Supernodes of equal size n make degree
    4 n. With ``ports``, the ports of each switch without links take hosts; else ``hosts_per_switch`` sets
    the hosts of each.

    Switches are numbered supernode by supernode. m supernodes of n switches have 2 m n**2 links; supernodes k places
    apart are ceil(k / 2) hops from one another, switches of the same supernode 2.
    Valid: 5 or more supernodes (with fewer, some would be linked twice), as many switches at least, up to 2 * 10**7
    channels.

    Example: ``topology: {kind: dring, supernodes: 8, switches: 24, hosts_per_switch: 4}``

    Example: ``topology: {kind: dring, supernodes: 12, switches: 80, ports: 64}``

    Source: Harsh, Abdu Jyothi and Godfrey, Spineless data centers, HotNets 2020, doi:10.1145/3422604.3425945. Where
    switches cannot be shared out equally, the smaller supernodes stand evenly around the ring, as in the authors' graph
    of 88 switches in 10 supernodes.
    """

    supernodes: int = Field(ge=2 * REACH + 1)
    """Supernodes on the ring."""
    switches: int = Field(ge=1)
    """Switches in all."""
    ports: int | None = Field(default=None, ge=1)
    """Ports of a switch; those without links take hosts. null: see hosts_per_switch."""

    @classmethod
    def candidates(cls, equipment: Equipment) -> Iterator[Candidate]:
        """Any ring of supernodes of equal size."""
        for supernodes in range(2 * REACH + 1, equipment.most_switches + 1):
            for size in range(1, equipment.most_switches // supernodes + 1):
                switches, degree = supernodes * size, 2 * REACH * size
                if degree > equipment.most_links:
                    break
                keys = {"kind": "dring", "supernodes": supernodes, "switches": switches}
                yield from flat(equipment, keys, switches, degree, switches * degree // 2)

    def graph(self) -> Topology:
        supernodes, switches = self.supernodes, self.switches
        if switches < supernodes:
            raise SpecError(f"fewer than one for each supernode; at least {supernodes}", key="switches")
        largest = -(-switches // supernodes)
        limit_size(switches * largest * 2 * REACH, "switches")
        sizes = evenly(switches, supernodes)
        first = np.cumsum(sizes) - sizes
        links = []
        for distance in range(1, REACH + 1):
            for src in range(supernodes):
                dst = (src + distance) % supernodes
                pair = np.indices((sizes[src], sizes[dst])).reshape(2, -1).T
                links.append(pair + np.array([first[src], first[dst]]))
        clusters = [[f"supernode {i}", int(first[i]), int(sizes[i])] for i in range(supernodes)]
        notes = {"clusters": clusters}
        topology = Topology.from_links(self.kind, switches, np.concatenate(links), notes=notes)
        return topology if self.ports is None else self._filled(topology, self.ports)

    def _filled(self, topology: Topology, ports: int) -> Topology:
        """The network with a host on every port that has no link."""
        self.reject_other_hosts("ports")
        most = int(topology.out_degree.max())
        if ports < most:
            raise SpecError(f"a switch has {most} links; at least {most}", key="ports")
        limit_size(topology.switches * ports, "ports", "hosts")
        return topology.with_hosts(ports - topology.out_degree)
