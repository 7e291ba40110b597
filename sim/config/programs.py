# SPDX-License-Identifier: Apache-2.0
"""Programs on hosts: one application, a list of jobs, and the packets of their messages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import scipy
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from flitlab.models.application.jobs import arriving, together
from flitlab.models.application.messages import Messages
from flitlab.models.application.program import Op, Program
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.instance import Instance
from flitlab.models.mappings import Keys, Notes
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.distances import reachable
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import DestinationRule, Traffic
from flitlab.sim.config.components import ComponentBuilder, plain_of
from flitlab.sim.config.diagnostics import Rejected
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.schema import MessagesConfig, keys_of
from flitlab.sim.config.sections import Section, as_component
from flitlab.sim.config.text import ConfigDocument
from flitlab.sim.config.validation import spec_of, validated

PROGRAM_LOAD = 1.0
"""``load`` of a program: it sends as its operations become ready."""

MAX_TICKS = 2**62
"""Ticks, and products of ticks, that fit into a 64-bit integer."""


def messages_of(draft: Draft, tick: Fraction | None, full_packets: bool) -> Messages | None:
    """Packet format, overhead and protocol of all messages, in ticks and flits; None once rejected.

    Parameters
    ----------
    draft: the configuration.
    tick: nanoseconds of a tick; None, if unknown, is rejected.
    full_packets: whether the last packet of a message is padded to full length.
    """
    messages = draft.messages
    if tick is None:
        problem = "is missing: a program computes in nanoseconds, so a flit (messages.flit_bytes) needs a duration"
        draft.reject("switching.flit_ns", problem)
        return None
    payload = (messages.packet_flits - messages.header_flits) * messages.flit_bytes
    return Messages(
        packet_bytes=payload, flit_bytes=messages.flit_bytes, header_flits=messages.header_flits,
        packet_flits=messages.packet_flits, whole=full_packets, rendezvous=rendezvous_of(messages),
        overhead=_ticks(messages.overhead_ns, tick), tick_ns=tick, buffered=messages.buffered,
        confirmed=messages.confirmed, await_receive=messages.await_receive,
    )  # fmt: skip


def reject_flit_keys(draft: Draft) -> None:
    """Reject the flit keys of ``messages:`` where flows carry messages: ``switching:`` defines their packets."""
    mode = draft.switching_mode.mode if draft.switching_mode is not None else ""
    for key in ("messages.flit_bytes", "messages.packet_flits", "messages.header_flits"):
        if draft.has_value_at(key):
            draft.reject(key, f"is not for mode {mode}: switching defines the packets")


def rendezvous_of(messages: MessagesConfig) -> int:
    """Bytes of the largest message that is sent eagerly, without waiting for its receiver."""
    return MAX_TICKS if messages.rendezvous_bytes is None else messages.rendezvous_bytes


def _ticks(ns: float, tick: Fraction) -> int:
    """Nanoseconds in whole ticks, rounded up, exact for the decimal numbers of the configuration."""
    return -(-Fraction(repr(float(ns))) // tick)


def validate_program(draft: Draft, program: Program, topology: Topology, messages: Messages | None) -> None:
    """Reject a program with more ranks than hosts, or with calculations that are too long.

    Parameters
    ----------
    draft: the configuration.
    program, topology: what runs where.
    messages: None in modes that carry flows.
    """
    if program.ranks > topology.hosts:
        problem = f"{program.ranks} ranks are more than the {topology.hosts} hosts; every rank needs one of its own"
        draft.reject("application.ranks", problem)
    validate_calculations(draft.part("application"), program, messages)


def validate_calculations(document: ConfigDocument, program: Program, messages: Messages | None) -> None:
    """Reject a program with a calculation that exceeds the range of ticks.

    Parameters
    ----------
    document: the part of the program.
    program: checked in blocks of operations.
    messages: define the tick; None in modes that carry flows.
    """
    times = (program.amount[part][program.kind[part] == Op.CALC] for part in program.blocks())
    longest = max((int(some.max(initial=0)) for some in times), default=0)
    if messages is not None and longest * messages.tick_ns.denominator + messages.tick_ns.numerator >= MAX_TICKS:
        problem = f"a calculation of {longest:.3g} ns is too long for ticks of {float(messages.tick_ns):g} ns"
        document.reject((), problem)


def traffic_of(program: Program, host: Ints, topology: Topology) -> Traffic:
    """The bytes of all messages as a demand matrix of hosts, scaled to the hose model; empty if no host sends.

    Parameters
    ----------
    program: its send operations.
    host: int64 [ranks], the host of each rank.
    topology: the hosts.
    """
    shape = (topology.hosts, topology.hosts)
    demand = scipy.sparse.csr_array(shape)
    for send in program.sends():
        source, target = host[program.rank[send]], host[program.peer[send]]
        apart = source != target
        amount = np.maximum(program.amount[send][apart], 1).astype(float)  # an empty message is a packet, too
        demand += scipy.sparse.coo_array((amount, (source[apart], target[apart])), shape).tocsr()
    if not demand.nnz:
        start = np.zeros(topology.hosts + 1, np.int64)
        return Traffic("application", topology, DestinationRule.TABLE, np.zeros(topology.hosts), start=start)
    return table_traffic("application", topology, demand)


def validate_paths(draft: Draft, program: Program, host: Ints, topology: Topology, rendezvous: int) -> None:
    """Reject a message without a path, or without a path back where it waits for its receive.

    Parameters
    ----------
    draft: gets the error.
    program: its send operations.
    host: int64 [ranks], the host of each rank.
    topology: the network, which need not be strongly connected.
    rendezvous: larger messages, in bytes, wait for their receive.
    """
    if topology.unreachable_pair() is None:
        return
    reach, names = reachable(topology), host_names(topology)
    for send in program.sends():
        ends = host[program.rank[send]], host[program.peer[send]]
        source, target = (topology.host_switch[end] for end in ends)
        waits = program.amount[send] > rendezvous
        for lacking, back in ((~reach[source, target], False), (waits & ~reach[target, source], True)):
            if not lacking.any():
                continue
            first = np.flatnonzero(lacking)[0]
            u, v = (names.label(end[first]) for end in ends)
            problem = f"host {u} sends a message to host {v}, and no path leads {'back' if back else 'there'}"
            if back:
                problem += ", which a message that waits for its receive needs (messages.rendezvous_bytes)"
            draft.reject("collective" if draft.experiment == "collective" else "application", problem)
            raise Rejected


def plain_messages(config: MessagesConfig, flows: bool) -> Keys:
    """``messages:`` with all defaults. flows: whether flows carry the messages."""
    of_flows = {"rendezvous_bytes", "overhead_ns", "buffered", "confirmed", "await_receive"}
    return config.model_dump(mode="json", include=of_flows if flows else None)


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
    placement: Annotated[Keys, BeforeValidator(as_component)] | None = None
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
    name: unique.
    spec: of the program.
    start_ns: arrival time.
    program: with the arrival.
    first: its first rank in the program of all jobs.
    host: int64 [ranks], the host of each rank.
    notes: on the placement.
    plain: the entry with all defaults.
    """

    name: str
    spec: ApplicationSpec
    start_ns: int
    program: Program
    first: int
    host: Ints
    notes: Notes
    plain: Keys

    @property
    def kind(self) -> str:
        """The kind of the program."""
        return self.spec.kind

    @property
    def ranks(self) -> slice:
        """Ranks of the job in the program of all jobs."""
        return slice(self.first, self.first + self.program.ranks)


