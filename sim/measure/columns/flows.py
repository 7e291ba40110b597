# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv where datagrams in flows are simulated; :mod:`flitlab.sim.measure.datagram` measures them."""

import math
from collections import defaultdict

import numpy as np

from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.spray import Spray
from flitlab.sim.measure.columns.registry import Column, declare, derived
from flitlab.sim.measure.rows import MeasuredPoint

NIC = "fraction of NIC rate"

SIZES = {
    "": "all flows",
    "_small": "flows of up to 100 kB",
    "_medium": "flows of up to 10 MB",
    "_large": "larger flows",
}
"""Suffix of a column's name -> its flows."""

declare(
    Column("flows", "host_throughput", "What a host received, on average.", NIC, "host throughput", summary="of hosts"),
    Column("flows", "throughput_mean", "What a flow received, on average.", NIC, "mean throughput of flows",
           report="throughput_mean", summary="of flows"),
    Column("flows", "throughput_min", "What the flow received that got least.", NIC, "least throughput of a flow",
           report="throughput_min", summary="least flow"),
    Column("flows", "throughput_max", "What the flow received that got most.", NIC, "most throughput of a flow"),
    Column("flows", "jain", "Jain's fairness index of the throughputs of flows.", label="Jain's fairness index",
           report="jain", summary="Jain"),
    Column("flows", "drops", "Packets dropped by full queues, in the window.", summary="drops"),
    Column("flows", "retransmissions", "Packets retransmitted, in the window."),
    Column("flows", "timeouts", "Retransmission timeouts in the window."),
    Column("flows", "subflows", "Subflows of all flows; each has one, unless `transport.subflows` says otherwise."),
    Column("flows", "not_begun", "Subflows that had not begun when the run ended (`transport.start_ms`).",
           report="not_begun"),
    Column("flows", "not_opened", "Subflows that had begun, but whose SYN or its answer was dropped, and that had not "
           "opened when the run ended (`transport.syn_rto_ms`).", report="not_opened"),
    Column("flows", "marks", "Packets that queues marked, each counted once, in the window."),
    Column("flows", "trims", "Packets that a queue trimmed, in the window (spray).", summary="trims"),
    Column("flows", "acks", "Acknowledgements that receivers sent, in the window (spray)."),
    Column("flows", "nacks", "NACKs that receivers sent for trimmed packets, RDMA: for packets out of order, in the "
           "window (spray)."),
    Column("flows", "pulls", "Pulls that receivers sent, also beyond the target of a sender, in the window (spray)."),
    Column("flows", "rtt_ms_mean", "Round trip time that senders saw, on average.", "ms", "mean round trip time"),
    Column("flows", "queue_mean", "Packets in a queue, on average over queues and time.", "packets", "mean queue"),
    Column("flows", "queue_mean_max", "Packets in the queue that was fullest on average.", "packets", "fullest queue"),
    Column("flows", "queue_max", "The most packets that a queue ever held.", "packets", "longest queue"),
    Column("flows", "packets", "Packets received in the window."),
    Column("flows", "packet_hops", "Links that packets went through in the window, added up.", "packets"),
    Column("flows", "ticks", "Length of the window.", "ticks"),
    Column("flows", "seconds", "Length of the window.", "s"),
    Column("flows", "flows", "Finite flows."),
    Column("flows", "flows_complete", "Finite flows that completed."),
)  # fmt: skip

for end, which in SIZES.items():
    if end:
        declare(Column("flows", f"flows{end}", f"Number of {which}."))
    shown = not end
    declare(
        Column("flows", f"fct_ms_mean{end}", f"Mean completion time of {which}.", "ms", "mean completion time",
               summary="completion (ms)" * shown),
        Column("flows", f"fct_ms_p99{end}",
               f"99th percentile of the completion times of {which}, interpolated linearly.", "ms",
               "99 % completion time"),
        Column("flows", f"slowdown_mean{end}", f"Mean slowdown of {which}.", "completion time / uncontended",
               "slowdown", summary="slowdown" * shown),
        Column("flows", f"slowdown_p99{end}", f"99th percentile of the slowdowns of {which}, interpolated linearly.",
               "completion time / uncontended", "99 % slowdown"),
    )  # fmt: skip

