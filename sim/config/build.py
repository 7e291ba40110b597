# SPDX-License-Identifier: Apache-2.0
"""Builds cases from their components and checks the components against each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.trace import trace_workload
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys, Notes
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import SpecError, is_third_party, make
from flitlab.models.reply_queues import reply_cycle
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.subnets import mode_in_subnets, routes_in_subnets, topology_in_subnets, traffic_in_subnets
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingMode, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.flit_times import capacity_unit
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.paths import PathDraw
from flitlab.models.validation import require_type
from flitlab.sim.config.case import Case, JobCase
from flitlab.sim.config.checks import (
    has_unsupported_background,
    plain_question,
    reject_keys_of_other_modes,
    validate_channels,
    validate_classes,
    validate_loads,
    validate_memory,
    validate_run_length,
    validate_start,
    validate_subnets,
    warn_of_unused_keys,
)
from flitlab.sim.config.collective import plan_of, question_of, without_program
from flitlab.sim.config.components import ComponentBuilder, Components, metrics_of, plain_of
from flitlab.sim.config.diagnostics import KeyPath, Rejected
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.expand import Label
from flitlab.sim.config.flows import (
    LONG_LIVED_LOAD,
    counts_flows,
    plain_flows,
    transport_of,
    validate_flow_times,
    validate_window,
    window_of,
)
from flitlab.sim.config.programs import (
    PROGRAM_LOAD,
    Job,
    isolated,
    jobs_of,
    messages_of,
    plain_messages,
    reject_flit_keys,
    rendezvous_of,
    traffic_of,
    tuned_jobs,
    validate_paths,
    validate_program,
    workload_of,
)
from flitlab.sim.config.schema import WINDOW_KEYS, Config, MeasureConfig, SourceConfig
from flitlab.sim.config.sections import SaturationConfig
from flitlab.sim.config.timeline import plain_timeline, timeline_of, timeline_of_ceilings
from flitlab.sim.config.validation import reject_build_error
from flitlab.sim.engines import switching_modes as switching_modes  # registers the engines of all switching modes
from flitlab.sim.engines.table import check_has_engine

PROBE_PACKET_TIMES = 1500
"""Packet times of the shortest probe of a saturation search, warm-up included."""

_OfProgram = Scenario[SwitchingMode, Workload]


def build(
    draft: Draft,
    cache: ComponentBuilder,
    label: str = "",
    keys: dict[str, Label] | None = None,
    ceilings: Sequence[CeilingSpec] = (),
    vary: KeyPath = (),
) -> Case | None:
    """The case of a configuration; None, with errors added, if it is invalid.

    Parameters
    ----------
    draft: the configuration.
    cache: builds components.
    label, keys, ceilings, vary: of the case.
    """
    try:
        builder = _Builder(draft, cache)
        case = replace(builder.case(), label=label, keys=keys or {}, ceilings=list(ceilings), vary=vary)
    except Rejected:
        return None
    resolved = {**case.resolved, **plain_question(draft, case.ceilings)}
    case = replace(case, resolved={key: value for key, value in resolved.items() if value is not None})
    return replace(case, jobs=tuple(JobCase(job, _isolated(case, job)) for job in builder.jobs))


def _isolated(case: Case, job: Job) -> Case:
    """A case with one job only."""
    assert case.program is not None
    scenario, ceilings = isolated(case.program, job), [spec for spec in case.ceilings if spec.of_program]
    return replace(
        case, label=f"{case.label}: {job.name} alone", instance=scenario.instance, scenario=scenario, ceilings=ceilings
    )  # fmt: skip


class _Builder:
    """Builds the case of one configuration.

    Its methods raise :class:`~flitlab.sim.config.diagnostics.Rejected`, with errors added, if the case is invalid.

    Attributes
    ----------
    errors: those of the simulated scenario, not of its sections and components.
    jobs: of a list of applications.
    one_subnet: the components of one subnet, None where the network is no copy.
    """

    def __init__(self, draft: Draft, cache: ComponentBuilder):
        self.draft, self.cache = draft, cache
        self.errors = draft.new_errors()
        self.jobs: list[Job] = []
        self.one_subnet: Components | None = None

    def case(self) -> Case:
        """The case, without its name and its ceilings."""
        draft, components = self.draft, self.cache.build(self.draft)
        metrics = metrics_of(draft)
        if components is None:
            raise Rejected
        plain = [metric.model_dump(mode="json", exclude_none=True) for metric in metrics]
        if draft.experiment == "metrics":
            timeline_of_ceilings(draft, components)
            return self._case(components, {**components.plain, "metrics": plain}, metrics=metrics)
        if draft.switching is None or has_unsupported_background(draft, components.traffic):
            raise Rejected  # errors that follow from defaults would mislead
        components = self._in_subnets(components, draft.switching)
        if draft.experiment == "load_sweep" or draft.runs_program:
            return self._simulated(components, draft.switching)
        return self._for_ceilings(components, metrics, {"metrics": plain} if plain else {})

    def _in_subnets(self, components: Components, spec: SwitchingSpec) -> Components:
        """The components of all subnets."""
        draft, traffic, routes = self.draft, components.traffic, components.routes
        count: int = getattr(spec, "subnets", 1)
        errors = draft.new_errors()
        validate_subnets(draft, spec, () if traffic is None else traffic.classes)
        errors.stop()
        if count == 1:
            return components
        self.one_subnet = components
        try:
            topology = topology_in_subnets(components.topology, count)
            if routes is not None and not routes.deflection:
                routes = routes_in_subnets(routes, topology, count)
            if traffic is not None:
                traffic = traffic_in_subnets(traffic, topology, count)
        except SpecError as error:
            draft.reject(error.key if error.key == "routing.kind" else "switching.subnets", str(error))
            raise Rejected from None
        return replace(components, topology=topology, routes=routes, traffic=traffic)

    def _case(
        self,
        components: Components,
        resolved: Keys,
        instance: Instance | None = None,
        metrics: Sequence[MetricSpec] = (),
        timeline: Timeline | None = None,
    ) -> Case:
        """A case that simulates nothing."""
        config, draft = self.draft.config, self.draft
        return Case(
            label="", keys={}, build_topology=components.build_topology, metrics=list(metrics), instance=instance,
            scenario=None, collective=None, loads=_loads(draft), placing=config.placing, seeds=config.seeds,
            measure=config.measure, ceilings=[], relative=config.relative, search=config.search, vary=(),
            flit_ns=None if draft.switching is None else draft.switching.tick_ns, certificate="", resolved=resolved,
            timeline=timeline, one_subnet=self._instance_of_subnet(),
        )  # fmt: skip

    def _for_ceilings(self, components: Components, metrics: list[MetricSpec], metric_keys: Keys) -> Case:
        """A scenario for ceilings only; without a routing, those that require one are omitted."""
        draft = self.draft
        if components.traffic is None or components.source is None:
            raise Rejected
        instance = Instance(components.topology, components.traffic, components.routes)
        timeline = timeline_of_ceilings(draft, components)
        resolved = {
            **_resolved(draft, components, draft.config.measure), **metric_keys, **plain_timeline(draft, timeline)
        }  # fmt: skip
        return self._case(components, resolved, instance, metrics, timeline)

    def _instance_of_subnet(self) -> Instance | None:
        """The instance of one subnet, None where the network is no copy."""
        one = self.one_subnet
        return None if one is None or one.traffic is None else Instance(one.topology, one.traffic, one.routes)

    def _simulated(self, components: Components, spec: SwitchingSpec) -> Case:
        draft, self.errors = self.draft, self.draft.new_errors()
        reject_keys_of_other_modes(draft, spec)
        if draft.experiment == "collective":
            return self._for_collective(components, spec)
        if draft.experiment == "application":
            has_jobs = isinstance(draft.mapping("application"), list)
            return (self._for_jobs if has_jobs else self._for_application)(components, spec)
        if draft.follows_trace and components.traffic is not None:
            return self._for_trace(components, spec, components.traffic)
        if components.traffic is not None and components.source is not None:
            flits_per_load = min(components.topology.host_capacity, 1.0) if spec.sends_flits else 1.0
            validate_loads(draft, components.traffic, components.source, flits_per_load)
        if not counts_flows(draft):
            validate_run_length(draft)
        return self._with_switching_mode(components, spec)

    def _for_trace(self, components: Components, spec: SwitchingSpec, traffic: Traffic) -> Case:
        """The case of a trace that hosts follow."""
        draft, deflects = self.draft, spec.switching_mode.mode == "deflection"
        deflects |= components.routes is not None and components.routes.deflection
        if draft.has_value("timeline"):
            draft.reject("timeline", "is not for a trace without loads, whose dropped packets would never be delivered")
        warn_of_unused_keys(draft)
        try:
            assert traffic.recorded is not None
            work = trace_workload(
                traffic.recorded, components.topology.hosts, draft.config.measure.max_ticks, one_length=deflects
            )
        except SpecError as error:
            draft.reject(f"traffic.{error.key}", str(error))
            raise Rejected from None
        lengths = np.unique(traffic.recorded.size).tolist()
        components = replace(components, source=Source(flits=tuple(lengths), shares=(1.0,) * len(lengths)))
        case = self._with_switching_mode(components, spec, _Ranks(work.program, work.host, {}, work.messages))
        return replace(case, resolved={**case.resolved, **_limit(draft)})

    def _for_application(self, components: Components, spec: SwitchingSpec) -> Case:
        """The case of a program on the hosts."""
        draft, topology, application = self.draft, components.topology, self.draft.spec("application")
        part, placement_part = draft.part("application"), draft.part("placement")
        messages = _messages(draft, components, spec)
        program = None if application is None else self.cache.program(part, application, topology.hosts)
        if program is None:
            raise Rejected
        validate_program(draft, program, topology, messages)
        self.cache.order(part, program, rendezvous_of(draft.messages))
        self.errors.stop()
        placement = draft.spec("placement") if draft.has_value("placement") else make("placement", kind="linear")
        everywhere = np.arange(topology.hosts)
        placed = placement and self.cache.placement(placement_part, placement, topology, program, everywhere)
        if not placed:
            raise Rejected
        ranks = _Ranks(program, *placed, messages)
        case = self._with_program(components, spec, ranks)
        tuned = self.cache.tuned(part, application, cast("_OfProgram", case.scenario), topology.hosts)
        if tuned is not None:
            case = self._with_program(components, spec, replace(ranks, program=tuned))
        own = {"application": plain_of(application), "placement": plain_of(placement)}
        return replace(case, resolved={**case.resolved, **own})

    def _for_jobs(self, components: Components, spec: SwitchingSpec) -> Case:
        """The case of several jobs on disjoint hosts."""
        draft = self.draft
        messages = _messages(draft, components, spec)
        jobs = jobs_of(draft, self.cache, components.topology, messages)
        case = self._with_program(components, spec, _Ranks(*workload_of(jobs), messages))
        self.jobs = tuned_jobs(draft, self.cache, jobs, cast("_OfProgram", case.scenario))
        if self.jobs != jobs:
            case = self._with_program(components, spec, _Ranks(*workload_of(self.jobs), messages))
        own = {"application": [job.plain for job in self.jobs], "placement": None}
        return replace(case, resolved={**case.resolved, **own})

    def _for_collective(self, components: Components, spec: SwitchingSpec) -> Case:
        """The case of the program of a collective algorithm."""
        draft, config = self.draft, self.draft.config.collective
        self.errors.stop()
        question = question_of(draft, components.topology)
        plan = question and plan_of(draft, *question, self.cache.memoized)
        if not question or plan is None or config is None:
            raise Rejected
        if is_third_party(question[1]):
            self.cache.order(draft.part("collective", "algorithm"), plan.program, rendezvous_of(draft.messages))
        messages = _messages(draft, components, spec)
        self.errors.stop()
        components = components if plan.routes is None else replace(components, routes=plan.routes)
        ranks = _Ranks(plan.program, plan.host, plan.notes, messages)
        case = self._with_program(components, spec, ranks)
        algorithm = question[1].model_dump(mode="json", exclude_none=True)
        own = {"collective": {**config.model_dump(mode="json", exclude_none=True), "algorithm": algorithm}}
        return replace(case, collective=without_program(*question, plan), resolved={**case.resolved, **own})

    def _with_program(self, components: Components, spec: SwitchingSpec, ranks: "_Ranks") -> Case:
        """The case of placed ranks."""
        draft = self.draft
        source = Source(flits=(1 if ranks.messages is None else ranks.messages.packet_flits,))
        validate_paths(draft, ranks.program, ranks.host, components.topology, rendezvous_of(draft.messages))
        traffic = traffic_of(ranks.program, ranks.host, components.topology)
        case = self._with_switching_mode(replace(components, traffic=traffic, source=source), spec, ranks)
        own = {"messages": plain_messages(draft.messages, counts_flows(draft)), **_limit(draft)}
        return replace(case, resolved={**case.resolved, **own})

    def _with_switching_mode(self, components: Components, spec: SwitchingSpec, ranks: "_Ranks | None" = None) -> Case:
        """The case in its switching mode."""
        draft, topology, traffic = self.draft, components.topology, components.traffic
        transport = transport_of(draft) if counts_flows(draft) else None
        setting = self._setting(self.one_subnet or components, spec, transport)
        switching_mode, certificate = self._certified(spec, setting)
        if traffic is None or components.source is None:
            raise Rejected
        self.errors.stop()
        routes = components.routes
        if self.one_subnet is not None:
            switching_mode = mode_in_subnets(switching_mode, self.one_subnet.topology, topology.subnets)
        subnet = None if self.one_subnet is None else self.one_subnet.topology
        timeline = timeline_of(draft, components, switching_mode, spec.tick_ns, subnet)
        self.errors.stop()
        assert routes is not None  # setting has them, too
        instance = Instance(topology, traffic, routes)
        work = components.source if ranks is None else ranks.workload(draft, topology, switching_mode)
        validate_start(draft, instance, switching_mode, work, timeline)
        validate_channels(draft, switching_mode, timeline)
        self.errors.stop()
        validate_window(draft, switching_mode, topology)
        if not counts_flows(draft):
            validate_memory(draft, topology, switching_mode, setting.flits, timeline)
        self.errors.stop()
        for warning in switching_mode.config_warnings(topology, routes, setting.flits[0]):
            draft.warn(warning.key or "switching", str(warning))
        scenario = Scenario(instance, switching_mode, work, timeline)
        measure = _measure(draft.config, scenario)
        plain_size = _plain_flit_bytes(spec)
        plain = {
            **_resolved(draft, components, measure),
            "switching": switching_mode.plain(spec.tick_ns) | plain_size | _plain_subnets(spec),
        }
        if transport is not None:
            in_force = getattr(switching_mode, "transport", transport)
            plain |= plain_flows(draft, components.plain["routing"], in_force, not switching_mode.long_lived)
        plain |= plain_timeline(draft, timeline)
        case = self._case(components, plain, instance, timeline=timeline)
        if spec.tick_ns is not None:
            tick = switching_mode.tick_ns(topology, spec.tick_ns)
            case = replace(case, flit_ns=None if tick is None else float(tick))
        channels, energy = draft.config.outputs.channels, draft.config.outputs.energy
        if energy is not None and ranks is None and transport is None and not (case.flit_ns and plain_size):
            gbps = energy.prices().gbps
            problem = f"no rate of a link in switching (link_gbps, flit_bytes): {gbps:g} Gbit/s of the profile is taken"
            draft.warn("outputs.energy", problem)
        return replace(case, scenario=scenario, certificate=certificate, measure=measure, channels=channels)

    def _setting(
        self, components: Components, spec: SwitchingSpec, transport: TransportSpec | None
    ) -> SwitchingContext:
        """What a switching mode is built from."""
        draft, topology, routes, source = self.draft, components.topology, components.routes, components.source
        if counts_flows(draft):
            validate_flow_times(draft)
        for error in spec.errors(topology, routes, None if source is None else source.flits):
            draft.reject(error.key or "switching", str(error), error.choices)
        classes = () if components.traffic is None else components.traffic.classes
        validate_classes(draft, spec, classes, routes is not None and routes.deflection)
        if routes is None or source is None or (counts_flows(draft) and transport is None):
            raise Rejected
        flows = draft.source or SourceConfig()
        return SwitchingContext(
            topology, routes, source.flits, components.routing, transport, getattr(PathDraw, draft.path_draw.upper()),
            flows.sizes, flows.arrivals == "together", draft.config.measure.seconds, window_of(draft),
            tuple(classes),
        )  # fmt: skip

    def _certified(self, spec: SwitchingSpec, setting: SwitchingContext) -> tuple[SwitchingMode, str]:
        """The switching mode in force and its deadlock certificate. A failure after other errors is not reported."""
        draft = self.draft
        try:
            switching_mode = spec.build(setting)
            require_type(switching_mode, SwitchingMode)
            check_has_engine(switching_mode)
        except Exception as error:  # a third-party switching mode may raise anything
            if not self.errors:
                reject_build_error(error, draft.part("switching"))
            raise Rejected from None
        try:
            certified, certificate = switching_mode.certified(setting.topology, setting.routes, self._certify)
            return self._with_replies(certified, certificate, setting)
        except Rejected:
            raise
        except Exception as error:  # a third-party routing, too
            in_switching = isinstance(error, SpecError) and error.key in type(spec).model_fields
            reject_build_error(error, draft.part("switching" if in_switching else "routing"))
            raise Rejected from None

    def _with_replies(
        self, switching_mode: SwitchingMode, certificate: str, setting: SwitchingContext
    ) -> tuple[SwitchingMode, str]:
        """The switching mode and its certificate, which covers replies that hosts owe."""
        limited = switching_mode.limits_replies and any(one.queue is not None for one in setting.classes)
        if not isinstance(switching_mode, Buffered) or not limited:
            return switching_mode, certificate
        cycle = reply_cycle(setting.topology, setting.classes, switching_mode.vcs)
        if cycle is None:
            return switching_mode, f"{certificate}; no replies wait for requests: they share no virtual channel"
        number, text = cycle
        if not switching_mode.allow_deadlock:
            problem = f"may deadlock: {text}; use other vcs or subnets for replies, or switching.allow_deadlock: true"
            self.draft.reject(f"traffic.classes[{number}].reply.queue", problem)
            raise Rejected
        return replace(switching_mode, may_deadlock=True), f"{certificate}; may deadlock: {text}"

    def _certify(self, topology: Topology, routes: Routes, vcs: int, allowed: bool) -> Certified:
        """The result of :func:`~flitlab.models.routing.certificate.certify`, computed once for equal arguments."""
        # the routes and not their hash, which reads 800 MB at 10,000 switches
        key = ("certificate", topology.content_hash, routes, vcs, allowed)
        certificate = self.cache.memoized(key, lambda: certify(topology, routes, vcs, allowed))
        if isinstance(certificate, BaseException):
            raise certificate
        return certificate


def _plain_flit_bytes(spec: SwitchingSpec) -> Keys:
    """The resolved key ``flit_bytes``, if it is set: with ``flit_ns`` it is the rate of a link."""
    size = getattr(spec, "flit_bytes", None)
    return {} if size is None else {"flit_bytes": size}


def _plain_subnets(spec: SwitchingSpec) -> Keys:
    """The resolved key ``subnets``, of modes that have it."""
    return {"subnets": spec.subnets} if hasattr(spec, "subnets") else {}


def _limit(draft: Draft) -> Keys:
    """The resolved sections ``loads`` and ``measure`` of a run that ends by itself, or at ``measure.max_ticks``."""
    max_ticks = draft.config.measure.max_ticks
    return {"loads": None, "measure": {} if max_ticks is None else {"max_ticks": max_ticks}}


def _loads(draft: Draft) -> list[float]:
    """The loads; programs, traces and flows without loads have one."""
    if draft.runs_program or draft.follows_trace:
        return [PROGRAM_LOAD]
    has_flows = draft.experiment == "load_sweep" and counts_flows(draft)
    return draft.config.load_list or ([LONG_LIVED_LOAD] if has_flows else [])


def _measure(config: Config, scenario: Scenario) -> MeasureConfig:
    """``measure:``, with the default first window of a saturation search unless it sets one.

    Probes lengthen it until their verdict is clear, see :mod:`flitlab.sim.measure.probe`.
    """
    measure = config.measure
    searched = isinstance(config.placing, SaturationConfig) and scenario.counted == "packets"
    if not searched or measure.model_fields_set & WINDOW_KEYS:
        return measure
    return measure.with_packet_times(scenario.source.mean_flits, PROBE_PACKET_TIMES)


def _messages(draft: Draft, components: Components, spec: SwitchingSpec) -> Messages | None:
    """The format of all messages; None where flows carry them, or if it is invalid."""
    if draft.messages.await_receive and spec.switching_mode.mode != "flow":
        problem = f"is for mode flow: in mode {spec.switching_mode.mode} a sender learns of a receive by a message, "
        draft.reject("messages.await_receive", problem + "as with rendezvous_bytes: 0")
    if counts_flows(draft):
        reject_flit_keys(draft)
        return None
    deflects = spec.switching_mode.mode == "deflection" or (
        components.routes is not None and components.routes.deflection
    )
    tick_ns = spec.tick_ns
    unit = capacity_unit(components.topology) if spec.sends_flits else 1
    return messages_of(draft, None if tick_ns is None else Fraction(repr(tick_ns)) / unit, deflects)


@dataclass(frozen=True)
class _Ranks:
    """A placed program: host of each rank, notes, and messages (None where the switching mode segments them)."""

    program: Program
    host: Ints
    notes: Notes
    messages: Messages | None

    def workload(self, draft: Draft, topology: Topology, switching_mode: SwitchingMode) -> Workload:
        config = draft.messages
        messages = self.messages
        if messages is None:
            messages = switching_mode.messages(
                topology, rendezvous_of(config), config.overhead_ns, config.buffered, config.confirmed
            )
        return Workload(self.program, self.host, messages, self.notes)


def _resolved(draft: Draft, components: Components, measured: MeasureConfig) -> Keys:
    config = draft.config
    in_ticks = measured.model_dump(mode="json", exclude={"seconds", "window"})
    measure = {**in_ticks, "max_ticks": measured.longest}
    return {**components.plain, "loads": config.plain_loads, "seeds": config.seeds, "measure": measure}
