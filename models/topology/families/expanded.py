# SPDX-License-Identifier: Apache-2.0
"""Random networks that grow step by step, as Jellyfish does."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.file_delays import notes_of_links
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MAX_RANDOM_CHANNELS, limit_random_size
from flitlab.models.topology.names import extended_names
from flitlab.models.topology.spec import TopologySpec, build_nested
from flitlab.models.topology.wiring import evenly


class Prices(BaseModel):
    """Prices of a switch, of a new cable between switches and of moving one, in any common unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    switch: float = Field(default=1, gt=0, allow_inf_nan=False)
    cable: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    rewiring: float = Field(default=0.01, ge=0, allow_inf_nan=False)


class Step(BaseModel):
    """An expansion step: ``switches`` new switches, or as many as ``budget`` buys; repeated ``times`` times."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ports: int = Field(ge=2)
    switches: int | None = Field(default=None, ge=1)
    servers: int = Field(default=0, ge=0)
    budget: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    hosts_total: int = Field(default=0, ge=0)
    times: int = Field(default=1, ge=1)


MOST_STEPS = 100_000
"""Repetitions counted, and those that are not carried out."""


class Repeated(Protocol):
    """A step with repetitions."""

    @property
    def times(self) -> int:
        """Number of repetitions."""


R = TypeVar("R", bound=Repeated)


def repeated(steps: Sequence[R], stage: int | None, most: int = MOST_STEPS) -> list[tuple[int, R]]:
    """Return the first ``stage`` steps, repetitions counted, or all of them: each with its index in ``steps``.

    Parameters
    ----------
    steps: the steps with their repetitions.
    stage: number of steps to carry out; None: all.
    most: largest accepted number of steps.

    Raises ``SpecError`` for more than ``most`` steps, and for a stage that does not exist.
    """
    count = sum(step.times for step in steps)
    if count > most:
        raise SpecError(f"{count} steps, with their repetitions; at most {most}", key="steps")
    if stage is not None and stage > count:
        raise SpecError(f"at most {count}, the number of steps", key="stage")
    return [(i, step) for i, step in enumerate(steps) for _ in range(step.times)][:stage]


@register("topology", "expanded")
class Expanded(TopologySpec):
    """A network that grows: another topology, expanded switch by switch at random.

    ``base`` is the network at first; ``steps`` is what is added: ``switches`` of ``ports`` ports each,
    ``servers`` of which have a host (0: network capacity only). For every two of its other ports a new switch
    p takes a random link (x, y), x and y not being neighbours of p: (x, y) is removed, (p, x) and (p, y) are
    added, with its capacity and delay. Only when no such link is left, one of x and y may be a neighbour already
    (``parallel_links``). An odd port stays free. ``times`` repeats a step; ``stage`` carries out
    only that many steps, repetitions counted (default: all).

    A step may have a ``budget`` instead of ``switches``: it buys and connects as many switches as that pays
    for, with ``hosts_total`` hosts spread evenly on them; what is not spent is kept for the next such step.
    ``prices``: a new switch costs ``switch``, and two ports of it one moved cable (``rewiring``) and one new
    one (``cable``). Hosts and their cables are not counted; the base costs its switches and cables.

    ``notes``: steps (switches, hosts, links_moved, cost of each), links_moved, parallel_links, initial_cost,
    and cost: all that the network has cost so far.

    Valid: bi-directional base with links; at least 2 ports of a new switch for links. (34 switches have no use
    for more than 33 ports for links each: hence 47 ports in the base of the second example.)

    Example: ``topology: {kind: expanded, base: {kind: rrg, n: 20, ports: 12, hosts_total: 80}, steps: [{switches: 20, ports: 12, servers: 4, times: 7}], seed: 1}``

    Example: ``topology: {kind: expanded, base: {kind: rrg, n: 34, ports: 47, hosts_total: 480}, steps: [{budget: 18, ports: 48, hosts_total: 240}, {budget: 6, ports: 48, times: 7}], stage: 4}``

    Source: Jellyfish, SIN section 4.2.2, Figs 4.4-4.6.
    """  # noqa: E501

    base: Keys
    """The network at first, a topology."""
    steps: list[Step]
    """What each step adds: switches, or a budget for them."""
    stage: int | None = Field(default=None, ge=0)
    """Steps that are carried out. null: all."""
    prices: Prices = Prices()
    """Prices of a switch, of a cable and of moving one."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random draws."""

    def graph(self) -> Topology:
        base = build_nested(self.base, "base")
        if base.directed or not base.channels:
            raise SpecError("must have links, all of them bi-directional", key="base")
        rng = np.random.default_rng(self.seed)
        own = np.flatnonzero(base.src < base.dst)
        links = np.column_stack([base.src[own], base.dst[own]]).tolist()
        origin = own.tolist()  # the channel of the base whose capacity and delay a link has
        hosts = base.host_count.tolist()
        initial = self.prices.switch * base.switches + self.prices.cable * len(links)
        saved, done = 0.0, []
        for number, step in self._steps():
            saved += step.budget or 0
            new = _servers(step, saved, self.prices, f"steps[{number}]")
            limit_random_size(2 * len(links) + len(new) * step.ports, f"steps[{number}]")
            moved = sum(_insert(links, origin, len(hosts) + i, step.ports - k, rng) for i, k in enumerate(new))
            hosts += new
            cost = self.prices.switch * len(new) + (self.prices.cable + self.prices.rewiring) * moved
            saved -= cost if step.budget is not None else 0
            done.append({"switches": len(new), "hosts": sum(new), "links_moved": moved, "cost": cost})
        notes = {
            "steps": done,
            "links_moved": sum(step["links_moved"] for step in done),
            "parallel_links": len(links) - len({(min(ends), max(ends)) for ends in links}),
            "initial_cost": initial,
            "cost": initial + sum(step["cost"] for step in done),
            **extended_names(base, len(hosts) - base.switches),
            **notes_of_links(base, sum(hosts)),
        }
        topology = Topology.from_links(
            self.kind, len(hosts), links, capacity=base.capacity[origin], delay=base.delay[origin],
            default_weight=base.default_weight, columns=base.columns_of(np.array(origin)), notes=notes,
        )  # fmt: skip
        delay = np.append(base.access_delay, np.zeros(sum(hosts) - base.hosts, np.int64))
        return topology.with_hosts(hosts, base.host_capacity, delay)

    def _steps(self) -> list[tuple[int, Step]]:
        """The steps to carry out, each with its place in ``steps``."""
        for i, step in enumerate(self.steps):
            if (step.switches is None) == (step.budget is None):
                raise SpecError("give either switches or budget", key=f"steps[{i}]")
            if step.budget is None and step.hosts_total:
                raise SpecError("goes with budget; with switches, give servers of each", key=f"steps[{i}].hosts_total")
            if step.budget is not None and step.servers:
                raise SpecError("goes with switches; with budget, give hosts_total", key=f"steps[{i}].servers")
            if step.servers > step.ports - 2:
                raise SpecError(f"leaves no two ports for links; at most {step.ports - 2}", key=f"steps[{i}].servers")
        listed = repeated(self.steps, self.stage)
        limit_random_size(sum((step.switches or 0) * step.ports for _, step in listed), "steps")
        return listed


