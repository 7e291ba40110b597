"""Networks that change while packets are sprayed over them: both engines alike, closed forms, and entropies."""

from contextlib import suppress
from random import Random

import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.routing.routes import Routes
from flitlab.models.timeline.epochs import make_timeline
from flitlab.models.timeline.events import Event
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.fabric_changes import with_changes
from tests import long_after
from tests.sim.spray_cases import case_of_number
from tests.sim.test_spray_engines import check
from tests.sim.test_timeline_datagram import events_of


def happening(session: SpraySession, routes: Routes, routing: dict, events: list[dict]) -> SpraySession:
    """A session in which these events happen, on its own network."""
    parsed = [Event.model_validate(event) for event in events]
    timeline = make_timeline(session.topology, parsed, make("routing", **routing), routes, session.tick_s * 10**9)
    return with_changes(session, routes, timeline)


def possible(session: SpraySession, routes: Routes, routing: dict, events: list[dict]) -> SpraySession:
    """The session with as many of the events as can happen, each of them after those before."""
    kept: list[dict] = []
    for event in events:
        with suppress(SpecError):
            happening(session, routes, routing, [*kept, event])
            kept.append(event)
    return happening(session, routes, routing, kept)


@pytest.mark.parametrize("number", long_after(60, range(200)))
def test_engines_agree_on_every_packet_and_counter(number):
    session, routing, routes = case_of_number(number)
    rng = Random(number)
    last = rng.choice([30_000, 200_000])
    case = possible(session, routes, routing, events_of(rng, session.topology, last))
    check(case, (last // 3, last, 500_000))
