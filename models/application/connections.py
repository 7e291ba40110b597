# SPDX-License-Identifier: Apache-2.0
"""Connections of htsim (``.cm``) and flows of ns-3 as GOAL text: start times, sizes and triggers."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from flitlab.models.delimited import is_digits, number_of
from flitlab.models.flow_files import ADDON, NS3_SIGN, ConnectionLine, connection_line, ns3_flows
from flitlab.models.readable import Text
from flitlab.models.registry import SpecError, warn

MOST_HOSTS = 1_000_000
"""The most hosts of a file."""

TRIGGERS = ("oneshot", "multishot", "barrier")
"""Types of triggers: both others go off at the first signal, a barrier after a number of them."""

CLOCK = 1
"""The processor of a host on which nothing but the time until its starts passes."""

_TRIGGER = re.compile(
    rf"trigger\s+id\s+(\d+)\s+({'|'.join(TRIGGERS)})(?:\s+count\s+(\d{{1,18}})|\s+(\d{{1,18}}))?", re.ASCII
)


@dataclass
class Connection:
    """A connection. line: its line. start: ps. trigger: what starts it in place of a time. done: the triggers that it
    signals, and whether at the receiver.
    """

    line: int
    source: int
    target: int
    size: int
    start: int
    trigger: str | None
    done: list[tuple[str, bool]] = field(default_factory=list)


def goal_of(path: Path | Text, content: str) -> list[str]:
    """Return the lines of GOAL text: a rank for each host, a send and a receive for each connection.

    A connection that starts later is preceded by calculations on processor :data:`CLOCK`, which end at its start. One
    with a trigger requires the sends or receives that signal it, on its own host, or a message of one byte from theirs,
    with a warning.

    Parameters
    ----------
    path: for messages.
    content: of the file.

    Raises
    ------
    SpecError: with file and line; also for triggers of several signals that are no barriers.

    Sources: sim/datacenter/connection_matrix.cpp of github.com/Broadcom/csg-htsim; :mod:`flitlab.models.flow_files`.
    """
    return (_Flows if NS3_SIGN.search(content) else _Matrix)(path, content).goal()


class _Connections:
    """Connections and triggers, whose number of hosts a subclass reads, too."""

    def __init__(self, path: Path | Text) -> None:
        self.path, self.hosts = path, 0
        self.connections: list[Connection] = []
        self.triggers: dict[str, tuple[int, str, int]] = {}

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise SpecError(f"{self.path}:{line}: {problem}", key="path")

    def goal(self) -> list[str]:
        """Write the operations of each rank."""
        ranks: dict[int, list[str]] = defaultdict(list)
        signals: dict[str, list[tuple[int, str]]] = defaultdict(list)  # trigger -> host and label of what signals it
        for tag, one in enumerate(self.connections):
            for trigger, at_receiver in one.done:
                host, label = (one.target, f"r{tag}") if at_receiver else (one.source, f"s{tag}")
                signals[trigger].append((host, label))
        relayed = 0
        clocks = self._clocks(ranks)
        for tag, one in enumerate(self.connections):
            sends, receives = ranks[one.source], ranks[one.target]
            sends.append(f"  s{tag}: send {one.size}b to {one.target} tag {tag}")
            receives.append(f"  r{tag}: recv {one.size}b from {one.source} tag {tag}")
            if clock := clocks.get((one.source, one.start)):
                sends.append(f"  s{tag} requires {clock}")
            if one.trigger is None:
                continue
            for number, (host, label) in enumerate(self._signals(one, signals[one.trigger])):
                if host == one.source:
                    sends.append(f"  s{tag} requires {label}")
                    continue
                relayed += 1
                own, relay = f"t{tag}_{number}", len(self.connections) + relayed
                ranks[host] += [f"  {own}: send 1b to {one.source} tag {relay}", f"  {own} requires {label}"]
                sends += [f"  {own}: recv 1b from {host} tag {relay}", f"  s{tag} requires {own}"]
        if relayed:
            warn(
                f"{self.path}: messages of one byte stand for {relayed} signals to other hosts, which take no time",
                "path",
            )
        lines = [f"num_ranks {self.hosts}"]
        for rank in range(self.hosts):
            lines += [f"rank {rank} {{", *ranks[rank], "}"]
        return lines

    def _clocks(self, ranks: dict[int, list[str]]) -> dict[tuple[int, int], str]:
        """Write a chain of calculations for the starts of each host, on a processor of its own, which only these take.

        Returns the label of the calculation that ends at a start, by host and start.
        """
        labels: dict[tuple[int, int], str] = {}
        before: dict[int, tuple[int, str]] = {}  # host -> ns and label of its last calculation
        for host, start in sorted({(one.source, one.start) for one in self.connections if one.trigger is None}):
            nanoseconds, (earlier, last) = round(start / 1000), before.get(host, (0, ""))
            if nanoseconds > earlier:
                label = f"c{len(labels)}"
                ranks[host].append(f"  {label}: calc {nanoseconds - earlier} cpu {CLOCK}")
                ranks[host] += [f"  {label} requires {last}"] * bool(last)
                before[host] = nanoseconds, label
            if host in before:
                labels[host, start] = before[host][1]
        return labels

    def _signals(self, one: Connection, signals: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return what a connection waits for, if all of it is to come."""
        assert one.trigger is not None
        number, kind, count = self.triggers[one.trigger]
        if not signals:
            self._fail(one.line, f"nothing signals trigger {one.trigger}")
        if len(signals) != (count if kind == "barrier" else 1):
            self._fail(number, f"{len(signals)} signals of trigger {one.trigger}: one, or as many as a barrier counts")
        return signals