declare(
    Column("flows", "fct_ms_max", "Longest completion time of the flows that completed.", "ms",
           "longest completion time", summary="longest (ms)"),
)  # fmt: skip


@derived(Column("flows", "fct_ms_bound", "Least time in which the last of all flows can end, by `mcf`, without "
                "latencies (messages of one size that begin together).", "ms", "least time by mcf"))  # fmt: skip
def fct_ms_bound(point: MeasuredPoint) -> float | None:
    """The time of the concurrent flow, if messages are proportional to the demand and all have arrived."""
    optimum, scenario, row = _optimum(point), point.scenario, point.row
    switching_mode, traffic = scenario.switching, scenario.traffic
    if optimum is None or not isinstance(switching_mode, Spray | Datagram):
        return None
    amounts, sizes = traffic.pairs()[2], switching_mode.sizes
    if switching_mode.poisson or sizes is None or sizes.kind != "fixed" or np.ptp(amounts[amounts > 0]) > 0:
        return None
    if row["flows"] != row["flows_complete"]:
        return None
    bits = 8 * row["flows"] * switching_mode.mean_bytes(sizes.build()) / scenario.topology.hosts  # of a host
    time: float = 1e-3 * bits / (optimum * float(traffic.rate.mean()) * switching_mode.links.nic_mbps)
    return time


declare(
    Column("flows", "fct_receiver_ms_mean", "Mean time until the receiver of a flow had all of it (spray).", "ms",
           "mean completion time at the receiver"),
    Column("flows", "mcf_paths_drawn", "Maximum concurrent flow over the paths that the subflows drew.", NIC),
    Column("flows", "mmf_drawn", "Max-min fair rates over the paths drawn, per host.", NIC, "max-min fair throughput"),
    Column("flows", "mmf_drawn_min", "The least of these rates.", NIC),
    Column("flows", "mmf_drawn_jain", "Jain's fairness index of these rates."),
)  # fmt: skip


@derived(Column("flows", "efficiency", "The least part of its demand that a pair of hosts gets, over the part that "
                "`mcf` gives to every pair: at most 1.", label="efficiency"))  # fmt: skip
def efficiency(point: MeasuredPoint) -> float | None:
    """The least part of a pair, which the maximum concurrent flow makes equal for all pairs; long-lived flows."""
    optimum = _optimum(point)
    if optimum is None or not _is_long_lived(point):
        return None
    least = _least_part(point)
    return None if math.isnan(least) else least * point.scenario.topology.host_capacity / optimum


@derived(Column("flows", "host_throughput_mcf", "What a host gets in the maximum concurrent flow, on average.", NIC,
                "throughput of equal rates"))  # fmt: skip
def host_throughput_mcf(point: MeasuredPoint) -> float | None:
    """The mean over hosts, relative to the host channel; ``host_throughput`` of unequal flows may be larger."""
    optimum, scenario = _optimum(point), point.scenario
    if optimum is None or not _is_long_lived(point):
        return None
    return optimum * float(scenario.traffic.rate.mean()) / scenario.topology.host_capacity


declare(Column("flows", "cpu_s", "CPU time of the point, without that of compiling kernels and loading them.", "s"))


def _optimum(point: MeasuredPoint) -> float | None:
    """The upper end of ``mcf``, if it is known and the network is static."""
    if point.scenario.timeline is not None or "host_throughput" not in point.row:
        return None
    return point.ceilings.get("mcf.upper", point.ceilings.get("mcf")) or None


def _is_long_lived(point: MeasuredPoint) -> bool:
    return isinstance(point.scenario.switching, Datagram) and point.scenario.switching.long_lived


def _least_part(point: MeasuredPoint) -> float:
    """The least throughput of a pair, in host channels, over its demand at load 1; NaN without flows."""
    received: dict[tuple[int, int], float] = defaultdict(float)
    for flow in point.detail.get("flows", ()):
        if flow["subflow"] == "":
            received[flow["source"], flow["target"]] += flow["throughput"]
    pairs = zip(*(part.tolist() for part in point.scenario.traffic.pairs()), strict=True)
    parts = (received[source, target] / demand for source, target, demand in pairs if demand > 0)
    return min(parts, default=math.nan) if received else math.nan
