# SPDX-License-Identifier: Apache-2.0
"""Ranks where the user wants them."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from flitlab.models.application.placement import PlacementSpec
from flitlab.models.application.program import Program
from flitlab.models.registry import SpecError, register
from flitlab.models.topology.graph import Topology


@register("placement", "file")
class File(PlacementSpec):
    """Ranks run on the hosts that a file names: one host a line, that of rank 0 first, or lines ``rank,host``.

    A header ``host`` or ``rank,host``, blank lines and lines that begin with # are skipped.

    Example: ``placement: {kind: file, path: hosts.csv}``
    """

    named: ClassVar[bool] = True

    path: Path

    def hosts(self, topology: Topology, program: Program) -> np.ndarray:
        ranks, hosts = program.ranks, topology.hosts
        line_of = np.zeros(ranks, np.int64)
        host = np.zeros(ranks, np.int64)
        holder: dict[int, int] = {}
        width = 0
        count = 0
        for number, where, cells in self._lines():
            width = width or len(cells)
            if len(cells) != width or width > 2:
                raise SpecError(f"{where}: expected {'one host' if width == 1 else 'rank,host'}", "path")
            rank = self._number(cells[0], ranks, "rank", where) if width == 2 else count
            if rank >= ranks:
                raise SpecError(f"{where}: the program has {ranks} ranks, so these are too many lines", "path")
            if line_of[rank]:
                raise SpecError(f"{where}: rank {rank} has a host already, in line {line_of[rank]}", "path")
            place = self._number(cells[-1], hosts, "host", where)
            if place in holder:
                raise SpecError(f"{where}: host {place} has rank {holder[place]} already", "path")
            holder[place] = rank
            line_of[rank], host[rank] = number, place
            count += 1
        if count < ranks:
            missing = int(np.flatnonzero(line_of == 0)[0])
            raise SpecError(f"{self.path}: rank {missing} has no host; the program has {ranks} ranks", "path")
        return host

    def _lines(self) -> Iterator[tuple[int, str, list[str]]]:
        """(number, place for error messages, cells) of every line that says something."""
        if not self.path.is_file():
            raise SpecError("no such file", "path")
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                cells = [cell.strip() for cell in line.split(",")]
                header = number == 1 and cells in (["host"], ["rank", "host"])
                if line.strip() and not line.lstrip().startswith("#") and not header:
                    yield number, f"{self.path}:{number}: {line.strip()}", cells

    def _number(self, cell: str, size: int, what: str, where: str) -> int:
        if not cell.isdecimal() or int(cell) >= size:
            raise SpecError(f"{where}: {what} must be a whole number in 0..{size - 1}", "path")
        return int(cell)
