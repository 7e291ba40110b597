# SPDX-License-Identifier: Apache-2.0
"""Receiver credit congestion control of Ultra Ethernet, alone and beside NSCC."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.transport.nscc import Nscc
from flitlab.models.transport.sprayed import SprayedSpec
from flitlab.models.transport.spraying import NSCC, RCCC, Spraying


@register("transport", "rccc")
class Rccc(SprayedSpec):
    """Receiver credit congestion control of Ultra Ethernet: receivers grant senders what they may send.

    After a first window nothing is sent without credit, which each receiver grants its senders round robin, at 0.99 of
    its rate. oversubscription: of the network, below which receivers grant less while packets are trimmed before their
    last hop; by default computed from the topology, and 1 means that they do not.

    Example: ``transport: {kind: rccc, paths: 64, spread: reps}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """

    oversubscription: float | None = Field(default=None, ge=1, le=1e6)

    def spraying(self) -> Spraying:
        return self.sprayed(credit=RCCC, oversubscription=self.oversubscription)


@register("transport", "nscc_rccc")
class Both(Nscc):
    """Both congestion controls of Ultra Ethernet: a sender needs window space and receiver credit.

    Queues towards hosts do not mark, as credit limits them. target: as of ``nscc``.

    Example: ``transport: {kind: nscc_rccc}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """

    def spraying(self) -> Spraying:
        return self.sprayed(window=NSCC, credit=RCCC, target=self.target)
