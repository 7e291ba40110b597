# SPDX-License-Identifier: Apache-2.0
"""Multi-plane networks: copies of a network, and hosts with a port to each copy."""

from typing import Any

import numpy as np
from pydantic import Field

from flitlab.models.arrays import Floats, Ints
from flitlab.models.mappings import Keys, Notes
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.file_delays import LINK_GBPS, stated_delays
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import limit_size
from flitlab.models.topology.names import host_names, switch_names
from flitlab.models.topology.spec import TopologySpec, build_nested


def numbers(nodes: int, planes: int, tiers: list[Any]) -> Ints:
    """Return the number of each switch of each plane, int64 [planes, switches], tier by tier and plane by plane in a
    tier.

    Parameters
    ----------
    nodes: number of switches that precede all of them.
    planes: number of planes.
    tiers: [name, first switch, number of switches] of one plane.
    """
    plane = np.arange(planes)[:, None]
    parts = [nodes + planes * first + plane * count + np.arange(count) for _, first, count in tiers]
    return np.concatenate(parts, axis=1)


def _labels(plane: Topology, number: Ints) -> Notes:
    """The labels of cards and switches, where those of a plane have some. number: as from :func:`numbers`."""
    switches, hosts = switch_names(plane), host_names(plane)
    if not switches.labelled and not hosts.labelled:
        return {}
    labels: list[str | None] = [*hosts.labels, *[None] * number.size]
    for (p, v), node in np.ndenumerate(number):
        label = switches.labels[v] if switches.labelled else None
        labels[node] = None if label is None else f"{label}@{p}"
    return {"labels": labels} | ({"names": plane.notes["names"]} if "names" in plane.notes else {})


def _stated(plane: Topology, count: int) -> dict[str, Floats]:
    """The column with the delays that a file states, of all planes and then of the ports of cards."""
    stated = stated_delays(plane)
    if stated is None:
        return {}
    return {"delay_ns": np.append(np.tile(stated[0], count), np.tile(stated[1], 2 * count))}


@register("topology", "planes")
class Planes(TopologySpec):
    """Multi-plane network: ``count`` copies of a network, and a node for each host with a port to each copy.

    ``of`` is the network of one plane. Each of its hosts becomes a network card (NIC): a node of its own, with one host
    and a link to the host's switch in every plane. That link has the capacity that host channels have in ``of``; the
    host's own channel to its card has ``host_capacity`` (default 1), all planes together. So four planes of full speed
    would serve a host of rate 4, and a host of rate 1 whose ports have a quarter of it each is
    ``{kind: planes, count: 4, capacity: 0.25, of: {...}}``, as ``capacity`` multiplies that of all links, ports
    included. Switching modes that require capacity 1 need planes as fast as the host.

    A message may take any plane, packet by packet if the routing is per packet; a card does not join planes in shortest
    paths, since a path through one is longer. (The ceiling ``mcf`` without a path set may send through cards.)
    Hops count the two links of cards.

    H hosts and N switches in ``of`` make H + count * N nodes, numbered: cards by host; then, tier by tier, the
    switches of every plane. Where switches in ``of`` have labels a card has that of its host, and ``Bern`` in the plane
    of number 1 is ``Bern@1``. ``failures`` of this topology are drawn for each plane, those inside ``of`` are the same
    in all planes.
    Valid: any topology with hosts of finite capacity; up to 2 * 10**7 channels.

    Example: ``topology: {kind: planes, count: 2, of: {kind: leaf_spine, leaves: 4, spines: 2, hosts_per_leaf: 2}}``

    Source: Zhao et al., Insights into DeepSeek-V3 (multi-plane fat tree), ISCA 2025, arXiv:2505.09343. Cards as nodes
    are our model of them.
    """

    count: int = Field(ge=1)
    """Planes."""
    of: Keys
    """The network of one plane, a topology."""

    def graph(self) -> Topology:
        plane = build_nested(self.of, "of")
        hosts = plane.hosts
        if not hosts:
            raise SpecError("the network of a plane needs hosts, and this one has none", key="of")
        if not np.isfinite(plane.host_capacity):
            raise SpecError("must be finite: it is the capacity of a port", key="of.host_capacity")
        limit_size(self.count * (plane.channels + 2 * hosts), "count")
        tiers = plane.notes.get("tiers") or [["switch", 0, plane.switches]]
        number = numbers(hosts, self.count, tiers)
        copies = np.stack([number[:, plane.src], number[:, plane.dst]], axis=-1).reshape(-1, 2)
        turn = np.arange(self.count)[:, None] * plane.channels
        reverse = np.where(plane.reverse < 0, -1, plane.reverse + turn).ravel()
        card = np.tile(np.arange(hosts), self.count)
        ports = np.column_stack([card, number[:, plane.host_switch].ravel()])
        up = len(copies) + np.arange(len(ports))
        above = [[name, hosts + self.count * first, self.count * size] for name, first, size in tiers]
        return Topology.from_channels(
            self.kind, hosts + number.size,
            np.concatenate([copies, ports, ports[:, ::-1]]),
            np.concatenate([reverse, up + len(ports), up]),
            capacity=np.append(np.tile(plane.capacity, self.count), np.full(2 * len(ports), plane.host_capacity)),
            delay=np.append(np.tile(plane.delay, self.count), np.tile(plane.access_delay, 2 * self.count)),
            default_weight=plane.default_weight,
            columns=_stated(plane, self.count),
            notes={
                "planes": self.count, "tiers": [["NIC", 0, hosts], *above], **_labels(plane, number),
                **({LINK_GBPS: plane.notes[LINK_GBPS]} if LINK_GBPS in plane.notes else {}),
            },
        ).with_hosts(np.arange(hosts + number.size) < hosts)  # fmt: skip
