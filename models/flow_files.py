# SPDX-License-Identifier: Apache-2.0
"""Files of flows of other simulators: of ns-3 programs that follow HPCC, and htsim's connections (``.cm``)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from flitlab.models.delimited import is_digits, number_of
from flitlab.models.readable import Text
from flitlab.models.registry import SpecError, warn

NS3_SIGN = re.compile(
    r"\A\s*\d{1,9}[ \t]*\r?\n\s*\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+(\.\d*)?(e[+-]?\d+)?[ \t]*\r?(\n|\Z)",
    re.ASCII,
)
"""The beginning of a file of flows of ns-3: the number of flows, and a first flow."""

OPTIONS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio")
"""Options of a connection with a value."""

ADDON = "addon"
"""The option without a value: a trigger adds bytes to the connection."""

_CONNECTION = re.compile(r"([0-9]{1,18})->([0-9]{1,18})(?:\s+(.*))?")


class Ns3Flow(NamedTuple):
    """A flow. line: of the file. source, target: numbers of nodes. size: bytes. start: ps after the first flow."""

    line: int
    source: int
    target: int
    size: int
    start: int


def ns3_flows(path: Path | Text, content: str) -> Iterator[Ns3Flow]:
    """Read lines ``source target priority port bytes start``, starts in seconds, after a line with their number.

    Lines behind this number are not read, as in ns-3, and priorities of flows neither; both with a warning.

    Parameters
    ----------
    path: for messages.
    content: of a file with this :data:`NS3_SIGN`.

    Raises
    ------
    SpecError: with file and line.

    Source: simulation/scripts/traffic_gen/README.md of github.com/alibaba-edu/High-Precision-Congestion-Control.
    """
    numbered = [(number, line.split()) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    count, lines = int(numbered[0][1][0]), numbered[1:]
    if len(lines) < count:
        raise SpecError(f"{path}:{numbered[-1][0]}: {len(lines)} flows where {count} are announced", key="path")
    if len(lines) > count:
        warn(f"{path}:{lines[count][0]}: what follows the announced number of flows ({count}) is not read", "path")
    starts, priorities = [], set()
    for number, words in lines[:count]:
        try:
            if len(words) != 6 or not all(map(is_digits, words[:5])):
                raise ValueError
            number_of(words[5])
            start = Decimal(words[5])
            if not 0 <= start < 10**6:
                raise ValueError
        except (ValueError, InvalidOperation):
            text = " ".join(words)[:40]
            raise SpecError(
                f"{path}:{number}: {text!r} where source, target, priority, port, bytes and start (s) are expected",
                key="path",
            ) from None
        starts.append(int(start * 10**12))
        priorities.add(words[2])
    first = min(starts, default=0)
    if first:
        warn(f"{path}: starts count from that of the first flow, {Decimal(first) / 10**12} s", "path")
    if len(priorities) > 1:
        warn(f"{path}: the priorities of flows, {', '.join(sorted(priorities))}, are not read", "path")
    for (number, words), start_ps in zip(lines, starts, strict=False):
        yield Ns3Flow(number, int(words[0]), int(words[1]), int(words[4]), start_ps - first)


@dataclass(frozen=True)
class ConnectionLine:
    """A line ``source->target option value ...``. options: values by name; ``addon`` has none, ''."""

    source: str
    target: str
    options: dict[str, str]


def connection_line(line: str) -> ConnectionLine | None:
    """Read the line of a connection; None for lines of other kinds.

    Raises
    ------
    ValueError: an option is unknown, is there twice, or has no value.

    Source: sim/datacenter/connection_matrix.cpp of github.com/Broadcom/csg-htsim.
    """
    match = _CONNECTION.fullmatch(line)
    if match is None:
        return None
    options: dict[str, str] = {}
    words = iter((match[3] or "").split())
    for name in words:
        if name not in (*OPTIONS, ADDON):
            raise ValueError(f"unknown {name!r}; choices: {', '.join(OPTIONS)}, {ADDON}")
        if name in options:
            raise ValueError(f"{name} is there twice")
        value = "" if name == ADDON else next(words, None)
        if value is None:
            raise ValueError(f"{name} has no value")
        options[name] = value
    return ConnectionLine(match[1], match[2], options)
