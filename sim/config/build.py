# SPDX-License-Identifier: Apache-2.0
"""Builds scenarios from their components and checks the components against each other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import SpecError, is_third_party, make
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingContext, SwitchingMode, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.paths import PATH_DRAWS
from flitlab.models.validation import require_type
from flitlab.sim.config.application import (
    messages_of,
    plain_messages,
    reject_flit_keys,
    rendezvous_of,
    traffic_of,
    validate_program,
)
from flitlab.sim.config.check import reject_build_error
from flitlab.sim.config.collective import Collective, plan_of, question_of, with_eager_messages, without_program
from flitlab.sim.config.compatibility import (
    has_unsupported_background,
    reject_keys_of_other_modes,
    validate_loads,
    validate_start,
)
from flitlab.sim.config.components import ComponentBuilder, Components, metrics_of, plain_of
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.flows import (
    counts_flows,
    plain_flows,
    transport_of,
    validate_flow_times,
    validate_window,
    window_of,
)
from flitlab.sim.config.jobs import Job, jobs_of, tuned_jobs, workload_of
from flitlab.sim.config.limits import is_run_too_long, is_simulation_too_large
from flitlab.sim.config.schema import SourceConfig
from flitlab.sim.config.timeline import plain_timeline, timeline_of, timeline_of_ceilings
from flitlab.sim.config.window import measure_of_search
from flitlab.sim.engines import switching_modes as switching_modes  # registers the engines of all switching modes
from flitlab.sim.engines.table import check_has_engine

_OfProgram = Scenario[SwitchingMode, Workload]


@dataclass(frozen=True, eq=False)
class Built:
    """A scenario, and what is known about it from its construction.

    Parameters
    ----------
    build_topology: builds the topology, which is not kept: a study may measure thousands.
    metrics: to be measured.
    instance: None for the experiment ``metrics``.
    scenario: None if nothing is simulated.
    certificate: why the VC policy is free of deadlock, '' if nothing was certified.
    resolved: the configuration with all defaults, plain.
    collective: of the experiment ``collective``.
    jobs: of a list of applications.
    timeline: the events of the network; None if it is static.
    """

    build_topology: Callable[[], Topology]
    metrics: list[MetricSpec]
    instance: Instance | None
    scenario: Scenario | None
    certificate: str
    resolved: dict[str, Any]
    collective: Collective | None = None
    jobs: tuple[Job, ...] = ()
    timeline: Timeline | None = None


class Builder:
    """Builds the scenarios of one configuration file."""

    def __init__(self) -> None:
        self.components = ComponentBuilder()

    def build(self, draft: Draft) -> Built | None:
        """The scenario of a configuration; None, with errors added, if it is invalid."""
        components, metrics = self.components.build(draft), metrics_of(draft)
        if components.topology is None:
            return None
        metric_mappings = [metric.model_dump(mode="json", exclude_none=True) for metric in metrics]
        if draft.experiment == "metrics":
            timeline_of_ceilings(draft, components)
            return Built(
                components.build_topology, metrics, None, None, "", {**components.plain, "metrics": metric_mappings}
            )
        if draft.switching is None or has_unsupported_background(draft, components.traffic):
            return None  # errors that follow from defaults would mislead
        if draft.experiment == "load_sweep" or draft.runs_program:
            return self._simulated(draft, components, draft.switching)
        return _for_ceilings(draft, components, metrics, {"metrics": metric_mappings} if metric_mappings else {})

    def _simulated(self, draft: Draft, components: Components, spec: SwitchingSpec) -> Built | None:
        before = len(draft.errors)
        reject_keys_of_other_modes(draft, spec)
        if draft.experiment == "collective":
            return self._for_collective(draft, components, spec, before)
        if draft.experiment == "application":
            has_jobs = isinstance(draft.mapping("application"), list)
            return (self._for_jobs if has_jobs else self._for_application)(draft, components, spec, before)
        if components.traffic is not None and components.source is not None:
            validate_loads(draft, components.traffic, components.source)
        if not counts_flows(draft):
            is_run_too_long(draft)
        return self._with_switching_mode(draft, components, spec, before)

    def _for_application(self, draft: Draft, components: Components, spec: SwitchingSpec, before: int) -> Built | None:
        """The scenario of a program on the hosts."""
        topology, application = components.topology, draft.spec("application")
        assert topology is not None
        messages = _messages(draft, components, spec)
        program = None if application is None else self.components.program(draft, application, topology.hosts)
        if program is not None:
            validate_program(draft, program, topology, messages)
            self.components.order(draft, program, rendezvous_of(draft.config.messages))
        if program is None or len(draft.errors) > before:
            return None
        placement_spec = draft.spec("placement") if draft.has_value("placement") else make("placement", kind="linear")
        everywhere = np.arange(topology.hosts)
        placed = placement_spec and self.components.placement(
            draft, placement_spec, topology, program, ("placement",), everywhere
        )
        if not placed:
            return None
        ranks = _Ranks(program, *placed, messages)
        built = self._with_program(draft, components, spec, before, ranks)
        if built is not None:
            scenario = cast("_OfProgram", built.scenario)
            tuned = self.components.tuned(draft, application, scenario, topology.hosts)
            if tuned is not None:
                built = self._with_program(draft, components, spec, before, replace(ranks, program=tuned))
        own = {"application": plain_of(application), "placement": plain_of(placement_spec)}
        return None if built is None else replace(built, resolved={**built.resolved, **own})

    def _for_jobs(self, draft: Draft, components: Components, spec: SwitchingSpec, before: int) -> Built | None:
        """The scenario of several jobs on disjoint hosts."""
        assert components.topology is not None
        messages = _messages(draft, components, spec)
        jobs = jobs_of(draft, self.components, components.topology, messages)
        if not jobs:
            return None
        built = self._with_program(draft, components, spec, before, _Ranks(*workload_of(jobs), messages))
        if built is not None:
            tuned = tuned_jobs(draft, self.components, jobs, cast("_OfProgram", built.scenario))
            if tuned != jobs:
                jobs = tuned
                built = self._with_program(draft, components, spec, before, _Ranks(*workload_of(jobs), messages))
        own = {"application": [job.plain for job in jobs], "placement": None}
        return None if built is None else replace(built, jobs=tuple(jobs), resolved={**built.resolved, **own})

    def _for_collective(self, draft: Draft, components: Components, spec: SwitchingSpec, before: int) -> Built | None:
        """The scenario of the program of a collective algorithm."""
        assert components.topology is not None
        question = question_of(draft, components.topology) if len(draft.errors) == before else None
        plan = question and plan_of(draft, *question, self.components.memoized)
        if not question or plan is None:
            return None
        with_eager_messages(draft)
        if is_third_party(question[1]):
            self.components.order(
                draft, plan.program, rendezvous_of(draft.config.messages), ("collective", "algorithm")
            )
        messages = _messages(draft, components, spec)
        if len(draft.errors) > before:
            return None
        ranks = _Ranks(plan.program, plan.host, plan.notes, messages)
        components = components if plan.routes is None else replace(components, routes=plan.routes)
        built = self._with_program(draft, components, spec, before, ranks)
        assert draft.config.collective is not None
        plain = draft.config.collective.model_dump(mode="json", exclude_none=True)
        own = {"collective": {**plain, "algorithm": question[1].model_dump(mode="json", exclude_none=True)}}
        if built is None:
            return None
        return replace(built, collective=without_program(*question, plan), resolved={**built.resolved, **own})

    def _with_program(
        self, draft: Draft, components: Components, spec: SwitchingSpec, before: int, ranks: "_Ranks"
    ) -> Built | None:
        """The scenario of placed ranks; None if it is invalid."""
        assert components.topology is not None
        source = Source(flits=(1 if ranks.messages is None else ranks.messages.packet_flits,))
        traffic = traffic_of(ranks.program, ranks.host, components.topology)
        built = self._with_switching_mode(
            draft, replace(components, traffic=traffic, source=source), spec, before, ranks
        )
        max_ticks = draft.config.measure.max_ticks
        own = {
            "loads": None, "messages": plain_messages(draft.config.messages, counts_flows(draft)),
            "measure": {} if max_ticks is None else {"max_ticks": max_ticks},
        }  # fmt: skip
        return None if built is None else replace(built, resolved={**built.resolved, **own})

    def _with_switching_mode(
        self, draft: Draft, components: Components, spec: SwitchingSpec, before: int, ranks: "_Ranks | None" = None
    ) -> Built | None:
        """The scenario in its switching mode; None if there are more errors than ``before``."""
        topology, routes, traffic, source = (
            components.topology,
            components.routes,
            components.traffic,
            components.source,
        )
        assert topology is not None
        transport = transport_of(draft) if counts_flows(draft) else None
        switching_mode, certificate = self._build_switching_mode(draft, components, spec, transport, before)
        if switching_mode is None or traffic is None or source is None or len(draft.errors) > before:
            return None
        timeline = None
        if routes is not None:
            timeline = timeline_of(draft, components, topology, routes, switching_mode, spec.tick_ns)
        if len(draft.errors) > before:
            return None
        instance = Instance(topology, traffic, routes)
        work = source if ranks is None else ranks.workload(draft, topology, switching_mode)
        validate_start(draft, instance, switching_mode, work, timeline)
        if len(draft.errors) > before:
            return None
        validate_window(draft, switching_mode, topology)
        if not counts_flows(draft):
            is_simulation_too_large(draft, topology, switching_mode, source.flits)
        if routes is None or len(draft.errors) > before:
            return None
        for warning in switching_mode.config_warnings(topology, routes, source.flits[0]):
            draft.warn(warning.key or "switching", str(warning))
        scenario = Scenario(instance, switching_mode, work, timeline)
        draft.config = draft.config.model_copy(update={"measure": measure_of_search(draft.config, scenario)})
        plain = {**_resolved(draft, components), "switching": switching_mode.plain(spec.tick_ns)}
        if transport is not None:
            in_force = getattr(switching_mode, "transport", transport)
            plain |= plain_flows(draft, components.plain["routing"], in_force, not switching_mode.long_lived)
        plain |= plain_timeline(draft, timeline)
        return Built(components.build_topology, [], instance, scenario, certificate, plain, timeline=timeline)

    def _build_switching_mode(
        self, draft: Draft, components: Components, spec: SwitchingSpec, transport: TransportSpec | None, before: int
    ) -> tuple[SwitchingMode | None, str]:
        """The switching mode in force and its deadlock certificate; None if it is invalid or a component is missing."""
        topology, routes, source = components.topology, components.routes, components.source
        assert topology is not None
        if counts_flows(draft):
            validate_flow_times(draft)
        for error in spec.errors(topology, routes, None if source is None else source.flits):
            draft.reject(error.key or "switching", str(error), error.choices)
        if routes is None or source is None or (counts_flows(draft) and transport is None):
            return None, ""
        setting = _setting(draft, components, topology, routes, source, transport)
        return self._certified(draft, spec, setting, len(draft.errors) > before)

    def _certified(
        self, draft: Draft, spec: SwitchingSpec, setting: SwitchingContext, has_errors: bool
    ) -> tuple[SwitchingMode | None, str]:
        """The switching mode in force and its deadlock certificate; None if it is invalid.

        has_errors: whether errors were found before; then a failure to build is not reported.
        """
        try:
            switching_mode = spec.build(setting)
            require_type(switching_mode, SwitchingMode)
            check_has_engine(switching_mode)
        except Exception as error:  # a third-party switching mode may raise anything
            if not has_errors:
                reject_build_error(error, "switching", draft)
            return None, ""
        try:
            return switching_mode.certified(setting.topology, setting.routes, self._certify)
        except Exception as error:  # a third-party routing, too
            in_switching = isinstance(error, SpecError) and error.key in type(spec).model_fields
            reject_build_error(error, "switching" if in_switching else "routing", draft)
            return None, ""

    def _certify(self, topology: Topology, routes: Routes, vcs: int, allowed: bool) -> Certified:
        """The result of :func:`~flitlab.models.routing.certificate.certify`, computed once for equal arguments."""
        # the routes and not their hash, which reads 800 MB at 10,000 switches
        key = ("certificate", topology.content_hash, routes, vcs, allowed)
        certificate: Certified | BaseException = self.components.memoized(
            key, lambda: certify(topology, routes, vcs, allowed)
        )
        if isinstance(certificate, BaseException):
            raise certificate
        return certificate


def _messages(draft: Draft, components: Components, spec: SwitchingSpec) -> Messages | None:
    """The format of all messages; None where flows carry them, or if it is invalid."""
    if counts_flows(draft):
        reject_flit_keys(draft)
        return None
    deflects = spec.switching_mode.mode == "deflection" or (
        components.routes is not None and components.routes.deflection
    )
    return messages_of(draft, spec.tick_ns, deflects)


@dataclass(frozen=True)
class _Ranks:
    """A placed program: host of each rank, notes, and messages (None where the switching mode segments them)."""

    program: Program
    host: Any
    notes: dict[str, Any]
    messages: Messages | None

    def workload(self, draft: Draft, topology: Topology, switching_mode: SwitchingMode) -> Workload:
        config = draft.config.messages
        messages = self.messages
        if messages is None:
            messages = switching_mode.messages(
                topology, rendezvous_of(config), config.overhead_ns, config.buffered, config.confirmed
            )
        return Workload(self.program, self.host, messages, self.notes)


def _setting(
    draft: Draft,
    components: Components,
    topology: Topology,
    routes: Routes,
    source: Source,
    transport: TransportSpec | None,
) -> SwitchingContext:
    flows = draft.source or SourceConfig()
    return SwitchingContext(
        topology, routes, source.flits, components.routing, transport, PATH_DRAWS[draft.path_draw], flows.sizes,
        flows.arrivals == "together", draft.config.measure.seconds, window_of(draft),
    )  # fmt: skip


def _for_ceilings(
    draft: Draft, components: Components, metrics: list[MetricSpec], metric_keys: dict[str, Any]
) -> Built | None:
    """A scenario for ceilings only; without a routing, those that require one are omitted."""
    if components.topology is None or components.traffic is None or components.source is None:
        return None
    instance = Instance(components.topology, components.traffic, components.routes)
    timeline = timeline_of_ceilings(draft, components)
    resolved = {**_resolved(draft, components), **metric_keys, **plain_timeline(draft, timeline)}
    return Built(components.build_topology, metrics, instance, None, "", resolved, timeline=timeline)


def _resolved(draft: Draft, components: Components) -> dict[str, Any]:
    config = draft.config
    in_ticks = config.measure.model_dump(mode="json", exclude={"seconds", "window"})
    measure = {**in_ticks, "max_ticks": config.measure.longest}
    return {**components.plain, "loads": config.plain_loads, "seeds": config.seeds, "measure": measure}
