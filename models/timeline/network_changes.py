# SPDX-License-Identifier: Apache-2.0
"""Changes of a network tick by tick, in the numbers of the whole network, as engines apply them."""

from dataclasses import dataclass

from flitlab.models.arrays import Bools, Floats
from flitlab.models.routing.routes import Routes, VcPolicy
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.timeline.renumbering import renumbered_routes


@dataclass(frozen=True, eq=False)
class NetworkChange:
    """The state of the network from a tick on.

    works: bool [channels], whether each channel works. rate: float64 [channels], share of its capacity that it has
    while it works. switches: bool [switches], whether each works. routes: the routes that the routing installs at this
    tick, with the switches and ports of the whole network; None without a reroute. policy: the VC policy in force.
    """

    tick: int
    works: Bools
    rate: Floats
    switches: Bools
    routes: Routes | None
    policy: int = VcPolicy.ANY


def network_changes(timeline: Timeline | None, whole: Routes) -> tuple[NetworkChange, ...]:
    """Return the ticks at which the network or its routing changes, in ascending order.

    Parameters
    ----------
    timeline: None without events.
    whole: the routes of the network as built.

    Raises
    ------
    SpecError: :func:`~flitlab.models.timeline.renumbering.renumbered_routes` does not support the routes.
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
