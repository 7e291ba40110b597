# SPDX-License-Identifier: Apache-2.0
"""A constant congestion window."""

from flitlab.models.registry import register
from flitlab.models.transport.sprayed import SprayedSpec
from flitlab.models.transport.spraying import CONSTANT, Spraying


@register("transport", "constant")
class Constant(SprayedSpec):
    """A constant congestion window, whatever is marked or trimmed.

    Example: ``transport: {kind: constant, init_window: 40}``

    Source: the constant window of the Ultra Ethernet simulator, which runs it as a baseline.
    """

    def spraying(self) -> Spraying:
        return self.sprayed(window=CONSTANT)
