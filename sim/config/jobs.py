# SPDX-License-Identifier: Apache-2.0
"""Several jobs: a list under ``application:`` of programs that share hosts and network."""

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
from flitlab.sim.config.application import rendezvous_of, traffic_of, validate_calculations
from flitlab.sim.config.check import spec_of, validated
from flitlab.sim.config.components import ComponentBuilder, plain_of
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.keys import keys_of
from flitlab.sim.config.load import KeyPath
from flitlab.sim.config.section import Section, as_component


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise PydanticCustomError("name", "must be a text on one line")
    return text


class JobConfig(Section):
    """The keys of a job besides those of its program.

    name: by default the kind of the program. placement: by default the top-level one. start_us: arrival time in
    microseconds.
    """

    name: Annotated[str, AfterValidator(_one_line)] | None = None
    placement: Annotated[dict[str, Any], BeforeValidator(as_component)] | None = None
    start_us: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    @property
    def start_ns(self) -> int:
        """Arrival time in whole nanoseconds."""
        return round(1000 * self.start_us)


@dataclass(frozen=True, eq=False)
class Job:
    """A program on hosts of its own, beside other jobs.

    Parameters
    ----------
    path: of its entry.
    name: unique.
    spec: of the program.
    start_ns: arrival time.
    program: with the arrival.
    first: its first rank in the program of all jobs.
    host: int64 [ranks], the host of each rank.
    notes: on the placement.
    plain: the entry with all defaults.
    """

    path: KeyPath
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
        """The kind of the program."""
        return str(self.spec.kind)

    @property
    def ranks(self) -> slice:
        """Ranks of the job in the program of all jobs."""
        return slice(self.first, self.first + self.program.ranks)


@dataclass(frozen=True, eq=False)
class _UnplacedJob:
    """A job with its program, before placement. path: of its entry. spec: of the program."""

    path: KeyPath
    config: JobConfig
    spec: Any
    program: Program

    @property
    def name(self) -> str:
        return self.config.name or str(self.spec.kind)


def jobs_of(draft: Draft, components: ComponentBuilder, topology: Topology, messages: Messages | None) -> list[Job]:
    """The jobs in the order of the configuration; an empty list, with errors added, if one is invalid.

    Parameters
    ----------
    draft: the configuration.
    components: builds and caches programs and placements.
    topology: the hosts.
    messages: None in modes that carry flows.
    """
    before = len(draft.errors)
    unplaced = list(_unplaced_jobs(draft, components, topology, messages))
    _reject_duplicate_names(draft, unplaced)
    ranks = sum(job.program.ranks for job in unplaced)
    if ranks > topology.hosts and len(draft.errors) == before:
        problem = f"the jobs have {ranks} ranks together, which are more than the {topology.hosts} hosts"
        draft.reject("application", f"{problem}; every rank needs one of its own")
    if len(draft.errors) > before:
        return []
    return _place_jobs(draft, components, topology, unplaced)


def workload_of(jobs: Sequence[Job]) -> tuple[Program, Ints, dict[str, Any]]:
    """The program of all jobs, int64 [ranks] the host of each rank, and notes on the placements."""
    notes = {job.name: job.notes for job in jobs if job.notes}
    return together({job.name: job.program for job in jobs}), np.concatenate([job.host for job in jobs]), notes


def isolated(scenario: Scenario[SwitchingMode, Workload], job: Job) -> Scenario[SwitchingMode, Workload]:
    """The scenario of one job without the others: same ranks, hosts and arrival."""
    work = replace(scenario.work, program=job.program, host=job.host, notes=job.notes)
    traffic = traffic_of(job.program, job.host, scenario.topology)
    return replace(scenario, instance=Instance(scenario.topology, traffic, scenario.routes), work=work)


def tuned_jobs(
    draft: Draft, components: ComponentBuilder, jobs: Sequence[Job], scenario: Scenario[SwitchingMode, Workload]
) -> list[Job]:
    """The jobs; those with ``best`` algorithms get the best ones for the isolated job.

    Parameters
    ----------
    draft: gets the errors.
    components: builds and caches programs.
    jobs: as configured.
    scenario: of all jobs.
    """
    tuned = []
    for job in jobs:
        program = components.tuned(draft, job.spec, isolated(scenario, job), job.program.ranks, job.path)
        tuned.append(job if program is None else replace(job, program=arriving(program, job.start_ns)))
    return tuned


