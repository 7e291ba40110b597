# SPDX-License-Identifier: Apache-2.0
"""A routing made from the certified maximum concurrent flow."""

from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from flitlab.models.mappings import Keys, Notes
from flitlab.models.paths.bounded import all_paths_within
from flitlab.models.registry import SpecError, nested, register
from flitlab.models.routing.form import MOST_DRAWS
from flitlab.models.routing.paths import farthest, longest, path_notes, require_connected
from flitlab.models.routing.planned import (
    NextHopWeights,
    PathPlan,
    PathWeights,
    PlannedSpec,
    Weigh,
    weighted_path_table,
)
from flitlab.models.routing.routes import NO_PORTS, PER, Routes, Selection
from flitlab.models.rules.tables import RouteForm
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.models.traffic.traffic import Traffic

MAX_LISTED_PATHS = 3_000_000
"""Paths of all pairs that are listed (about 40 bytes each). Beyond, the solver requests paths one by one."""
SPARSE_PAIRS_PER_SWITCH = 8
"""Pairs with demand per switch up to which a demand counts as sparse: few pairs, each with many paths."""
DEFAULT_PATHS, DEFAULT_PATHS_SPARSE = 8, 16
"""Default paths per pair, and those of a sparse demand."""
PATHS_WITHOUT_DEMAND = 4
"""The most paths of a pair without demand."""