@dataclass(frozen=True, eq=False)
class _UnplacedJob:
    """A job with its program, before placement. entry: of the configuration. spec: of the program."""

    entry: ConfigDocument
    config: JobConfig
    spec: ApplicationSpec
    program: Program

    @property
    def name(self) -> str:
        return self.config.name or self.spec.kind


def jobs_of(draft: Draft, components: ComponentBuilder, topology: Topology, messages: Messages | None) -> list[Job]:
    """The jobs in the order of the configuration.

    Parameters
    ----------
    draft: the configuration.
    components: builds and caches programs and placements.
    topology: the hosts.
    messages: None in modes that carry flows.

    Raises
    ------
    Rejected: one is invalid.
    """
    errors = draft.new_errors()
    unplaced = list(_unplaced_jobs(draft, components, topology, messages))
    _reject_duplicate_names(unplaced)
    ranks = sum(job.program.ranks for job in unplaced)
    if ranks > topology.hosts and not errors:
        problem = f"the jobs have {ranks} ranks together, which are more than the {topology.hosts} hosts"
        draft.reject("application", f"{problem}; every rank needs one of its own")
    errors.stop()
    return _place_jobs(draft, components, topology, unplaced)


def workload_of(jobs: Sequence[Job]) -> tuple[Program, Ints, Notes]:
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
    for i, job in enumerate(jobs):
        entry = draft.part("application", i)
        program = components.tuned(entry, job.spec, isolated(scenario, job), job.program.ranks)
        tuned.append(job if program is None else replace(job, program=arriving(program, job.start_ns)))
    return tuned


