# SPDX-License-Identifier: Apache-2.0
"""One point of a load sweep with a timeline: packets at one load with one seed, epoch by epoch."""

from itertools import pairwise

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.mappings import Row
from flitlab.models.scenario import Scenario
from flitlab.models.timeline.epochs import Timeline
from flitlab.sim.engines.base import Run, Scalar, Snapshot
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.point import FIRST_BATCHES, Measure, class_tables, details
from flitlab.sim.measure.result import EpochTraffic, Result, edges_until, interval
from flitlab.sim.measure.window import Window


def measure_with_timeline(run: Run, scenario: Scenario, load: float, how: Measure) -> Result:
    """Measure a run of packets with a timeline, from its beginning; the window has ``how.ticks`` ticks.

    There is no warm-up unless the configuration gives one, since failing networks have no steady state. Saturation is
    not judged: it is defined for one network.
    """
    timeline = scenario.timeline
    assert timeline is not None
    first = how.warmup or 0
    last, count = first + how.ticks, min(FIRST_BATCHES, how.ticks)
    bounds = [first + how.ticks * i // count for i in range(count + 1)]
    begins = [epoch.tick for epoch in timeline.epochs if epoch.tick < last]
    edges = edges_until(timeline, last)
    scalars: dict[int, Ints] = {}
    snapshots: dict[int, Snapshot] = {}
    for tick in sorted({*bounds, *begins, *edges}):
        run.advance(tick)
        scalars[tick] = run.scalars()
        if tick in (*begins, first, last):
            snapshots[tick] = run.snapshot()
    before, after = snapshots[first], snapshots[last]
    window = Window(scenario, before, after, np.diff([scalars[tick] for tick in bounds], axis=0))
    total, whole = window.total, after.scalars
    row: Row = measured("packets", window)
    row |= {"saturated": None, "saturated_by": "", "deadlocked": False, "warmup_ticks": first, "steady": False}
    row |= {
        "lost_packets": int(total[Scalar.DROPPED_PACKETS]), "lost_flits": int(total[Scalar.DROPPED_FLITS]),
        "packets_under_way": int(
            whole[Scalar.SENT_PACKETS] - whole[Scalar.DELIVERED_PACKETS] - whole[Scalar.DROPPED_PACKETS]
        ),
    }  # fmt: skip
    detail = details(before, after) | class_tables(scenario, before, after)
    detail["throughput_time"] = _time_rows(scenario, timeline, {tick: scalars[tick] for tick in sorted(edges)})
    delivered = after.delivered.minus(before.delivered)
    parts = tuple(
        EpochTraffic(epoch, snapshots[b].delivered.minus(snapshots[a].delivered), snapshots[a].present, float(b - a))
        for epoch, (a, b) in enumerate(pairwise([*begins, last]))
    )
    capacity = timeline.capacity(first, last)
    return Result(row, detail, delivered, before.present, after.tick - before.tick, capacity=capacity, parts=parts)


def _time_rows(scenario: Scenario, timeline: Timeline, scalars: dict[int, Ints]) -> list[Row]:
    """Return the rows of throughput_time.csv.

    scalars: by tick, the scalar counters at the ends of its intervals, int64 [scalars].
    """
    nic = scenario.topology.physical_hosts * scenario.topology.host_capacity
    rows = []
    for start, end in pairwise(scalars):
        moved = scalars[end] - scalars[start]
        received, lost = (
            float(moved[Scalar.DELIVERED_FLITS] / (nic * (end - start))),
            int(moved[Scalar.DROPPED_PACKETS]),
        )
        rows.append(interval(start, end, timeline.tick_ns, received, lost_packets=lost))
    return rows
