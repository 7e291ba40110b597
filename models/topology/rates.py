# SPDX-License-Identifier: Apache-2.0
"""Links with another capacity from the beginning."""

from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import Links, channels_of

_STREAM = 2
"""Random stream, different from those of :mod:`flitlab.models.topology.failures`: the draws are independent."""


class CapacityOf(BaseModel):
    """Links with another capacity: ``capacity_of: {links: [[0, 8]], factor: 0.1}``.

    ``links`` are pairs of switches (their numbers or labels), a share below 1 of all links, or their number, drawn from
    ``seed``. The capacity of their channels is multiplied by ``factor``, in both directions; with ``directed`` only
    from the first switch to the second (of drawn links: from the lower one). A pair means all its parallel links.
    Switches have the numbers of the network as built; :class:`~flitlab.models.topology.failures.Failures` come after
    that, so that a slow link may fail.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    links: Links
    """Pairs of switches; or a share or number of links, drawn from ``seed``."""
    factor: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Factor of their capacity."""
    directed: bool = False
    """Only from the first switch to the second."""
    seed: int = Field(default=1, ge=0)
    """Seed of the draw."""

    def apply_to(self, topology: Topology) -> Topology:
        """Return the topology with these capacities; ``notes["capacity_of"]`` has the number of channels and the
        factor.

        Raises :class:`~flitlab.models.registry.SpecError` (key: capacity_of.links) for links that do not exist.
        """
        of = channels_of(topology, self.links, [self.seed, _STREAM], "capacity_of.links", self.directed)
        capacity = topology.capacity.copy()
        capacity[of] *= self.factor
        notes = {**topology.notes, "capacity_of": {"channels": len(of), "factor": self.factor}}
        return replace(topology, capacity=capacity, notes=notes)
