# SPDX-License-Identifier: Apache-2.0
"""The base class of traffic patterns, and what they are written with."""

from collections.abc import Callable

from flitlab.models.registry import Spec, SpecError, is_third_party
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import unchanged
from flitlab.models.traffic.demand import DestinationRule, Traffic, TrafficClass, summed_pairs
from flitlab.models.traffic.validation import validate_traffic

__all__ = [
    "DestinationRule", "Traffic", "TrafficClass", "TrafficSpec", "require_two_hosts", "summed_pairs",
]  # fmt: skip


class TrafficSpec(Spec):
    """A pattern defines :meth:`demand`; arrival processes and packet lengths are independent of it.

    A random pattern has its own ``seed``: replicates share it, and so do their ceilings.
    """

    def demand(self, topology: Topology) -> Traffic:
        """Return the demand of hosts on a topology.

        Raises :class:`~flitlab.models.registry.SpecError` where the pattern does not exist there.
        """
        raise NotImplementedError

    def build(self, topology: Topology) -> Traffic:
        """Build and validate the demand on a topology. Raises ``SpecError``."""
        return self.validated(self.demand, topology)

    def validated(self, method: Callable[[Topology], Traffic], topology: Topology) -> Traffic:
        """Return the demand of a method of the pattern, validated (see :mod:`flitlab.models.traffic.validation`)."""
        with unchanged(topology, method):
            traffic = method(topology)
        return validate_traffic(topology, traffic, copy=is_third_party(self), method=method.__name__)


def require_two_hosts(topology: Topology) -> None:
    """Raise :class:`~flitlab.models.registry.SpecError` if a topology has fewer than two hosts."""
    if topology.hosts < 2:
        raise SpecError(f"needs two hosts or more; the topology has {topology.hosts}", key="kind")
