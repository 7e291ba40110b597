"""What endless flows of the datagram discipline get beside the maximum concurrent flow on the same network."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from flitlab.models.switching.datagram import Datagram
from flitlab.sim.config.study import Case


def beside_mcf(case: Case, record: Mapping[str, Any], ceilings: Mapping[str, float | None]) -> dict[str, float]:
    """Further columns of a point, if ``mcf`` is known; none where flows end.

    The maximum concurrent flow gives every pair of hosts the same part of its demand. ``efficiency``: the least part
    that a pair gets, over that one: at most 1. ``host_throughput_mcf``: what hosts get in it on average, as a fraction
    of the network interface; the mean of unequal flows, ``host_throughput``, may be more.
    """
    scenario, row = case.scenario, record["row"]
    optimum = ceilings.get("mcf.upper", ceilings.get("mcf"))
    if scenario is None or not isinstance(scenario.switching, Datagram) or not scenario.switching.endless:
        return {}
    if not optimum or "host_throughput" not in row:
        return {}
    nic = scenario.topology.host_capacity
    found = {"host_throughput_mcf": optimum * float(scenario.traffic.rate.mean()) / nic}
    least = _least_part(case, record)
    return found if math.isnan(least) else {"efficiency": least * nic / optimum, **found}


def _least_part(case: Case, record: Mapping[str, Any]) -> float:
    """Of what every pair gets, in network interfaces, over its demand at load 1; NaN without flows."""
    assert case.scenario is not None
    source, target, demand = (part.tolist() for part in case.scenario.traffic.pairs())
    got: dict[tuple[int, int], float] = defaultdict(float)
    for flow in record.get("detail", {}).get("flows", ()):
        if flow["subflow"] == "":
            got[flow["source"], flow["target"]] += flow["throughput"]
    pairs = zip(source, target, demand, strict=True)
    return min((got[s, t] / amount for s, t, amount in pairs if amount > 0), default=math.nan) if got else math.nan
