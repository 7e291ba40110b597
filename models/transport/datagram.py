"""The part of a scenario that the datagram discipline adds, and the sessions that follow from it."""

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from flitlab.models.application.messages import Messages
from flitlab.models.hashing import content_hash
from flitlab.models.registry import SpecError
from flitlab.models.routing.routes import RoutingSpec
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.connections import connections
from flitlab.models.transport.failures import LinkFailures, with_failures
from flitlab.models.transport.flows import Flows, arriving, long_lived, together
from flitlab.models.transport.law import TransportSpec
from flitlab.models.transport.paths import DISTINCT
from flitlab.models.transport.session import LATEST, Queues, Session, make_session, tick_of
from flitlab.models.transport.sizes import SizesSpec

if TYPE_CHECKING:
    from flitlab.models.scenario import Scenario


@dataclass(frozen=True)
class Datagram:
    """Queues, transport and flows.

    sizes: None for endless flows. poisson: finite ones come in Poisson processes at the load; else every pair of the
    pattern has one from the beginning. seconds: how long flows come. routing: finds the routes after ``failures``.
    """

    transport: TransportSpec
    queues: Queues
    routing: RoutingSpec
    path_draw: int = DISTINCT
    sizes: SizesSpec | None = None
    poisson: bool = True
    seconds: float = 2.0
    failures: LinkFailures | None = None

    @property
    def content_hash(self) -> str:
        """Hash of everything that results depend on."""
        parts = [self.transport.model_dump(mode="json"), self.routing.model_dump(mode="json"), asdict(self.queues)]
        sizes = self.sizes and [self.sizes.model_dump(mode="json"), *self.sizes.build().table()]
        failures = self.failures and asdict(self.failures)
        return content_hash(*parts, self.path_draw, sizes, self.poisson, self.seconds, failures)


def datagram_messages(
    topology: Topology, queues: Queues, rendezvous: int, overhead_ns: float, buffered: bool = False
) -> Messages:
    """Messages of a program as packets of this discipline, all of them full, in its ticks."""
    size, tick_ns = queues.packet_bytes, tick_of(topology, queues) * 10**9
    overhead = ceil(Fraction(repr(float(overhead_ns))) / tick_ns)
    return Messages(size, size, 0, 1, True, rendezvous, overhead, tick_ns, buffered)


def session_of(scenario: "Scenario", load: float, seed: int) -> Session:
    """The run of a scenario at a load with a seed. Raises ``SpecError``."""
    given = scenario.datagram
    assert given is not None
    transport, program = given.transport.build(), None
    if scenario.workload is None:
        _check_length(scenario.topology, given)
        flows = _flows(scenario, given, transport.flows, load, seed)
    elif transport.flows > 1:
        raise SpecError("must be 1: a program has one connection from a host to another", key="flows")
    else:
        program = connections(scenario.workload, scenario.topology.hosts)
        flows, transport = program.flows, replace(transport, start_ms=0.0)
    session = make_session(
        scenario.topology, scenario.routes, transport, given.queues, flows, path_draw=given.path_draw, seed=seed
    )  # fmt: skip
    session = replace(session, program=program)
    return session if given.failures is None else with_failures(session, given.failures, given.routing)


def _check_length(topology: Topology, given: Datagram) -> None:
    given.queues.check()
    tick = tick_of(topology, given.queues)
    if Fraction(repr(given.seconds)) / tick > LATEST:
        most = f"at a tick of {float(tick * 10**9):.3g} ns a run may take {float(LATEST * tick):.6g} s"
        raise SpecError(most, key="seconds")


def _flows(scenario: "Scenario", given: Datagram, flows: int, load: float, seed: int) -> Flows:
    traffic, packet = scenario.traffic, given.queues.packet_bytes
    if given.sizes is None:
        return long_lived(traffic, flows)
    sizes = given.sizes.build()
    if not given.poisson:
        return together(traffic, flows, sizes, packet, seed)
    topology = scenario.topology
    tick = tick_of(topology, given.queues)
    nic = Fraction(repr(float(given.queues.nic_mbps))) * Fraction(repr(float(topology.host_capacity)))
    of_packet = Fraction(8 * packet, 10**6) / nic / tick
    return arriving(traffic, load, sizes, packet, of_packet, int(Fraction(repr(given.seconds)) / tick), seed)
