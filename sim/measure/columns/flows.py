# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv where datagrams in flows are simulated; :mod:`flitlab.sim.measure.datagram` measures them."""

from flitlab.sim.measure.columns.registry import Column, declare

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
    Column("flows", "trims", "Packets that a queue trimmed, in the window (spray)."),
    Column("flows", "acks", "Acknowledgements that receivers sent, in the window (spray)."),
    Column("flows", "nacks", "NACKs that receivers sent for trimmed packets, in the window (spray)."),
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
        Column("flows", f"fct_ms_p99{end}", f"Completion time that 99 % of {which} do not exceed.", "ms",
               "99 % completion time"),
        Column("flows", f"slowdown_mean{end}", f"Mean slowdown of {which}.", "completion time / uncontended",
               "slowdown", summary="slowdown" * shown),
        Column("flows", f"slowdown_p99{end}", f"Slowdown that 99 % of {which} do not exceed.",
               "completion time / uncontended", "99 % slowdown"),
    )  # fmt: skip

declare(
    Column("flows", "fct_ms_max", "Longest completion time of all flows (spray).", "ms", "longest completion time",
           summary="longest (ms)"),
    Column("flows", "fct_ms_bound", "Least time in which the last of all flows can end, by `mcf`, without latencies "
           "(spray, messages of one size that begin together).", "ms", "least time by mcf"),
    Column("flows", "fct_receiver_ms_mean", "Mean time until the receiver of a flow had all of it (spray).", "ms",
           "mean completion time at the receiver"),
    Column("flows", "mcf_paths_drawn", "Maximum concurrent flow over the paths that the subflows drew.", NIC),
    Column("flows", "mmf_drawn", "Max-min fair rates over the paths drawn, per host.", NIC, "max-min fair throughput"),
    Column("flows", "mmf_drawn_min", "The least of these rates.", NIC),
    Column("flows", "mmf_drawn_jain", "Jain's fairness index of these rates."),
    Column("flows", "efficiency", "The least part of its demand that a pair of hosts gets, over the part that `mcf` "
           "gives to every pair: at most 1.", label="efficiency"),
    Column("flows", "host_throughput_mcf", "What a host gets in the maximum concurrent flow, on average.", NIC,
           "throughput of equal rates"),
    Column("flows", "cpu_s", "CPU time of the point, without that of compiling kernels and loading them.", "s"),
)  # fmt: skip
