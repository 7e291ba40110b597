# SPDX-License-Identifier: Apache-2.0
"""Messages as fluids that share channels max-min fairly."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

import numpy as np

from flitlab.models.application.messages import total_flits
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.mappings import Fields, Keys
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.byte_switching import capacity_key
from flitlab.models.switching.hash_form import FLOW_ABSENT, common_form
from flitlab.models.switching.switching_mode import Certify, Counted, SwitchingContext
from flitlab.models.switching.timed import Credited, CreditedSpec
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.network_changes import network_changes
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source

LONGEST = 1 << 52
"""The most ticks that all messages may take on one channel; events are counted in fractions of ticks."""


@dataclass(frozen=True, kw_only=True)
class Flow(Credited):
    """Messages as fluids with the latencies of packets.

    half_duplex: both channels of a link between switches share its capacity. half_duplex_hosts: also those of hosts.
    """

    mode: ClassVar[str] = "flow"
    counts: ClassVar[Counted | None] = None
    programs: ClassVar[bool] = True
    supports_timeline: ClassVar[bool] = True
    exact: ClassVar[bool] = True
    supports_multistage: ClassVar[bool] = True

    half_duplex: bool = False
    half_duplex_hosts: bool = False

    def certified(self, topology: Topology, routes: Routes, certify: Certify = certify) -> tuple["Flow", str]:
        """The mode unchanged, and why it cannot deadlock: fluids occupy nothing that others wait for.

        Returns
        -------
        The mode, and the text.
        """
        return self, "mode flow holds nothing that a message could wait for"

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for routes whose tables do not describe the remaining network."""
        network_changes(timeline, routes)

    def check(
        self, instance: Instance, work: Source | Workload, load: float, seed: int, timeline: Timeline | None = None
    ) -> None:
        """Check that the times of all messages can be counted.

        Parameters
        ----------
        instance: topology, routes and traffic.
        work: traffic to draw packets from, or the program that hosts run.
        load: offered load.
        seed: of all draws.
        timeline: events of the network during the run; None: it does not change.

        Raises
        ------
        SpecError: all messages on the slowest channel take more ticks than can be counted.
        """
        if not isinstance(work, Workload):
            return
        program = work.program
        flits = sum(float(total_flits(program.amount[send], work.messages).sum()) for send in program.sends())
        topology = instance.topology
        rates = [np.ones(topology.channels)] if timeline is None else [epoch.rate for epoch in timeline.epochs]
        slowest = {
            "topology.capacity": float(topology.capacity.min(initial=np.inf)),
            "topology.host_capacity": topology.host_capacity,
            "timeline.factor": min(float((topology.capacity * rate).min(initial=np.inf)) for rate in rates),
        }
        for key, capacity in slowest.items():
            if flits > LONGEST * capacity:
                problem = f"all messages take {flits:g} / {capacity:g} ticks on such a channel; at most {LONGEST}"
                raise SpecError(problem, key=capacity_key(topology, key))

    def hashed(self, source: Source) -> tuple[Fields, list[str]]:
        """The fields in the common hash form, without further hashes."""
        absent = {**FLOW_ABSENT, "buffer_flits": 2 * max(source.flits)}
        hosts = {"half_duplex_hosts": True} if self.half_duplex_hosts else {}
        return common_form(self.mode, absent | asdict(self)) | hosts, []

    def plain(self, flit_ns: float | None = None) -> Keys:
        """The mapping ``switching:`` that describes this mode, delays in ticks; flit_ns: None if unknown."""
        half = "half_hosts" if self.half_duplex_hosts else "half"
        duplex = half if self.half_duplex else "full"
        return {"mode": self.mode, "flit_ns": flit_ns, "duplex": duplex} | self._plain_times(flit_ns)


@register("switching", "flow")
class FlowSpec(CreditedSpec):
    """Messages of a program as fluids that share channels max-min fairly; for programs too long for packets.

    duplex: ``half`` lets the two channels of a link between switches share its capacity, ``half_hosts`` also those of a
    host.
    """

    switching_mode: ClassVar[type[Flow]] = Flow

    mode: Literal["flow"]
    """The switching mode."""
    duplex: Literal["full", "half", "half_hosts"] = "full"
    """half: both directions of a link share its capacity; half_hosts: those of hosts, too."""

    def errors(self, topology: Topology, routes: Routes | None, flits: tuple[int, ...] | None) -> Iterator[SpecError]:
        """Errors: infinite host capacity, adaptive routes, and delays that are no ticks.

        Returns
        -------
        Errors, each with the full path of its key.
        """
        yield from super().errors(topology, routes, flits)
        if not np.isfinite(topology.host_capacity):
            yield SpecError("must be finite in a simulation", key="topology.host_capacity")
        bidirectional = topology.reverse >= 0
        if self.duplex != "full" and (topology.capacity != topology.capacity[topology.reverse])[bidirectional].any():
            problem = f"the two directions of a link share one capacity with duplex {self.duplex}, and some have two"
            yield SpecError(problem, key="switching.duplex")
        if routes is not None and not routes.oblivious:
            problem = f"{routes.kind} is adaptive: mode flow needs an oblivious routing, which fixes paths beforehand"
            yield SpecError(problem, key="routing")

    def build(self, setting: SwitchingContext) -> Flow:
        """Flow switching with these delays, for any routing."""
        hosts = self.duplex == "half_hosts"
        return Flow(half_duplex=hosts or self.duplex == "half", half_duplex_hosts=hosts, **self.ticks())
