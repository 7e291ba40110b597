"""The entry point: certified ceilings of a scenario."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from fluid.bounds import all_bounds
from fluid.certificate import Certificate, verify_upper
from fluid.hosts import host_bound, host_certificate
from fluid.mcf.choose import Method, solve
from fluid.problem import FluidError, Problem
from fluid.split import split_theta
from fluid.total import total
from models.routing.routes import VIA
from models.scenario import Scenario

Kind = Literal["mcf", "mcf_paths", "split", "total", "bounds"]


class CeilingSpec(BaseModel):
    """One entry of ``ceilings:`` in a configuration.

    method: ``exact`` solves an LP (or, where that is too large, approximates as closely as it can),
    ``approx`` uses a first-order method, ``auto`` chooses.
    gap: relative distance of the two bounds at which an approximation may stop.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    method: Method = "auto"
    gap: float = Field(default=0.01, gt=0, lt=1)


@dataclass(frozen=True, eq=False)
class Ceiling:
    """A ceiling between ``lower`` (a flow reaches it) and ``upper`` (lengths forbid more).

    ceiling: ``mcf``, ``mcf_paths``, ``split``, ``total``, ``bounds`` or ``bounds:<name>``.
    load: for ``total``, else None.
    lower, upper: nan where omitted or not known; ``note`` says why.
    unit: ``load`` (theta multiplies T, as loads do), ``theta_hose`` (the same, with infinite host channels)
    or, for ``total``, ``flits/tick/host``, as ``accepted``.
    certificate: the lengths behind ``upper``, if lengths are.
    """

    ceiling: str
    load: float | None
    lower: float
    upper: float
    unit: str
    method: str
    seconds: float
    note: str = ""
    certificate: Certificate | None = None


def ceilings(scenario: Scenario, specs: Sequence[CeilingSpec], loads: Sequence[float] = ()) -> list[Ceiling]:
    """The ceilings asked for, in order; ``total`` gives one per load.

    Equal input gives equal results, ``seconds`` (of CPU) excepted. ``mcf_paths`` and ``split`` are omitted,
    with the reason, where the scenario has no routes or they do not fix the traffic split.
    Raises :class:`~fluid.problem.FluidError` if the demand is zero or joins switches that no path joins.
    """
    found: list[Ceiling] = []
    theta: float | None = None
    for spec in specs:
        if spec.kind == "total" and theta is None and loads:
            # only loads past theta need work: a rough theta serves
            theta = _theta(scenario, spec.model_copy(update={"gap": max(spec.gap, 0.02)}), "mcf").lower
        for ceiling in _timed(_one_kind(scenario, spec, loads, theta)):
            found.append(ceiling)
            if ceiling.ceiling == "mcf":
                theta = ceiling.lower
    return found


def _timed(rows: Iterator[Ceiling]) -> Iterator[Ceiling]:
    """Fill in the CPU seconds that every row took to compute."""
    started = time.process_time()
    for row in rows:
        yield replace(row, seconds=time.process_time() - started)
        started = time.process_time()


def _unit(scenario: Scenario) -> str:
    return "theta_hose" if math.isinf(scenario.topology.host_capacity) else "load"


def _omitted(scenario: Scenario, kind: str, reason: str) -> Ceiling:
    return Ceiling(kind, None, math.nan, math.nan, _unit(scenario), "omitted", 0.0, reason)


def _one_kind(scenario: Scenario, spec: CeilingSpec, loads: Sequence[float], theta: float | None) -> Iterator[Ceiling]:
    routes = scenario.routes
    if spec.kind in ("mcf_paths", "split") and routes is None:
        yield _omitted(scenario, spec.kind, "the scenario has no routing")
    elif spec.kind in ("mcf_paths", "split") and not routes.oblivious:
        yield _omitted(scenario, spec.kind, f"{routes.kind} routing does not fix the paths beforehand")
    elif spec.kind == "mcf_paths" and routes.form == VIA:
        yield _omitted(scenario, spec.kind, f"{routes.kind} routing has too many paths, over every intermediate switch")
    elif spec.kind in ("mcf", "mcf_paths"):
        yield _theta(scenario, spec, spec.kind)
    elif spec.kind == "split":
        yield _split(scenario)
    elif spec.kind == "total":
        for load in loads:
            yield _total(scenario, spec, load, theta)
    else:
        yield from _bounds(scenario)


