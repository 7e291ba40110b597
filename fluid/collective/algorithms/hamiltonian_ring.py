# SPDX-License-Identifier: Apache-2.0
"""Ring algorithm over a Hamiltonian cycle of the network, if there is one."""

from typing import ClassVar

from pydantic import Field

from flitlab.fluid.collective.algorithms.library import rounds, with_algorithm
from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question
from flitlab.models.collective.ring import Ring, find_ring
from flitlab.models.registry import register


@register("algorithm", "hamiltonian_ring")
class HamiltonianRing(AlgorithmSpec):
    """A ring of ranks in the order of a Hamiltonian cycle, or in the order of least channel load that the search finds.

    Where no channel is slower than a host, and the order is a Hamiltonian cycle, no algorithm is faster between hosts.
    ``seed`` is that of the search.

    Example: ``algorithm: hamiltonian_ring``

    Source: Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002.
    """

    collectives: ClassVar[tuple[str, ...]] = with_algorithm("ring")

    seed: int = Field(default=1, ge=0)

    def plan(self, question: Question, once: Once) -> Plan:
        key = ("ring", question.topology.content_hash, self.seed)
        ring: Ring = once(key, lambda: find_ring(question.topology, self.seed))
        notes = {"hamiltonian": ring.hamiltonian, "ring_load": round(ring.load, 6)}
        return Plan(rounds(question, "ring"), ring.order, notes=notes)
