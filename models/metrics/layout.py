# SPDX-License-Identifier: Apache-2.0
"""Cables between cabinets, price and power."""

from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from flitlab.models.arrays import Ints
from flitlab.models.layout.blueprint import Arrangement, Blueprint, Racks, blueprint, racks_of
from flitlab.models.layout.constants import Constants, NotNegative, Positive, load
from flitlab.models.layout.floor import Cables, cables_of, lengths, optimised_cabinets, ordered_cabinets
from flitlab.models.layout.nodes import are_between_switches, are_switches
from flitlab.models.layout.prices import cable_prices, is_optical, rated_ports, switch_prices
from flitlab.models.mappings import Row
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology


class PhysicalSpec(MetricSpec):
    """A metric with prices and dimensions from ``constants``."""

    constants: Constants = Field(default_factory=load)
    """Prices and dimensions."""

    @field_validator("constants", mode="before", json_schema_input_type=Any)
    @classmethod
    def _loaded(cls, value: Any) -> object:
        return value if isinstance(value, Constants) else load(value)


class LayoutSpec(PhysicalSpec):
    """A metric of the cables between cabinets on a floor.

    Its own keys override ``constants``.
    """

    switches_per_cabinet: int | None = Field(default=None, ge=1)
    """Switches of a cabinet. null: of constants."""
    pitch: tuple[Positive, Positive] | None = None
    """Distance of cabinets in a row, and of rows. null: of constants. [m]"""
    reach: NotNegative | None = None
    """Longest electric cable. null: of constants. [m]"""
    placement: Literal["order", "optimised"] = "order"
    """Whether switches fill cabinets in order, or are exchanged for short cables."""
    seed: int = Field(default=1, ge=0)
    """Seed of the exchanges."""
    hosts: bool = False
    """Whether cables of hosts count."""

    @cached_property
    def effective_constants(self) -> Constants:
        """The constants with this metric's own keys applied."""
        floor = {"switches_per_cabinet": self.switches_per_cabinet, "pitch": self.pitch}
        floor = {key: value for key, value in floor.items() if value is not None}
        constants = self.constants
        return constants.model_copy(
            update={
                "floor": constants.floor.model_copy(update=floor),
                "cable": constants.cable.model_copy(
                    update={} if self.reach is None else {"reach": self.reach}
                ),
            }
        )  # fmt: skip

    def cabinets(self, topology: Topology) -> Ints:
        """Return the cabinet of each node, int64 [switches], under the configured placement."""
        floor = self.effective_constants.floor
        if self.placement == "optimised":
            return optimised_cabinets(topology, floor, self.seed)
        return ordered_cabinets(topology, floor)

    def cables(self, topology: Topology, cabinet: np.ndarray) -> tuple[Cables, np.ndarray]:
        """Return the cables and their lengths in metres; host cables, if they count, come last.

        A host is in the cabinet of its switch; a card or server with a host has host cables to its switches.

        Parameters
        ----------
        topology: the network.
        cabinet: int64 [switches].

        Raises
        ------
        ValueError: the capacity of host cables is infinite.
        """
        every = cables_of(topology)
        cables = every.only(~every.to_host)
        if self.hosts and topology.hosts:
            of_hosts = topology.host_switch[are_switches(topology)[topology.host_switch]]
            count = len(of_hosts)
            if count and not np.isfinite(topology.host_capacity):
                raise ValueError("host cables of infinite capacity have no price: give a finite host_capacity")
            own = Cables(
                np.repeat(of_hosts, 2).reshape(-1, 2), np.full(count, topology.host_capacity), np.zeros(count, bool),
                np.ones(count, bool),
            )  # fmt: skip
            parts = zip(cables, every.only(every.to_host), own, strict=True)
            cables = Cables(*(np.concatenate(part) for part in parts))
        return cables, lengths(cabinet, cables.ends, self.effective_constants.floor)


