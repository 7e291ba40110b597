"""The entry point: certified ceilings of a scenario."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flitlab.fluid.background import Beside
from flitlab.fluid.bounds import all_bounds
from flitlab.fluid.ceiling import BY_ROUTING, CONCURRENT, Ceiling, CeilingSpec, Kind, Method
from flitlab.fluid.certificate import Certificate, verify_upper
from flitlab.fluid.cuts import all_cuts, best
from flitlab.fluid.decomposition import decomposition, utilisation
from flitlab.fluid.hosts import host_bound, host_certificate, hot_hosts
from flitlab.fluid.makespan import makespan_bounds
from flitlab.fluid.mcf.choose import PATHS_MOST, solve
from flitlab.fluid.problem import Demand, FluidError, Problem
from flitlab.fluid.sharing.rows import MODELS, model_rows, theta_rows
from flitlab.fluid.split import growing_split, split_theta
from flitlab.fluid.total import total
from flitlab.models.cputime import CpuTime
from flitlab.models.rules.tables import VIA
from flitlab.models.scenario import Scenario


def ceilings(
    scenario: Scenario, specs: Sequence[CeilingSpec], loads: Sequence[float] = (), *, keep_flow: bool = False
) -> list[Ceiling]:
    """The ceilings asked for, in order; ``total`` gives one per load, other kinds a row for each quantity.

    Equal input gives equal results, ``seconds`` (of CPU) excepted. What needs the paths of a routing is omitted, with
    the reason, where the scenario has no routes or they do not fix the traffic split. keep_flow: the rows keep
    the flows behind their lower bounds, which may be large.
    Raises :class:`~flitlab.fluid.problem.FluidError` if the demand is zero or joins switches that no path joins.
    """
    solved = _Solved(scenario)
    found = [row for spec in specs for row in _timed(_one_kind(solved, spec, loads))]
    return found if keep_flow else [replace(row, flow=None) for row in found]


class _Solved:
    """The maximum concurrent flows of a scenario, each solved once."""

    def __init__(self, scenario: Scenario):
        self.scenario = scenario
        self.found: dict[tuple[str, Method, float], Ceiling] = {}

    def theta(self, kind: str, spec: CeilingSpec) -> Ceiling:
        """``mcf`` or ``mcf_paths`` by the method and to the gap of ``spec``."""
        key = (kind, spec.method, spec.gap)
        if key not in self.found:
            self.found[key] = _theta(self.scenario, spec, kind)
        return self.found[key]

    def rough(self, spec: CeilingSpec) -> float:
        """A theta that some flow reaches: the best known, or one that is quickly found."""
        known = [ceiling.lower for (kind, _, _), ceiling in self.found.items() if kind == "mcf"]
        return max(known) if known else self.theta("mcf", spec.model_copy(update={"gap": max(spec.gap, 0.02)})).lower


def _timed(rows: Iterator[Ceiling]) -> Iterator[Ceiling]:
    """Fill in the CPU seconds that every row took to compute, without those in which kernels were made ready."""
    spent = CpuTime()
    for row in rows:
        yield replace(row, seconds=spent.seconds)
        spent = CpuTime()


def _unit(scenario: Scenario) -> str:
    return "theta_hose" if math.isinf(scenario.topology.host_capacity) else "load"


def _pathless(scenario: Scenario, kind: Kind) -> str:
    """Why there are no paths to speak of; '' if there are."""
    routes = scenario.routes
    if routes is None:
        return "" if kind == "mmf" else f"the scenario has no routing, on whose paths {kind} depends"
    if not routes.oblivious:
        return f"{routes.kind} routing does not fix the paths beforehand"
    if routes.form == VIA and kind in MODELS:
        return f"{routes.kind} routing has too many paths, over every intermediate switch"
    if routes.form == VIA and kind == "mcf_paths" and (pairs := _pairs(scenario)) > PATHS_MOST:
        return f"{pairs} pairs of switches, each over every other one, are too many (at most {PATHS_MOST})"
    return ""


def _pairs(scenario: Scenario) -> int:
    return Demand.of_traffic(scenario.traffic.at(1.0)[0]).size


def _one_kind(solved: _Solved, spec: CeilingSpec, loads: Sequence[float]) -> Iterator[Ceiling]:
    scenario, kind = solved.scenario, spec.kind
    if kind in BY_ROUTING and (reason := _pathless(scenario, kind)):
        yield Ceiling.omitted(kind, _unit(scenario), reason)
    elif scenario.traffic.background is not None and kind not in BESIDE_BACKGROUND:
        yield Ceiling.omitted(kind, _unit(scenario), NO_THETA)
    elif kind in CONCURRENT:
        ceiling = _split(scenario) if kind == "split" else solved.theta(kind, spec)
        yield ceiling
        if spec.per_flow and scenario.traffic.background is not None:
            yield Ceiling.omitted(f"{kind}:mean", "flits/tick/flow", NO_THETA)
        elif spec.per_flow:
            yield from theta_rows(scenario, ceiling)
    elif kind in MODELS:
        yield from _models(scenario, kind)
    elif kind == "total":
        for load in loads:
            yield _total(scenario, spec, load, solved.rough(spec))
    elif kind == "decomposition":
        yield from _decomposition(scenario, solved.theta("mcf", spec))
    elif kind == "utilisation":
        yield from _utilisation(scenario, solved.theta("mcf", spec))
    elif kind == "cuts":
        yield from _cuts(scenario)
    elif kind == "makespan":
        yield from _makespan(scenario)
    else:
        yield from _bounds(scenario)


def _models(scenario: Scenario, kind: Kind) -> Iterator[Ceiling]:
    """A throughput model, or why it would be too large."""
    Problem.of(scenario.topology, scenario.traffic)  # for its errors
    try:
        yield from list(model_rows(scenario, kind, _unit(scenario)))
    except FluidError as error:
        yield Ceiling.omitted(kind, _unit(scenario), str(error))


BESIDE_BACKGROUND = ("mcf", "mcf_paths", "split", "total")
"""Kinds that are known where a part of the demand does not grow."""

NO_THETA = "is for demands that grow as a whole, and this one has a fixed background"

NO_LOAD = "no flow crosses the network"


def _decomposition(scenario: Scenario, mcf: Ceiling) -> Iterator[Ceiling]:
    """The throughput of the concurrent flow found, and its factors."""
    if mcf.channel_load is None:
        yield Ceiling.omitted("decomposition", "flits/tick", NO_LOAD)
        return
    problem = Problem.of(scenario.topology, scenario.traffic)
    parts = decomposition(problem, mcf.lower, mcf.channel_load)
    note = f"theta {mcf.lower:.6g} = capacity x utilisation / (distance x stretch x {problem.demand.amount.sum():.6g})"
    rows = [
        ("", parts.throughput, "flits/tick"), (":capacity", parts.capacity, "flits/tick"),
        (":utilisation", parts.utilisation, "1"), (":distance", parts.distance, "hops"),
        (":stretch", parts.stretch, "1"),
    ]  # fmt: skip
    for name, value, unit in rows:
        yield Ceiling.value(f"decomposition{name}", value, value, unit, mcf.method, "" if name else note)


def _utilisation(scenario: Scenario, mcf: Ceiling) -> Iterator[Ceiling]:
    """Mean utilisation of all network channels, then of each class of them, by the concurrent flow found."""
    if mcf.channel_load is None:
        yield Ceiling.omitted("utilisation", "1", NO_LOAD)
        return
    for name, use in utilisation(scenario.topology, mcf.channel_load).items():
        row = f"utilisation:{name}" if name else "utilisation"
        yield Ceiling.value(row, use, use, "1", mcf.method, "" if name else f"by the flow of theta {mcf.lower:.6g}")


def _theta(scenario: Scenario, spec: CeilingSpec, kind: str) -> Ceiling:
    """Maximum concurrent flow, over the routes for ``mcf_paths``: the network's or that of a host channel."""
    topology, traffic = scenario.topology, scenario.traffic
    if traffic.background is not None:
        return _beside(scenario, spec, kind)
    problem = Problem.of(topology, traffic, scenario.routes if kind == "mcf_paths" else None)
    at_hosts = host_bound(topology, traffic)
    if problem.demand.size == 0:
        return _host_ceiling(scenario, kind, at_hosts, "closed form", "no demand leaves its switch")
    solution = solve(problem, spec.gap, spec.method, at_hosts)
    # where hosts bind, the network carries the part of its flow that they let through
    load = solution.load * min(1.0, at_hosts / solution.lower)
    if solution.lower >= at_hosts:
        note = _join(_binding_hosts(scenario, at_hosts), solution.note)
        row = _host_ceiling(scenario, kind, at_hosts, solution.method, note)
        return replace(row, channel_load=load, flow=solution.flow)
    certificate = Certificate.on_network(topology, solution.lengths)
    note = ""
    if at_hosts < solution.upper:
        certificate, note = host_certificate(topology, traffic), "upper bound: host channels"
    upper = verify_upper(topology, traffic, certificate, problem.ways)
    note = _join(note, solution.note, _gap_note(solution.lower, upper, spec))
    lower = min(solution.lower, upper)
    unit, method = _unit(scenario), solution.method
    return Ceiling(kind, None, lower, upper, unit, method, 0.0, note, certificate, load, solution.flow)


