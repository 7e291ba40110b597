# SPDX-License-Identifier: Apache-2.0
"""Several transports in one run."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import Field

from flitlab.models.mappings import Keys
from flitlab.models.registry import SpecError, nested, register
from flitlab.models.transport.law import Transport, TransportSpec
from flitlab.models.transport.spraying import Spraying

T = TypeVar("T")


@register("transport", "several")
class Several(TransportSpec):
    """Several transports side by side, which share every link and queue.

    ``of`` lists them. Every pair of hosts that talks, and every message of a trace, has as many flows of each as its
    ``flows`` says, by default one; of flows that arrive at random each has a transport drawn in that proportion. Not
    for programs.

    In mode datagram all have a congestion control, and the same ``ack_path`` and ``ack_bytes``; queues mark all packets
    above the ``mark_packets`` of ``dctcp``.

    In mode spray receivers grant credit in one way: of ``rccc``, ``nscc_rccc`` and ``ndp`` only one is in the list.
    Queues towards hosts mark unless all have credit.

    Example: ``transport: {kind: several, of: [{kind: nscc, paths: 64}, {kind: dctcp, paths: 1}]}``

    Source: the question of fairness between transports, as of RFC 5033, section 3, and Ultra Ethernet Specification
    1.0, 2025, section 3.6, whose two congestion controls may share a network.
    """

    of: Annotated[list[Keys], Field(min_length=2, max_length=16)]
    """The transports."""

    @property
    def specs(self) -> list[TransportSpec]:
        """The listed transports. Raises ``SpecError`` whose key leads into ``of``."""
        specs = []
        for index, keys in enumerate(self.of):
            if keys.get("kind") == self.kind:
                raise SpecError("may not be several again: list the transports in one", key=f"of.{index}.kind")
            specs.append(nested("transport", keys, f"of.{index}", lambda spec: spec))
        return specs

    def transports(self) -> dict[str, Transport]:
        return self._each(lambda spec: spec.build())

    def sprayings(self) -> dict[str, Spraying]:
        if self.priority_class is not None:
            raise SpecError("several transports have a class each: give it in of", key="priority_class")
        return self._each(lambda spec: spec.classified())

    def _each(self, build: Callable[[TransportSpec], T]) -> dict[str, T]:
        """What each transport makes, by name. Raises ``SpecError`` whose key is its place in ``of``."""
        specs = self.specs
        kinds, built = [spec.kind for spec in specs], {}
        for index, spec in enumerate(specs):
            name = spec.kind if kinds.count(spec.kind) == 1 else f"{spec.kind} {kinds[: index + 1].count(spec.kind)}"
            try:
                built[name] = build(spec)
            except SpecError as error:
                error.key = f"of.{index}"
                raise
        return built
