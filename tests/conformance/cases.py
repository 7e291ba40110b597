# SPDX-License-Identifier: Apache-2.0
"""Random small scenarios of any registered switching mode, and what its runs have in common."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from random import Random
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from hypothesis import HealthCheck, Phase, reject, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from flitlab.fluid.weights import routes_for
from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingMode
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.sizes import SizesSpec
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.compare import compare_executions, compare_logs, compare_snapshots
from flitlab.sim.engines.transport import datagram, spray
from flitlab.sim.engines.transport.run import compare_counters, compare_traces
from tests import ROOT
from tests.scenarios import TRAFFIC, least_vcs, routings, sources, topologies, with_flit_times
from tests.sim.test_application_engines import DONE, random_program

for _folder in (ROOT / "tests" / "toys").glob("*/compiled.py"):
    import_module(f"tests.toys.{_folder.parent.name}")


def modes(supports: Callable[[type[SwitchingMode]], Any] = bool) -> list[str]:
    """The registered modes whose class passes a test."""
    return [name for name in names("switching") if supports(mode_class(name))]


def mode_class(mode: str) -> type[SwitchingMode]:
    """The class of a mode."""
    spec: Any = spec_class("switching", mode)
    return spec.switching_mode


EXAMPLES = settings(
    deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
"""Without shrinking: cases are small, and a run takes a tenth of a second."""

LOADS = st.sampled_from([0.05, 0.3, 0.7, 1.0])
SEEDS = st.integers(0, 2**40)
FALLBACKS = [{"kind": "minimal"}, {"kind": "deflection"}]
"""Routings for modes and networks that do not support what was drawn."""


@st.composite
def cases(draw, mode: str, events: bool = False) -> Scenario:
    """A scenario in which hosts create packets or flows; with ``events``, its network changes."""
    networks = topologies().filter(lambda topology: topology.channels >= 12) if events else topologies()
    topology, source = draw(networks), draw(sources(one_length=draw(st.booleans())))
    if events and mode in ("vct", "wormhole", "ideal") and draw(st.booleans()):
        topology = with_flit_times(draw, topology)
    traffic = draw(st.sampled_from(TRAFFIC[2:] if mode_class(mode).counts == "flows" else TRAFFIC))  # not of all pairs
    for routing in (draw(routings(topology, mode)), *FALLBACKS):
        base = {"topology": topology, "routing": routing, "traffic": traffic, "source": source}
        base |= flow_keys(draw, mode) if mode_class(mode).counts == "flows" else {}
        vcs = enough_vcs(mode, topology, routing)
        if (plain := built(mode, vcs, **base)) is None:
            continue
        keys = accepted(draw, "switching", mode, lambda keys, base=base: built(mode, keys, **base) is not None, vcs)
        case = built(mode, keys, **base) or plain
        if mode_class(mode).counts == "packets" and horizon(case) > 100_000:  # delays of a million ticks
            case = plain
        return changing(case, routing, draw(st.integers(0, 2**32))) if events else case
    reject()


def enough_vcs(mode: str, topology: Topology, routing: dict) -> dict[str, int]:
    """The VCs of a mode, if it has any: by default 4, and as many as the certificate of a drawn routing needs."""
    if routing in FALLBACKS or "vcs" not in spec_class("switching", mode).model_fields:
        return {}
    return {"vcs": max(4, least_vcs(topology, routing, False))}


def flow_keys(draw, mode: str) -> dict[str, Any]:
    """A transport that the mode supports, and finite flows."""
    spec: Any = spec_class("switching", mode)
    kinds = draw(st.permutations(names("transport")))
    kind = next(kind for kind in [*kinds[:4], spec.default_transport] if built(mode, {}, transport={"kind": kind}))
    keys = accepted(draw, "transport", kind, lambda keys: built(mode, {}, transport={"kind": kind, **keys}) is not None)
    size = draw(st.sampled_from([1, 5000, 20_000]))
    return {
        "transport": {"kind": kind, **keys}, "sizes": SizesSpec(kind="fixed", bytes=size),
        "path_draw": draw(st.sampled_from(PathDraw)),
    }  # fmt: skip


PAIR = Topology.from_links("pair", 2, [(0, 1)]).with_hosts(2)
FLIT = Source()
KILOBYTE = SizesSpec(kind="fixed", bytes=1000)


@lru_cache(1)
def routed(topology: Topology, routing: str, traffic: str) -> tuple[Any, Traffic, Routes]:
    """A routing, the demand and the routes, of keys as JSON; kept, as many keys of a mode are tried on them."""
    router, demand = make("routing", **json.loads(routing)), make("traffic", **json.loads(traffic)).build(topology)
    return router, demand, routes_for(router, topology, demand)


def built(
    mode: str, keys: dict[str, Any], *, topology: Topology = PAIR, routing: dict = FALLBACKS[0],
    traffic: dict = TRAFFIC[0], source: Source = FLIT, transport: dict | None = None,
    sizes: SizesSpec | None = KILOBYTE, path_draw: int = 0,
) -> Scenario | None:  # fmt: skip
    """The scenario of these keys; None if the mode, the routing or the transport rejects them."""
    try:
        spec = make("switching", mode=mode, **keys)
        router, demand, routes = routed(topology, json.dumps(routing), json.dumps(traffic))
        if any(spec.errors(topology, routes, source.flits)):
            return None
        control = make("transport", **(transport or {"kind": spec.default_transport}))
        setting = SwitchingContext(topology, routes, source.flits, router, control, path_draw, sizes, True)
        switching = spec.build(setting).certified(topology, routes)[0]
        case = Scenario(Instance(topology, demand, routes), switching, source)
        switching.check(case.instance, source, 0.5, 1)
    except (SpecError, ValidationError):
        return None
    return case


def accepted(
    draw, category: str, kind: str, accepts: Callable[[dict[str, Any]], bool], keys: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Values of some keys of a component, each accepted together with those before it, the first of them ``keys``."""
    fields, keys = spec_class(category, kind).model_fields, keys or {}
    for name in draw(st.permutations(sorted(fields.keys() - {"kind", "mode"})))[:8]:
        values = [
            value for _, value in sorted({str(v): v for v in values_of(fields[name].annotation, fields[name])}.items())
        ]
        if values:
            more = {**keys, name: draw(st.sampled_from(values))}
            keys = more if accepts(more) else keys
    return keys


