# SPDX-License-Identifier: Apache-2.0
"""Background traffic, which does not scale with the load."""

from dataclasses import replace
from typing import Any

from flitlab.models.registry import SpecError, nested
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from flitlab.models.traffic.validation import ROUNDING


def with_background(traffic: Traffic, background: dict[str, Any]) -> Traffic:
    """Return traffic that also has a background pattern, which offers a fixed load while ``traffic`` scales.

    Parameters
    ----------
    traffic: the pattern that scales; it is not changed. A background that it has is replaced.
    background: ``kind`` and parameters of the other pattern, and its fixed ``load``, above 0 and at most 1, in flits
        per tick of a host of rate 1.

    Returns
    -------
    A copy of ``traffic`` on the same topology, whose ``background`` has the rates and weights of the other pattern
    times ``load``.

    Raises
    ------
    SpecError: ``load`` is missing or out of range, the pattern cannot be built, has a background of its own or several
        alternates, or a host would send or receive more than the rate of its channel. ``key`` begins with
        ``background``.
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
