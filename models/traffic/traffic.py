# SPDX-License-Identifier: Apache-2.0
"""What a pattern of traffic is, and with it all that one is written with: its base class and its demand."""

from collections.abc import Callable

from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.sound import unchanged
from flitlab.models.traffic.demand import FIXED, TABLE, UNIFORM, UNIFORM_SELF, Traffic, summed_pairs
from flitlab.models.traffic.sound import sound_traffic

__all__ = [
    "FIXED", "TABLE", "UNIFORM", "UNIFORM_SELF", "Traffic", "TrafficSpec", "refuse_single_host", "summed_pairs",
]  # fmt: skip


class TrafficSpec(Spec):
    """A pattern defines :meth:`demand`; how packets arrive and how long they are is no business of it.

    A pattern that is drawn takes a ``seed`` of its own: replicates share it, and so the ceilings.
    """

    def demand(self, topology: Topology) -> Traffic:
        """What hosts send to whom on a topology.

        Raises :class:`~flitlab.models.registry.SpecError` where the pattern does not exist there.
        """
        raise NotImplementedError

    def build(self, topology: Topology) -> Traffic:
        """The demand on a topology, looked at. Raises ``SpecError``."""
        return self.validated(self.demand, topology)

    def validated(self, give: Callable[[Topology], Traffic], topology: Topology) -> Traffic:
        """What a method of the pattern gives: a demand of these hosts (see :mod:`flitlab.models.traffic.sound`)."""
        with unchanged(topology, give):
            given = give(topology)
        return sound_traffic(topology, given, copy=is_third_party(self), by=give.__name__)


def refuse_single_host(topology: Topology) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` where there is nobody to send to."""
    if topology.hosts < 2:
        raise SpecError(f"needs two hosts or more; the topology has {topology.hosts}", key="kind")
