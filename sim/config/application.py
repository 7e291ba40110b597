# SPDX-License-Identifier: Apache-2.0
"""``experiment: application``: a program, where its ranks run, and what its messages are cut into."""

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
from flitlab.sim.config.load import Place
from flitlab.sim.config.schema import MessagesConfig

LOAD = 1.0
"""``load`` of a program, which sends when it has something to send."""

KEYS = {
    "application": ("application", "placement"), "collective": ("collective",),
    "application or collective": ("messages",),
}  # fmt: skip
"""Experiment -> keys that no other one knows."""

FOREIGN = ("traffic", "loads", "relative", "search", "metrics")
"""Keys that mean nothing where hosts run programs."""

LATEST = 2**62
"""Ticks, or products of them, that still fit into an integer of 64 bits."""


def refuse_misplaced(draft: Draft) -> None:
    """Refuses what means nothing to the experiment, because it is, or is not, that of applications."""
    discipline = draft.switching_mode
    if draft.runs_program:
        for key in filter(draft.given, FOREIGN):
            draft.refuse(key, _why_not(key, draft.experiment))
        if discipline is not None and not discipline.programs:
            draft.refuse("switching.mode", f"is not for experiment: {draft.experiment}")
    for experiment, keys in KEYS.items():
        for key in filter(draft.given, keys if draft.experiment not in experiment.split(" or ") else ()):
            draft.refuse(key, f"is for experiment: {experiment}")
    if draft.runs_program:
        return
    if discipline is not None and discipline.counts is None:
        draft.refuse("switching.mode", "is for experiment: application")


def _why_not(key: str, experiment: str) -> str:
    if key in ("traffic", "loads"):
        return f"is not for experiment: {experiment}: its program says who sends what to whom, and when"
    return f"is not for experiment: {experiment}"


def messages_of(draft: Draft, tick_ns: float | None, whole: bool) -> Messages | None:
    """What all messages have in common, in ticks and flits; None, once that is refused, where it is not known.

    whole: every packet of a message is full.
    """
    given = draft.config.messages
    if tick_ns is None:
        problem = "is missing: a program computes in nanoseconds, so a flit (messages.flit_bytes) must take some"
        draft.refuse("switching.flit_ns", problem)
        return None
    tick = Fraction(repr(tick_ns))
    payload = (given.packet_flits - given.header_flits) * given.flit_bytes
    return Messages(
        packet_bytes=payload, flit_bytes=given.flit_bytes, header_flits=given.header_flits,
        packet_flits=given.packet_flits, whole=whole, rendezvous=rendezvous_of(given),
        overhead=_ticks(given.overhead_ns, tick), tick_ns=tick, buffered=given.buffered, confirmed=given.confirmed,
    )  # fmt: skip


def refuse_flits(draft: Draft) -> None:
    """Refuses keys of ``messages:`` where flows carry them: packets are what ``switching:`` says."""
    mode = draft.switching_mode.mode if draft.switching_mode is not None else ""
    for key in ("messages.flit_bytes", "messages.packet_flits", "messages.header_flits"):
        if draft.states(key):
            draft.refuse(key, f"is not for mode {mode}: switching says what a packet is")


def rendezvous_of(given: MessagesConfig) -> int:
    """Bytes above which a message waits for its receiver."""
    return LATEST if given.rendezvous_bytes is None else given.rendezvous_bytes


def _ticks(ns: float, tick: Fraction) -> int:
    """Whole ticks of so many nanoseconds that ``ns`` takes, rounded up; of decimal numbers as they are written."""
    return -(-Fraction(repr(float(ns))) // tick)


def refuse_program(draft: Draft, program: Program, topology: Topology, messages: Messages | None) -> None:
    """Refuses a program that cannot run on the hosts of a network."""
    if program.ranks > topology.hosts:
        problem = f"{program.ranks} ranks are more than the {topology.hosts} hosts; every rank needs one of its own"
        draft.refuse("application.ranks", problem)
    refuse_long(draft, program, messages, ("application",))


def refuse_long(draft: Draft, program: Program, messages: Messages | None, place: Place) -> None:
    """Refuses a program, given at a place, that calculates for longer than ticks can be counted."""
    times = (program.amount[part][program.kind[part] == CALC] for part in program.blocks())
    longest = max((int(some.max(initial=0)) for some in times), default=0)
    if messages is not None and longest * messages.tick_ns.denominator + messages.tick_ns.numerator >= LATEST:
        problem = f"a calculation of {longest:.3g} ns is too long for ticks of {float(messages.tick_ns):g} ns"
        draft.refuse(place, problem)


def traffic_of(program: Program, host: Ints, topology: Topology) -> Traffic:
    """The bytes of all messages as a demand between hosts, scaled to the hose; nothing, if no host sends to another."""
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
    """``messages:`` with all defaults. flows: whether these carry them."""
    of_flows = {"rendezvous_bytes", "overhead_ns", "buffered", "confirmed"}
    return config.model_dump(mode="json", include=of_flows if flows else None)