def values_of(annotation: Any, field: FieldInfo) -> Iterator[Any]:
    """Choices of a key, or numbers at the lower bound and around the default."""
    if get_origin(annotation) is Annotated:
        inner = next((one for one in get_args(annotation)[1:] if isinstance(one, FieldInfo)), field)
        yield from values_of(get_args(annotation)[0], FieldInfo.merge_field_infos(field, inner))
    elif get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from () if part is NoneType else values_of(part, field)
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif annotation is bool:
        yield from (False, True)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, one in annotation.model_fields.items():
            yield from ({name: value} for value in values_of(one.annotation, one))
    elif annotation in (int, float):
        bounds = {type(one).__name__: one for one in field.metadata}
        low = next((getattr(bounds[name], name.lower()) for name in ("Ge", "Gt") if name in bounds), 0)
        high = next((getattr(bounds[name], name.lower()) for name in ("Le", "Lt") if name in bounds), 10**9)
        middle = field.default if isinstance(field.default, int | float) else low + 4
        yield from {annotation(min(value, high)) for value in (low + 1, low + 2, middle / 2, 2 * middle) if value > low}
        yield from [annotation(low)] * ("Gt" not in bounds)


def changing(case: Scenario, routing: dict, number: int, subnet: Topology | None = None) -> Scenario:
    """The scenario with as many of some random events as are possible, each after those before.

    subnet: one of the copies that its network consists of; None if it is no copies.
    """
    rng, topology, events = Random(number), case.topology, []
    last = horizon(case)
    links = sorted({(int(min(e)), int(max(e))) for e in zip(topology.src, topology.dst, strict=True)})
    cores = np.flatnonzero(topology.host_count == 0).tolist()
    ticks = range(last // 8, last // 3)
    for tick in sorted(rng.sample(ticks, min(5, len(ticks)))):
        some = [list(link) for link in rng.sample(links, min(len(links), rng.randint(1, 3)))]
        kind = rng.choice(["fail", "restore", "slow"]) if events else "fail"
        parts: dict[str, Any] = {"links": some if kind != "restore" else rng.choice([1, 0.5])}
        if cores and kind != "slow" and rng.random() < 0.4:
            parts = {"switches": [rng.choice(cores)]}
        event: dict[str, Any] = {"at_tick": tick, kind: parts}
        event |= {"factor": rng.choice([0.1, 0.5])} if kind == "slow" else {}
        if rng.random() < 0.7:
            event["reroute_after"] = rng.choice([0.0, 1.0, last / 20, float("inf")])
        events.append(event)
    events.append({"at_tick": last * 2 // 5, "restore": {"links": 0.999}, "reroute_after": 0.0})
    return with_events(case, routing, events, possible=True, subnet=subnet)


def with_events(
    case: Scenario, routing: dict, events: list[dict], possible: bool = False, subnet: Topology | None = None
) -> Scenario:
    """The scenario with events; with ``possible``, without those that cannot happen. subnet: as of :func:`changing`."""
    happened: list[Event] = []
    for event in events:
        parsed = [*happened, Event.model_validate(event)]
        try:
            tick_ns = case.switching.tick_ns(case.topology, 1.0)
            router = make("routing", **routing)
            timeline = make_timeline(case.topology, parsed, router, case.routes, tick_ns, subnet=subnet)
            case.switching.check_timeline(timeline, case.routes)
            case.switching.check(case.instance, case.work, 0.5, 1, timeline)
        except SpecError:
            if not possible:
                raise
            continue
        happened, changed = parsed, replace(case, timeline=timeline)
    return changed if happened else case


@st.composite
def programs(draw, mode: str) -> Scenario:
    """A scenario in which hosts run a random program."""
    topology = draw(topologies())
    length = draw(st.sampled_from([1, 2, 5]))
    for routing in (draw(routings(topology, mode)), *FALLBACKS):
        base = {"topology": topology, "routing": routing, "source": Source(flits=(length,))}
        base |= {"transport": flow_keys(draw, mode)["transport"]} if mode_class(mode).counts == "flows" else {}
        vcs = enough_vcs(mode, topology, routing)
        if built(mode, vcs, **base) is not None:
            keys = accepted(draw, "switching", mode, lambda keys, base=base: built(mode, keys, **base) is not None, vcs)
            break
    else:
        reject()
    case, rng = built(mode, keys, **base), np.random.default_rng(draw(st.integers(0, 2**32)))
    ranks = int(rng.integers(2, min(topology.hosts, 6) + 1))
    rule = {"buffered": False, "confirmed": False, **draw(st.sampled_from(DONE))}
    how = messages_of(case, length, rng, rule)
    what = random_program(rng, ranks, draw(st.integers(1, 40)), how.packet_bytes, int(rng.integers(1, 3)))
    host = rng.permutation(topology.hosts)[:ranks].astype(np.int64)
    work = Workload(what, host, how)
    try:
        instance = replace(case.instance, traffic=traffic_of(what, host, topology))
        case.switching.check(instance, work, 1.0, 1)
    except SpecError:
        reject()
    return replace(case, instance=instance, work=work)


def messages_of(case: Scenario, flits: int, rng: np.random.Generator, rule: dict[str, bool]) -> Messages:
    """How messages become packets: as the mode says, or of a number of flits of 8 bytes."""
    rendezvous, overhead = int(rng.choice([0, 20, 1 << 40])), int(rng.integers(4))
    if case.switching.counts == "flows":
        return case.switching.messages(case.topology, rendezvous, float(overhead), **rule)
    tick_ns = case.switching.tick_ns(case.topology, 1.0)
    whole = case.routes.deflection
    return Messages(8 * flits, 8, 0, flits, whole, rendezvous, overhead, tick_ns, *rule.values())


def horizon(case: Scenario) -> int:
    """Ticks in which a case shows all that it does, and in which a host sends at most some hundred packets."""
    switching, topology = case.switching, case.topology
    if isinstance(case.work, Workload):
        packet = case.work.messages.packet_flits * switching.weight(case.work.messages)
    elif switching.counts == "flows":
        packet = switching.messages(topology, 0, 0.0, False).packet_bytes
    else:
        packet = max(case.source.flits)
    hops = min(case.routes.hops_max, topology.switches)
    latency = switching.zero_load_latency(topology, hops, packet) + topology.longest_delay
    return max(3 * latency, min(15 * latency, 200 * packet))


def observed(run: Any) -> list[Any]:
    """All that a run shows; of two engines in lock-step, after they were compared."""
    if hasattr(run, "trace"):
        return [run.counters(), run.trace()]
    if hasattr(run, "progress"):
        return [run.progress()]
    return [run.snapshot(), run.log(), run.backlog(), run.deadlocked()]


def assert_same(one: Any, other: Any, tick: int, program: bool) -> None:
    """Assert that two runs have done the same."""
    if hasattr(one, "trace"):
        compare_counters(one.counters(), other.counters())
        compare_traces(one.trace(), other.trace())
    elif hasattr(one, "snapshot"):
        compare_snapshots(one.snapshot(), other.snapshot())
        compare_logs(one.log(), other.log(), tick)
        np.testing.assert_array_equal(one.backlog(), other.backlog())
        assert one.deadlocked() == other.deadlocked()
    if program:
        compare_executions(one.execution(), other.execution())
        np.testing.assert_array_equal(one.carried(), other.carried())


def delivered(run: Any) -> int:
    """Packets, or bytes of flows, that have reached their receivers."""
    if hasattr(run, "snapshot"):
        return int(run.scalars()[Scalar.DELIVERED_PACKETS])
    counters = run.counters()
    if isinstance(counters, datagram.Counters):
        return int(counters.subflow[:, datagram.SubflowCount.RECEIVED].sum())
    return int(counters.flow[:, spray.FlowCount.RECEIVED].sum())


def dropped(run: Any) -> int:
    """Packets that were dropped."""
    if hasattr(run, "snapshot"):
        return int(run.scalars()[Scalar.DROPPED_PACKETS])
    counters = run.counters()
    if isinstance(counters, datagram.Counters):
        return int(counters.subflow[:, datagram.SubflowCount.DROPPED].sum())
    return int(counters.link[:, spray.LinkCount.DROPS].sum())
