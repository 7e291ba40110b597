"""``experiment: application``: a program, where its ranks run, and what its messages are cut into."""

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from flitlab.models.application.messages import Messages
from flitlab.models.application.program import CALC, Program
from flitlab.models.application.workload import Workload
from flitlab.models.switching.datagram import Datagram
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import TABLE, Traffic
from flitlab.sim.config.check import mistake_at
from flitlab.sim.config.datagram import is_datagram
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.schema import Config, MessagesConfig

LOAD = 1.0
"""``load`` of a program, which sends when it has something to send."""

KEYS = ("application", "placement", "messages")
"""Keys that only this experiment knows."""

FOREIGN = ("traffic", "loads", "relative", "search", "metrics")
"""Keys that mean nothing to it."""

LATEST = 2**62
"""Ticks, or products of them, that still fit into an integer of 64 bits."""


def misplaced(root: Node, experiment: str) -> list[Mistake]:
    """Keys that mean nothing to the experiment, because it is, or is not, that of applications."""
    if experiment == "application":
        found = [mistake_at(root, (key,), _why_not(key)) for key in FOREIGN if _given(root, (key,))]
        if not is_datagram(root) and _given(root, ("transport",)):
            found.append(mistake_at(root, ("transport",), "is for switching.mode: datagram"))
        return found
    found = [mistake_at(root, (key,), "is for experiment: application") for key in KEYS if _given(root, (key,))]
    mode = root.get("switching", "mode")
    if mode is not None and mode.value == "flow":
        found.append(mistake_at(root, ("switching", "mode"), "is for experiment: application"))
    return found


def _given(root: Node, place: Place) -> bool:
    node = root.get(*place)
    return node is not None and node.value is not None


def _why_not(key: str) -> str:
    if key in ("traffic", "loads"):
        return "is not for experiment: application: its program says who sends what to whom, and when"
    return "is not for experiment: application"


def messages_of(root: Node, config: Config, mistakes: list[Mistake]) -> Messages | None:
    """What all messages have in common, in ticks and flits; None, and what is wrong, where that is not known."""
    given = config.messages
    flit_ns = getattr(config.switching, "flit_ns", None)
    if flit_ns is None:
        problem = "is missing: a program computes in nanoseconds, so a flit (messages.flit_bytes) must take some"
        mistakes.append(mistake_at(root, ("switching", "flit_ns"), problem))
        return None
    tick = Fraction(repr(flit_ns))
    payload = (given.packet_flits - given.header_flits) * given.flit_bytes
    whole = config.switching.mode == "deflection" or _deflects(root)
    return Messages(
        packet_bytes=payload, flit_bytes=given.flit_bytes, header_flits=given.header_flits,
        packet_flits=given.packet_flits, whole=whole, rendezvous=rendezvous_of(given),
        overhead=_ticks(given.overhead_ns, tick), tick_ns=tick, buffered=given.buffered,
    )  # fmt: skip


def _deflects(root: Node) -> bool:
    kind = root.get("routing", "kind")
    return kind is not None and kind.value == "deflection"


def datagram_mistakes(root: Node) -> list[Mistake]:
    """Keys of ``messages:`` that mode datagram has no use for: its packets are what ``switching:`` says."""
    own: list[Place] = [("messages", key) for key in ("flit_bytes", "packet_flits", "header_flits")]
    problem = "is not for mode datagram: see switching.packet_bytes"
    return [mistake_at(root, key, problem) for key in own if root.get(*key) is not None]


def rendezvous_of(given: MessagesConfig) -> int:
    """Bytes above which a message waits for its receiver."""
    return LATEST if given.rendezvous_bytes is None else given.rendezvous_bytes


def _ticks(ns: float, tick: Fraction) -> int:
    """Whole ticks of so many nanoseconds that ``ns`` takes, rounded up; of decimal numbers as they are written."""
    return -(-Fraction(repr(float(ns))) // tick)


def program_mistakes(root: Node, program: Program, topology: Topology, messages: Messages | None) -> list[Mistake]:
    """What keeps a program from running on the hosts of a network."""
    found = []
    if program.ranks > topology.hosts:
        problem = f"{program.ranks} ranks are more than the {topology.hosts} hosts; every rank needs one of its own"
        found.append(mistake_at(root, ("application", "ranks"), problem))
    times = (program.amount[part][program.kind[part] == CALC] for part in program.blocks())
    longest = max((int(some.max(initial=0)) for some in times), default=0)
    if messages is not None and longest * messages.tick_ns.denominator + messages.tick_ns.numerator >= LATEST:
        problem = f"a calculation of {longest:.3g} ns is too long for ticks of {float(messages.tick_ns):g} ns"
        found.append(mistake_at(root, ("application",), problem))
    return found


def datagram_workload(
    given: MessagesConfig, program: Program, host: np.ndarray, topology: Topology, discipline: Datagram
) -> Workload:
    """A program on hosts whose messages are datagrams."""
    messages = discipline.messages(topology, rendezvous_of(given), given.overhead_ns, given.buffered)
    return Workload(program, host, messages)


def traffic_of(program: Program, host: np.ndarray, topology: Topology) -> Traffic:
    """The bytes of all messages as a demand between hosts, scaled to the hose; nothing, if no host sends to another."""
    shape = (topology.hosts, topology.hosts)
    demand = sparse.csr_array(shape)
    for send in program.sends():
        source, target = host[program.rank[send]], host[program.peer[send]]
        apart = source != target
        amount = np.maximum(program.amount[send][apart], 1).astype(float)  # an empty message is a packet, too
        demand += sparse.coo_array((amount, (source[apart], target[apart])), shape).tocsr()
    if not demand.nnz:
        start = np.zeros(topology.hosts + 1, np.int64)
        return Traffic("application", topology, TABLE, np.zeros(topology.hosts), start=start)
    return table_traffic("application", topology, demand)


def source_of(messages: Messages | None) -> Source:
    """Of packets of one length: what buffers must hold. Nobody draws any."""
    return Source(flits=(1 if messages is None else messages.packet_flits,))


def plain_messages(config: MessagesConfig, datagram: bool) -> dict[str, Any]:
    """``messages:`` with all defaults."""
    return config.model_dump(mode="json", include={"rendezvous_bytes", "overhead_ns", "buffered"} if datagram else None)
