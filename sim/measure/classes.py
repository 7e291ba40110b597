# SPDX-License-Identifier: Apache-2.0
"""Rows of classes.csv: latency and throughput of every class of traffic in a window."""

from flitlab.models.arrays import Ints
from flitlab.models.histogram import percentile
from flitlab.models.mappings import JsonObject
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import ClassCounter, Snapshot


def class_tables(scenario: Scenario, before: Snapshot, after: Snapshot) -> JsonObject:
    """Return the rows of classes.csv as ``classes``; {} where all packets are of one class.

    Parameters
    ----------
    scenario: of the run.
    before, after: the bounds of the window.
    """
    if before.classes is None or after.classes is None:
        return {}
    rows, host_ticks = [], (after.tick - before.tick) * scenario.topology.physical_hosts
    for one, counted in zip(scenario.traffic.classes, after.classes - before.classes, strict=True):
        packets, histogram = int(counted[ClassCounter.DELIVERED_PACKETS]), counted[len(ClassCounter) :]
        latency, network = (
            float(counted[column] / packets) if packets else None
            for column in (ClassCounter.LATENCY, ClassCounter.NETWORK_LATENCY)
        )
        rows.append({
            "class": one.name, "priority": one.priority,
            "offered": float(counted[ClassCounter.CREATED_FLITS] / host_ticks),
            "accepted": float(counted[ClassCounter.DELIVERED_FLITS] / host_ticks),
            "latency_mean": latency, "latency_p99": percentile(histogram, 0.99) if packets else None,
            "network_latency_mean": network, "packets": packets,
            **({} if scenario.timeline is None else _lost(counted)),
        })  # fmt: skip
    return {"classes": rows}


def _lost(counted: Ints) -> dict[str, int]:
    """Return the columns of dropped packets; counted: int64 [counters], of a class."""
    dropped = counted[ClassCounter.DROPPED_PACKETS], counted[ClassCounter.DROPPED_FLITS]
    return dict(zip(("lost_packets", "lost_flits"), map(int, dropped), strict=True))
