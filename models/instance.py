# SPDX-License-Identifier: Apache-2.0
"""The input of ceilings: a topology, its demand, and routes if there are any."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from flitlab.models.hashing import content_hash
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import topology_errors
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.validation import traffic_errors
from flitlab.models.validation import raise_errors


@dataclass(frozen=True, eq=False)
class Instance:
    """A network and its demand, independent of the switching mode.

    routes: None without a routing; ceilings then allow all paths, or are omitted.

    Raises :class:`~flitlab.models.registry.FaultyError` for arrays that do not describe a network and its demand, such
    as capacities that are NaN: nothing can be certified of them.
    """

    topology: Topology
    traffic: Traffic
    routes: Routes | None = None

    def __post_init__(self) -> None:
        raise_errors(topology_errors(self.topology), "topology")
        raise_errors(traffic_errors(self.topology, self.traffic), "traffic")

    @cached_property
    def content_hash(self) -> str:
        """Hash of the topology, the traffic and the routes."""
        routes = None if self.routes is None else self.routes.content_hash
        return content_hash(self.topology.content_hash, self.traffic.content_hash, routes)

    def at(self, load: float) -> tuple[Self, float]:
        """Return an instance whose whole demand scales with the load, and the load of it that equals ``load`` of this
        one.

        They are this instance and ``load``, unless the traffic has a background (:meth:`Traffic.at`).
        """
        traffic, offered = self.traffic.at(load)
        return (self if traffic is self.traffic else replace(self, traffic=traffic)), offered
