# SPDX-License-Identifier: Apache-2.0
"""Background traffic, which does not scale with the load."""

from dataclasses import replace
from typing import Any

from flitlab.models.registry import SpecError, nested
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.validation import ROUNDING


def with_background(traffic: Traffic, background: dict[str, Any]) -> Traffic:
    """Add a background pattern of fixed load to a pattern that scales with the load.

    Parameters
    ----------
    traffic: the pattern that scales.
    background: ``kind`` and parameters of the other pattern, and its fixed ``load``, above 0 and at most 1.

    Raises
    ------
    SpecError: the background is invalid; ``key`` begins with ``background``.
    """
    load = background.get("load")
    if load is None:
        raise SpecError("is missing: the fixed load of the background", key="background.load")
    if isinstance(load, bool) or not isinstance(load, int | float) or not 0 < load <= 1:
        raise SpecError("must be a number above 0 and at most 1", key="background.load")
    topology: Topology = traffic.topology
    parameters = {key: value for key, value in background.items() if key != "load"}
    pattern = nested("traffic", parameters, "background", lambda spec: spec.build(topology))
    if pattern.background is not None:
        raise SpecError("has no background of its own", key="background.background")
    if pattern.alternates:
        raise SpecError("must be one demand, not several alternates", key="background")
    if load * max(pattern.rate.max(), pattern.column_sums.max()) > 1 + ROUNDING:
        raise SpecError("exceeds the rate of a host's channel", key="background")
    return replace(traffic, background=replace(pattern, rate=pattern.rate * load, weight=pattern.weight * load))
