# SPDX-License-Identifier: Apache-2.0
"""Traffic of a recorded trace."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from flitlab.models.arrays import LARGEST_INTEGER, OUT_OF_RANGE, is_in_range
from flitlab.models.delimited import is_digits, number_of
from flitlab.models.mappings import Notes
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names
from flitlab.models.traffic.demand_file import COLUMNS, Columns, open_rows, pair_matrix, read_lines
from flitlab.models.traffic.source import Recorded
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import Traffic, TrafficSpec

IN_US = "start_us"
"""Name of the first column if times are in microseconds instead of ticks."""

SIZES = ("flits", "bytes")
"""Names of the column with the size of a message: the unit of modes that send packets, and of mode spray."""

MESSAGES = Columns({"tick": ("tick", IN_US), **COLUMNS, "flits": SIZES, "class": ("class",), "after": ("after",)}, 3)
"""Columns of a trace."""

DIGITS = len(str(LARGEST_INTEGER))


@register("traffic", "trace")
class Trace(TrafficSpec):
    """The messages of a trace: a table of ``tick,source,destination[,flits[,class[,after]]]``, one line a message.

    Hosts go by their numbers or labels. A header may have the columns in any order; ``start_us`` in place of ``tick``
    says that times are in microseconds.

    **Without loads**, modes vct, wormhole, ideal and deflection follow the trace. Ticks ascend; each line is a packet
    of ``flits`` flits (by default 1), which its host creates at its tick. ``after`` is the number of an earlier line,
    from 0: the packet is created in the tick after the delivery of that one, if this is later. Packets that a host
    creates in the same tick keep the order of the file. The run ends when all packets are delivered, or after
    ``measure.max_ticks`` with status ``limit``; packets.csv has a row per packet. ``repeat`` begins again in the tick
    after the last one, up to ``measure.max_ticks``.

    **With loads**, a simulation draws arrivals at each load, with destinations in the trace's proportions, and does not
    follow its ticks: T[i, j] is in proportion to the flits from host i to host j over the whole trace. Ceilings use
    that matrix, too. ``notes`` has the number of messages and of ticks from first to last, and the load at which the
    pattern offers as much as the trace on average.

    Mode spray follows the trace, unless ``sizes`` are set: each line is a flow of ``bytes`` bytes from its tick on. A
    header may name the fourth column ``bytes`` then; modes that follow packets reject that, and mode spray ``flits``.

    Example: ``traffic: {kind: trace, path: messages.csv}``
    """

    path: Path
    """The file."""
    repeat: bool = False
    """Whether the trace begins again at its end."""

    def demand(self, topology: Topology) -> Traffic:
        start, source, target, amount, after, classes, lines = [], [], [], [], [], [], []
        header, names = self._header(), host_names(topology)
        in_us = IN_US in header
        for where, (tick, src, dst, flits, group, follows) in read_lines(self.path, MESSAGES, open_rows(self.path)):
            start.append(self._time(tick, where) if in_us else self._whole(tick, where))
            amount.append(self._whole(flits or "1", where))
            source.append(names.number(src, "path", where))
            target.append(names.number(dst, "path", where))
            after.append(self._whole(follows, where) if follows else -1)
            classes.append(group)
            lines.append(int(where[len(str(self.path)) + 1 :].partition(":")[0]))
        if not sum(amount):
            raise SpecError("no message in it", key="path")
        demand = pair_matrix(source, target, [float(size) for size in amount], topology.hosts)
        notes = {"messages": len(start)} | ({} if in_us else self._span(start, demand))
        times = tuple(sorted({Fraction(time) for time in start}))
        index_of = {time: i for i, time in enumerate(times)}
        when = np.array([index_of[Fraction(time)] for time in start], np.int64)
        src_host, dst_host, size, awaited, line = (
            np.array(column, np.int64) for column in (source, target, amount, after, lines)
        )
        recorded = Recorded(
            times, in_us, when, src_host, dst_host, size, awaited, tuple(classes) if any(classes) else (), self.repeat,
            str(self.path), line, size_unit=next((unit for unit in SIZES if unit in header), ""),
        )  # fmt: skip
        return table_traffic(self.kind, topology, demand, notes=notes, recorded=recorded)

    def _header(self) -> list[str]:
        """Return the names of the columns, in lower case; of a file without a header, nothing that is one."""
        _, first = next(open_rows(self.path), (0, []))
        return [name.lower() for name in first]

    def _span(self, ticks: list[Fraction | int], demand: Any) -> Notes:
        span = int(max(ticks) - min(ticks)) + 1
        busiest = float(max(demand.sum(axis=0).max(), demand.sum(axis=1).max()))
        return {"ticks": span, "mean_load": busiest / span}

    def _time(self, cell: str, where: str) -> Fraction:
        try:
            number_of(cell)
            within = is_in_range(cell)  # before it becomes a fraction, which takes long for a large exponent
            time = Fraction(cell.strip()) if within else Fraction(0)
        except ValueError:
            within, time = True, Fraction(-1)
        if not within or time < 0:
            problem = "is not a number, 0 or more" if within else OUT_OF_RANGE
            raise SpecError(f"{where}: {cell.strip()!r} {problem}", key="path")
        return time

    def _whole(self, cell: str, where: str) -> int:
        text = cell.strip()
        if text.isdecimal() and (len(text) > DIGITS or int(text) > LARGEST_INTEGER):
            raise SpecError(f"{where}: {text[:DIGITS]!r} ... does not fit into 64 bits", key="path")
        if not is_digits(text):
            raise SpecError(f"{where}: {text!r} is not a whole number, 0 or more", key="path")
        return int(text)
