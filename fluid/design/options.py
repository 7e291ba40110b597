# SPDX-License-Identifier: Apache-2.0
"""Networks that may be bought: a candidate of a family, in planes, with its price and power."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import cast

from flitlab.models.layout.design_prices import DesignPrices
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, make, spec_class
from flitlab.models.topology.candidates import Candidate, Equipment
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec


@dataclass(frozen=True)
class Sku:
    """A switch that can be bought. ports: at full rate. price, watts: of a switch, without optics."""

    name: str
    ports: int
    price: float
    watts: float


@dataclass(frozen=True, eq=False)
class Option:
    """A network of one or more equal planes.

    candidate: the network of one plane, whose links have capacity 1 / split if a host's port to it has capacity 1.
    equipment: of one plane: a host takes one of ``ports * planes`` ports. switches, cables: of all planes; cables are
    those between switches. cost, watts: of all, in dollars and watts; cables of hosts are included in the cost. parts:
    of the cost, by what is bought.
    """

    candidate: Candidate
    equipment: Equipment
    sku: Sku
    planes: int
    switches: int
    cables: int
    cost: float
    watts: float
    parts: Mapping[str, float]

    @property
    def kind(self) -> str:
        """Name of the family."""
        return self.candidate.kind

    @property
    def capacity(self) -> float:
        """Of a link between switches, in rates of a host's port to its plane."""
        return 1 / self.equipment.split

    @property
    def label(self) -> str:
        """Family and parameters; planes and splits where there are any."""
        of, trunk = self.candidate.parameters, ""
        if of["kind"] == "expanded":
            added = sum(step["switches"] for step in of["steps"])
            of, trunk = of["base"], f" + {added} switches"
        while of["kind"] == "trunked":
            trunk, of = f" x {of['links']}", of["of"]
        skipped = ("kind", "hosts", "hosts_per_switch", "ports", "hosts_total", "split", "hosts_per_leaf")
        keys = [f"{key}={_short(value)}" for key, value in of.items() if key not in skipped]
        rates = [f"{self.planes} planes"] if self.planes > 1 else []
        if self.equipment.split * self.planes > 1:
            rates.append(f"ports split in {self.equipment.split * self.planes}")
        ends = f" ({', '.join(rates)})" if rates else ""
        return f"{of['kind']} {' '.join(keys)}{trunk}{ends}"

    def plane(self) -> Keys:
        """The configuration of the topology of one plane, whose hosts have ports of capacity 1."""
        keys = dict(self.candidate.parameters)
        return keys if self.equipment.split == 1 else keys | {"capacity": self.capacity}

    def topology(self) -> Keys:
        """The configuration of the whole topology, with hosts of capacity 1."""
        if self.planes == 1:
            return self.plane()
        return {"kind": "planes", "count": self.planes, "capacity": 1 / self.planes, "of": self.plane()}


def _short(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def most_switches(hosts: int, ports: int) -> int:
    """Switches of a non-blocking Clos network of few; networks of more cost more and carry no more.

    An eighth more than if the hosts filled all its ports, as pods do not divide all numbers.

    Parameters
    ----------
    hosts: number of hosts.
    ports: of a switch, each as fast as a host.
    """
    tiers = 3 if 2 * hosts <= ports**2 else 5
    return -(-9 * tiers * hosts // (8 * ports)) + 2


def options(
    hosts: int, skus: Iterable[Sku], planes: Iterable[int], splits: Mapping[str, Iterable[int]],
    families: Mapping[str, Keys], prices: DesignPrices,
) -> Iterator[Option]:  # fmt: skip
    """Yield all options: every family, switch, number of planes and split.

    Parameters
    ----------
    hosts: number of hosts.
    skus: switches that can be bought; a network has one of them.
    planes: numbers of planes; the port of a host to each has 1 / planes of its rate.
    splits: name of a switch -> links that a port at full rate may make; those that are multiples of the planes count.
    families: kind -> keys of its own.
    prices: what links and hosts cost.
    """
    for sku, b in product(skus, planes):
        for total in splits[sku.name]:
            if total % b:
                continue
            equipment = Equipment(hosts, sku.ports * b, total // b, most_switches(hosts, sku.ports * b))
            for kind, keys in families.items():
                spec = cast(type[TopologySpec], spec_class("topology", kind))
                for candidate in spec.candidates(equipment):
                    yield priced(_with_keys(candidate, keys), equipment, sku, b, prices)


def _with_keys(candidate: Candidate, keys: Keys) -> Candidate:
    if not keys:
        return candidate
    parameters = candidate.parameters
    if parameters["kind"] == "trunked":
        changed = parameters | {"of": parameters["of"] | dict(keys)}
    else:
        changed = parameters | dict(keys)
    return Candidate(**{**vars(candidate), "parameters": changed})


def priced(candidate: Candidate, equipment: Equipment, sku: Sku, planes: int, prices: DesignPrices) -> Option:
    """The option of a candidate.

    Parameters
    ----------
    candidate: the network of one plane.
    equipment: of one plane.
    sku: its switches.
    planes: number of planes.
    prices: what links and hosts cost; an optic of a part of a port costs that part.
    """
    switches, links = planes * candidate.switches, planes * candidate.links
    ends = 2 * links / (planes * equipment.split)
    parts = {
        "switches": switches * sku.price, "optics": ends * prices.optic, "fibre": links * prices.fibre,
        "cables of hosts": equipment.hosts * prices.copper,
    }  # fmt: skip
    watts = switches * sku.watts + ends * prices.optic_watts
    return Option(candidate, equipment, sku, planes, switches, links, sum(parts.values()), watts, parts)


def built(option: Option) -> Topology:
    """The network of one plane of an option.

    Raises :class:`~flitlab.models.registry.SpecError` if it cannot be built, or is not of the sizes that the family
    stated, on which prices and bounds rest.
    """
    topology: Topology = make("topology", **option.plane()).build()
    sizes = (topology.switches, topology.channels // 2, topology.hosts)
    stated = (option.candidate.switches, option.candidate.links, option.equipment.hosts)
    if sizes[0] != stated[0] or not 0 <= stated[1] - sizes[1] <= 1 or sizes[2] != stated[2]:
        raise SpecError(f"has {sizes} switches, links and hosts, where the family states {stated}")
    return topology
