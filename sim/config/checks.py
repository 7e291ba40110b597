# SPDX-License-Identifier: Apache-2.0
"""Checks of a scenario as a whole: required keys, sizes, and its sections against each other."""

import os
from collections.abc import Sequence
from math import ceil
from typing import Any

from flitlab.fluid.kinds.spec import CeilingSpec, ceiling_spec, kinds
from flitlab.fluid.problem import FluidError, check_capacities, check_joined, check_numbers
from flitlab.models.application.workload import Workload
from flitlab.models.closest_match import closest_match
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, names, recorded_warnings, spec_class
from flitlab.models.rules.arrivals import LONGEST_RUN, overload_error
from flitlab.models.switching.ideal import Ideal
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic, TrafficClass
from flitlab.sim.config.diagnostics import KeyPath, key_path, parse_path, show
from flitlab.sim.config.draft import BUDGET, Draft, experiment_run
from flitlab.sim.config.flows import LONG_LIVED_LOAD, counts_flows, has_long_lived_flows
from flitlab.sim.config.schema import NEEDS, Config
from flitlab.sim.config.sections import CERTIFIED, as_component
from flitlab.sim.config.text import ConfigDocument
from flitlab.sim.config.validation import not_for, reject_build_error, spec_of

BYTES_PER_PACKET, BYTES_PER_TICK, BYTES_PER_PAIR = 56, 24, 8
"""Bytes per packet of buffer capacity; per tick of the calendar; per pair of switches."""

MAX_POINTS = 2_000_000
"""Points of the largest study; each takes about a kilobyte before it has run."""


