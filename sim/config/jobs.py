# SPDX-License-Identifier: Apache-2.0
"""Several jobs: a list under ``application:``, of programs that share the hosts and the network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from flitlab.models.application.jobs import arriving, together
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Program
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.sim.config.application import refuse_long, rendezvous_of, traffic_of
from flitlab.sim.config.check import spec_of, validated
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.keys import keys_of
from flitlab.sim.config.load import Place
from flitlab.sim.config.parts import PartsBuilder, plain_of
from flitlab.sim.config.section import Section, named


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise PydanticCustomError("name", "must be a text on one line")
    return text


class JobConfig(Section):
    """The keys of a job that are not its program's.

    name: by default the program's kind. placement: by default that at the top of the configuration. start_us: when the
    job arrives, in microseconds.
    """

    name: Annotated[str, AfterValidator(_one_line)] | None = None
    placement: Annotated[dict[str, Any], BeforeValidator(named)] | None = None
    start_us: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    @property
    def start_ns(self) -> int:
        """When the job arrives, in whole nanoseconds."""
        return round(1000 * self.start_us)


@dataclass(frozen=True, eq=False)
class Job:
    """A program among others, on hosts of its own.

    place: of its entry. spec: of its program. program: with its arrival. first: the number of its first rank among
    those of all jobs. host: int64 [ranks]. notes: on its placement. plain: its entry with all defaults.
    """

    place: Place
    name: str
    spec: Any
    start_ns: int
    program: Program
    first: int
    host: Ints
    notes: dict[str, Any]
    plain: dict[str, Any]

    @property
    def kind(self) -> str:
        """What its program is."""
        return str(self.spec.kind)

    @property
    def ranks(self) -> slice:
        """The place of its ranks among those of all jobs."""
        return slice(self.first, self.first + self.program.ranks)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A job whose program is built. place: of its entry. spec: of its program."""

    place: Place
    config: JobConfig
    spec: Any
    program: Program

    @property
    def name(self) -> str:
        return self.config.name or str(self.spec.kind)


def jobs_of(draft: Draft, parts: PartsBuilder, topology: Topology, messages: Messages | None) -> list[Job]:
    """The jobs of a configuration, in its order; none once anything is refused. messages: None in flows."""
    before = len(draft.mistakes)
    asked = list(_asked(draft, parts, topology, messages))
    _refuse_same_names(draft, asked)
    ranks = sum(job.program.ranks for job in asked)
    if ranks > topology.hosts and len(draft.mistakes) == before:
        problem = f"the jobs have {ranks} ranks together, which are more than the {topology.hosts} hosts"
        draft.refuse("application", f"{problem}; every rank needs one of its own")
    if len(draft.mistakes) > before:
        return []
    return _placed(draft, parts, topology, asked)


def workload_of(jobs: Sequence[Job]) -> tuple[Program, Ints, dict[str, Any]]:
    """The program of all jobs, the host of each of its ranks, and notes on their placements."""
    notes = {job.name: job.notes for job in jobs if job.notes}
    return together({job.name: job.program for job in jobs}), np.concatenate([job.host for job in jobs]), notes


def alone(scenario: Scenario[SwitchingMode, Workload], job: Job) -> Scenario[SwitchingMode, Workload]:
    """A scenario of several jobs without the others: the same ranks on the same hosts, which arrive when they do."""
    work = replace(scenario.work, program=job.program, host=job.host, notes=job.notes)
    traffic = traffic_of(job.program, job.host, scenario.topology)
    return replace(scenario, instance=Instance(scenario.topology, traffic, scenario.routes), work=work)


def tuned_jobs(
    draft: Draft, parts: PartsBuilder, jobs: Sequence[Job], scenario: Scenario[SwitchingMode, Workload]
) -> list[Job]:
    """The jobs, those that ask for the best algorithms with those that are best for each alone on its hosts."""
    found = []
    for job in jobs:
        program = parts.tuned(draft, job.spec, alone(scenario, job), job.program.ranks, job.place)
        found.append(job if program is None else replace(job, program=arriving(program, job.start_ns)))
    return found