def _unplaced_jobs(
    draft: Draft, components: ComponentBuilder, topology: Topology, messages: Messages | None
) -> Iterator[_UnplacedJob]:
    """The valid jobs; errors of others are added. A job without ``ranks`` gets all hosts that are free."""
    free_hosts = topology.hosts
    for i, mapping in enumerate(draft.mapping("application")):
        if not isinstance(mapping, dict):
            continue  # rejected by the schema
        entry, own = draft.part("application", i), keys_of(JobConfig)
        config = validated(JobConfig, entry, {key: mapping[key] for key in own if key in mapping})
        spec = spec_of("application", entry, mapping, own)
        if config is None or spec is None:
            continue
        if free_hosts <= 0 and spec.ranks is None:
            entry.reject((), f"has no host left: the jobs before it have all {topology.hosts}; give each its ranks")
            continue
        program = components.program(entry, spec, topology.hosts if spec.ranks is not None else free_hosts)
        if program is None:
            continue
        free_hosts -= program.ranks
        validate_calculations(entry, arriving(program, config.start_ns), messages)
        components.order(entry, program, rendezvous_of(draft.messages))
        yield _UnplacedJob(entry, config, spec, program)


def _reject_duplicate_names(jobs: Sequence[_UnplacedJob]) -> None:
    names = [job.name for job in jobs]
    for i, job in enumerate(jobs):
        if job.name in names[:i]:
            job.entry.reject("name", f"another job is called {job.name}: give each a name of its own")


def _place_jobs(
    draft: Draft, components: ComponentBuilder, topology: Topology, unplaced: Sequence[_UnplacedJob]
) -> list[Job]:
    """The jobs on their hosts, those with named hosts first. Raises ``Rejected`` if a placement is invalid.

    The schema has rejected a placement that is no mapping, so its job has no specification here.
    """
    errors = draft.new_errors()
    specs = [_placement(draft, job) for job in unplaced]
    job_of_host: dict[int, str] = {}
    placements: dict[int, tuple[Ints, Notes]] = {}
    for i in sorted(range(len(unplaced)), key=lambda i: not getattr(specs[i][1], "named", False)):
        job, (part, spec) = unplaced[i], specs[i]
        if spec is None:
            continue
        free = np.setdiff1d(np.arange(topology.hosts), np.fromiter(job_of_host, np.int64, len(job_of_host)))
        placed = components.placement(part, spec, topology, job.program, free)
        if placed is None:
            continue
        taken = next((host for host in placed[0].tolist() if host in job_of_host), None)
        if taken is not None:
            name = host_names(topology).label(taken)
            part.reject((), f"puts a rank of {job.name} on host {name}, where one of {job_of_host[taken]} is already")
            continue
        job_of_host |= dict.fromkeys(placed[0].tolist(), job.name)
        placements[i] = placed
    errors.stop()
    if not unplaced or len(placements) < len(unplaced):
        raise Rejected
    jobs: list[Job] = []
    for i, job in enumerate(unplaced):
        start, (host, notes) = job.config.start_ns, placements[i]
        plain = {
            "name": job.name, **plain_of(job.spec), "placement": plain_of(specs[i][1]), "start_us": job.config.start_us
        }  # fmt: skip
        first = jobs[-1].ranks.stop if jobs else 0
        jobs.append(Job(job.name, job.spec, start, arriving(job.program, start), first, host, notes, plain))
    return jobs


def _placement(draft: Draft, job: _UnplacedJob) -> tuple[ConfigDocument, Any]:
    """The part of the placement of a job, and its specification; None if it is invalid."""
    has_own = job.config.placement is not None
    part = job.entry.part("placement") if has_own else draft.part("placement")
    if not has_own and not draft.has_value("placement"):
        return part, make("placement", kind="linear")
    return part, spec_of("placement", part, as_component(draft.mapping(*part.path)))
