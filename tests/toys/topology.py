"""A topology of a user's own: all that it takes stands in this file."""

import numpy as np
from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec


@register("topology", "ladder")
class Ladder(TopologySpec):
    """Two paths of switches, and a rung between each two that stand opposite.

    Example: ``topology: {kind: ladder, rungs: 3}``

    Source: Hosoya and Harary, On the matching properties of three fence graphs, 1993.
    """

    rungs: int = Field(ge=2, le=10_000)

    def graph(self) -> Topology:
        left = 2 * np.arange(self.rungs)
        rails = [np.column_stack([side[:-1], side[1:]]) for side in (left, left + 1)]
        rungs = np.column_stack([left, left + 1])
        return Topology.from_links(self.kind, 2 * self.rungs, np.concatenate([*rails, rungs]))