def _unplaced_jobs(
    draft: Draft, components: ComponentBuilder, topology: Topology, messages: Messages | None
) -> Iterator[_UnplacedJob]:
    """The valid jobs; errors of others are added. A job without ``ranks`` gets all hosts that are free."""
    free_hosts = topology.hosts
    for i, mapping in enumerate(draft.mapping("application")):
        path = ("application", i)
        if not isinstance(mapping, dict):
            continue  # rejected by the schema
        own = keys_of(JobConfig)
        config = validated(JobConfig, draft, path, {key: mapping[key] for key in own if key in mapping})
        spec = spec_of("application", draft, path, mapping, own)
        if config is None or spec is None:
            continue
        if free_hosts <= 0 and spec.ranks is None:
            draft.reject(path, f"has no host left: the jobs before it have all {topology.hosts}; give each its ranks")
            continue
        program = components.program(draft, spec, topology.hosts if spec.ranks is not None else free_hosts, path)
        if program is None:
            continue
        free_hosts -= program.ranks
        validate_calculations(draft, program, messages, path)
        components.order(draft, program, rendezvous_of(draft.config.messages), path)
        yield _UnplacedJob(path, config, spec, program)


def _reject_duplicate_names(draft: Draft, jobs: Sequence[_UnplacedJob]) -> None:
    names = [job.name for job in jobs]
    for i, job in enumerate(jobs):
        if job.name in names[:i]:
            key = (*job.path, "name")
            draft.reject(key, f"another job is called {job.name}: give each a name of its own")


def _place_jobs(
    draft: Draft, components: ComponentBuilder, topology: Topology, unplaced: Sequence[_UnplacedJob]
) -> list[Job]:
    """The jobs on their hosts, those with named hosts first; an empty list if a placement is invalid.

    The schema has rejected a placement that is no mapping, so its job has no specification here.
    """
    before = len(draft.errors)
    specs = [_placement(draft, job) for job in unplaced]
    job_of_host: dict[int, str] = {}
    placements: dict[int, tuple[Ints, dict[str, Any]]] = {}
    for i in sorted(range(len(unplaced)), key=lambda i: not getattr(specs[i][1], "named", False)):
        job, (path, spec) = unplaced[i], specs[i]
        if spec is None:
            continue
        free = np.setdiff1d(np.arange(topology.hosts), np.fromiter(job_of_host, np.int64, len(job_of_host)))
        placed = components.placement(draft, spec, topology, job.program, path, free)
        if placed is None:
            continue
        taken = next((host for host in placed[0].tolist() if host in job_of_host), None)
        if taken is not None:
            name = host_names(topology).label(taken)
            draft.reject(
                path, f"puts a rank of {job.name} on host {name}, where one of {job_of_host[taken]} is already"
            )
            continue
        job_of_host |= dict.fromkeys(placed[0].tolist(), job.name)
        placements[i] = placed
    if len(draft.errors) > before or len(placements) < len(unplaced):
        return []
    jobs: list[Job] = []
    for i, job in enumerate(unplaced):
        start, (host, notes) = job.config.start_ns, placements[i]
        plain = {
            "name": job.name, **plain_of(job.spec), "placement": plain_of(specs[i][1]), "start_us": job.config.start_us
        }  # fmt: skip
        first = jobs[-1].ranks.stop if jobs else 0
        program = arriving(job.program, start)
        jobs.append(Job(job.path, job.name, job.spec, start, program, first, host, notes, plain))
    return jobs


def _placement(draft: Draft, job: _UnplacedJob) -> tuple[KeyPath, Any]:
    """(path, specification) of the placement of a job; None if it is invalid."""
    has_own = job.config.placement is not None
    path: KeyPath = (*job.path, "placement") if has_own else ("placement",)
    if not has_own and not draft.has_value("placement"):
        return path, make("placement", kind="linear")
    return path, spec_of("placement", draft, path, as_component(draft.mapping(*path)))