@register("metric", "cables")
class CablesMetric(LayoutSpec):
    """Cables between cabinets on a floor: number, length in metres, share of optical ones.

    m cabinets stand in q = ceil(sqrt(m)) rows of p = ceil(m / q), ``pitch: [0.6, 2.1]`` metres apart in a row and
    between rows. A cable inside a cabinet is ``intra_cabinet`` long (1 m), one between cabinets their Manhattan
    distance plus ``overhead`` (2 m). A bi-directional link is one cable, a uni-directional channel one of its own.
    Hosts stand in the cabinet of their switch; their cables count with ``hosts: true``. Cards and servers that are
    nodes (``planes``, ``rail``, ``bcube``, ``dcell``, ``hammingmesh``) are hosts, and stand with their first switch.

    * ``switches_per_cabinet`` (1: the paper gives no number; a switch shares its cabinet with its hosts).
    * ``placement: order``: switches fill cabinets, and cabinets the rows, in the order of their numbers, every row
      from the same side. A torus is not folded: folding makes its longest cables shorter and the others longer,
      with the same total along each ring.
    * ``placement: optimised``: a local search from there, the same for the same ``seed``; ``gain`` is the part of the
      total length that it saves. It is no lower bound on what is possible.
    * ``reach``: longest electric cable; without it, a cable is optical where that is cheaper (from 6.86 m).
    * ``constants``: a YAML file or a mapping with other values of models/layout/constants.yaml; it need not name all.

    Gives number, mean, max, total, optical_share; gain if optimised.

    Example: ``metrics: [{kind: cables, switches_per_cabinet: 8}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014, for the rest.
    """

    def measure(self, topology: Topology) -> Row:
        _, metres = self.cables(topology, self.cabinets(topology))
        if not len(metres):
            return {"number": 0, "mean": None, "max": None, "total": 0.0, "optical_share": None}
        values: Row = {
            "number": len(metres),
            "mean": float(metres.mean()),
            "max": float(metres.max()),
            "total": float(metres.sum()),
            "optical_share": float(is_optical(metres, self.effective_constants.cable).mean()),
        }
        if self.placement == "optimised":
            cables, floor = cables_of(topology), self.effective_constants.floor
            ends = cables.ends[~cables.to_host]
            ordered_total = lengths(ordered_cabinets(topology, floor), ends, floor).sum()
            optimised_total = lengths(self.cabinets(topology), ends, floor).sum()
            values["gain"] = float(1 - optimised_total / ordered_total) if len(ends) else 0.0
        return values


@register("metric", "cabling")
class CablingMetric(PhysicalSpec):
    """Cables between racks and their bundles: a blueprint of the network's cabling.

    ``racks: cluster`` puts the switches, ``switches_per_rack`` to a rack, at the centre of the floor and the hosts,
    ``hosts_per_rack`` to a rack, around them. ``racks: mixed`` puts a switch into a rack with its hosts: with a pod's
    number of switches a rack is a container. Switches and hosts fill racks in the order of their numbers. Racks stand
    as in ``cables``, and have its lengths. All cables between the same two racks are one bundle. ``simrun topology
    FILE --blueprint PATH`` writes the list of cables.

    Gives number, of which to hosts and inside racks; bundles, cables of the largest one; mean, max and total length in
    metres, and the longest cable between switches; racks, of which with switches.

    Example: ``metrics: [{kind: cabling, racks: cluster, switches_per_rack: 40, hosts_per_rack: 40}]``

    Source: SIN section 6.5.
    """

    racks: Arrangement = "cluster"
    """Whether switches stand at the centre, or in racks with their hosts."""
    switches_per_rack: int = Field(default=40, ge=1)
    """Switches of a rack."""
    hosts_per_rack: int = Field(default=40, ge=1)
    """Hosts of a rack."""

    def blueprint(self, topology: Topology) -> tuple[Racks, Blueprint]:
        """The racks and the cables of a network."""
        floor = self.constants.floor
        racks = racks_of(topology, self.racks, self.switches_per_rack, self.hosts_per_rack, floor)
        return racks, blueprint(topology, racks, floor)

    def measure(self, topology: Topology) -> Row:
        racks, plan = self.blueprint(topology)
        sizes = np.bincount(plan.bundle[plan.bundle >= 0])
        between = plan.metres[plan.hosts :]
        return {
            "number": len(plan.ends),
            "to_hosts": plan.hosts,
            "inside_racks": int((plan.bundle < 0).sum()),
            "bundles": len(sizes),
            "bundle_max": int(sizes.max(initial=0)),
            "mean": float(plan.metres.mean()) if len(plan.metres) else None,
            "max": float(plan.metres.max()) if len(plan.metres) else None,
            "max_between_switches": float(between.max()) if len(between) else None,
            "total": float(plan.metres.sum()),
            "racks": len(racks.place),
            "switch_racks": racks.switch_racks,
        }


