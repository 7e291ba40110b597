# SPDX-License-Identifier: Apache-2.0
"""Mode ``flow``, compiled.

A run goes from one instant at which something happens to the next (``run``). Where messages came or went, the rates of
those that this concerns are found anew (``sharing``), and with them when they will have left their sources; a ``heap``
says what comes first. ``state`` is what there is, and grows with the messages under way.
"""

from flitlab.sim.engines.compiled.flow.run import FlowRun

__all__ = ["FlowRun"]
