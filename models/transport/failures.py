"""Links that fail while flows are under way."""

from dataclasses import dataclass, replace

import numpy as np

from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.topology.failures import Amount, Failures
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.paths import WITH_REPLACEMENT, Paths, backwards, draw_paths
from flitlab.models.transport.session import Change, Session, check_stay

_NOBODY = np.zeros(0, np.int64)
_NOWHERE = Paths(np.zeros(1, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class LinkFailures:
    """``links`` (a share or a number, drawn from ``seed`` as static failures are) fail at ``at_ms`` for good.

    What is on them is lost, and so is what still comes to them; ``reroute_ms`` later the subflows that used them get
    paths that avoid them.
    """

    links: Amount
    at_ms: float
    reroute_ms: float
    seed: int = 1


def with_failures(session: Session, failures: LinkFailures, routing: RoutingSpec) -> Session:
    """The session with a failure and the rerouting after it, which is for what is left of the network.

    Raises ``SpecError`` if not every switch reaches every other one afterwards, by the channels left or the routing.
    """
    if failures.reroute_ms < 0 or failures.at_ms < 0:
        raise SpecError("must be 0 or more", key="at_ms" if failures.at_ms < 0 else "reroute_ms")
    topology = session.topology
    left, working = surviving(topology, failures)
    broken = np.setdiff1d(np.arange(topology.channels), working)
    paths = session.paths
    subflow_of = np.repeat(np.arange(session.subflows), np.diff(paths.start))
    moved = np.unique(subflow_of[np.isin(paths.link, broken)])
    number = np.concatenate([working, np.arange(topology.channels, len(session.delay))])
    new = _redrawn(session, left, _routes_after(routing, left), moved, number)
    back = None if session.back is None else backwards(topology, new)
    for way in (new, back):
        check_stay(way, session.delay, session.ratio, session.queues)
    at, reroute = (session.ticks(ms / 1e3) for ms in (failures.at_ms, failures.at_ms + failures.reroute_ms))
    failing = Change(at, broken, _NOBODY, _NOWHERE, None if back is None else _NOWHERE)
    return replace(session, changes=(*session.changes, failing, Change(reroute, _NOBODY, moved, new, back)))


def _routes_after(routing: RoutingSpec, left: Topology) -> Routes:
    try:
        return routing.build(left)
    except SpecError as error:
        raise SpecError(f"{routing.kind} does not serve what is left: {error}", key="failures") from error


def surviving(topology: Topology, failures: LinkFailures) -> tuple[Topology, np.ndarray]:
    """What is left of a network, and the numbers that its channels have in the whole one, int64."""
    tagged = replace(topology, delay=np.arange(topology.channels))
    left = Failures(links=failures.links, seed=failures.seed).strike(tagged)
    return replace(left, delay=topology.delay[left.delay]), left.delay


def _redrawn(session: Session, left: Topology, routes: Routes, moved: np.ndarray, number: np.ndarray) -> Paths:
    """New paths of some subflows, in the numbers of the whole network's links."""
    if not len(moved):
        return _NOWHERE
    flow = np.searchsorted(session.first, moved, side="right") - 1
    source, destination = session.flows.source[flow], session.flows.destination[flow]
    paths = draw_paths(
        left, routes, source, destination, np.arange(len(moved) + 1), WITH_REPLACEMENT, session.seed,
        number=session.subflows + moved,
    )  # fmt: skip
    return Paths(paths.start, number[paths.link].astype(np.int32))