def _servers(step: Step, money: float, prices: Prices, key: str) -> list[int]:
    """Hosts at each of the new switches of a step. key: of the step, for errors."""
    if step.switches is not None:
        limit_random_size(step.switches * step.ports, key)
        return [step.servers] * step.switches

    def cost(count: int) -> float:
        few, many = divmod(step.hosts_total, count)
        pairs = (count - many) * ((step.ports - few) // 2) + many * ((step.ports - few - 1) // 2)
        return count * prices.switch + pairs * (prices.cable + prices.rewiring)

    least = -(-step.hosts_total // max(1, step.ports - 2))
    if step.hosts_total and (step.ports == 2 or cost(least) > money):
        needed = f"{cost(least):.6g}" if step.ports > 2 else "more ports are needed"
        raise SpecError(
            f"{money:.6g} at hand do not pay for the switches of {step.hosts_total} hosts; least: {needed}",
            key=f"{key}.budget",
        )
    count = least
    while count * step.ports <= MAX_RANDOM_CHANNELS and cost(count + 1) <= money:
        count += 1
    limit_random_size(count * step.ports, key)
    return evenly(step.hosts_total, count).tolist() if count else []


def _insert(links: list[list[int]], origin: list[int], new: int, ports: int, rng: np.random.Generator) -> int:
    """Put switch ``new`` into ports // 2 random links, in place; return their number.

    The links have no end in common, unless there are too few such links.
    """
    neighbours: set[int] = set()
    for placed in range(ports // 2):
        for i in rng.integers(len(links), size=20).tolist():
            if neighbours.isdisjoint(links[i]) and new not in links[i]:
                break
        else:
            others = [i for i, ends in enumerate(links) if new not in ends]
            if not others:
                return placed
            disjoint = [i for i in others if neighbours.isdisjoint(links[i])]
            i = rng.choice(disjoint or others)
        x, y = links[i]
        neighbours |= {x, y}
        links[i] = [x, new]
        links.append([new, y])
        origin.append(origin[i])
    return ports // 2
