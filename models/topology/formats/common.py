# SPDX-License-Identifier: Apache-2.0
"""What the readers and writers of topology files share."""

import errno
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from flitlab.models.readable import FilePath, Readable, Text
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.limits import MOST

MAX_BYTES = 10**9
"""Files larger than this are not read."""


class FormatError(ValueError):
    """A topology file that cannot be used; the message names the file and the line."""

    def __init__(self, path: Readable, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


class CannotWriteError(ValueError):
    """A topology that a format cannot describe without making another network of it."""


def text_of(path: Readable) -> str:
    """Content of a file. Raises ``OSError``, or :class:`FormatError` if it is not UTF-8."""
    if isinstance(path, Text):
        return path.content
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if path.stat().st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES / 1e9:g} GB", str(path))
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(path, content[: error.start].count(b"\n") + 1, "not UTF-8 text") from None


def write_lines(path: FilePath, lines: list[str]) -> None:
    """Write a text file."""
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


PAIRS = "which channels form a bi-directional link"
"""A feature of a topology, in words."""


def lost(topology: Topology, *kept: str) -> list[str]:
    """Features of a topology that are not among those a format keeps, in words.

    hosts: how many stand where. host_capacity, capacities, delays: where they are not 1, 1 and 0. parallel
    channels: several between the same switches. :data:`PAIRS`: where the list of channels does not tell. grid,
    notes: if there are any.
    """
    ends = topology.src * topology.switches + topology.dst
    features = {
        "hosts": topology.hosts > 0,
        "host_capacity": topology.host_capacity != 1,
        "capacities": bool((topology.capacity != 1).any()),
        "delays": bool(topology.delay.any()),
        "parallel channels": len(np.unique(ends)) < len(ends),
        PAIRS: bool((topology.reverse >= 0).any()),
        "grid": topology.grid is not None,
        "notes": bool(topology.notes),
    }
    return [name for name, present in features.items() if present and name not in kept]


def need_channels(topology: Topology, format: str) -> None:
    """Raise :class:`CannotWriteError` if there is a single switch only."""
    if not topology.channels:
        raise CannotWriteError(f"{format} files hold switches by their channels only; this topology has none")


def need_links(topology: Topology, format: str) -> None:
    """Raise :class:`CannotWriteError` if some channel is uni-directional."""
    if topology.directed:
        raise CannotWriteError(f"{format} files hold bi-directional links only; this topology has uni-directional ones")


class Network:
    """Nodes and channels as a reader finds them."""

    def __init__(self, path: Readable) -> None:
        self.path = path
        self.nodes: dict[str, int] = {}  # label -> order of appearance
        self.ends: list[tuple[int, int]] = []
        self.values: list[tuple[float, int, int]] = []  # capacity, delay, reverse
        self.lines: list[int] = []

    def fail(self, line: int, message: str) -> NoReturn:
        """Refuse the file because of this line."""
        raise FormatError(self.path, line, message)

    def node(self, label: str) -> int:
        """Order of appearance of a node; a new one is added."""
        return self.nodes.setdefault(label, len(self.nodes))

    def channel(self, line: int, tail: str, head: str, capacity: str, delay: str, reverse: str = "-1") -> None:
        """Add a channel, its numbers still text."""
        self.ends.append((self.node(tail), self.node(head)))
        rest = self.whole(line, "delay", delay), self.whole(line, "reverse", reverse, -1)
        self.values.append((self._capacity(line, capacity), *rest))
        self.lines.append(line)

    def link(self, line: int, u: str, v: str, capacity: str = "1", delay: str = "0", back: str | None = None) -> None:
        """Add two channels that are each other's reverse; ``back`` is the second one's delay if it differs."""
        first = len(self.ends)
        self.channel(line, u, v, capacity, delay, str(first + 1))
        self.channel(line, v, u, capacity, delay if back is None else back, str(first))

    def _capacity(self, line: int, text: str) -> float:
        try:
            capacity = float(text)
        except ValueError:
            self.fail(line, f"capacity {text!r} is not a number")
        if not (capacity > 0 and math.isfinite(capacity)):
            self.fail(line, f"capacity {text} must be positive and finite")
        return capacity

    def whole(self, line: int, what: str, text: str, least: int = 0) -> int:
        """An integer of at least ``least``."""
        try:
            value = int(text)
        except ValueError:
            self.fail(line, f"{what} {text!r} is not an integer")
        if value < least:
            self.fail(line, f"{what} {value} must be {least} or more")
        return value

    def topology(self, kind: str, hosts: dict[str, int] | None = None, **notes: Any) -> Topology:
        """The topology; nodes 0 .. n-1 keep their numbers, others are numbered in order (notes: labels).

        hosts: of each node; None if the file does not say.
        """
        if not self.nodes:
            self.fail(1, "no switches")
        n = len(self.nodes)
        numbers = {str(i): i for i in range(n)}
        if self.nodes.keys() != numbers.keys():
            numbers = self.nodes
            notes["labels"] = list(self.nodes)
        order = np.array([numbers[label] for label in self.nodes])
        arcs = order[np.array(self.ends, np.int64).reshape(-1, 2)]
        capacity, delay, reverse = zip(*self.values, strict=True) if self.values else ((), (), ())
        wrong = wrong_reverse(arcs, np.array(reverse, np.int64))
        if wrong is not None:
            self.fail(self.lines[wrong], f"reverse {reverse[wrong]} is not the opposite channel")
        if loops := {self.lines[c] for c in np.flatnonzero(arcs[:, 0] == arcs[:, 1])}:
            notes["self_loops_dropped"] = len(loops)
        topology = Topology.from_channels(kind, n, arcs, reverse, capacity=capacity, delay=delay, notes=notes)
        if hosts is None:
            return topology
        if (total := sum(hosts.values())) > MOST:
            self.fail(1, f"{total} hosts; at most {MOST} are built")
        counts = np.zeros(n, np.int64)
        for label, count in hosts.items():
            counts[numbers[label]] = count
        return topology.with_hosts(counts)


def wrong_reverse(arcs: np.ndarray, reverse: np.ndarray) -> int | None:
    """First channel whose reverse does not exist or does not run back and name it in turn; None if all do."""
    paired = np.flatnonzero(reverse >= 0)
    other = np.minimum(reverse[paired], len(arcs) - 1)
    opposite = (arcs[other] == arcs[paired, ::-1]).all(axis=1)
    good = (other == reverse[paired]) & (reverse[other] == paired) & opposite
    return None if good.all() else int(paired[~good][0])