BESIDE = "the load is that of what grows beside the background"
"""Note of ceilings of traffic with one."""


def _beside(scenario: Scenario, spec: CeilingSpec, kind: str) -> Ceiling:
    """The most that what grows can have beside a background: in the network, or over a host channel."""
    topology, traffic = scenario.topology, scenario.traffic
    at_hosts = host_bound(topology, traffic)
    routes = scenario.routes if kind == "mcf_paths" else None
    found = Beside(topology, traffic, routes, spec.gap, spec.method).growing(at_hosts)
    if found.lower >= at_hosts:
        return _host_ceiling(scenario, kind, at_hosts, found.method, _join(_binding_hosts(scenario, at_hosts), BESIDE))
    certificate = None if found.lengths is None else Certificate.on_network(topology, found.lengths)
    if certificate is None and math.isfinite(at_hosts):
        certificate = host_certificate(topology, traffic)
    alone = "the background alone cannot be carried" if found.upper == 0 else ""
    note = _join(alone, BESIDE, "" if alone else _gap_note(found.lower, found.upper, spec))
    return Ceiling(kind, None, found.lower, found.upper, _unit(scenario), found.method, 0.0, note, certificate)


def _binding_hosts(scenario: Scenario, at_hosts: float) -> str:
    hot = hot_hosts(scenario.topology, scenario.traffic, at_hosts) if math.isfinite(at_hosts) else ""
    return hot or "host channels bind"


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
    topology, traffic, routes = scenario.topology, scenario.traffic, scenario.routes
    if traffic.background is not None:
        network = growing_split(topology, traffic, routes)
    else:
        network = split_theta(Problem.of(topology, traffic, routes), topology, traffic)
    at_hosts = host_bound(topology, traffic)
    note = _binding_hosts(scenario, at_hosts) if at_hosts <= network else ""
    note = note if traffic.background is None else _join(note, BESIDE)
    theta = min(network, at_hosts)
    return Ceiling("split", None, theta, theta, _unit(scenario), "equal split", 0.0, note)


