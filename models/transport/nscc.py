# SPDX-License-Identifier: Apache-2.0
"""Network signalled congestion control of Ultra Ethernet."""

from pydantic import Field

from flitlab.models.registry import register
from flitlab.models.transport.sprayed import SprayedSpec
from flitlab.models.transport.spraying import NSCC, Spraying


@register("transport", "nscc")
class Nscc(SprayedSpec):
    """Network signalled congestion control of Ultra Ethernet: a window that follows marks and queueing delay.

    It widens while packets come early or unmarked, narrows when they are late and marked, and loses each trimmed packet.
    target: queueing delay that it aims at, as a part of the longest round trip of the network; by default 0.75, without
    trimming 1. sleek: senders find out themselves that packets were dropped, for switches that do not trim: by as many
    that came beyond them as 1.5 windows have, or by a probe.

    Example: ``transport: {kind: nscc, paths: 128, spread: bitmap}``

    Source: Ultra Ethernet Specification 1.0, 2025, section 3.6 (congestion management).
    """  # noqa: E501

    target: float | None = Field(default=None, gt=0, le=100)
    sleek: bool = False

    def spraying(self) -> Spraying:
        return self.sprayed(window=NSCC, target=self.target, sleek=self.sleek)
