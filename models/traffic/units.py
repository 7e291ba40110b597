# SPDX-License-Identifier: Apache-2.0
"""Groups of hosts for patterns between switches, whatever the number of hosts of each switch."""

from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt
from scipy import sparse

from flitlab.models.arrays import Ints
from flitlab.models.registry import SpecError
from flitlab.models.topology.graph import Topology

MAX_UNITS = 16_384
"""Most units of a pattern with a matrix over all pairs of them: two gigabytes."""


@dataclass(frozen=True, eq=False)
class Units:
    """Groups of ``size`` consecutive hosts of one switch, the greatest common divisor of all host counts.

    Where all switches with hosts have equally many, each is one unit. switch: int64 [units].
    """

    topology: Topology
    size: int
    switch: Ints

    @classmethod
    def of(cls, topology: Topology) -> "Units":
        """Divide the hosts of a topology into units. Raises ``SpecError`` if there are fewer than two units."""
        topology.require_one_switch("pairs switches by their distances or load", "kind")
        size = gcd(*topology.host_count.tolist())
        switch = topology.host_switch[:: max(size, 1)]
        if len(switch) < 2:
            raise SpecError("needs hosts at two switches or more", key="kind")
        return cls(topology, size, switch)

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.switch)

    def validate_size(self) -> None:
        """Raise ``SpecError`` where a matrix over all pairs would not fit in memory."""
        if self.count > MAX_UNITS:
            raise SpecError(
                f"{self.count} groups of {self.size} hosts to pair; at most {MAX_UNITS} (equal numbers of hosts at all "
                "switches make one group a switch)", key="kind",
            )  # fmt: skip

    def hosts_of(self, target: Ints) -> Ints:
        """Return the destination of each host: host k of unit u sends to host k of unit ``target[u]``.

        Parameters
        ----------
        target: int64 [units].

        Returns
        -------
        int64 [hosts].
        """
        return (target[:, None] * self.size + np.arange(self.size)).ravel()

    def host_matrix(self, demand: npt.ArrayLike | sparse.sparray) -> sparse.csr_array:
        """Convert demand between units to demand between hosts; the k-th hosts of both units form a pair.

        Parameters
        ----------
        demand: float64 [units, units], per host, dense or sparse.

        Returns
        -------
        float64 [hosts, hosts].
        """
        return sparse.csr_array(sparse.kron(sparse.csr_array(demand), sparse.eye_array(self.size), format="csr"))
