# SPDX-License-Identifier: Apache-2.0
"""Switching modes of flits whose topology can change during a run."""

from dataclasses import dataclass, replace
from typing import ClassVar

from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import Tables
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.flit_ticks import check_flit_ticks
from flitlab.models.timeline.network_changes import NetworkChange, network_changes
from flitlab.models.topology.graph import Topology


class DynamicTopology(SwitchingMode):
    """A switching mode of flits whose links and switches fail, slow down and return.

    This class comes before the other bases of a mode. drains: whether hosts wait for an empty network before the routes
    change.
    """

    supports_timeline: ClassVar[bool] = True
    drains: ClassVar[bool] = False

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links whose flits take no whole ticks, and for routes that packets cannot follow."""
        check_flit_ticks(timeline)
        self.policy_changes(timeline, routes)

    def policy_changes(self, timeline: Timeline | None, routes: Routes) -> tuple[NetworkChange, ...]:
        """The events of a timeline, each with the VC policy that follows.

        routes: of the network as built. Raises ``SpecError`` for routes of a remaining network that packets cannot
        follow.

        Parameters
        ----------
        timeline: events of the network during the run; None: it does not change.
        routes: its routes.
        """
        changes = network_changes(timeline, routes)
        return tuple(replace(change, policy=self._policy(timeline, change, routes)) for change in changes)

    def tables_after(self, old: Tables, topology: Topology, change: NetworkChange) -> Tables:
        """The routes for compiled code after the routing has learned of a change.

        Parameters
        ----------
        old: the tables before the change.
        topology: the network.
        change: with routes of the remaining network.
        """
        assert change.routes is not None
        return change.routes.tables(topology, change.policy)

    def _policy(self, timeline: Timeline | None, change: NetworkChange, routes: Routes) -> int:
        """The VC policy of the routes that the routing learns; without such, the present one."""
        return self.vc_policy


@dataclass(frozen=True, kw_only=True)
class Draining(DynamicTopology, Buffered):
    """A switching mode whose packets wait for each other in buffers, so that all routes need a certificate.

    Hosts wait for an empty network before they use other routes. So packets of one routing never wait for those of
    another, and each routing needs its own certificate only.
    """

    drains: ClassVar[bool] = True

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links whose flits take no whole ticks, and for routes without a certificate."""
        if self.may_deadlock:
            raise SpecError("needs routes with a certificate: a network that deadlocks is never empty", key="timeline")
        super().check_timeline(timeline, routes)

    def _policy(self, timeline: Timeline | None, change: NetworkChange, routes: Routes) -> int:
        """The VC policy of the certified routes that the routing learns; without such, the present one."""
        if timeline is None or change.routes is None:
            return self.vc_policy
        remaining = timeline.surviving(timeline.epoch_at(change.tick))
        try:
            mode, _ = replace(self, allow_deadlock=False).certified(
                remaining.topology, timeline.routes(remaining, routes)
            )
        except SpecError as error:
            why = f"what the routing learns at tick {change.tick} has no certificate against deadlock: {error}"
            raise SpecError(why, key="timeline") from error
        return mode.vc_policy
