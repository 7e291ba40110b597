# SPDX-License-Identifier: Apache-2.0
"""Mode flow, compiled.

A run proceeds from one instant with an event to the next (``run``). Where messages start or end, the max-min fair rates
that this affects are updated (``sharing``), and with them the ends of transmissions; a ``tournament`` finds the next
one. ``state`` grows with the messages in flight.
"""

from flitlab.sim.engines.compiled.flow.run import FlowRun

__all__ = ["FlowRun"]