class _Flows(_Connections):
    """Flows of ns-3: ranks are nodes, up to the last that has a flow."""

    def __init__(self, path: Path | Text, content: str) -> None:
        super().__init__(path)
        for line, source, target, size, start in ns3_flows(path, content):
            self.hosts = max(self.hosts, source + 1, target + 1)
            if self.hosts > MOST_HOSTS:
                self._fail(line, f"node {self.hosts - 1:,}: at most {MOST_HOSTS:,} nodes are read")
            if source == target or size < 1:
                self._fail(line, "a flow sends a byte or more to another node")
            self.connections.append(Connection(line, source, target, size, start, None))
        warn(f"{path}: rank n is node n; where hosts have other numbers (nodes of simrun topology), set a placement")


class _Matrix(_Connections):
    """Connections of htsim."""

    def __init__(self, path: Path | Text, content: str) -> None:
        super().__init__(path)
        self.announced: dict[str, tuple[int, str]] = {}
        self.failures = 0
        for number, line in enumerate(content.splitlines(), 1):
            words = line.partition("#")[0].split()
            if words:
                self._line(number, " ".join(words), words)
        if not self.hosts:
            self._fail(1, "Nodes is missing")
        for one in self.connections:
            for trigger in (*[one.trigger] * (one.trigger is not None), *(name for name, _ in one.done)):
                if trigger not in self.triggers:
                    choices = ", ".join(self.triggers) or "none"
                    self._fail(one.line, f"trigger {trigger} is not declared; choices: {choices}")
        follow = {"connections": len(self.connections), "triggers": len(self.triggers)}
        for key, (number, announced) in self.announced.items():
            if announced != str(follow[key]):
                self._fail(number, f"{announced} {key} are announced, {follow[key]} follow")
        if self.failures:
            warn(f"{path}: failure lines are not read ({self.failures}); failures of topology names links", "path")

    def _line(self, number: int, line: str, words: list[str]) -> None:
        key = words[0].lower()
        if key in ("connections", "triggers") and len(words) == 2:
            self.announced[key] = number, words[1]
            return
        if key in ("failures", "failure"):
            self.failures += key == "failure"
            return
        if key == "nodes" and len(words) == 2 and is_digits(words[1]):
            self.hosts = int(words[1])
            if not 0 < self.hosts <= MOST_HOSTS:
                self._fail(number, f"Nodes {words[1]} must be 1 to {MOST_HOSTS:,}")
        elif match := _TRIGGER.fullmatch(line):
            if match[1] in self.triggers:
                self._fail(number, f"trigger {match[1]} stands on line {self.triggers[match[1]][0]} too")
            self.triggers[match[1]] = number, match[2], int(match[3] or match[4] or 1)
        else:
            try:
                connection = connection_line(line)
            except ValueError as error:
                self._fail(number, str(error))
            if connection is None:
                self._fail(number, f"{line[:40]!r} where a connection or a trigger is expected")
            self.connections.append(self._connection(number, connection))

    def _connection(self, number: int, line: ConnectionLine) -> Connection:
        source, target, options = int(line.source), int(line.target), line.options
        if max(source, target) >= self.hosts:
            self._fail(number, f"host {max(source, target)} where Nodes is {self.hosts}")
        if ADDON in options:
            self._fail(number, "addon: bytes that a trigger adds to a connection are no message of a program")
        if ("start" in options) == ("trigger" in options):
            self._fail(number, "a connection has either a start or a trigger")
        size, start = (self._whole(number, name, options.get(name, default)) for name, default in
                       (("size", ""), ("start", "0")))  # fmt: skip
        if source == target or size < 1:
            self._fail(number, "a connection sends a byte or more to another host")
        done = [
            (options[name], name[0] == "r") for name in ("send_done_trigger", "recv_done_trigger") if name in options
        ]
        return Connection(number, source, target, size, start, options.get("trigger"), done)

    def _whole(self, number: int, name: str, text: str) -> int:
        try:
            value = number_of(text)
            whole = int(value)
        except (ValueError, OverflowError):
            self._fail(number, f"{name} {text!r} is no number")
        if not 0 <= whole == value < 2**62:
            self._fail(number, f"{name} {text} must be a whole number, not negative")
        return whole
