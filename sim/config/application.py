# SPDX-License-Identifier: Apache-2.0
"""``experiment: application``: the program, the hosts of its ranks, and the packets of its messages."""

from fractions import Fraction
from typing import Any

import numpy as np
import scipy

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import CALC, Program
from flitlab.models.arrays import Ints
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import TABLE, Traffic
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.load import KeyPath
from flitlab.sim.config.schema import MessagesConfig

PROGRAM_LOAD = 1.0
"""``load`` of a program: it sends as its operations become ready."""

EXPERIMENT_KEYS = {
    "application": ("application", "placement"), "collective": ("collective",),
    "application or collective": ("messages",),
}  # fmt: skip
"""Experiment -> top-level keys that only it has."""

NOT_FOR_PROGRAMS = ("traffic", "loads", "relative", "search", "metrics")
"""Top-level keys without a meaning where hosts run programs."""

MAX_TICKS = 2**62
"""Ticks, and products of ticks, that fit into a 64-bit integer."""


def reject_misplaced_keys(draft: Draft) -> None:
    """Reject keys and switching modes that the experiment does not have."""
    switching_mode = draft.switching_mode
    if draft.runs_program:
        for key in filter(draft.has_value, NOT_FOR_PROGRAMS):
            draft.reject(key, _why_not(key, draft.experiment))
        if switching_mode is not None and not switching_mode.programs:
            draft.reject("switching.mode", f"is not for experiment: {draft.experiment}")
    for experiment, keys in EXPERIMENT_KEYS.items():
        for key in filter(draft.has_value, keys if draft.experiment not in experiment.split(" or ") else ()):
            draft.reject(key, f"is for experiment: {experiment}")
    if draft.runs_program:
        return
    if switching_mode is not None and switching_mode.counts is None:
        draft.reject("switching.mode", "is for experiment: application")


def _why_not(key: str, experiment: str) -> str:
    if key in ("traffic", "loads"):
        return f"is not for experiment: {experiment}: its program defines the traffic"
    return f"is not for experiment: {experiment}"


def messages_of(draft: Draft, tick_ns: float | None, full_packets: bool) -> Messages | None:
    """Packet format, overhead and protocol of all messages, in ticks and flits; None once rejected.

    Parameters
    ----------
    draft: the configuration.
    tick_ns: nanoseconds of a tick; None, if unknown, is rejected.
    full_packets: whether the last packet of a message is padded to full length.
    """
    messages = draft.config.messages
    if tick_ns is None:
        problem = "is missing: a program computes in nanoseconds, so a flit (messages.flit_bytes) needs a duration"
        draft.reject("switching.flit_ns", problem)
        return None
    tick = Fraction(repr(tick_ns))
    payload = (messages.packet_flits - messages.header_flits) * messages.flit_bytes
    return Messages(
        packet_bytes=payload, flit_bytes=messages.flit_bytes, header_flits=messages.header_flits,
        packet_flits=messages.packet_flits, whole=full_packets, rendezvous=rendezvous_of(messages),
        overhead=_ticks(messages.overhead_ns, tick), tick_ns=tick, buffered=messages.buffered,
        confirmed=messages.confirmed,
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
    validate_calculations(draft, program, messages, ("application",))


def validate_calculations(draft: Draft, program: Program, messages: Messages | None, path: KeyPath) -> None:
    """Reject a program with a calculation that exceeds the range of ticks.

    Parameters
    ----------
    draft: the configuration.
    program: checked in blocks of operations.
    messages: define the tick; None in modes that carry flows.
    path: of the program.
    """
    times = (program.amount[part][program.kind[part] == CALC] for part in program.blocks())
    longest = max((int(some.max(initial=0)) for some in times), default=0)
    if messages is not None and longest * messages.tick_ns.denominator + messages.tick_ns.numerator >= MAX_TICKS:
        problem = f"a calculation of {longest:.3g} ns is too long for ticks of {float(messages.tick_ns):g} ns"
        draft.reject(path, problem)


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
        return Traffic("application", topology, TABLE, np.zeros(topology.hosts), start=start)
    return table_traffic("application", topology, demand)


def plain_messages(config: MessagesConfig, flows: bool) -> dict[str, Any]:
    """``messages:`` with all defaults. flows: whether flows carry the messages."""
    of_flows = {"rendezvous_bytes", "overhead_ns", "buffered", "confirmed"}
    return config.model_dump(mode="json", include=of_flows if flows else None)
