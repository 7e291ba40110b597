# SPDX-License-Identifier: Apache-2.0
"""Colours, markers and dashes of the curves of one figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matplotlib.artist import Artist

from flitlab.sim.report.figures import marks
from flitlab.sim.report.figures.marks import Look
from flitlab.sim.report.figures.metrics.quantity import Quantity
from flitlab.sim.report.figures.metrics.rows import Values, combined
from flitlab.sim.report.figures.style import ArtistProperties
from flitlab.sim.report.folder.names import Names

MORE_DASHES = (*marks.DASHES, (0, (3, 1, 1, 1, 1, 1)), (0, (1, 2.5)))


@dataclass(frozen=True, eq=False)
class Strokes:
    """Colour, marker and dashes of the curves of a plot.

    If two keys distinguish curves, one sets colour and marker, the other the dashes, so that the key lists their sum
    and not their product; charts without lines have no dashes.
    """

    by: Values
    curves: Sequence[tuple[Quantity, Values]]
    dashed: bool = True

    @cached_property
    def _quantities(self) -> list[Quantity]:
        return list(dict.fromkeys(quantity for quantity, _ in self.curves))

    @cached_property
    def _values(self) -> list[Values]:
        return list(dict.fromkeys(values for _, values in self.curves))

    @cached_property
    def _split(self) -> int | None:
        """Which of two keys has the dashes: a number if one is; None if that does not suit."""
        columns = [list(dict.fromkeys(column)) for column in zip(*self._values, strict=True)]
        if not self.dashed or len(self._quantities) > 1 or len(columns) != 2 or len(self._values) <= 4:
            return None
        counts = [len(column) for column in columns]
        texts = [not all(value.replace(".", "", 1).isdigit() for value in column) for column in columns]
        dashed = min((0, 1), key=lambda i: (texts[i], counts[i]))
        return dashed if 1 < counts[dashed] <= len(MORE_DASHES) and counts[1 - dashed] > 1 else None

    def major(self, quantity: Quantity, values: Values) -> str:
        """What has colour and marker."""
        if self._split is not None:
            keep = 1 - self._split
            return combined(self.by[keep : keep + 1], values[keep : keep + 1])
        parts = [combined(self.by, values)] * (len(self._values) > 1)
        if not parts or (len(self._quantities) > 1 and not self.dashed):
            parts.append(quantity.name)
        return ", ".join(parts)

    def minor(self, quantity: Quantity, values: Values) -> str:
        """What has the dashes; '' if they go with the colour."""
        if self._split is not None:
            return combined(self.by[self._split : self._split + 1], values[self._split : self._split + 1])
        several = self.dashed and len(self._values) > 1 and len(self._quantities) > 1
        return quantity.name if several else ""

    @cached_property
    def look(self) -> Look:
        """Colours and markers of what tells curves apart by them (:meth:`major`), in order of appearance."""
        return Look(Names(list(dict.fromkeys(self.major(*curve) for curve in self.curves))))

    @cached_property
    def _minors(self) -> list[str]:
        return list(dict.fromkeys(self.minor(*curve) for curve in self.curves))

    def __call__(self, quantity: Quantity, values: Values) -> ArtistProperties:
        own, minor = self.look[self.major(quantity, values)], self.minor(quantity, values)
        return own | ({"linestyle": self._dashes(minor)} if minor else {})

    def shared(self, group: Sequence[Values]) -> ArtistProperties:
        """What curves have in common: their colour, or their dashes if these say what they stand for."""
        curves = [curve for curve in self.curves if curve[1] in group]
        majors, minors = ({tell(*curve) for curve in curves} for tell in (self.major, self.minor))
        style = {"color": self.look[majors.pop()]["color"]} if len(majors) == 1 else {}
        if self._split is not None and len(minors) == 1:
            style["linestyle"] = self._dashes(minors.pop())
        return style

    def handles(self, **style: Any) -> list[Artist]:
        """The key: all majors, then all minors. style: overrides that of the entries."""
        majors = self.look.names.labels
        dashed = self._minors != [""]
        line = {"linestyle": "-"} if dashed else {}
        entries: list[Artist] = [marks.key(label, **self.look[label] | line | style) for label in majors]
        return entries + [marks.key(name, linestyle=self._dashes(name)) for name in self._minors if name]

    def _dashes(self, minor: str) -> Any:
        return MORE_DASHES[self._minors.index(minor) % len(MORE_DASHES)]