@register("routing", "optimal")
class Optimal(PlannedSpec):
    """Paths and weights that carry a demand nearly as far as any routing could, from the maximum concurrent flow.

    All loopless paths of at most ``hops`` channels (the same for every pair; by default one more than the largest
    distance) compete for the demand of ``for``, a traffic pattern (by default the scenario's own). A pair with more
    than ``candidates`` of them, as on wide grids, gets those that the solver requests. ``paths`` of a pair (8; 16 where
    few pairs have demand) are kept, and the flow is solved again over these. A packet draws its path by weight: anew
    (``per: packet``) or by a hash of the pair of hosts (``flow``). With ``select: adaptive`` the host draws ``draws``
    paths when it starts a packet, and takes the one of least (flits queued for the path's first channel, estimated as
    in ``ugal``, + flits of the packet) x channels. More draws than two favour short paths. Weights are exact to 2**-32,
    or with ``entries`` multiples of 1 / entries, as in a switch with a table of that size per pair.

    A dense demand whose paths are too many to list gets weighted next hops on shortest paths instead, where those come
    near to what hops allow.

    Pairs without demand are served too, by up to 4 shortest paths drawn from ``seed``. A routing made for one demand
    may be bad for others: the notes give, beside its certified ``theta``, the ``split`` under uniform traffic and under
    a longest matching (up to 1,500 switches).

    Cost: 7 s for uniform traffic on 256 switches of degree 6, 9 s for a matching on 1,024 of degree 12, 3 s for uniform
    traffic there. Memory: about 40 bytes per candidate, 13 per used path, 8 per pair of switches.

    Example: ``routing: {kind: optimal}``

    Example: ``routing: {kind: optimal, for: {kind: longest_matching}, hops: 5, entries: 32}``

    Example: ``routing: {kind: optimal, select: adaptive, draws: 2}``

    Source: Shahrokhi and Matula, J. ACM 37 (1990), doi:10.1145/77600.77620 (maximum concurrent flow); Zhou et al.,
    WCMP, EuroSys 2014, doi:10.1145/2592798.2592803 (weights as table entries).
    """

    supports_multistage: ClassVar[bool] = True

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    for_: Keys | None = Field(default=None, alias="for")
    """The traffic for which routes are optimal. null: the scenario's own."""
    hops: int | None = Field(default=None, ge=1, le=255)
    """The most channels of a path. null: one more than the largest distance between switches with hosts."""
    paths: int | None = Field(default=None, ge=1, le=1024)
    """Paths of a pair that are kept. null: 8, or 16 where few pairs have demand."""
    entries: int | None = Field(default=None, ge=1, le=65536)
    """Weights are multiples of 1 / entries. null: exact."""
    gap: float = Field(default=1e-3, gt=0, lt=1)
    """Relative gap to which the flow is certified."""
    candidates: int = Field(default=700, ge=1, le=10**6)
    """Paths of a pair from which on the solver requests them."""
    per: Literal["packet", "flow"] = "packet"
    """Whether every packet draws its path, or every pair of hosts by a hash."""
    select: Literal["random", "adaptive"] = "random"
    """How a host chooses among drawn paths."""
    draws: int = Field(default=2, ge=2, le=MOST_DRAWS)
    """Paths that a host draws, with select adaptive."""
    seed: int = Field(default=0, ge=0)
    """Seed of the paths of pairs without demand."""

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        if self.select == "adaptive" and self.per == "flow":
            raise ValueError("select: adaptive decides for every packet, not per: flow")
        return self

    @property
    def for_scenario(self) -> bool:
        return self.for_ is None

    def demand(self, topology: Topology, traffic: Traffic | None) -> Traffic:
        """The demand of ``for``, else the scenario's. Demand that does not grow with the load is that at load 1."""
        if self.for_ is not None:
            target_traffic: Traffic = nested("traffic", self.for_, "for", lambda spec: spec.build(topology))
            return target_traffic.at(1.0)[0]
        if traffic is None:
            raise SpecError(
                f"is missing: the traffic that {self.kind} is made for, because no traffic is configured", "for"
            )
        return traffic.at(1.0)[0]

    def planned(self, topology: Topology, demand: Traffic, weigh: Weigh) -> Routes:
        require_connected(topology)
        plan = self.plan(topology, demand)
        weighed = weigh(topology, plan)
        notes = {"hops_allowed": plan.hops, "paths_kept": plan.keep, "entries": self.entries, **weighed.notes}
        if isinstance(weighed, NextHopWeights):
            if self.select == "adaptive":
                message = "adaptive needs whole paths; a demand of this many pairs has next hops only; choices: random"
                raise SpecError(message, key="select")
            notes["paths_kept"] = None
            return Routes(
                self.kind, weighed.ports, PER[self.per], plan.hops, notes=notes,
                port_threshold=weighed.port_threshold,
            )  # fmt: skip
        return self._routes(topology, plan, weighed, notes)

    def plan(self, topology: Topology, demand: Traffic) -> PathPlan:
        """The competing paths. Raises ``SpecError`` for a pair with demand that is farther apart than paths are long.

        Parameters
        ----------
        topology: the network.
        demand: the traffic that the routing is optimised for.
        """
        source, target, _ = demand.switch_pairs()
        hops = farthest(topology) + 1 if self.hops is None else self.hops
        far = distances(topology)[source, target] if len(source) else np.zeros(0, int)
        if far.max(initial=0) > hops:
            s, t = map(switch_names(topology).label, (source[far.argmax()], target[far.argmax()]))
            message = f"switch {t} is {far.max()} channels from switch {s}, and paths have at most {hops}"
            raise SpecError(message, key="hops")
        listed = all_paths_within(topology, source, target, hops, self.candidates, MAX_LISTED_PATHS)
        sparse = len(source) <= SPARSE_PAIRS_PER_SWITCH * topology.switches
        keep = self.paths or (DEFAULT_PATHS_SPARSE if sparse else DEFAULT_PATHS)
        if self.entries is not None:
            keep = min(keep, self.entries)
        return PathPlan(demand, source, target, hops, listed, keep, self.entries, self.gap)

    def _routes(self, topology: Topology, plan: PathPlan, weighed: PathWeights, notes: Notes) -> Routes:
        """The table of the paths of all pairs, with and without demand."""
        own = plan.source * topology.switches + plan.target
        table = weighted_path_table(
            topology, own, weighed.paths, weighed.weight, min(PATHS_WITHOUT_DEMAND, plan.keep), self.seed
        )
        notes = {**notes, "paths_used": len(weighed.weight), **path_notes(topology, table)}
        routes = Routes(
            self.kind, NO_PORTS, PER[self.per], longest(table), notes=notes, form=RouteForm.PATHS, paths=table
        )
        return replace(routes, select=Selection.LEAST_QUEUED, draws=self.draws) if self.select == "adaptive" else routes