@register("metric", "cost")
class CostMetric(LayoutSpec):
    """Price of the network in dollars: switches by their ports, cables by length and capacity.

    A switch of k ports costs 350.4 k - 892.3 (0 at least), k counting hosts and network ports in use; one
    uni-directional channel in and one out share a port. That is for ports of capacity 1; the price is in proportion to
    their mean capacity. A cable of x metres costs 0.4079 x + 0.5771 dollars per Gbit/s if electric and
    0.0919 x + 2.7452 if optical, at 40 Gbit/s times its capacity; a uni-directional one half of that. Layout and choice
    of cables as in ``cables``, with the same parameters. Cables to hosts are left out unless ``hosts: true``: they are
    the same in every topology. Cards and servers that are nodes (``planes``, ``rail``, ``bcube``, ``dcell``,
    ``hammingmesh``) are hosts: they have no price, and their cables are those of hosts.

    Gives total, switches, cables, per_host.

    ``constants: 800g`` or ``400g`` are the prices of these generations, as ``simrun design`` has them, with cables
    beyond 3 m optical; ``constants: {profile: 800g, switch: {per_port: 1200}}`` replaces some.

    ``constants: perseus2011`` is the second model of UNI: 500 dollars a port; a cable of x metres and 40 Gbit/s costs
    1.25 (40 + 16 x) dollars of copper, up to 5 m, and 1.25 (376 + 5 x) of fibre, and its installation 2.50 dollars
    within a cabinet and 6.25 between cabinets.

    The cables of SIN section 6.5 (5 to 6 dollars a metre, electric up to 10 m, two transceivers of 200 dollars
    for an optical one) are ``constants: {cable: {gbps: 1, electric: {fixed: 0, per_metre: 5.5}, optical: {fixed: 400,
    per_metre: 5.5}, reach: 10}}``.

    Example: ``metrics: [{kind: cost, placement: optimised, reach: 5}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014 (Mellanox InfiniBand FDR10); Mudigonda,
    Yalagandula and Mogul, Taming the flying cable monster, USENIX ATC 2011 (``perseus2011``).
    """

    def measure(self, topology: Topology) -> Row:
        constants = self.effective_constants
        cabinet = self.cabinets(topology)
        cables, metres = self.cables(topology, cabinet)
        switches = float(switch_prices(topology, constants.switch).sum())
        wires = float(cable_prices(cables, metres, cabinet, constants.cable).sum())
        total = switches + wires
        per_host = total / topology.hosts if topology.hosts else None
        return {"total": total, "switches": switches, "cables": wires, "per_host": per_host}


@register("metric", "power")
class PowerMetric(PhysicalSpec):
    """Power of the switches in watts: 2.8 for every port in use, of hosts as well (four lanes of 0.7 W).

    One uni-directional channel in and one out share a port; one of capacity c counts as c. Cards and servers that are
    nodes (``planes``, ``rail``, ``bcube``, ``dcell``, ``hammingmesh``) are no switches. ``constants`` as in ``cables``;
    ``constants: 800g`` or ``400g`` count two transceivers for each link between switches, too. With traffic:
    ``outputs.energy``.

    Gives total, per_host.

    Example: ``metrics: [{kind: power, constants: {profile: 400g, switch: {watts_per_port: 12}}}]``

    Source: UNI section IV-C; Besta and Hoefler, Slim Fly, SC 2014; ``models/layout/design_prices.yaml``.
    """

    def measure(self, topology: Topology) -> Row:
        switch, cable = self.constants.switch, self.constants.cable
        optics = cable.optic_watts * topology.capacity[are_between_switches(topology)].sum()
        total = float(switch.watts_per_port * rated_ports(topology).sum() + optics)
        return {"total": total, "per_host": total / topology.hosts if topology.hosts else None}
