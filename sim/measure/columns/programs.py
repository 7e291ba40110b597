# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv where programs run; :mod:`flitlab.sim.measure.executed` measures them."""

from typing import Any

import numpy as np

from flitlab.models.application.messages import total_flits
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.sim.measure.columns.registry import Column, Derive, declare, derived
from flitlab.sim.measure.rows import MeasuredPoint

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
)  # fmt: skip


def _makespan(point: MeasuredPoint) -> float | None:
    """The lower bound on the time of a program; None if the program did not end."""
    return None if point.row.get("makespan_ns") is None else point.ceilings.get("makespan")


@derived(Column("programs", "bound_ns", "The lower bound on `makespan_ns`.", "ns", "lower bound", True,
                "lower bound (ms)", scale=MS))  # fmt: skip
def bound_ns(point: MeasuredPoint) -> float | None:
    """The ceiling ``makespan``."""
    return _makespan(point)


@derived(Column("programs", "efficiency", "Bound over makespan.", "", "bound / time", True, "bound / simulated",
                "bound"))  # fmt: skip
def efficiency(point: MeasuredPoint) -> float | None:
    """The bound over the makespan; 1 for an empty program."""
    bound, makespan = _makespan(point), point.row.get("makespan_ns")
    return None if bound is None else bound / makespan if makespan else 1.0


@derived(Column("programs", "bound_by", "Which of the bounds it is.", lead=True))
def bound_by(point: MeasuredPoint) -> str | None:
    """The greatest of the bounds of which ``makespan`` is the maximum."""
    if _makespan(point) is None:
        return None
    bounds = ("volume", "path", "processor", "phases")
    return max(bounds, key=lambda name: point.ceilings.get(f"makespan:{name}") or 0.0)


declare(
    Column("programs", "job_slowdown_mean", "Of several jobs: the mean of their slowdowns.", label="slowdown of jobs",
           lead=True, report="slowdown of jobs, mean"),
    Column("programs", "job_slowdown_max", "The greatest of them.", label="greatest slowdown of a job", lead=True,
           report="greatest"),
    Column("programs", "iterations_simulated", "Iterations of the program's loop that were simulated.", lead=True),
    Column("programs", "iterations_total", "Iterations that the program has.", lead=True),
    Column("programs", "iteration_ns", "The time of an iteration that was not simulated.", "ns", lead=True),
    Column("programs", "extrapolated_from", "The iterations whose time that is.", lead=True, text=True),
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
        Column("programs", f"{begin}latency_ns_p99",
               f"99th percentile of the latencies of {of}, interpolated linearly.", "ns",
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


def _time_at(ceiling: str) -> Derive:
    """A lower bound on the time of a program: that of all its bytes at the load of a ceiling."""

    def derive(point: MeasuredPoint) -> float | None:
        theta = point.ceilings.get(ceiling)
        if point.row.get("makespan_ns") is None or not theta:
            return None
        return _busiest_ns(point.scenario) / theta

    return derive


def _busiest_ns(scenario: Scenario[Any, Workload]) -> float:
    """Nanoseconds that the busiest host channel takes for all bytes of a program."""
    program, host, messages = scenario.work.program, scenario.work.host, scenario.work.messages
    send = np.flatnonzero(program.kind == Op.SEND)
    src_host, dst_host = host[program.rank[send]], host[program.peer[send]]
    remote = src_host != dst_host
    flits = total_flits(program.amount[send][remote], messages)
    most = max(float(np.bincount(ends[remote], flits).max(initial=0.0)) for ends in (src_host, dst_host))
    mode = scenario.switching
    time: float = most * mode.weight(messages) * float(messages.tick_ns) * mode.flits_per_tick(scenario.topology)
    return time


for name, ceiling in (("mcf", "mcf.upper"), ("mcf_paths", "mcf_paths"), ("split", "split")):
    derived(Column("programs", f"{name}_ns", f"If `{name}` is configured: the time that all bytes take at that load, "
                   "all at once.", "ns"))(_time_at(ceiling))  # fmt: skip
