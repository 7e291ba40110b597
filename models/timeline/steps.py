# SPDX-License-Identifier: Apache-2.0
"""What happens to a network as an engine meets it: tick by tick, with the numbers of the whole network."""

from dataclasses import dataclass

from flitlab.models.arrays import Bools, Floats
from flitlab.models.routing.routes import Routes
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.widened import widened


@dataclass(frozen=True, eq=False)
class Step:
    """What is so from a tick on.

    works: bool [channels], whether each channel does. rate: float64 [channels], the part of its capacity that it has
    while it works. switches: bool [switches], whether they work. routes: those that the routing learns of at this tick,
    with the switches and ports of the whole network; None where it learns nothing.
    """

    tick: int
    works: Bools
    rate: Floats
    switches: Bools
    routes: Routes | None


def steps_of(timeline: Timeline | None, whole: Routes) -> tuple[Step, ...]:
    """The ticks at which something happens, ascending; ``whole`` are the routes of the network as it was built.

    Raises :class:`~flitlab.models.registry.SpecError` for routes that :func:`widened` does not serve.
    """
    if timeline is None:
        return ()
    topology, found = timeline.topology, []
    for tick in sorted({*(epoch.tick for epoch in timeline.epochs), *timeline.reroutes}):
        now, routes = timeline.at(tick), None
        if tick == 0 and not now.words:
            continue
        if tick in timeline.reroutes:
            left = timeline.left(now)
            routes = widened(timeline.routes(left, whole), left, topology)
        found.append(Step(tick, now.works(topology), now.rate, now.switches, routes))
    return tuple(found)