def _theta(scenario: Scenario, spec: CeilingSpec, kind: str) -> Ceiling:
    """Maximum concurrent flow, over the routes for ``mcf_paths``: the network's or that of a host channel."""
    topology, traffic = scenario.topology, scenario.traffic
    problem = Problem.of(topology, traffic, scenario.routes if kind == "mcf_paths" else None)
    at_hosts = host_bound(topology, traffic)
    if problem.demand.size == 0:
        return _host_ceiling(scenario, kind, at_hosts, "closed form", "no demand leaves its switch")
    solution = solve(problem, spec.gap, spec.method, at_hosts)
    if solution.lower >= at_hosts:
        return _host_ceiling(scenario, kind, at_hosts, solution.method, "host channels bind")
    certificate = Certificate.on_network(topology, solution.lengths)
    note = ""
    if at_hosts < solution.upper:
        certificate, note = host_certificate(topology, traffic), "upper bound: host channels"
    upper = verify_upper(topology, traffic, certificate, problem.ways)
    note = _join(note, _gap_note(solution.lower, upper, spec))
    lower = min(solution.lower, upper)
    return Ceiling(kind, None, lower, upper, _unit(scenario), solution.method, 0.0, note, certificate)


def _host_ceiling(scenario: Scenario, kind: str, at_hosts: float, method: str, note: str) -> Ceiling:
    if math.isinf(at_hosts):
        return Ceiling(kind, None, at_hosts, at_hosts, _unit(scenario), method, 0.0, note)
    certificate = host_certificate(scenario.topology, scenario.traffic)
    return Ceiling(kind, None, at_hosts, at_hosts, _unit(scenario), method, 0.0, note, certificate)


def _join(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _gap_note(lower: float, upper: float, spec: CeilingSpec) -> str:
    gap = upper / lower - 1 if lower > 0 else math.inf
    asked = spec.gap if spec.method != "exact" else 1e-6
    return f"gap {gap:.2g} where {asked:g} was asked" if gap > asked * (1 + 1e-9) else ""


def _split(scenario: Scenario) -> Ceiling:
    """The fixed split of the routing: one number, no certificate (it bounds this split, not the network)."""
    problem = Problem.of(scenario.topology, scenario.traffic, scenario.routes)
    network, at_hosts = split_theta(problem), host_bound(scenario.topology, scenario.traffic)
    note = "host channels bind" if at_hosts <= network else ""
    theta = min(network, at_hosts)
    return Ceiling("split", None, theta, theta, _unit(scenario), "equal split", 0.0, note)


def _total(scenario: Scenario, spec: CeilingSpec, load: float, theta: float | None) -> Ceiling:
    """Largest total at a load, per host."""
    topology, traffic = scenario.topology, scenario.traffic
    unit, hosts = "flits/tick/host", topology.hosts
    offer = load * float(traffic.rate.sum()) / hosts
    if theta is not None and load <= theta:
        return Ceiling("total", load, offer, offer, unit, "offer", 0.0, "the load is below a certified theta")
    try:
        found = total(topology, traffic, load, spec.gap, spec.method)
    except FluidError as error:
        return Ceiling("total", load, math.nan, math.nan, unit, "omitted", 0.0, str(error))
    lower, upper = found.lower / hosts, found.upper / hosts
    note = _gap_note(lower, upper, spec)
    return Ceiling("total", load, lower, upper, unit, found.method, 0.0, note, found.certificate)


def _bounds(scenario: Scenario) -> Iterator[Ceiling]:
    """The least simple bound, then each of them."""
    Problem.of(scenario.topology, scenario.traffic)  # for its errors
    every = all_bounds(scenario.topology, scenario.traffic)
    least = min(every, key=lambda bound: bound.upper)
    for name, bound in [("bounds", least)] + [(f"bounds:{bound.name}", bound) for bound in every]:
        note = f"{bound.name}: {bound.note}" if name == "bounds" else bound.note
        yield Ceiling(name, None, math.nan, bound.upper, _unit(scenario), "closed form", 0.0, note, bound.certificate)


__all__ = ["Ceiling", "CeilingSpec", "FluidError", "ceilings"]
