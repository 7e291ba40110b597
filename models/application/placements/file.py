# SPDX-License-Identifier: Apache-2.0
"""Placement from a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from flitlab.models.application.placement import PlacementSpec
from flitlab.models.application.program import Program
from flitlab.models.delimited import delimiter_of, fields_of, is_digits, lines_of
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names


@register("placement", "file")
class FilePlacement(PlacementSpec):
    """Ranks run on the hosts that a file names: one host a line, that of rank 0 first, or lines ``rank,host``.

    Hosts go by their numbers or labels. A header ``host``, ``rank,host`` or ``host,rank``, blank lines and lines that
    begin with # are skipped.

    Example: ``placement: {kind: file, path: hosts.csv}``
    """

    named: ClassVar[bool] = True

    path: Path
    """The file."""

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        ranks, names = program.ranks, host_names(topology)
        line_of = np.zeros(ranks, np.int64)
        host = np.zeros(ranks, np.int64)
        holder: dict[int, int] = {}
        count = 0
        for number, line_name, first, name in self._lines():
            rank = count if first is None else self._rank(first, ranks, line_name)
            if rank >= ranks:
                raise SpecError(f"{line_name}: the program has {ranks} ranks, so these are too many lines", "path")
            if line_of[rank]:
                raise SpecError(f"{line_name}: rank {rank} has a host already, in line {line_of[rank]}", "path")
            host_number = names.number(name, "path", line_name)
            if host_number in holder:
                raise SpecError(
                    f"{line_name}: host {names.label(host_number)} has rank {holder[host_number]} already", "path"
                )
            holder[host_number] = rank
            line_of[rank], host[rank] = number, host_number
            count += 1
        if count < ranks:
            missing = int(np.flatnonzero(line_of == 0)[0])
            raise SpecError(f"{self.path}: rank {missing} has no host; the program has {ranks} ranks", "path")
        return host

    def _lines(self) -> Iterator[tuple[int, str, str | None, str]]:
        """(number, place for error messages, rank or None, host) of every line that says something."""
        if not self.path.is_file():
            raise SpecError("no such file", "path")
        width, turned = 0, False
        for number, line in enumerate(lines_of(self.path), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            cells = fields_of(line, delimiter_of(line, (";", ",", "\t")) or "\n")
            if not width and (header := sorted(cells)) in (["host"], ["host", "rank"]):
                width, turned = len(header), cells[0] == "host" and len(cells) == 2
                continue
            line_name = f"{self.path}:{number}: {line.strip()}"
            width = width or len(cells)
            if len(cells) != width or width > 2:
                raise SpecError(f"{line_name}: expected {'one host' if width == 1 else 'rank,host'}", "path")
            cells = cells[::-1] if turned else cells
            yield number, line_name, cells[0] if width == 2 else None, cells[-1]

    def _rank(self, cell: str, size: int, line_name: str) -> int:
        if not is_digits(cell) or int(cell) >= size:
            raise SpecError(f"{line_name}: rank must be a whole number in 0..{size - 1}", "path")
        return int(cell)
