# SPDX-License-Identifier: Apache-2.0
"""Disciplines of flits whose network can change during a run."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes
from flitlab.models.switching.buffered import Buffered
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.steps import Step, steps_of


class PolicyChange(NamedTuple):
    """What happens to a network, and the VC policy of the routes that the routing learns of then, if it does."""

    step: Step
    policy: int


class DynamicTopology(SwitchingMode):
    """A discipline whose links and switches fail and return, and whose channels move one flit a tick while they work.

    What says how it goes on stands before the other bases of a discipline.
    """

    supports_timeline: ClassVar[bool] = True

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links that are slow, and for routes of what is left that cannot be followed."""
        if any((epoch.rate != 1).any() for epoch in timeline.epochs):
            problem = f"slow is not for mode {self.mode}, which moves one flit a tick over every channel that works"
            raise SpecError(f"{problem}; modes datagram, spray and flow take it", key="timeline")
        self.policy_changes(timeline, routes)

    def policy_changes(self, timeline: Timeline | None, routes: Routes) -> tuple[PolicyChange, ...]:
        """What happens to a network, and under which VC policies it goes on.

        ``routes`` are those of the network as it was built. Raises ``SpecError`` where those of what is left of it
        cannot be followed.
        """
        return tuple(PolicyChange(step, self._policy(timeline, step, routes)) for step in steps_of(timeline, routes))

    def _policy(self, timeline: Timeline | None, step: Step, routes: Routes) -> int:
        """The VC policy of the routes that the routing learns of; else the present one."""
        return self.vc_policy


@dataclass(frozen=True, kw_only=True)
class Draining(DynamicTopology, Buffered):
    """A discipline whose packets wait for each other in buffers, so that all routes need a certificate.

    As hosts wait for the network to be empty before they send by other routes, packets of one routing never wait for
    those of another, and each needs a certificate of its own alone.
    """

    def check_timeline(self, timeline: Timeline, routes: Routes) -> None:
        """Raise ``SpecError`` for links that are slow, and for routes of what is left that have no certificate."""
        if self.may_deadlock:
            raise SpecError("needs routes with a certificate: a network that deadlocks is never empty", key="timeline")
        super().check_timeline(timeline, routes)

    def _policy(self, timeline: Timeline | None, step: Step, routes: Routes) -> int:
        """The VC policy of the routes that the routing learns of, which have a certificate; else the present one."""
        if timeline is None or step.routes is None:
            return self.vc_policy
        remaining = timeline.left(timeline.at(step.tick))
        try:
            mode, _ = replace(self, allow_deadlock=False).certified(
                remaining.topology, timeline.routes(remaining, routes)
            )
        except SpecError as error:
            why = f"what the routing learns at tick {step.tick} has no certificate against deadlock: {error}"
            raise SpecError(why, key="timeline") from error
        return mode.vc_policy
