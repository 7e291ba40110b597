# SPDX-License-Identifier: Apache-2.0
"""What happens to a network as an engine meets it: tick by tick, with the numbers of the whole network."""

from dataclasses import dataclass

from flitlab.models.arrays import Bools, Floats
from flitlab.models.routing.routes import Routes
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.renumbering import renumbered_routes


@dataclass(frozen=True, eq=False)
class NetworkChange:
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


def network_changes(timeline: Timeline | None, whole: Routes) -> tuple[NetworkChange, ...]:
    """The ticks at which something happens, ascending; ``whole`` are the routes of the network as it was built.

    Raises :class:`~flitlab.models.registry.SpecError` for routes that :func:`widened` does not serve.
    """
    if timeline is None:
        return ()
    topology, changes = timeline.topology, []
    for tick in sorted({*(epoch.tick for epoch in timeline.epochs), *timeline.reroutes}):
        current, routes = timeline.epoch_at(tick), None
        if tick == 0 and not current.description:
            continue
        if tick in timeline.reroutes:
            surviving = timeline.surviving(current)
            routes = renumbered_routes(timeline.routes(surviving, whole), surviving, topology)
        changes.append(NetworkChange(tick, current.works(topology), current.rate, current.switches, routes))
    return tuple(changes)
