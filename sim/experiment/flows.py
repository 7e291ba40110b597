# SPDX-License-Identifier: Apache-2.0
"""The throughput of flows relative to the maximum concurrent flow of the same network."""

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
    """Further columns of a point, if ``mcf`` is known and the network is static.

    Long-lived flows: the maximum concurrent flow gives every pair of hosts the same share of its demand.
    ``efficiency``: the least share of a pair, over that one: at most 1. ``host_throughput_mcf``: mean throughput of
    hosts in it, relative to the host channel; the mean of unequal flows, ``host_throughput``, may be larger.

    Messages of one size that start together, as many for each pair: ``fct_ms_bound``, the time of the concurrent flow
    without latency, a lower bound for the last message.

    Parameters
    ----------
    case: the scenario.
    record: of the point.
    ceilings: of the case, by name.
    """
    scenario, row = case.scenario, record["row"]
    optimum = ceilings.get("mcf.upper", ceilings.get("mcf"))
    if scenario is None or scenario.timeline is not None or not optimum or "host_throughput" not in row:
        return {}
    if isinstance(scenario.switching, Spray):
        return _least_time(scenario, row, optimum)
    if not isinstance(scenario.switching, Datagram) or not scenario.switching.long_lived:
        return {}
    nic = scenario.topology.host_capacity
    columns = {"host_throughput_mcf": optimum * float(scenario.traffic.rate.mean()) / nic}
    least = _least_part(case, record)
    return columns if math.isnan(least) else {"efficiency": least * nic / optimum, **columns}


def _least_time(scenario: Scenario, row: Mapping[str, Any], optimum: float) -> dict[str, float]:
    """The column ``fct_ms_bound``, if messages are proportional to the demand and all have arrived."""
    switching_mode, traffic = scenario.switching, scenario.traffic
    assert isinstance(switching_mode, Spray)
    amounts = traffic.pairs()[2]
    is_uniform = (
        switching_mode.sizes is not None and switching_mode.sizes.kind == "fixed" and np.ptp(amounts[amounts > 0]) == 0
    )
    if switching_mode.poisson or not is_uniform or row["flows"] != row["flows_complete"]:
        return {}
    host_throughput = optimum * float(traffic.rate.mean()) / scenario.topology.host_capacity
    return {"fct_ms_bound": 1000 * row["seconds"] * row["host_throughput"] / host_throughput}


def _least_part(case: Case, record: Mapping[str, Any]) -> float:
    """The least throughput of a pair, in host channels, over its demand at load 1; NaN without flows."""
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
