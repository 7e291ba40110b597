# SPDX-License-Identifier: Apache-2.0
"""Routing tables from a file: next hops, or whole paths, with weights."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from flitlab.models.arrays import Bytes, Floats, Ints
from flitlab.models.delimited import is_digits, number_of, rows_of
from flitlab.models.paths.pathset import PathSet, starts
from flitlab.models.registry import SpecError, register
from flitlab.models.routing.foreign_tables import followed_paths, garnet_ports, rapidchiplet_entries
from flitlab.models.routing.next_hops import survey_of
from flitlab.models.routing.paths import longest, missing_pair, path_notes, path_table
from flitlab.models.routing.planned import thresholds
from flitlab.models.routing.port_table import empty_table
from flitlab.models.routing.routes import NO_PORTS, PER, MaxPorts, RouteForm, Routes, RoutingSpec
from flitlab.models.rules.port_sets import allow
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import split_path, switch_names

_COLUMNS = {
    "source": ("source", "src"), "target": ("target", "dst", "destination"), "switch": ("switch", "router"),
    "next": ("next", "next_hop"), "path": ("path",), "weight": ("weight",), "port": ("port",), "ports": ("ports",),
    "slack": ("slack",),
}  # fmt: skip
"""Column -> the names that a header may give it."""


class _Line(NamedTuple):
    """A line of the table. where: file, number and text, for messages; cells: by column."""

    where: str
    cells: Mapping[str, str]

    def weight(self) -> float:
        """The weight, 1 by default. Raises ``SpecError`` unless it is a finite number, 0 or more."""
        text = self.cells.get("weight", "") or "1"
        try:
            weight = number_of(text)
        except ValueError:
            weight = -1.0
        if not 0 <= weight < np.inf:
            raise SpecError(f"{self.where}: weight {text!r} is not a number, 0 or more", key="path")
        return weight


@register("routing", "table")
class Table(RoutingSpec):
    """Routing tables from a file: a CSV file with a header, of next hops or whole paths, or a file of another tool.

    Next hops: columns ``target``, ``switch``, ``next`` and optionally ``weight`` and ``port`` (which of parallel
    channels, counted from 0 among the channels of ``switch``; default: all of them). Paths: ``source``, ``target``,
    ``path`` (switches with ``-`` between them) and optionally ``weight`` and ``ports``. Both are what ``simrun
    export-routing`` writes. Switches go by their numbers or labels; other columns are not read. Weights are relative
    to those of the same pair, or of the same switch and target; those of next hops are kept in 256ths. ``per``: whether
    each packet, or each pair of hosts, draws. A file ``.json`` is a routing table of RapidChiplet: chiplet i is switch
    i, and interposer router i the i-th switch behind the chiplets. A file ``.ini`` is the config.ini of a gem5 run:
    router i is switch i, and packets take Garnet's shortest paths by the weights of its links.

    Every pair of switches with hosts needs a route without loops.

    Example: ``routing: {kind: table, path: next_hops.csv}``

    Source: that of the routing in the file.
    """

    supports_multistage: ClassVar[bool] = True

    path: Path
    """The file."""
    per: Literal["packet", "flow"] = "packet"
    """Whether every packet draws its path, or every pair of hosts by a hash."""

    def routes(self, topology: Topology) -> Routes:
        if self.path.suffix in (".json", ".ini"):
            return self._of_another_tool(topology)
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise SpecError(f"{self.path}: no routes in it", key="path")
        every = [first, *lines]
        return self._of_paths(topology, every) if "path" in first.cells else self._of_next_hops(topology, every)

    def _lines(self) -> Iterator[_Line]:
        """The lines after the header."""
        if not self.path.is_file():
            raise SpecError("no such file", key="path")
        order: dict[str, int] = {}
        for number, fields in rows_of(self.path):
            where = f"{self.path}:{number}: {','.join(fields)}"
            if not order:
                lower = [field.lower() for field in fields]
                positions = {
                    key: [lower.index(one) for one in names if one in lower] for key, names in _COLUMNS.items()
                }
                order = {key: p[0] for key, p in positions.items() if p}
                if not ({"target", "switch", "next"} <= set(order) or {"source", "target", "path"} <= set(order)):
                    raise SpecError(
                        f"{where}: the header must name target, switch and next, or source, target and path", key="path"
                    )
            elif len(fields) <= max(order.values()):
                raise SpecError(f"{where}: {len(fields)} fields, fewer than the header", key="path")
            else:
                yield _Line(where, {key: fields[place] for key, place in order.items()})

    def _of_next_hops(self, topology: Topology, lines: Sequence[_Line]) -> Routes:
        n, degree, names = topology.switches, topology.out_degree, switch_names(topology)
        if degree.max(initial=0) > MaxPorts.TABLE:
            raise SpecError(
                f"serves at most {MaxPorts.TABLE} channels out of a switch; the topology has {degree.max()}"
            )
        ports, line_of = empty_table(topology), {}
        weights: defaultdict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        channels = _channels_between(topology)
        for line in lines:
            if line.cells.get("slack"):
                problem = "next hops that depend on the slack of a packet; paths.csv beside it has the same routing"
                raise SpecError(f"{line.where}: {problem}", key="path")
            target, switch, to = (
                names.number(line.cells[key], "path", line.where) for key in ("target", "switch", "next")
            )
            if target == switch:
                raise SpecError(f"{line.where}: the switch is the target", key="path")
            chosen = _ports(topology, channels, switch, to, line.cells.get("port", ""), line)
            weight = line.weight() / len(chosen)
            line_of[target, switch] = line
            for port in chosen if weight else ():
                if port in weights[target, switch]:
                    raise SpecError(f"{line.where}: a second line for this next hop", key="path")
                weights[target, switch][port] = weight
                allow(ports, target, switch, port)
        threshold, notes = _port_thresholds(weights, n, int(degree.max(initial=0)))
        routes = Routes(self.kind, ports, PER[self.per], 0, notes=notes, port_threshold=threshold)
        survey = survey_of(topology, routes)
        for error in np.flatnonzero(survey.errors)[:1].tolist():
            target = int(survey.target[error])
            walk = survey.example[error][: survey.size[error]].tolist()
            known = [line_of[target, switch].where for switch in walk if (target, switch) in line_of]
            walked = " to ".join(map(names.label, walk))
            kind = "leads in a loop" if walk[-1] in walk[:-1] else "ends at a switch without a next hop"
            where = known[-1] if known else f"{self.path}"
            raise SpecError(f"{where}: the way to switch {names.label(target)} {kind}: {walked}", key="path")
        return Routes(
            self.kind, ports, PER[self.per], survey.longest(False), notes=notes, port_threshold=threshold
        )  # fmt: skip

    def _of_another_tool(self, topology: Topology) -> Routes:
        """Routes from a file of RapidChiplet or gem5."""
        if not self.path.is_file():
            raise SpecError("no such file", key="path")
        if topology.out_degree.max(initial=0) > MaxPorts.TABLE:
            raise SpecError(f"serves at most {MaxPorts.TABLE} channels out of a switch", key="path")
        if self.path.suffix == ".ini":
            ports, most = garnet_ports(self.path, topology)
            return Routes(self.kind, ports, PER[self.per], most)
        entries, label = rapidchiplet_entries(self.path, topology), switch_names(topology).label
        if not entries:
            raise SpecError(f"{self.path}: no routes in it", key="path")
        if entries[0].before is None:
            cells = [{"target": label(e.target), "switch": label(e.switch), "next": label(e.to)} for e in entries]
            return self._of_next_hops(topology, [_Line(e.where, one) for e, one in zip(entries, cells, strict=True)])
        paths = []
        for where, switches in followed_paths(entries, topology):
            named = [label(v) for v in switches]
            paths.append(_Line(where, {"source": named[0], "target": named[-1], "path": "-".join(named)}))
        return self._of_paths(topology, paths)

    def _of_paths(self, topology: Topology, lines: Sequence[_Line]) -> Routes:
        names, between = switch_names(topology), _channels_between(topology)
        listed: list[tuple[int, int, tuple[int, ...], float]] = []
        line_of: dict[tuple[int, ...], str] = {}
        for line in lines:
            source, target = (names.number(line.cells[key], "path", line.where) for key in ("source", "target"))
            weight, channels = line.weight(), self._channels(topology, between, line)
            if topology.src[channels[0]] != source or topology.dst[channels[-1]] != target:
                raise SpecError(f"{line.where}: the path does not lead from the source to the target", key="path")
            if weight:
                if channels in line_of:
                    raise SpecError(f"{line.where}: this path is listed before, {line_of[channels]}", key="path")
                line_of[channels] = line.where
                listed.append((source * topology.switches + target, len(channels), channels, weight))
        listed.sort(key=lambda path: path[0])  # those of a pair stay in the order of the file
        pair, lengths = (np.array([path[i] for path in listed], np.int64) for i in range(2))
        pairs, first = np.unique(pair, return_index=True)
        channel = np.array([c for path in listed for c in path[2]], np.int32)
        paths = PathSet(np.append(first, len(listed)).astype(np.int64), starts(lengths), channel)
        table = path_table(topology, [(pairs, paths)])
        missing = missing_pair(topology, table)
        if missing is not None:
            s, t = map(names.label, missing)
            raise SpecError(f"{self.path}: no path from switch {s} to switch {t}", key="path")
        weights = np.array([path[3] for path in listed])
        totals = np.repeat(np.add.reduceat(weights, first), paths.counts)
        if not np.allclose(weights * np.repeat(paths.counts, paths.counts), totals, rtol=1e-9):
            table = table._replace(threshold=thresholds(table.pair_start, weights / totals))
        return Routes(
            self.kind, NO_PORTS, PER[self.per], longest(table), notes=path_notes(topology, table),
            form=RouteForm.PATHS, paths=table,
        )  # fmt: skip

    def _channels(
        self, topology: Topology, between: Mapping[tuple[int, int], list[int]], line: _Line
    ) -> tuple[int, ...]:
        """The channels of the path of a line."""
        names = switch_names(topology)
        try:
            switches = [names.number(name, "path", line.where) for name in split_path(line.cells["path"])]
        except ValueError as error:
            raise error if isinstance(error, SpecError) else SpecError(f"{line.where}: {error}", key="path") from None
        if len(set(switches)) < len(switches) or len(switches) < 2:
            raise SpecError(f"{line.where}: a path visits two switches or more, each once", key="path")
        cell = line.cells.get("ports", "")
        chosen = cell.split("-") if cell else [""] * (len(switches) - 1)
        if len(chosen) != len(switches) - 1:
            raise SpecError(f"{line.where}: {len(chosen)} ports for {len(switches) - 1} channels", key="path")
        channels = []
        for switch, to, port in zip(switches, switches[1:], chosen, strict=False):
            ports = _ports(topology, between, switch, to, port, line)
            if len(ports) > 1:
                ends = f"switch {names.label(switch)} to switch {names.label(to)}"
                raise SpecError(f"{line.where}: {len(ports)} channels from {ends}: add a column ports", key="path")
            channels.append(int(topology.out_start[switch]) + ports[0])
        return tuple(channels)


def _channels_between(topology: Topology) -> dict[tuple[int, int], list[int]]:
    """The channels of each pair of neighbours."""
    between: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for channel, ends in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        between[ends].append(channel)
    return dict(between)


def _ports(
    topology: Topology, between: Mapping[tuple[int, int], list[int]], switch: int, to: int, port: str, line: _Line
) -> list[int]:
    """The ports of a switch that lead to a neighbour: the named one, or all."""
    names, first = switch_names(topology), int(topology.out_start[switch])
    ports = [channel - first for channel in between.get((switch, to), ())]
    if not ports:
        problem = f"no channel from switch {names.label(switch)} to switch {names.label(to)}"
        raise SpecError(f"{line.where}: {problem}", key="path")
    if not port:
        return ports
    if not is_digits(port) or int(port) not in ports:
        problem = f"port {port} of switch {names.label(switch)} does not lead to switch {names.label(to)}"
        raise SpecError(f"{line.where}: {problem}; choices: {', '.join(map(str, ports))}", key="path")
    return [int(port)]


def _port_thresholds(
    weights: Mapping[tuple[int, int], dict[int, float]], switches: int, degree: int
) -> tuple[Bytes | None, dict[str, float]]:
    """Draw thresholds of next hops, None if all are equally likely; notes: the largest error of rounding a share."""
    if all(max(one.values()) <= min(one.values()) * (1 + 1e-9) for one in weights.values() if one):
        return None, {}
    threshold, worst = np.zeros((switches, switches, degree), np.uint8), 0.0
    for (target, switch), shares in weights.items():
        chosen = sorted(shares)
        below: Floats = np.cumsum([shares[port] for port in chosen])
        exact = 256 * below / below[-1]
        upper: Ints = np.rint(exact).astype(np.int64)
        if (np.diff(upper, prepend=0) < 1).any():
            upper = _distinct(upper)
        worst = max(worst, float(np.abs(np.diff(upper - exact, prepend=0.0)).max()) / 256)
        threshold[target, switch, chosen] = np.minimum(upper, 255)
    return threshold, {"rounding_of_weights": worst}


def _distinct(upper: Ints) -> Ints:
    """Raise thresholds so that each next hop has at least one of 256 parts."""
    count = len(upper)
    for i in range(count):
        upper[i] = max(upper[i], i + 1)
    for i in range(count - 1):
        upper[i] = min(upper[i], 256 - (count - 1 - i))
    return np.maximum.accumulate(upper)
