# SPDX-License-Identifier: Apache-2.0
"""What flows get beside the maximum concurrent flow on the same network: endless ones, and messages sent at once."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.spray import Spray
from flitlab.sim.config.study import Case


def mcf_columns(case: Case, record: Mapping[str, Any], ceilings: Mapping[str, float | None]) -> dict[str, float]:
    """Further columns of a point, if ``mcf`` is known; none where the network changes.

    Of endless flows: the maximum concurrent flow gives every pair of hosts the same part of its demand. ``efficiency``:
    the least part that a pair gets, over that one: at most 1. ``host_throughput_mcf``: what hosts get in it on average,
    as a fraction of the network interface; the mean of unequal flows, ``host_throughput``, may be more.

    Of messages of one size that all begin at once, as many between all pairs that have any: ``fct_ms_bound``, the time
    that the concurrent flow takes for them, without any latency; the last can end no sooner.
    """
    scenario, row = case.scenario, record["row"]
    optimum = ceilings.get("mcf.upper", ceilings.get("mcf"))
    if scenario is None or scenario.timeline is not None or not optimum or "host_throughput" not in row:
        return {}
    if isinstance(scenario.switching, Spray):
        return _least_time(scenario, row, optimum)
    if not isinstance(scenario.switching, Datagram) or not scenario.switching.endless:
        return {}
    nic = scenario.topology.host_capacity
    columns = {"host_throughput_mcf": optimum * float(scenario.traffic.rate.mean()) / nic}
    least = _least_part(case, record)
    return columns if math.isnan(least) else {"efficiency": least * nic / optimum, **columns}


def _least_time(scenario: Scenario, row: Mapping[str, Any], optimum: float) -> dict[str, float]:
    """The column ``fct_ms_bound``, where messages are in proportion to the demand and all have arrived."""
    discipline, traffic = scenario.switching, scenario.traffic
    assert isinstance(discipline, Spray)
    amounts = traffic.pairs()[2]
    alike = discipline.sizes is not None and discipline.sizes.kind == "fixed" and np.ptp(amounts[amounts > 0]) == 0
    if discipline.poisson or not alike or row["flows"] != row["flows_complete"]:
        return {}
    most = optimum * float(traffic.rate.mean()) / scenario.topology.host_capacity
    return {"fct_ms_bound": 1000 * row["seconds"] * row["host_throughput"] / most}


def _least_part(case: Case, record: Mapping[str, Any]) -> float:
    """Of what every pair gets, in network interfaces, over its demand at load 1; NaN without flows."""
    assert case.scenario is not None
    src_host, dst_host, demand = (part.tolist() for part in case.scenario.traffic.pairs())
    received: dict[tuple[int, int], float] = defaultdict(float)
    for flow in record.get("detail", {}).get("flows", ()):
        if flow["subflow"] == "":
            received[flow["source"], flow["target"]] += flow["throughput"]
    pairs = zip(src_host, dst_host, demand, strict=True)
    return (
        min((received[s, t] / amount for s, t, amount in pairs if amount > 0), default=math.nan)
        if received
        else math.nan
    )
