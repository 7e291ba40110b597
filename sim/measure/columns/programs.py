# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv where programs run; :mod:`flitlab.sim.measure.executed` measures them."""

from flitlab.sim.measure.columns.registry import Column, declare

MS, US = 1e-6, 1e-3
"""Factors from nanoseconds to the units of tables."""

PATH = {"compute": "calculations", "overhead": "sends and receives", "message": "messages in flight",
        "processor": "waiting for a processor", "arrival": "waiting for a job to arrive"}  # fmt: skip
"""Kind of segment of the critical path -> its meaning."""

MESSAGES = {"": "messages", "small_": "messages that fit into a packet", "large_": "messages of several packets"}
"""Prefix of a column's name -> its messages."""

declare(
    Column("programs", "total_ns", "The time of all iterations.", "ns", "time", True, "time (ms)", scale=MS),
    Column("programs", "relative_performance", "`total_ns` of the reference over `total_ns`.", "", "performance", True,
           "relative performance"),
    Column("programs", "makespan_ns", "When the last operation that was simulated was done.", "ns", "simulated time",
           True, "simulated (ms)", scale=MS),
    Column("programs", "bound_ns", "The lower bound on `makespan_ns`.", "ns", "lower bound", True, "lower bound (ms)",
           scale=MS),
    Column("programs", "efficiency", "Bound over makespan.", "", "bound / time", True, "bound / simulated", "bound"),
    Column("programs", "bound_by", "Which of the bounds it is.", lead=True),
    Column("programs", "job_slowdown_mean", "Of several jobs: the mean of their slowdowns.", label="slowdown of jobs",
           lead=True, report="slowdown of jobs, mean"),
    Column("programs", "job_slowdown_max", "The greatest of them.", label="greatest slowdown of a job", lead=True,
           report="greatest"),
    Column("programs", "iterations_simulated", "Iterations of the program's loop that were simulated.", lead=True),
    Column("programs", "iterations_total", "Iterations that the program has.", lead=True),
    Column("programs", "iteration_ns", "The time of an iteration that was not simulated.", "ns", lead=True),
    Column("programs", "extrapolated_from", "The iterations whose time that is.", lead=True),
    Column("programs", "compute_ns", "Calculations, added up over the processors of a rank; mean of all ranks.", "ns",
           "computing", True, "computing (ms)", scale=MS),
    Column("programs", "compute_ns_max", "The same of the rank that calculates longest.", "ns", lead=True),
    Column("programs", "overhead_ns", "The same of sends and receives; mean of all ranks.", "ns", lead=True),
    Column("programs", "wait_ns", "Time in which no processor of a rank did anything, up to the end of the program; "
           "mean of all ranks.", "ns", "waiting", True, "waiting (ms)", scale=MS),
    Column("programs", "wait_ns_max", "The same of the rank that waits longest.", "ns", lead=True),
)  # fmt: skip
for part, spent in PATH.items():
    shown = part if part != "arrival" else ""
    declare(Column("programs", f"path_{part}", f"Part of the critical path that is {spent}; the parts add up to 1.",
                   report=f"path: {'messages' if part == 'message' else part}", summary=shown))  # fmt: skip
declare(
    Column("programs", "ranks", "Ranks of the program."),
    Column("programs", "operations", "Operations of the program."),
    Column("programs", "messages", "Messages that crossed the network."),
    Column("programs", "bytes", "What these messages held.", "bytes"),
)
for begin, of in MESSAGES.items():
    own = not begin
    declare(
        Column("programs", f"{begin}latency_ns_mean", f"Mean latency of {of}, from joining the host's queue to the "
               "last flit at the receiver's; a rendezvous has its handshake in it.", "ns"),
        Column("programs", f"{begin}latency_ns_p50", f"Median latency of {of}.", "ns",
               report="median latency (µs)" * own, scale=US),
        Column("programs", f"{begin}latency_ns_p99", f"Latency that 99 % of {of} do not exceed.", "ns",
               report="99 % latency (µs)" * own, scale=US),
        Column("programs", f"{begin}latency_ns_max", f"The greatest latency of {of}.", "ns"),
    )  # fmt: skip
declare(
    Column("programs", "ticks", "Length of the run.", "ticks"),
    Column("programs", "utilisation_mean", "Use of the channels between switches, mean of all over the run.",
           label="channel utilisation", report="channel use", summary="use"),
    Column("programs", "utilisation_max", "Use of the busiest channel over the run.", report="busiest channel",
           summary="busiest"),
    Column("programs", "utilisation_peak", "Use of all channels in the interval in which they are used most."),
    Column("programs", "cpu_s", "CPU time of the run, without that of compiling kernels and loading them.", "s"),
)  # fmt: skip
for ceiling in ("mcf", "mcf_paths", "split"):
    declare(Column("programs", f"{ceiling}_ns", f"If `{ceiling}` is configured: the time that all bytes take at that "
                   "load, all at once.", "ns"))  # fmt: skip
