# SPDX-License-Identifier: Apache-2.0
"""What points of modes datagram and spray share: the window, traffic by host, columns of throughput and completion."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.fairness import jain
from flitlab.models.mappings import Row
from flitlab.models.pairs import PairCounts
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.transport.fabric import SpraySession
from flitlab.models.transport.queues import fastest_capacity
from flitlab.models.transport.session import Session
from flitlab.sim.engines.base import Flows
from flitlab.sim.measure.result import EpochTraffic

SIZE_CLASSES = {"small": 100_000, "medium": 10_000_000, "large": float("inf")}
"""Name -> bytes of the largest flow; customary bounds."""


class Window(NamedTuple):
    """The measured window of a run of flows.

    window: from and to, in seconds; the run ends with it.
    """

    window: tuple[float, float]


def traffic_of(session: Session | SpraySession, sent: Ints) -> Flows:
    """Return the traffic of the flows of a session by source and destination.

    sent: int64 [flows], bytes.
    """
    topology, source, target = session.topology, session.flows.source, session.flows.destination
    pair = topology.host_switch[source] * topology.switches + topology.ejection_switch[target]
    sources, targets = (np.bincount(hosts, sent, topology.hosts).astype(np.int64) for hosts in (source, target))
    return Flows(PairCounts.of(topology.switches, pair, sent), sources, targets)


def epoch_traffic(
    session: Session | SpraySession, timeline: Timeline, end: int, between: Callable[[int, int], tuple[Ints, Ints]]
) -> tuple[EpochTraffic, ...]:  # fmt: skip
    """Return the traffic delivered in each epoch that began before a tick.

    between: from the first tick of an epoch to the end of it -> bytes delivered, and bytes in flight at its start,
    int64 [flows] each.
    """
    epochs, fastest = [], fastest_capacity(session.topology)
    ticks = [epoch.tick for epoch in timeline.epochs if epoch.tick < end]
    for epoch, (start, until) in enumerate(pairwise([*ticks, end])):
        delivered, present = (traffic_of(session, sent) for sent in between(start, until))
        epochs.append(EpochTraffic(epoch, delivered, present, (until - start) / fastest))
    return tuple(epochs)


def transport_rows(
    session: Session | SpraySession, received: Ints, throughput: Floats, times: tuple[Floats, Floats],
    counted: dict[str, Ints],
) -> list[Row]:  # fmt: skip
    """Return rows of transports.csv: throughput of the flows of each transport, and their completion times.

    Parameters
    ----------
    session : Datagram or spray session
        With ``names`` of transports, and ``kind``, the transport of each flow.
    received : int64 [flows]
        Bytes in the window.
    throughput : float64 [flows]
        In the window, as a fraction of the NIC rate.
    times : pair of float64 [flows]
        Completion times in ticks, and slowdowns; NaN if incomplete.
    counted : dict of int64 [flows]
        Further columns, summed.
    """
    rows, milliseconds = [], float(session.tick_s) * 1e3
    for number, name in enumerate(session.names):
        mine = session.flows.kinds == number
        took, slowdown = (values[mine] for values in times)
        complete = ~np.isnan(took)
        rows.append({
            "transport": name, "flows": int(mine.sum()), "flows_complete": int(complete.sum()),
            "throughput_mean": float(throughput[mine].mean()) if mine.any() else float("nan"),
            "share": float(received[mine].sum() / max(received.sum(), 1)),
            **_of_complete("fct_ms", took[complete] * milliseconds), **_of_complete("slowdown", slowdown[complete]),
            **{name: int(values[mine].sum()) for name, values in counted.items()},
        })  # fmt: skip
    return rows


def _of_complete(name: str, values: Floats) -> dict[str, float]:
    """Mean and largest of some values; NaN if there are none."""
    if not len(values):
        return {f"{name}_mean": float("nan"), f"{name}_max": float("nan")}
    return {f"{name}_mean": float(values.mean()), f"{name}_max": float(values.max())}


def throughput_columns(throughput: Floats, host_throughput: Floats) -> dict[str, float]:
    """Return columns of throughput as fractions of the NIC rate, of flows (float64 [flows]) and of a host."""
    return {
        "host_throughput": float(host_throughput),
        "throughput_mean": float(throughput.mean()),
        "throughput_min": float(throughput.min()),
        "throughput_max": float(throughput.max()),
        "jain": jain(throughput),
    }


def completion(size: Ints, fct_ms: Floats, slowdown: Floats) -> Row:
    """Return columns of completion times and slowdowns, of all flows and by size class.

    size: int64 [flows], bytes. fct_ms, slowdown: float64 [flows], NaN for incomplete flows.
    """
    complete = ~np.isnan(fct_ms)
    row: Row = {"flows": len(size), "flows_complete": int(complete.sum())}
    classes, lower = [("", np.ones(len(size), bool))], 0.0
    for name, upper in SIZE_CLASSES.items():
        classes.append((f"_{name}", (size > lower) & (size <= upper)))
        lower = upper
    for name, members in classes:
        some = members & complete
        if name:
            row[f"flows{name}"] = int(members.sum())
        for column, values in (("fct_ms", fct_ms), ("slowdown", slowdown)):
            chosen = values[some]
            row[f"{column}_mean{name}"] = float(chosen.mean()) if len(chosen) else float("nan")
            row[f"{column}_p99{name}"] = float(np.percentile(chosen, 99)) if len(chosen) else float("nan")
    row["fct_ms_max"] = float(fct_ms[complete].max()) if complete.any() else float("nan")
    return row