def _asked(draft: Draft, parts: PartsBuilder, topology: Topology, messages: Messages | None) -> Iterator[_Asked]:
    """The jobs that are well-formed; what is wrong with others is refused. Without ``ranks`` one has the hosts left."""
    left = topology.hosts
    for i, given in enumerate(draft.mapping("application")):
        place = ("application", i)
        if not isinstance(given, dict):
            continue  # the schema says what is wrong with that
        own = keys_of(JobConfig)
        config = validated(JobConfig, draft, place, {key: given[key] for key in own if key in given})
        spec = spec_of("application", draft, place, given, own)
        if config is None or spec is None:
            continue
        if left <= 0 and spec.ranks is None:
            draft.refuse(place, f"has no host left: the jobs before it have all {topology.hosts}; give each its ranks")
            continue
        program = parts.program(draft, spec, topology.hosts if spec.ranks is not None else left, place)
        if program is None:
            continue
        left -= program.ranks
        refuse_long(draft, program, messages, place)
        parts.order(draft, program, rendezvous_of(draft.config.messages), place)
        yield _Asked(place, config, spec, program)


def _refuse_same_names(draft: Draft, asked: Sequence[_Asked]) -> None:
    names = [job.name for job in asked]
    for i, job in enumerate(asked):
        if job.name in names[:i]:
            key = (*job.place, "name")
            draft.refuse(key, f"another job is called {job.name}: give each a name of its own")


def _placed(draft: Draft, parts: PartsBuilder, topology: Topology, asked: Sequence[_Asked]) -> list[Job]:
    """The jobs on hosts; jobs that name their hosts come first. None of them if a placement is rejected.

    A placement that is no mapping is among the mistakes of the schema already, so its job has no specification here.
    """
    before = len(draft.mistakes)
    specs = [_placement(draft, job) for job in asked]
    holder: dict[int, str] = {}
    found: dict[int, tuple[Ints, dict[str, Any]]] = {}
    for i in sorted(range(len(asked)), key=lambda i: not getattr(specs[i][1], "named", False)):
        job, (place, spec) = asked[i], specs[i]
        if spec is None:
            continue
        free = np.setdiff1d(np.arange(topology.hosts), np.fromiter(holder, np.int64, len(holder)))
        placed = parts.placement(draft, spec, topology, job.program, place, free)
        if placed is None:
            continue
        taken = next((host for host in placed[0].tolist() if host in holder), None)
        if taken is not None:
            name = host_names(topology).label(taken)
            draft.refuse(place, f"puts a rank of {job.name} on host {name}, where one of {holder[taken]} is already")
            continue
        holder |= dict.fromkeys(placed[0].tolist(), job.name)
        found[i] = placed
    if len(draft.mistakes) > before or len(found) < len(asked):
        return []
    jobs: list[Job] = []
    for i, job in enumerate(asked):
        start, (host, notes) = job.config.start_ns, found[i]
        plain = {
            "name": job.name, **plain_of(job.spec), "placement": plain_of(specs[i][1]), "start_us": job.config.start_us
        }  # fmt: skip
        first = jobs[-1].ranks.stop if jobs else 0
        program = arriving(job.program, start)
        jobs.append(Job(job.place, job.name, job.spec, start, program, first, host, notes, plain))
    return jobs


def _placement(draft: Draft, job: _Asked) -> tuple[Place, Any]:
    """Where the placement of a job stands, and its keys; None once they are refused."""
    own = job.config.placement is not None
    place: Place = (*job.place, "placement") if own else ("placement",)
    if not own and not draft.given("placement"):
        return place, make("placement", kind="linear")
    return place, spec_of("placement", draft, place, named(draft.mapping(*place)))