def machine_bytes() -> int:
    """Memory of this machine, or the limit of this process if that is less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**63
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:
        return physical
    return physical if limit == resource.RLIM_INFINITY else min(physical, limit)


def reject_too_large(draft: ConfigDocument, key: str, needed: int) -> bool:
    """Whether the needed bytes exceed the memory; then the key that causes it is rejected.

    Parameters
    ----------
    draft: gets the error.
    key: that causes the size.
    needed: bytes.
    """
    available = machine_bytes()
    if needed > available:
        draft.reject(key, f"needs about {_shown(needed)} of memory; {_shown(available)} are available")
    return needed > available


def is_routing_too_large(draft: ConfigDocument, topology: Topology) -> bool:
    """Whether a next-hop table, one entry per pair of switches, exceeds the memory."""
    return reject_too_large(draft, "routing", BYTES_PER_PAIR * topology.switches**2)


def validate_memory(
    draft: Draft,
    topology: Topology,
    switching_mode: SwitchingMode,
    flits: tuple[int, ...],
    timeline: Timeline | None,
) -> None:
    """Reject a scenario of which the buffers, calendar or batches of a point exceed the memory.

    Parameters
    ----------
    draft: gets the errors.
    topology: channels and hosts.
    switching_mode: buffers and delays.
    flits: the packet lengths.
    timeline: None for a static network.
    """
    measure, ports = draft.config.measure, topology.channels + topology.hosts
    key, packets = switching_mode.buffer_capacity(topology, min(flits))
    reject_too_large(draft, key, BYTES_PER_PACKET * packets)
    slowdown = 1.0 if timeline is None else 1 / min(float(epoch.rate.min(initial=1)) for epoch in timeline.epochs)
    calendar = switching_mode.lookahead(topology, ceil(max(flits) * slowdown)) * (BYTES_PER_TICK + ports // 2)
    reject_too_large(draft, "traffic.packet_flits", calendar)
    batches = 40 * (1 + measure.longest // measure.ticks)
    reject_too_large(draft, "measure.max_ticks", batches * BYTES_PER_PAIR * (topology.hosts + 64))


def validate_run_length(draft: Draft) -> None:
    """Reject points that may exceed the tick range. An automatic warm-up takes at most as long as the window."""
    measure = draft.config.measure
    warmup = measure.ticks if measure.warmup == "auto" else measure.warmup
    if warmup + measure.longest > LONGEST_RUN:
        problem = f"up to {warmup:,} ticks of warm-up and {measure.longest:,} to be measured"
        draft.reject("measure", f"{problem}: no run is longer than 2**30 = {LONGEST_RUN:,} ticks")


def has_too_many_points(document: ConfigDocument, points: int) -> bool:
    """Whether a study exceeds :data:`MAX_POINTS`."""
    if points > MAX_POINTS:
        document.reject((), f"{points:,} points; at most {MAX_POINTS:,} are run (scenarios x loads x seeds)")
    return points > MAX_POINTS


def _shown(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}" if count < 1000 * size or unit == "TB" else f"{count // size:,} {unit}"
    return f"{count} bytes"


SEARCHABLE = ("topology", "traffic")
"""Sections with keys that a search may vary."""

EXPERIMENT_KEYS = {
    "application": ("application", "placement"), "collective": ("collective",),
    "application or collective": ("messages",),
}  # fmt: skip
"""Experiment -> top-level keys that only it has."""

NOT_FOR_PROGRAMS = ("traffic", "loads", "relative", "search", "metrics")
"""Top-level keys without a meaning where hosts run programs."""

ABSENT = object()
"""The value of a missing key."""


def require_keys(draft: Draft) -> None:
    """Reject a scenario without the keys that its experiment requires."""
    for key in NEEDS.get(draft.experiment, ()):
        if not draft.has_value(key) and not (
            key == "loads"
            and (has_long_lived_flows(draft) or draft.follows_trace or BUDGET in draft.config.outputs.figures)
        ):
            draft.reject(key, f"is missing: experiment {draft.experiment} needs it")


def reject_misplaced_keys(draft: Draft) -> None:
    """Reject keys and switching modes that the experiment does not have."""
    switching_mode = draft.switching_mode
    own = draft.config.experiment  # that of a command may differ
    if draft.config.outputs.channels and not (draft.runs_program or experiment_run(own) == "load_sweep"):
        draft.reject("outputs.channels", f"is not for experiment: {own}, which simulates nothing")
    if draft.experiment == "load_sweep" and draft.at("traffic", "kind") == "batch" and not draft.follows_trace:
        if draft.has_value("loads"):
            draft.reject("loads", "is not for traffic.kind: batch, whose hosts send at once; its time is the result")
        else:
            draft.reject("traffic.kind", "batch is for modes that simulate packets, without figure budget")
    if draft.runs_program:
        for key in filter(draft.has_value, NOT_FOR_PROGRAMS):
            why = ": its program defines the traffic" if key in ("traffic", "loads") else ""
            draft.reject(key, f"is not for experiment: {draft.experiment}{why}")
        if switching_mode is not None and not switching_mode.programs:
            draft.reject("switching.mode", f"is not for experiment: {draft.experiment}")
    for experiment, keys in EXPERIMENT_KEYS.items():
        for key in filter(draft.has_value, keys if draft.experiment not in experiment.split(" or ") else ()):
            draft.reject(key, f"is for experiment: {experiment}")
    if not draft.runs_program and switching_mode is not None and switching_mode.counts is None:
        draft.reject("switching.mode", "is for experiment: application")


def ceilings_of(draft: Draft) -> list[CeilingSpec]:
    """The configured ceilings, else all defaults that the configuration allows; with that of ``relative``."""
    config, experiment, by = draft.config, draft.experiment, draft.config.relative.by
    if experiment in ("metrics", "search"):
        return []
    listed = [] if config.ceilings is None else _listed_ceilings(draft)
    if experiment == "relative":
        if by == "mcf_paths" and not draft.has_value("routing"):
            draft.reject("relative.by", "is over the paths of a routing; routing is missing")
        return listed if any(spec.kind == by for spec in listed) else [ceiling_spec(by), *listed]
    if config.ceilings is None:
        listed = (
            [ceiling_spec("makespan")]
            if experiment == "application"
            else []
            if draft.runs_program
            else _default_ceilings(config)
        )
    if draft.requests_budget:
        known = {spec.kind for spec in listed}
        listed = [*listed, *(ceiling_spec(kind) for kind in CERTIFIED if kind not in known)]
    return listed


def _default_ceilings(config: Config) -> list[CeilingSpec]:
    """The ceilings where none are listed."""
    usual = [ceiling_spec(name) for name, kind in kinds().items() if kind.usual]
    routed = config.routing is not None
    return [one for one in usual if (config.loads or not one.by_load) and (routed or one.routes != "needed")]


def _listed_ceilings(draft: Draft) -> list[CeilingSpec]:
    """The valid entries of ``ceilings:``; errors of others are added."""
    listed = draft.mapping("ceilings")
    specs: list[CeilingSpec] = []
    for i in range(len(listed) if isinstance(listed, list) else 0):
        entry = draft.part("ceilings", i)
        spec = spec_of("ceiling", entry, as_component(draft.mapping("ceilings", i)))
        if not isinstance(spec, CeilingSpec):
            continue
        if spec in specs:
            entry.reject((), f"{spec.kind} is listed twice")
        if spec.of_program and not draft.has_value("application"):
            entry.reject((), f"{spec.kind} is for experiment: application")
        if spec.by_load and not draft.has_value("loads"):
            entry.reject((), f"{spec.kind} depends on the load; loads is missing")
        specs.append(spec)
    return specs


def plain_question(draft: Draft, ceilings: list[CeilingSpec]) -> Keys:
    """The keys of ceilings, ``relative`` and ``search`` with all defaults, plain."""
    config, experiment = draft.config, draft.experiment
    plain: Keys = {}
    if experiment not in ("metrics", "search"):
        plain["ceilings"] = [ceiling.plain() for ceiling in ceilings]
    if experiment == "relative":
        plain["relative"] = config.relative.model_dump(mode="json")
    if experiment == "search" and config.search is not None:
        plain["search"] = config.search.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain


def search_path(draft: Draft) -> KeyPath:
    """The path of the key that a search varies: an integer of the topology (its name suffices) or of the traffic."""
    if draft.config.search is None:
        return ()
    path = parse_path(draft.config.search.vary)
    full_path = path if path and path[0] in SEARCHABLE else ("topology", *path)
    value = _value(draft.config, full_path)
    if value is ABSENT:
        sections = {part: getattr(draft.config, part) or {} for part in SEARCHABLE}
        known = [
            key_path((part, key)) for part in sections for key, value in sections[part].items() if _is_integer(value)
        ]
        draft.reject(
            "search.vary",
            "names no key that topology or traffic has a value for",
            known,
            closest_match(key_path(full_path), known),
        )
    elif not _is_integer(value):
        problem = f"must name a key that is a whole number; {key_path(full_path)} is {show(value) or 'none'}"
        draft.reject("search.vary", problem)
    return full_path


def _value(config: Config, path: KeyPath) -> object:
    """The value of a component at a path; ``ABSENT`` if there is none."""
    value = getattr(config, str(path[0]))
    for part in path[1:]:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return ABSENT
    return value


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def reject_keys_of_other_modes(draft: Draft, spec: SwitchingSpec) -> None:
    """Reject keys outside of ``switching:`` that only other switching modes have."""
    modes_by_key: dict[str, list[str]] = {}
    for mode in names("switching"):
        other: Any = spec_class("switching", mode)
        for key in other.related_keys:
            modes_by_key.setdefault(key, []).append(mode)
    other_keys = {key: modes for key, modes in modes_by_key.items() if key not in spec.related_keys}
    for key, modes in other_keys.items():
        if draft.has_value_at(key):
            draft.reject(key, not_for(spec.mode, modes))
    together = draft.source is not None and draft.source.arrivals == "together"
    if together and "traffic.sizes" in other_keys:
        draft.reject("traffic.arrivals", not_for(spec.mode, other_keys["traffic.sizes"]))


def has_unsupported_background(draft: Draft, traffic: Traffic | None) -> bool:
    """Whether a fixed background is rejected: not for flows, nor for experiments that only scale whole demands."""
    if traffic is None or traffic.background is None:
        return False
    user = f"experiment {draft.experiment}" if draft.experiment in ("relative", "search") else ""
    if counts_flows(draft) and draft.experiment == "load_sweep" and draft.switching is not None:
        user = f"switching.mode {draft.switching.mode}"
    if user:
        key = "traffic.classes" if traffic.classes else "traffic.background"
        draft.reject(key, f"is not for {user}, which scales only whole demands")
    return bool(user)


def validate_loads(draft: Draft, traffic: Traffic, source: Source, flits_per_load: float) -> None:
    """Reject loads at which a host would have to create more than arrivals allow.

    Only a matrix outside the hose model, a background, or bursts of given rates can reach that; the rates may also
    exclude low loads.

    Parameters
    ----------
    draft: has the loads.
    traffic: its rates at load 1.
    source: arrivals and lengths of packets.
    flits_per_load: flits per tick of a host of rate 1 at load 1.
    """
    if counts_flows(draft):
        return
    if flits_per_load != 1 and traffic.background is not None:
        draft.reject("traffic", "has a background, which needs host channels that move a flit per tick")
    flit_ticks = 1 / flits_per_load
    loads = draft.config.load_list or [0.0]
    ends = sorted({min(loads), max(loads)}, reverse=True)
    for one in (one for one in traffic.classes if one.request is None):
        rate, (kind, burst) = one.demand.rate * flits_per_load, one.process(source)
        problems = (overload_error(kind, one.offered(load), one.mean_flits, rate, burst, flit_ticks) for load in ends)
        if problem := next(filter(None, problems), None):
            draft.reject("loads", f"class {one.name}: {problem}")
    if traffic.classes:
        return
    for load in ends:
        at_one = traffic.sent(load) / load if load else traffic.rate
        at_one = at_one * flits_per_load
        if problem := overload_error(source.arrivals, load, source.mean_flits, at_one, source.burst, flit_ticks):
            draft.reject("loads", problem)
            return


def validate_classes(draft: Draft, spec: SwitchingSpec, classes: Sequence[TrafficClass], deflects: bool) -> None:
    """Reject classes of traffic, and keys of classes, that the switching mode or the scenario cannot have.

    Mode ideal has no virtual channels; it serves as the upper level of other modes, so it takes their ranges.

    Parameters
    ----------
    draft: gets the errors.
    spec: the keys of the switching mode.
    classes: of traffic; empty where all packets are of one class.
    deflects: whether the routing selects hot-potato switching.
    """
    if not classes:
        if getattr(spec, "priority", "none") == "class":
            draft.reject("switching.priority", "is for traffic.classes, of which there are none", ("none", "age"))
        return
    mode = spec.switching_mode
    if not mode.has_classes or deflects:
        name = "deflection" if deflects else mode.mode
        draft.reject("traffic.classes", f"is not for mode {name}, but for modes vct, wormhole and ideal")
        return
    if draft.has_value_at("traffic.packet_flits"):
        draft.reject("traffic.packet_flits", "is a key of each class where there are traffic.classes")
    if isinstance(draft.at("traffic", "burst"), dict):
        draft.reject("traffic.burst", "must be a number of packets where there are traffic.classes")
    vcs = getattr(spec, "vcs", None)
    _validate_reply_queues(draft, spec, classes)
    _validate_source_queues(draft, spec, classes)
    for i, one in enumerate(classes):
        key = f"traffic.classes[{i}].vcs"
        if one.vcs is not None and vcs is None:
            draft.warn(key, f"is not used: channels are not divided in mode {mode.mode}")
        elif one.vcs is not None and vcs is not None and one.vcs[1] > vcs:
            problem = f"ends at virtual channel {one.vcs[1] - 1}, and switching.vcs gives 0 to {vcs - 1}"
            draft.reject(key, problem)


def _validate_reply_queues(draft: Draft, spec: SwitchingSpec, classes: Sequence[TrafficClass]) -> None:
    """Reject limits of outstanding replies in subnets that classes draw, and warn of them where they have no effect."""
    for number, one in enumerate(classes):
        if one.queue is None or one.request is None:
            continue
        key = f"traffic.classes[{one.request}].reply.queue"
        if not spec.switching_mode.limits_replies:
            draft.warn(key, f"is not used: hosts of mode {spec.mode} receive at once")
        drawn = [i for i in (one.request, number) if classes[i].subnet is None]
        if drawn and getattr(spec, "subnets", 1) > 1:
            draft.reject(key, f"needs a class that names its subnet, and {classes[drawn[0]].name} draws one")


def _validate_source_queues(draft: Draft, spec: SwitchingSpec, classes: Sequence[TrafficClass]) -> None:
    """Reject shared source queues where a mode has none, and for replies with a limit at hosts."""
    for i, one in enumerate(classes):
        if one.source_queue is None:
            continue
        key = f"traffic.classes[{i}].source_queue"
        if not spec.switching_mode.shares_source_queues:
            draft.reject(key, f"needs switching.mode: wormhole; hosts of mode {spec.mode} have a queue for each class")
        if one.queue is not None:
            draft.reject(key, f"must be null: {one.name} has a limited reply.queue, and must not wait behind others")


def validate_subnets(draft: Draft, spec: SwitchingSpec, classes: Sequence[TrafficClass]) -> None:
    """Reject subnets where the experiment or a section cannot have them, and classes of subnets that do not exist.

    Parameters
    ----------
    draft: gets the errors.
    spec: the keys of the switching mode.
    classes: of traffic; empty where all packets are of one class.
    """
    count = getattr(spec, "subnets", 1)
    for i, one in enumerate(classes):
        if one.subnet is not None and one.subnet >= count:
            draft.reject(f"traffic.classes[{i}].subnet", f"must be from 0 to {count - 1}: switching.subnets is {count}")
    if count == 1:
        return
    key = "switching.subnets"
    if draft.runs_program or draft.experiment in ("relative", "search"):
        draft.reject(key, f"must be 1 in experiment: {draft.experiment}")
    if draft.follows_trace:
        draft.reject(key, f"must be 1 for traffic.kind: {draft.at('traffic', 'kind')}, whose packets name no subnet")


def validate_start(
    draft: Draft, instance: Instance, switching_mode: SwitchingMode, work: Source | Workload, timeline: Timeline | None
) -> None:
    """Reject a scenario that no run can start with.

    Parameters
    ----------
    draft: has load and seed.
    instance: network, demand and routes.
    switching_mode: in force.
    work: arrivals of packets, or a program.
    timeline: None for a static network.
    """
    load, seed = max(draft.config.load_list, default=LONG_LIVED_LOAD), draft.config.seeds[0]
    changes = () if timeline is None else (timeline,)
    try:
        with recorded_warnings() as warnings:
            switching_mode.check(instance, work, load, seed, *changes)
        for warning in warnings:
            draft.warn(warning.key or "switching", str(warning))
    except SpecError as error:
        draft.reject(draft.path_of_event(error.key or "switching"), str(error), error.choices)
    except Exception as error:  # a third-party transport may raise anything
        reject_build_error(error, draft.part("transport" if counts_flows(draft) else "switching"))


def warn_of_unused_keys(draft: Draft) -> None:
    """Warn of keys about arrivals and windows of a scenario that follows a trace, or a batch."""
    keys = [f"measure.{key}" for key in ("warmup", "ticks", "ci", "stop_when_saturated")]
    why = f"is not used: the {draft.at('traffic', 'kind')} says when packets are created, and ends the run"
    for key in filter(draft.has_value_at, [*keys, "traffic.packet_flits", "traffic.arrivals", "traffic.burst"]):
        draft.warn(key, why)


def validate_channels(draft: Draft, switching_mode: SwitchingMode, timeline: Timeline | None) -> None:
    """Reject ``outputs.channels`` where a run cannot count the traffic of channels.

    Parameters
    ----------
    draft: gets the error.
    switching_mode: in force.
    timeline: None for a static network.
    """
    if not draft.config.outputs.channels:
        return
    if not switching_mode.counts_channels:
        draft.reject("outputs.channels", f"is not for mode {switching_mode.mode}, which grants no flits")
    elif timeline is not None and switching_mode.mode == Ideal.mode:
        problem = "is not for mode ideal with a timeline: packets leave the queues of failed channels again"
        draft.reject("outputs.channels", problem)


def validate_demand(draft: Draft, instance: Instance, ceilings: Sequence[CeilingSpec]) -> None:
    """Reject capacities and demands for which no ceiling can be certified.

    Numbers may be too far apart, or a demand may have no path. Omitted where nothing is certified anyway: with a fixed
    background, or for a program that sends nothing.

    Parameters
    ----------
    draft: gets the errors.
    instance: network and demand.
    ceilings: nothing is checked without any.
    """
    if not ceilings or instance.traffic.background is not None or not instance.traffic.rate.any():
        return
    topology, traffic = instance.topology, instance.traffic
    try:
        check_capacities(topology)
    except FluidError as error:
        draft.reject("topology", str(error))
        return
    try:
        check_numbers(topology, traffic)
    except FluidError as error:
        draft.reject("traffic", str(error))
        return
    try:
        check_joined(topology, traffic)
    except FluidError as error:
        from_file = draft.at("topology", "kind") == "file"
        can_help = from_file and not topology.is_multistage
        advice = "; topology.component: largest takes the largest connected part" if can_help else ""
        draft.reject("traffic", f"{error}{advice}")
