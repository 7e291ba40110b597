# SPDX-License-Identifier: Apache-2.0
"""What a network can grow to: more hosts, with as many of its cables as possible left where they are."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from flitlab.fluid.design.bounds import Network, by_equipment, closed_form
from flitlab.fluid.design.demands import DesignDemand, Ends, Memo
from flitlab.fluid.design.options import Option, built, most_switches, priced
from flitlab.models.layout.design_prices import DesignPrices
from flitlab.models.registry import SpecError, spec_class
from flitlab.models.topology.candidates import Candidate, Equipment, innermost
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec

DEARER = 0.25
"""Plans that cost at most this much more than the cheapest one are compared by the cables that they move."""

MOST_BUILT = 60
"""Larger networks that are built for one of today."""

MOST_SOLVED = 24
"""Larger networks that are solved for one of today."""


@dataclass(frozen=True, eq=False)
class Growth:
    """A plan to grow a network.

    option: the larger network. switches, cables: bought, of all planes. moved: cables between switches of today that
    are unplugged, of all planes: some plan moves no more. hosts: of today that are plugged elsewhere. cost: in dollars,
    of all that is bought; a cable that moves is new fibre, and its optics stay in use. ends: certified intervals of the
    demands with that number of hosts.
    """

    option: Option
    switches: int
    cables: int
    moved: int
    hosts: int
    cost: float
    ends: list[Ends]


def grow(
    option: Option, target: int, demands: Sequence[DesignDemand], least: Sequence[float], prices: DesignPrices,
    gap: float, moved: float = 1.0, memo: Memo | None = None,
) -> Growth | None:  # fmt: skip
    """Plan the growth of a network: of plans that certainly carry the demands and cost at most 25 % more than the
    cheapest one, that which moves the fewest cables.

    Larger networks are members of the same family, with the same switches, planes and splits; a random graph grows
    switch by switch.

    Parameters
    ----------
    option : Option
        The network of today.
    target : int
        Number of hosts to grow to.
    demands : sequence of DesignDemand
        Demands.
    least : sequence of float
        Theta of each demand that the larger network must carry.
    prices : DesignPrices
        What is bought.
    gap : float
        Of the intervals of the larger network.
    moved : float
        Largest share of today's cables that may move.
    memo : mapping or None
        What was solved before.

    Returns
    -------
    The plan; None if the family has none that carries the demands, or each moves more cables.
    """
    solved = 0
    for window in _windows(option, target, demands, least, prices):
        plans = [plan for plan in window if plan.moved <= moved * option.cables]
        for plan in sorted(plans, key=lambda one: (one.moved + one.hosts, one.cost)):
            if solved == MOST_SOLVED:
                return None
            solved += 1
            network = Network.of(built(plan.option))
            ends: list[Ends] = []
            for demand, x in zip(demands, least, strict=True):
                ends.append(demand.ends(network, gap, x * (1 - gap), memo))
                if ends[-1].lower < x * (1 - gap):
                    break
            else:
                return replace(plan, ends=ends)
    return None


def _windows(
    option: Option, target: int, demands: Sequence[DesignDemand], least: Sequence[float], prices: DesignPrices
) -> Iterator[list[Growth]]:
    """Yield plans of about the same cost, the cheapest first, of which no bound says that they carry too little."""
    today, tried, most = built(option), 0, 0.0
    window: list[Growth] = []
    for one in sorted(_larger(option, target, prices), key=lambda one: one.cost):
        if tried == MOST_BUILT:
            break
        if one.switches < option.switches or not _may_carry(one, demands, least):
            continue
        tried += 1
        try:
            new = built(one)
            network = Network.of(new)
            uppers = [demand.on(network).upper().value for demand in demands]
        except SpecError:
            continue
        if any(upper < x for upper, x in zip(uppers, least, strict=True)):
            continue
        if one.cost - option.cost > most:
            yield window
            window, most = [], (one.cost - option.cost) * (1 + DEARER)
        window.append(_plan(option, one, *kept(today, new, option, one), prices))
    yield window


def _plan(option: Option, larger: Option, stay: int, hosts: int, prices: DesignPrices) -> Growth:
    """A plan without its ends. stay: links of a plane that stay. hosts: of a plane that are plugged elsewhere."""
    moved, added = option.cables - stay * option.planes, larger.cables - stay * option.planes
    optics = max(0, added - moved) * 2 / (option.planes * option.equipment.split)
    switches, more = larger.switches - option.switches, larger.equipment.hosts - option.equipment.hosts
    cost = switches * option.sku.price + optics * prices.optic + added * prices.fibre + more * prices.copper
    cables = larger.cables - option.cables
    return Growth(larger, switches, cables, moved, hosts * option.planes, cost, [])


def _may_carry(option: Option, demands: Sequence[DesignDemand], least: Sequence[float]) -> bool:
    """Whether bounds in closed form leave open that a network carries the demands."""
    for bound in (closed_form, by_equipment):
        closed = dict(zip(("uniform", "worst"), bound(option.candidate, option.equipment), strict=True))
        if any(demand.closed and closed[demand.closed].value < x for demand, x in zip(demands, least, strict=True)):
            return False
    return True


def _larger(option: Option, target: int, prices: DesignPrices) -> list[Option]:
    """Networks of more hosts that the family says an option can become."""
    kind, split = option.kind, option.equipment.split
    equipment = Equipment(target, option.equipment.ports, split, most_switches(target, option.equipment.ports))
    spec = cast(type[TopologySpec], spec_class("topology", kind))
    if spec.larger.__func__ is TopologySpec.larger.__func__:  # type: ignore[attr-defined]
        members: Sequence[Candidate] = _members(spec, equipment)
    else:
        members = list(spec.larger(option.candidate, option.equipment, equipment))
    return [priced(member, equipment, option.sku, option.planes, prices) for member in members]


@lru_cache(maxsize=64)
def _members(spec: type[TopologySpec], equipment: Equipment) -> Sequence[Candidate]:
    return tuple(spec.candidates(equipment))


def kept(old: Topology, new: Topology, old_option: Option, new_option: Option) -> tuple[int, int]:
    """Links of a network that a larger one has, too, and hosts of today that it has elsewhere, in one plane.

    Switches of today become those of the same place: tier and number in it, coordinates, or number. Other ways to place
    them may keep more.

    Parameters
    ----------
    old, new : Topology
        The networks.
    old_option, new_option : Option
        Their parameters.
    """
    best = (-1, 0)
    places: tuple[Place, ...] = (_by_tier, _by_coordinates, _by_number)
    for place in places:
        image = _image(place(old, old_option), place(new, new_option))
        if image is None:
            continue
        links, target = _pairs(old, image), _pairs(new, np.arange(new.switches))
        stay = sum(min(count, target[pair]) for pair, count in links.items())
        elsewhere = int(np.maximum(old.host_count - new.host_count[image], 0).sum())
        best = max(best, (stay, -elsewhere))
    return best[0], -best[1]


Places = list[tuple[int, ...]] | None
Place = Callable[[Topology, Option], Places]


def _image(old: Places, new: Places) -> np.ndarray | None:
    """The new switch that each old one becomes; those whose place is gone get free ones of the same tier, or any."""
    if old is None or new is None or len(old[0]) != len(new[0]):
        return None
    number = {place: v for v, place in enumerate(new)}
    image = [number.get(place, -1) for place in old]
    free = [v for v in range(len(new)) if v not in set(image)]
    for u, v in enumerate(image):
        if v < 0:
            of_tier = next((w for w in free if new[w][0] == old[u][0]), free[0])
            free.remove(of_tier)
            image[u] = of_tier
    return np.array(image)


def _pairs(topology: Topology, image: np.ndarray) -> Counter[tuple[int, int]]:
    """Number of links between two switches, named as their images."""
    first = topology.src < topology.dst
    ends = np.sort(np.column_stack([image[topology.src[first]], image[topology.dst[first]]]), axis=1)
    return Counter(map(tuple, ends.tolist()))


def _by_number(topology: Topology, option: Option) -> Places:
    return [(0, v) for v in range(topology.switches)]


def _by_tier(topology: Topology, option: Option) -> Places:
    tiers = topology.notes.get("tiers")
    if not tiers:
        return None
    return [(t, v) for t, (_, _, count) in enumerate(tiers) for v in range(count)]


def _by_coordinates(topology: Topology, option: Option) -> Places:
    """Coordinates by the keys ``dims``, or ``groups`` and ``a`` of a dragonfly; the last ones vary fastest."""
    keys = innermost(option.candidate.parameters)
    dims = keys.get("dims") or ([keys["groups"], keys["a"]] if {"groups", "a"} <= set(keys) else None)
    if dims is None or math.prod(dims) != topology.switches:
        return None
    places = np.column_stack(np.unravel_index(np.arange(topology.switches), dims))
    return [tuple(place) for place in places.tolist()]
