# SPDX-License-Identifier: Apache-2.0
"""One thing to simulate: a network and its demand, what switches do, and what hosts do."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Generic

from typing_extensions import TypeVar

from flitlab.models.application.workload import Workload
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.routing.costs import Costs, route_costs
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.switching_mode import PROGRAMS, Counted, SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.distances import nearest_hosts
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic

SEMANTICS_VERSION = 7
"""Changes whenever results of an unchanged configuration may change."""

D = TypeVar("D", bound=SwitchingMode, default=SwitchingMode, covariant=True)
W = TypeVar("W", bound=Source | Workload, default=Source | Workload, covariant=True)


@dataclass(frozen=True, eq=False)
class Scenario(Generic[D, W]):
    """What is simulated: everything that a run depends on but its load, its seed and how it is measured.

    instance: with routes. work: how hosts create packets, or a program that they run; the traffic of the instance is
    then its messages as a matrix. timeline: what happens to the network meanwhile, None where nothing does. Raises
    ``ValueError`` for an instance without routes.
    """

    instance: Instance
    switching: D
    work: W
    timeline: Timeline | None = None

    def __post_init__(self) -> None:
        if self.instance.routes is None:
            raise ValueError("what is simulated needs routes")

    @property
    def topology(self) -> Topology:
        """The topology of the instance."""
        return self.instance.topology

    @property
    def traffic(self) -> Traffic:
        """The traffic of the instance: who sends how much to whom."""
        return self.instance.traffic

    @property
    def routes(self) -> Routes:
        """The routes of the instance, which a scenario always has."""
        assert self.instance.routes is not None
        return self.instance.routes

    @cached_property
    def source(self) -> Source:
        """How hosts create packets; of a program it says only their greatest length in flits, as nobody draws them."""
        return Source(flits=(self.work.messages.packet_flits,)) if isinstance(self.work, Workload) else self.work

    @property
    def events(self) -> int:
        """How many ticks there are at most at which something happens to the network, or its routing learns of it."""
        return 0 if self.timeline is None else len(self.timeline.epochs) + len(self.timeline.reroutes)

    @property
    def counted(self) -> Counted:
        """What a run is measured by: ``packets``, ``flows`` or ``programs``."""
        kind = PROGRAMS if isinstance(self.work, Workload) else self.switching.counts
        assert kind is not None  # a discipline that counts nothing runs programs
        return kind

    def at(self, load: float) -> "tuple[Scenario[D, W], float]":
        """The scenario and the load that an engine is to be given for a load of this one.

        They are the same, unless the traffic has a background; see :meth:`~flitlab.models.instance.Instance.at`.
        """
        instance, offered = self.instance.at(load)
        return (self if instance is self.instance else replace(self, instance=instance)), offered

    @cached_property
    def zero_load_latency(self) -> int:
        """Ticks that the longest packet takes over the longest route with nobody in its way."""
        longest = max(self.source.flits)
        if self.topology.has_delays:
            return self.zero_load_range.most + longest - 1
        return self.switching.zero_load_latency(self.topology, self.routes.hops_max, longest)

    @cached_property
    def zero_load_range(self) -> Costs:
        """Ticks that a packet of one flit takes with nobody in its way: the least and the most over pairs of hosts."""
        topology, ends = self.topology, self.switching.zero_load_latency(self.topology, 0, 1)
        hop = self.switching.zero_load_latency(topology, 1, 1) - ends
        if topology.has_delays:
            found = route_costs(topology, self.routes, hop + topology.delay, topology.access_delay)
            return Costs(ends + found.least, ends + found.most)
        return Costs(ends + hop * nearest_hosts(topology), ends + hop * self.routes.hops_max)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on, the semantics' version included."""
        switching, more = self.switching.hashed(self.source)
        program = [self.work.content_hash] if isinstance(self.work, Workload) else []
        return content_hash(
            SEMANTICS_VERSION, self.topology.content_hash, self.routes.content_hash, self.traffic.content_hash,
            switching, asdict(self.source), self.switching.vc_policy, *more, *program,
            *([] if self.timeline is None else [self.timeline.content_hash]),
        )  # fmt: skip
