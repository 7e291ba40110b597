# SPDX-License-Identifier: Apache-2.0
"""Functions that the readers and writers of topology files share."""

import errno
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from flitlab.models.delimited import is_number, number_of
from flitlab.models.files import replace_file
from flitlab.models.mappings import Notes
from flitlab.models.readable import FilePath, JsonError, Readable, Text, encoding_of, parse_json
from flitlab.models.registry import warn
from flitlab.models.topology.file_delays import LINK_GBPS, OF_HOSTS_NS
from flitlab.models.topology.graph import DELAY, NAMES, Topology
from flitlab.models.topology.limits import MAX_SIZE

MAX_BYTES = 10**9
"""Size limit of files that are read."""


class FormatError(ValueError):
    """A topology file cannot be used; the message names the file and the line."""

    def __init__(self, path: Readable, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


def json_of(path: Readable, text: str) -> Any:
    """Return the value of a JSON text of a file. Raises :class:`FormatError`."""
    try:
        return parse_json(text)
    except JsonError as error:
        raise FormatError(path, error.line, str(error)) from None


class CannotWriteError(ValueError):
    """A format cannot describe a topology without changing the network."""


def text_of(path: Readable) -> str:
    """Read a file. Raises ``OSError``, or :class:`FormatError` if it is neither UTF-8 nor what its XML declares."""
    if isinstance(path, Text):
        return path.content
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if path.stat().st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES / 1e9:g} GB", str(path))
    content = path.read_bytes()
    encoding = encoding_of(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        text = {"utf-8-sig": "UTF-8 text; save the file in this encoding", "utf-16": "UTF-16, as its first bytes say"}
        raise FormatError(path, line, f"not {text.get(encoding, f'{encoding}, as declared')}") from None
    except (LookupError, UnicodeError):
        raise FormatError(path, 1, f"unknown encoding {encoding!r}") from None


def write_lines(path: FilePath, lines: list[str]) -> None:
    """Write a text file. Raises ``OSError``."""
    replace_file(path, "\n".join(lines) + "\n")


PAIRS = "which channels form a bi-directional link"
"""The feature that channels form bi-directional links, in words."""

HOST_DELAYS = "delays of hosts' channels"
"""The feature that hosts' channels have delays of their own, in words."""

HOSTS_NS = "delays of hosts in ns"
"""The feature that the file states these in a unit of time, in words."""

_OF_RATE = {"rate_gbps", "delay_ns"}  # columns that formats with units keep as capacities and delays

BY_DELAY = "routing by delays"
"""The feature that packets are routed by delays by default, in words."""

COLUMNS = "other columns of channels"
"""The feature that a topology has columns, in words."""


def omitted_features(topology: Topology, *kept: str) -> list[str]:
    """Return the features of a topology, in words, that a format does not keep.

    hosts: hosts per switch, also where the topology states that there are none. ejection switches: of hosts that
    inject elsewhere. host_capacity, capacities, delays, :data:`HOST_DELAYS`: where they are not 1, 1, 0 and 0.
    parallel channels: several between the same switches. :data:`PAIRS`: where the list of channels does not imply them.
    :data:`BY_DELAY`: where shortest paths differ from those by hops. grid, subnets, labels (of switches), names of
    hosts, :data:`LINK_GBPS`, :data:`HOSTS_NS`, other notes, :data:`COLUMNS`: if there are any.

    Parameters
    ----------
    topology: the network.
    kept: features that the format keeps.
    """
    ends = topology.src * topology.switches + topology.dst
    features = {
        "hosts": topology.hosts > 0 or topology.hosts_stated,
        "ejection switches": topology.is_multistage,
        "host_capacity": topology.host_capacity != 1,
        "capacities": bool((topology.capacity != 1).any()),
        "delays": bool(topology.delay.any()),
        COLUMNS: bool(topology.columns.keys() - (_OF_RATE if LINK_GBPS in kept else ())),
        HOST_DELAYS: topology.host_delay is not None,
        "parallel channels": len(np.unique(ends)) < len(ends),
        PAIRS: bool((topology.reverse >= 0).any()),
        BY_DELAY: topology.default_weight == DELAY and len(np.unique(topology.delay)) > 1,
        "grid": topology.grid is not None,
        "subnets": topology.subnets > 1,
        "labels": "labels" in topology.notes,
        "names of hosts": "nodes" in topology.notes,
        LINK_GBPS: LINK_GBPS in topology.notes,
        HOSTS_NS: any(topology.notes.get(OF_HOSTS_NS, ())),
        "notes": any(key not in (*NAMES, LINK_GBPS, OF_HOSTS_NS) for key in topology.notes),
    }
    return [name for name, present in features.items() if present and name not in kept]


def omitted_directions(topology: Topology, **values: np.ndarray) -> list[str]:
    """Return what a format of links does not keep, in words: values of channels that differ by direction.

    Parameters
    ----------
    topology: without uni-directional channels.
    values: name -> [channels].
    """
    return [f"{name} that differ by direction" for name, of in values.items() if (of != of[topology.reverse]).any()]


def need_channels(topology: Topology, format: str) -> None:
    """Raise :class:`CannotWriteError` if there are no channels."""
    if not topology.channels:
        raise CannotWriteError(f"{format} files hold switches by their channels only; this topology has none")


def need_links(topology: Topology, format: str) -> None:
    """Raise :class:`CannotWriteError` if some channel is uni-directional."""
    if topology.directed:
        raise CannotWriteError(f"{format} files hold bi-directional links only; this topology has uni-directional ones")


class GraphBuilder:
    """Collects the nodes and channels of a file.

    parallel: whether the file declares that parallel channels are intended.
    """

    def __init__(self, path: Readable) -> None:
        self.path = path
        self.parallel = False
        self.nodes: dict[str, int] = {}  # label -> order of appearance
        self.ends: list[tuple[int, int]] = []
        self.values: list[tuple[float, int, int]] = []  # capacity, delay, reverse
        self.lines: list[int] = []
        self.attributes: list[Mapping[str, str]] = []  # of channels, by name

    def fail(self, line: int, message: str) -> NoReturn:
        """Reject the file because of a line."""
        raise FormatError(self.path, line, message)

    def warn(self, problem: str, line: int | None = None) -> None:
        """Issue a warning about the file, unless the text is ''."""
        if problem:
            warn(f"{self.path}{'' if line is None else f':{line}'}: {problem}")

    def node(self, label: str) -> int:
        """Return the order of appearance of a node; a new one is added."""
        return self.nodes.setdefault(label, len(self.nodes))

    def channel(
        self, line: int, tail: str, head: str, capacity: str, delay: str, reverse: str = "-1",
        attributes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Add a channel.

        Parameters
        ----------
        line: its line, for messages.
        tail, head: labels of its ends.
        capacity, delay, reverse: numbers as text.
        attributes: all its attributes in the file, by name.
        """
        self.ends.append((self.node(tail), self.node(head)))
        rest = self.whole(line, "delay", delay), self.whole(line, "reverse", reverse, -1)
        self.values.append((self._capacity(line, capacity), *rest))
        self.lines.append(line)
        self.attributes.append(attributes)

    def link(
        self, line: int, u: str, v: str, capacity: str = "1", delay: str = "0", back: str | None = None,
        attributes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Add two channels that are each other's reverse.

        Parameters
        ----------
        line, capacity, delay, attributes: as in :meth:`channel`.
        u, v: labels of its ends.
        back: delay of the second channel, if it differs.
        """
        first = len(self.ends)
        self.channel(line, u, v, capacity, delay, str(first + 1), attributes)
        self.channel(line, v, u, capacity, delay if back is None else back, str(first), attributes)

    def columns(self) -> dict[str, list[float]]:
        """Return the attributes that every channel has and that are numbers, except those with a field of their own."""
        names = set(self.attributes[0]).intersection(*self.attributes[1:]) if self.attributes else set()
        columns = {}
        for name in sorted(names - {"capacity", "delay", "reverse"}):
            with suppress(ValueError):
                numbers = [number_of(attributes[name]) for attributes in self.attributes]
                if all(map(math.isfinite, numbers)):
                    columns[name] = numbers
        return columns

    def _capacity(self, line: int, text: str) -> float:
        try:
            capacity = number_of(text)
        except ValueError:
            self.fail(line, f"capacity {text!r} is not a number")
        if not (capacity > 0 and math.isfinite(capacity)):
            self.fail(line, f"capacity {text} must be positive and finite")
        return capacity

    def check_numbers(self, line: int, data: Mapping[str, str]) -> None:
        """Fail if some attribute, of a format in which it is a number, is none or not finite."""
        for name, text in data.items():
            if not is_number(text) or not math.isfinite(number_of(text)):
                self.fail(line, f"{name} {text!r} is not a finite number")

    def whole(self, line: int, what: str, text: str, least: int = 0) -> int:
        """Parse an integer of at least ``least``. Fails for other texts, but not for a decimal such as 3.0.

        Parameters
        ----------
        line: its line, for errors.
        what: what the number is, for errors.
        text: the number.
        least: smallest accepted value.
        """
        number = number_of(text) if is_number(text) else math.nan
        if not number.is_integer():
            self.fail(line, f"{what} {text[:40]!r} is not an integer")
        value = int(text) if text.strip().lstrip("+-").isdecimal() else int(number)
        if value < least:
            self.fail(line, f"{what} {value} must be {least} or more")
        return value

    def topology(
        self, kind: str, hosts: dict[str, int] | None = None, labels: Mapping[str, str] | None = None, **notes: object
    ) -> Topology:
        """Build the topology; nodes 0 .. n-1 keep their numbers, others are numbered in order of appearance.

        Parameters
        ----------
        kind: of the topology.
        hosts: of each node; None if the file does not state them.
        labels: of each node, where the file has labels besides ids.
        notes: further notes.

        Raises
        ------
        FormatError: there are no nodes, a ``reverse`` is not the opposite channel, or there are too many hosts.
        """
        if not self.nodes:
            self.fail(1, "no switches")
        n = len(self.nodes)
        numbers = self._numbers(labels or {}, notes)
        order = np.array([numbers[label] for label in self.nodes])
        arcs = order[np.array(self.ends, np.int64).reshape(-1, 2)]
        capacity, delay, reverse = zip(*self.values, strict=True) if self.values else ((), (), ())
        wrong = wrong_reverse(arcs, np.array(reverse, np.int64))
        if wrong is not None:
            self.fail(self.lines[wrong], f"reverse {reverse[wrong]} is not the opposite channel")
        self._warn_of_loops(arcs, notes)
        topology = Topology.from_channels(
            kind, n, arcs, reverse, capacity=capacity, delay=delay, columns=self.columns(), notes=notes
        )
        if hosts is None:
            return topology
        if (total := sum(hosts.values())) > MAX_SIZE:
            self.fail(1, f"{total} hosts; at most {MAX_SIZE} are built")
        counts = np.zeros(n, np.int64)
        for label, count in hosts.items():
            counts[numbers[label]] = count
        return topology.with_hosts(counts)

    def _numbers(self, labels: Mapping[str, str], notes: Notes) -> Mapping[str, int]:
        """Return the number of each node; labels and ids are added to the notes unless they are the numbers."""
        names = [labels.get(node, node) for node in self.nodes]
        numbers = {str(i): i for i in range(len(names))}
        if set(names) == numbers.keys():
            return {node: numbers[name] for node, name in zip(self.nodes, names, strict=True)}
        counted = self.nodes.keys() == numbers.keys()
        of = numbers if counted else self.nodes
        notes["labels"] = [name for _, name in sorted(zip(map(of.__getitem__, self.nodes), names, strict=True))]
        if not counted and names != list(self.nodes):
            notes["ids"] = list(self.nodes)
        return of

    def _warn_of_loops(self, arcs: np.ndarray, notes: Notes) -> None:
        """Warn of channels from a switch to itself, and of parallel channels."""
        if loops := sorted({self.lines[c] for c in np.flatnonzero(arcs[:, 0] == arcs[:, 1])}):
            notes["self_loops_dropped"] = len(loops)
            self.warn(f"{len(loops)} self-loop{'s are' if len(loops) > 1 else ' is'} dropped", loops[0])
        if self.parallel:
            return
        _, first = np.unique(arcs[:, 0] * len(self.nodes) + arcs[:, 1], return_index=True)
        repeated = np.setdiff1d(np.flatnonzero(arcs[:, 0] != arcs[:, 1]), first)
        if lines := sorted({self.lines[c] for c in repeated}):
            phrase = f"and {len(lines) - 1} more edges repeat" if len(lines) > 1 else "repeats"
            self.warn(f"this edge {phrase} the ends of others: they are parallel channels", lines[0])


def wrong_reverse(arcs: np.ndarray, reverse: np.ndarray) -> int | None:
    """Return the first channel with an invalid reverse; None if all are valid.

    A valid reverse exists, has the opposite ends and names the channel in turn.

    Parameters
    ----------
    arcs: int64 [channels, 2].
    reverse: int64 [channels], -1: none.
    """
    paired = np.flatnonzero(reverse >= 0)
    other = np.minimum(reverse[paired], len(arcs) - 1)
    opposite = (arcs[other] == arcs[paired, ::-1]).all(axis=1)
    good = (other == reverse[paired]) & (reverse[other] == paired) & opposite
    return None if good.all() else int(paired[~good][0])
