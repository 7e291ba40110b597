# SPDX-License-Identifier: Apache-2.0
"""Columns of results.csv with lossless queues, of flows and of programs; :mod:`flitlab.sim.measure.pauses` measures
them.
"""

from flitlab.sim.measure.columns.registry import Column, Table, declare

LOSSLESS = "([lossless queues](lossless.md))"

TABLES: tuple[Table, ...] = ("flows", "programs")

for table in TABLES:
    declare(
        Column(table, "pause_frames", "PAUSE frames that input ports, and the host of a storm, sent in the window "
               f"{LOSSLESS}.",
               report="pause_frames", summary="pauses" * (table == "flows")),
        Column(table, "paused_share", "Part of the window for which a channel between switches or a host is paused, on "
               f"average, without outputs towards hosts {LOSSLESS}.", label="paused share"),
        Column(table, "longest_pause_us", "The longest pause of a channel or host, outputs towards hosts included "
               f"{LOSSLESS}.", "us", "longest pause"),
        Column(table, "most_paused", f"The most channels that were paused at the same time, since tick 0 {LOSSLESS}.",
               label="channels paused at once"),
        Column(table, "pause_root", "The queue that [caused](lossless.md#who-caused-a-pause) the longest pauses.",
               report="pause_root", text=True),
        Column(table, "victims", "Flows that were paused and do not use the queue that "
               "[caused](lossless.md#who-caused-a-pause) it, since tick 0. It is not known of programs.",
               report="victims", summary="victims" * (table == "flows")),
        Column(table, "watchdogs", f"Pauses that a watchdog ended, in the window {LOSSLESS}."),
        Column(table, "peak_ingress_bytes", f"The most bytes that were charged to an input port {LOSSLESS}.", "bytes",
               "peak of an input port"),
        Column(table, "deadlocked", "Whether the run ended because packets waited for each other in a cycle "
               f"{LOSSLESS}.", report="deadlocked"),
        Column(table, "deadlock_cycle", f"The cycle of channels, each of which waited for the next {LOSSLESS}.",
               text=True),
        Column(table, "cnps", "Congestion notification packets that receivers sent, in the window (RDMA)."),
    )  # fmt: skip
