# SPDX-License-Identifier: Apache-2.0
"""Puts the parts of a scenario together and checks what one asks of the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
from flitlab.models.faults import refuse_other
from flitlab.models.instance import Instance
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.registry import SpecError, is_foreign, make
from flitlab.models.routing.certificate import Certified, certify
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import Discipline, Setting, SwitchingSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.paths import PATH_DRAWS
from flitlab.sim.config.application import (
    messages_of,
    plain_messages,
    refuse_flits,
    refuse_program,
    rendezvous_of,
    traffic_of,
)
from flitlab.sim.config.check import refuse_built
from flitlab.sim.config.collective import Collective, asked, kept, planned, with_rules
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.fit import background_refused, refuse_beside, refuse_loads, refuse_start
from flitlab.sim.config.flows import check_times, counts_flows, plain_flows, refuse_times, transport_of, window_of
from flitlab.sim.config.jobs import Job, jobs_of, tuned_jobs, workload_of
from flitlab.sim.config.parts import Parts, PartsBuilder, metrics_of, plain_of
from flitlab.sim.config.schema import SourceConfig
from flitlab.sim.config.size import length_refused, simulation_refused
from flitlab.sim.config.timeline import plain_timeline, timeline_alone, timeline_of
from flitlab.sim.config.window import measure_of_search
from flitlab.sim.engines import switching_modes as switching_modes  # which have their engines by that
from flitlab.sim.engines.table import check_has_engine

_OfProgram = Scenario[Discipline, Workload]


@dataclass(frozen=True, eq=False)
class Built:
    """A scenario with what a user may want to know of how it came about.

    again: gives the topology; it is not kept, as there may be thousands to be measured. metrics: what is to be
    measured. instance: None for the experiment ``metrics``. scenario: None where nothing is simulated. certificate: why
    the VC policy cannot deadlock, '' where nothing was certified. resolved: the configuration with all defaults, plain.
    collective: of the experiment of that name. jobs: of a list of applications. timeline: what happens to the network,
    None where nothing does.
    """

    again: Callable[[], Topology]
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
        self.parts = PartsBuilder()

    def build(self, draft: Draft) -> Built | None:
        """One scenario, or None once everything that is wrong is refused."""
        parts, metrics = self.parts.build(draft), metrics_of(draft)
        if parts.topology is None:
            return None
        asked = [metric.model_dump(mode="json", exclude_none=True) for metric in metrics]
        if draft.experiment == "metrics":
            timeline_alone(draft, parts)
            return Built(parts.again, metrics, None, None, "", {**parts.plain, "metrics": asked})
        if draft.switching is None or background_refused(draft, parts.traffic):
            return None  # what follows from its defaults would only confuse
        if draft.experiment == "load_sweep" or draft.runs_program:
            return self._simulated(draft, parts, draft.switching)
        return _for_ceilings(draft, parts, metrics, {"metrics": asked} if asked else {})

    def _simulated(self, draft: Draft, parts: Parts, spec: SwitchingSpec) -> Built | None:
        before = len(draft.mistakes)
        refuse_beside(draft, spec)
        if draft.experiment == "collective":
            return self._for_collective(draft, parts, spec, before)
        if draft.experiment == "application":
            several = isinstance(draft.mapping("application"), list)
            return (self._for_jobs if several else self._for_application)(draft, parts, spec, before)
        if parts.traffic is not None and parts.source is not None:
            refuse_loads(draft, parts.traffic, parts.source)
        if not counts_flows(draft):
            length_refused(draft)
        return self._with_discipline(draft, parts, spec, before)

    def _for_application(self, draft: Draft, parts: Parts, spec: SwitchingSpec, before: int) -> Built | None:
        """With a program on the hosts and its traffic."""
        topology, application = parts.topology, draft.spec("application")
        assert topology is not None
        messages = _messages(draft, parts, spec)
        program = None if application is None else self.parts.program(draft, application, topology.hosts)
        if program is not None:
            refuse_program(draft, program, topology, messages)
            self.parts.order(draft, program, rendezvous_of(draft.config.messages))
        if program is None or len(draft.mistakes) > before:
            return None
        given = draft.spec("placement") if draft.given("placement") else make("placement", kind="linear")
        everywhere = np.arange(topology.hosts)
        placed = given and self.parts.placement(draft, given, topology, program, ("placement",), everywhere)
        if not placed:
            return None
        ranks = _Ranks(program, *placed, messages)
        built = self._with_program(draft, parts, spec, before, ranks)
        if built is not None:
            scenario = cast("_OfProgram", built.scenario)
            tuned = self.parts.tuned(draft, application, scenario, topology.hosts)
            if tuned is not None:
                built = self._with_program(draft, parts, spec, before, replace(ranks, program=tuned))
        own = {"application": plain_of(application), "placement": plain_of(given)}
        return None if built is None else replace(built, resolved={**built.resolved, **own})

    def _for_jobs(self, draft: Draft, parts: Parts, spec: SwitchingSpec, before: int) -> Built | None:
        """With the program of several jobs on hosts of their own."""
        assert parts.topology is not None
        messages = _messages(draft, parts, spec)
        jobs = jobs_of(draft, self.parts, parts.topology, messages)
        if not jobs:
            return None
        built = self._with_program(draft, parts, spec, before, _Ranks(*workload_of(jobs), messages))
        if built is not None:
            tuned = tuned_jobs(draft, self.parts, jobs, cast("_OfProgram", built.scenario))
            if tuned != jobs:
                jobs = tuned
                built = self._with_program(draft, parts, spec, before, _Ranks(*workload_of(jobs), messages))
        own = {"application": [job.plain for job in jobs], "placement": None}
        return None if built is None else replace(built, jobs=tuple(jobs), resolved={**built.resolved, **own})

    def _for_collective(self, draft: Draft, parts: Parts, spec: SwitchingSpec, before: int) -> Built | None:
        """With the program that an algorithm makes of a collective."""
        assert parts.topology is not None
        found = asked(draft, parts.topology) if len(draft.mistakes) == before else None
        plan = found and planned(draft, *found, self.parts.once)
        if not found or plan is None:
            return None
        with_rules(draft)
        if is_foreign(found[1]):
            self.parts.order(draft, plan.program, rendezvous_of(draft.config.messages), ("collective", "algorithm"))
        messages = _messages(draft, parts, spec)
        if len(draft.mistakes) > before:
            return None
        ranks = _Ranks(plan.program, plan.host, plan.notes, messages)
        parts = parts if plan.routes is None else replace(parts, routes=plan.routes)
        built = self._with_program(draft, parts, spec, before, ranks)
        assert draft.config.collective is not None
        plain = draft.config.collective.model_dump(mode="json", exclude_none=True)
        own = {"collective": {**plain, "algorithm": found[1].model_dump(mode="json", exclude_none=True)}}
        if built is None:
            return None
        return replace(built, collective=kept(*found, plan), resolved={**built.resolved, **own})

    def _with_program(
        self, draft: Draft, parts: Parts, spec: SwitchingSpec, before: int, ranks: "_Ranks"
    ) -> Built | None:
        """The scenario of a program on the hosts; None once it is refused."""
        assert parts.topology is not None
        source = Source(flits=(1 if ranks.messages is None else ranks.messages.packet_flits,))
        traffic = traffic_of(ranks.program, ranks.host, parts.topology)
        built = self._with_discipline(draft, replace(parts, traffic=traffic, source=source), spec, before, ranks)
        given = draft.config.measure.max_ticks
        own = {
            "loads": None, "messages": plain_messages(draft.config.messages, counts_flows(draft)),
            "measure": {} if given is None else {"max_ticks": given},
        }  # fmt: skip
        return None if built is None else replace(built, resolved={**built.resolved, **own})

    def _with_discipline(
        self, draft: Draft, parts: Parts, spec: SwitchingSpec, before: int, ranks: "_Ranks | None" = None
    ) -> Built | None:
        """The scenario of a discipline; None if anything was refused since there were ``before`` mistakes."""
        topology, routes, traffic, source = parts.topology, parts.routes, parts.traffic, parts.source
        assert topology is not None
        transport = transport_of(draft) if counts_flows(draft) else None
        discipline, certificate = self._discipline(draft, parts, spec, transport, before)
        if discipline is None or traffic is None or source is None or len(draft.mistakes) > before:
            return None
        timeline = None
        if routes is not None:
            timeline = timeline_of(draft, parts, topology, routes, discipline, spec.tick_ns)
        if len(draft.mistakes) > before:
            return None
        instance = Instance(topology, traffic, routes)
        work = source if ranks is None else ranks.workload(draft, topology, discipline)
        refuse_start(draft, instance, discipline, work, timeline)
        if len(draft.mistakes) > before:
            return None
        check_times(draft, discipline, topology)
        if not counts_flows(draft):
            simulation_refused(draft, topology, discipline, source.flits)
        if routes is None or len(draft.mistakes) > before:
            return None
        for doubt in discipline.doubts(topology, routes, source.flits[0]):
            draft.warn(doubt.key or "switching", str(doubt))
        scenario = Scenario(instance, discipline, work, timeline)
        draft.config = draft.config.model_copy(update={"measure": measure_of_search(draft.config, scenario)})
        plain = {**_resolved(draft, parts), "switching": discipline.plain(spec.tick_ns)}
        if transport is not None:
            in_force = getattr(discipline, "transport", transport)
            plain |= plain_flows(draft, parts.plain["routing"], in_force, not discipline.endless)
        plain |= plain_timeline(draft, timeline)
        return Built(parts.again, [], instance, scenario, certificate, plain, timeline=timeline)

    def _discipline(
        self, draft: Draft, parts: Parts, spec: SwitchingSpec, transport: TransportSpec | None, before: int
    ) -> tuple[Discipline | None, str]:
        """The discipline in force, and why it cannot deadlock; None once it is refused, or where parts are missing."""
        topology, routes, source = parts.topology, parts.routes, parts.source
        assert topology is not None
        if counts_flows(draft):
            refuse_times(draft)
        for refusal in spec.refusals(topology, routes, None if source is None else source.flits):
            draft.refuse(refusal.key or "switching", str(refusal), refusal.choices)
        if routes is None or source is None or (counts_flows(draft) and transport is None):
            return None, ""
        setting = _setting(draft, parts, topology, routes, source, transport)
        return self._certified(draft, spec, setting, len(draft.mistakes) > before)

    def _certified(
        self, draft: Draft, spec: SwitchingSpec, setting: Setting, refused: bool
    ) -> tuple[Discipline | None, str]:
        """The discipline in force, and why it cannot deadlock; None once it is refused.

        refused: whether something was already, so that building it need not succeed.
        """
        try:
            discipline = spec.build(setting)
            refuse_other(discipline, Discipline)
            check_has_engine(discipline)
        except Exception as error:  # a discipline may be a stranger's: whatever it raises is reported
            if not refused:
                refuse_built(error, "switching", draft)
            return None, ""
        try:
            return discipline.certified(setting.topology, setting.routes, self._certify)
        except Exception as error:  # and so may a routing
            in_switching = isinstance(error, SpecError) and error.key in type(spec).model_fields
            refuse_built(error, "switching" if in_switching else "routing", draft)
            return None, ""

    def _certify(self, topology: Topology, routes: Routes, vcs: int, allowed: bool) -> Certified:
        """As :func:`~flitlab.models.routing.certificate.certify` does, once for all scenarios that ask the same."""
        # the routes themselves and not their hash, for which 800 MB would be read at 10,000 switches
        key = ("certificate", topology.content_hash, routes, vcs, allowed)
        found: Certified | BaseException = self.parts.once(key, lambda: certify(topology, routes, vcs, allowed))
        if isinstance(found, BaseException):
            raise found
        return found


def _messages(draft: Draft, parts: Parts, spec: SwitchingSpec) -> Messages | None:
    """What all messages have in common; None where flows carry them, or once that is refused."""
    if counts_flows(draft):
        refuse_flits(draft)
        return None
    deflects = spec.discipline.mode == "deflection" or (parts.routes is not None and parts.routes.deflection)
    return messages_of(draft, spec.tick_ns, deflects)


@dataclass(frozen=True)
class _Ranks:
    """A program, the host of each rank, notes on them, and its messages; None where the discipline cuts them."""

    program: Program
    host: Any
    notes: dict[str, Any]
    messages: Messages | None

    def workload(self, draft: Draft, topology: Topology, discipline: Discipline) -> Workload:
        given = draft.config.messages
        messages = self.messages
        if messages is None:
            messages = discipline.messages(
                topology, rendezvous_of(given), given.overhead_ns, given.buffered, given.confirmed
            )
        return Workload(self.program, self.host, messages, self.notes)


def _setting(
    draft: Draft, parts: Parts, topology: Topology, routes: Routes, source: Source, transport: TransportSpec | None
) -> Setting:
    flows = draft.source or SourceConfig()
    return Setting(
        topology, routes, source.flits, parts.routing, transport, PATH_DRAWS[draft.path_draw], flows.sizes,
        flows.arrivals == "together", draft.config.measure.seconds, window_of(draft),
    )  # fmt: skip


def _for_ceilings(draft: Draft, parts: Parts, metrics: list[MetricSpec], asked: dict[str, Any]) -> Built | None:
    """Without a routing, the ceilings that would need one are omitted, with that reason."""
    if parts.topology is None or parts.traffic is None or parts.source is None:
        return None
    instance = Instance(parts.topology, parts.traffic, parts.routes)
    timeline = timeline_alone(draft, parts)
    resolved = {**_resolved(draft, parts), **asked, **plain_timeline(draft, timeline)}
    return Built(parts.again, metrics, instance, None, "", resolved, timeline=timeline)


def _resolved(draft: Draft, parts: Parts) -> dict[str, Any]:
    config = draft.config
    in_ticks = config.measure.model_dump(mode="json", exclude={"seconds", "window"})
    measure = {**in_ticks, "max_ticks": config.measure.longest}
    return {**parts.plain, "loads": config.plain_loads, "seeds": config.seeds, "measure": measure}
