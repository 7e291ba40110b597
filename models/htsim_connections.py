# SPDX-License-Identifier: Apache-2.0
"""Lines of htsim's connection matrices (``.cm``)."""

import re
from dataclasses import dataclass

OPTIONS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio")
"""Options of a connection with a value."""

ADDON = "addon"
"""The option without a value: a trigger adds bytes to the connection."""

_CONNECTION = re.compile(r"([0-9]{1,18})->([0-9]{1,18})(?:\s+(.*))?")


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
