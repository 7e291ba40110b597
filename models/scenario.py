"""One thing to simulate and to bound: topology, routes, traffic and the switches between them."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from flitlab.models.hashing import content_hash
from flitlab.models.routing.routes import Routes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source as Source
from flitlab.models.traffic.traffic import Traffic

if TYPE_CHECKING:
    from flitlab.models.application.workload import Workload
    from flitlab.models.transport.datagram import Datagram

SEMANTICS_VERSION = 4
"""Changes whenever results of an unchanged configuration may change."""


@dataclass(frozen=True)
class Switching:
    """How a switch treats what arrives; all times in ticks (one flit on a channel).

    mode: ``vct``, ``wormhole``, ``deflection``, ``datagram`` (of which :class:`Scenario` holds the rest) or ``flow``.
    vcs: virtual channels of every network and injection channel. buffer_flits: input buffer of each VC.
    shared_input: an input port sends one packet at a time (``input_speedup: 1``; wormhole: one flit a tick); False:
    each of its VCs can be read at once (``vcs``).
    iterations: of iSLIP in a tick; wormhole only.
    hold_packets, slotted: deflection only. half_duplex: the two channels of a link share its capacity; flow only.
    """

    mode: str
    vcs: int = 1
    buffer_flits: int = 0
    shared_input: bool = False
    iterations: int = 1
    header: int = 0
    switch: int = 1
    link: int = 1
    injection: int = 1
    ejection: int = 1
    credit: int = 1
    hold_packets: int = 0
    slotted: bool = False
    allow_deadlock: bool = False
    half_duplex: bool = False


@dataclass(frozen=True, eq=False)
class Scenario:
    """Everything but the load, the seed and how it is measured.

    vc_policy: the VC policy in force (``flitlab.models.rules.tables.ANY`` ...). may_deadlock: it has no certificate,
    so a deadlock is a result and no defect. datagram: what that discipline adds; None in the others. workload: a
    program that the hosts run instead of drawing packets; ``traffic`` is then its messages as a matrix, and ``source``
    says nothing.
    """

    topology: Topology
    routes: Routes
    traffic: Traffic
    switching: Switching
    source: Source
    vc_policy: int = 0
    may_deadlock: bool = False
    datagram: "Datagram | None" = None
    workload: "Workload | None" = None

    def at(self, load: float) -> "tuple[Scenario, float]":
        """What an engine is to be given for a load: a scenario whose demand grows as a whole, and its load.

        That is this scenario and ``load``, unless the traffic has a background (:meth:`Traffic.at`).
        """
        traffic, offered = self.traffic.at(load)
        return (self if traffic is self.traffic else replace(self, traffic=traffic)), offered

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on, the semantics' version included."""
        more = [part.content_hash for part in (self.datagram, self.workload) if part is not None]
        return content_hash(
            SEMANTICS_VERSION, self.topology.content_hash, self.routes.content_hash, self.traffic.content_hash,
            asdict(self.switching), asdict(self.source), self.vc_policy, *more,
        )  # fmt: skip