def _total(scenario: Scenario, spec: CeilingSpec, load: float, theta: float) -> Ceiling:
    """Largest total at a load, per host."""
    topology, (traffic, offered) = scenario.topology, scenario.traffic.at(load)
    unit, hosts = "flits/tick/host", topology.hosts
    offer = offered * float(traffic.rate.sum()) / hosts
    if load <= theta:
        return Ceiling("total", load, offer, offer, unit, "offer", 0.0, "the load is below a certified theta")
    try:
        found = total(topology, traffic, offered, spec.gap, spec.method)
    except FluidError as error:
        return Ceiling("total", load, math.nan, math.nan, unit, "omitted", 0.0, str(error))
    lower, upper = found.lower / hosts, found.upper / hosts
    note = _join(found.note, _gap_note(lower, upper, spec))
    return Ceiling("total", load, lower, upper, unit, found.method, 0.0, note, found.certificate, flow=found.flow)


def _bounds(scenario: Scenario) -> Iterator[Ceiling]:
    """The least simple bound, then each of them."""
    Problem.of(scenario.topology, scenario.traffic)  # for its errors
    every = all_bounds(scenario.topology, scenario.traffic)
    least = min(every, key=lambda bound: bound.upper)
    for name, bound in [("bounds", least)] + [(f"bounds:{bound.name}", bound) for bound in every]:
        note = f"{bound.name}: {bound.note}" if name == "bounds" else bound.note
        yield Ceiling(name, None, math.nan, bound.upper, _unit(scenario), "closed form", 0.0, note, bound.certificate)


def _makespan(scenario: Scenario) -> Iterator[Ceiling]:
    """The largest lower bound on the time of a program, then each of them, then those of its kinds of steps."""
    bounds = makespan_bounds(scenario)
    names = {
        "": bounds.ticks, ":volume": bounds.volume, ":path": bounds.path, ":processor": bounds.processor,
        ":phases": bounds.phases,
    }  # fmt: skip
    names |= {f":step {step.kind.label}": step.ticks for step in bounds.steps}
    for name, ticks in names.items():
        note = "" if name else f"bound by the {bounds.binding}"
        ns = float(ticks * bounds.tick_ns)
        yield Ceiling(f"makespan{name}", None, ns, math.nan, "ns", "lower bound", 0.0, note)


def _cuts(scenario: Scenario) -> Iterator[Ceiling]:
    """The sparsest cut, then that of each heuristic."""
    Problem.of(scenario.topology, scenario.traffic)  # for its errors
    unit, every = _unit(scenario), all_cuts(scenario.topology, scenario.traffic)
    if not every:
        yield Ceiling.omitted("cuts", unit, "no demand leaves its switch")
        return
    for name, cut in [("cuts", best(every)), *((f"cuts:{cut.name}", cut) for cut in every)]:
        yield Ceiling(name, None, math.nan, cut.upper, unit, cut.name, 0.0, cut.note, cut.certificate)


__all__ = ["Ceiling", "CeilingSpec", "FluidError", "Kind", "ceilings"]
