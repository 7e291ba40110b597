# SPDX-License-Identifier: Apache-2.0
"""A scenario: a network and its demand, the switching mode, and what hosts do."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Generic

from typing_extensions import TypeVar

from flitlab.models.application.trace import TraceProgram
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.routing.costs import Costs, route_costs
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.switching_mode import Counted, SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.distances import nearest_hosts
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.models.traffic.traffic import Traffic

SEMANTICS_VERSION = 13
"""Changes whenever results of an unchanged configuration may change."""

D = TypeVar("D", bound=SwitchingMode, default=SwitchingMode, covariant=True)
W = TypeVar("W", bound=Source | Workload, default=Source | Workload, covariant=True)


@dataclass(frozen=True, eq=False)
class Scenario(Generic[D, W]):
    """Everything that determines a run except its load, its seed and the measurement.

    instance: with routes. work: how hosts create packets, or a program that they run; the traffic of the instance is
    then the matrix of its messages. timeline: events of the network, None without events. Raises ``ValueError`` for an
    instance without routes, and for a multistage network in a mode that does not serve it.
    """

    instance: Instance
    switching: D
    work: W
    timeline: Timeline | None = None

    def __post_init__(self) -> None:
        if self.instance.routes is None:
            raise ValueError("a scenario needs routes")
        if not self.switching.supports_multistage and self.topology.is_multistage:
            raise ValueError(f"mode {self.switching.mode} serves networks whose hosts inject and eject at one switch")

    @property
    def topology(self) -> Topology:
        """The topology of the instance."""
        return self.instance.topology

    @property
    def traffic(self) -> Traffic:
        """The traffic of the instance: its demand matrix."""
        return self.instance.traffic

    @property
    def routes(self) -> Routes:
        """The routes of the instance, which a scenario always has."""
        assert self.instance.routes is not None
        return self.instance.routes

    @cached_property
    def source(self) -> Source:
        """How hosts create packets. For a program it states only the maximum packet length in flits; no packets are
        drawn.
        """
        return Source(flits=(self.work.messages.packet_flits,)) if isinstance(self.work, Workload) else self.work

    @property
    def follows_trace(self) -> bool:
        """Whether hosts send the packets of a trace, which are counted as packets, not as a program."""
        return isinstance(self.work, Workload) and isinstance(self.work.program, TraceProgram)

    @property
    def events(self) -> int:
        """Upper limit of the number of ticks at which the network changes, or its routing learns of a change."""
        return 0 if self.timeline is None else len(self.timeline.epochs) + len(self.timeline.reroutes)

    @property
    def counted(self) -> Counted:
        """The unit in which a run is measured: ``packets``, ``flows`` or ``programs``."""
        is_program = isinstance(self.work, Workload) and not self.follows_trace
        kind = "programs" if is_program else self.switching.counts
        assert kind is not None  # a switching mode that counts nothing runs programs
        return kind

    def at(self, load: float) -> "tuple[Scenario[D, W], float]":
        """Return the scenario and the load to simulate for a load of this scenario.

        The scenario is unchanged unless the traffic has a background; see
        :meth:`~flitlab.models.instance.Instance.at`. The load to simulate is in flits per tick of a host of rate 1; of
        flows it is the load, a fraction of the rate of a host.
        """
        instance, offered = self.instance.at(load)
        if self.counted != "flows":
            offered *= self.switching.flits_per_load(self.topology)
        if instance is self.instance:
            return self, offered
        work: Any = self.work
        if self.traffic.classes and isinstance(work, Source):
            flits, shares = self.traffic.lengths(load)
            work = replace(work, flits=flits, shares=shares)
        return replace(self, instance=instance, work=work), offered

    @property
    def host_flit_ticks(self) -> int:
        """Ticks of a flit on a host's channel, of modes that count packets."""
        return round(1 / self.switching.flits_per_load(self.topology))

    @cached_property
    def zero_load_latency(self) -> int:
        """Zero-load latency in ticks of the longest packet over the longest route; where channels differ in speed, an
        upper bound.
        """
        longest = max(self.source.flits)
        slowness, last = self.switching.slowness(self.topology, longest)
        if self.topology.has_delays or slowness.any():
            return self._zero_load_costs(slowness).most + last
        return self.switching.zero_load_latency(self.topology, self.routes.hops_max, longest)

    @cached_property
    def zero_load_range(self) -> Costs:
        """Minimum and maximum zero-load latency in ticks of a packet of one flit, over pairs of hosts."""
        return self._zero_load_costs(self.switching.slowness(self.topology, 1)[0])

    def _zero_load_costs(self, slowness: Ints) -> Costs:
        """Minimum and maximum zero-load latency of one flit; slowness: int64 [channels], further ticks of channels."""
        topology, ends = self.topology, self.switching.zero_load_latency(self.topology, 0, 1)
        hop = self.switching.zero_load_latency(topology, 1, 1) - ends
        if topology.has_delays or slowness.any():
            costs = route_costs(topology, self.routes, hop + topology.delay + slowness, topology.access_delay)
            return Costs(ends + costs.least, ends + costs.most)
        return Costs(ends + hop * nearest_hosts(topology), ends + hop * self.routes.hops_max)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that results depend on, including the semantics version."""
        switching, more = self.switching.hashed(self.source)
        program = [self.work.content_hash] if isinstance(self.work, Workload) else []
        return content_hash(
            SEMANTICS_VERSION, self.topology.content_hash, self.routes.content_hash, self.traffic.content_hash,
            switching, asdict(self.source), self.switching.vc_policy, *more, *program,
            *([] if self.timeline is None else [self.timeline.content_hash]),
        )  # fmt: skip
