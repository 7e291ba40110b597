# SPDX-License-Identifier: Apache-2.0
"""Demand from files: lists of pairs, square tables with or without names, NumPy arrays, files of other programs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import sparse

from flitlab.models.arrays import Floats
from flitlab.models.delimited import is_digits, is_number, number_of, rows_of
from flitlab.models.readable import Text
from flitlab.models.registry import SpecError, warn
from flitlab.models.topology.names import Names, plural
from flitlab.models.traffic.demand_formats import known_entries, resembles_noxim

Layout = Literal["dense", "triples"]
"""Layout of a table of demands: rows of a matrix, or lines ``src,dst,demand``."""

Row = tuple[int, list[str]]
"""Line number, and fields."""

COLUMNS = {
    "src": ("src", "source", "from", "sender", "origin", "u"),
    "dst": ("dst", "dest", "target", "destination", "to", "receiver", "v"),
}
"""Accepted names of the columns with the source and the destination of a demand or message."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table, and the names that a header may give them.

    names: in the order of a line without header; the last ``optional`` ones may be missing. open: whether a single
    unknown column of a header stands for a single missing one.
    """

    names: dict[str, tuple[str, ...]]
    optional: int = 0
    open: bool = False

    def is_header(self, fields: Sequence[str]) -> bool:
        """Whether a line names columns, including both ends."""
        column_of = self._where(fields)
        return column_of["src"] >= 0 and column_of["dst"] >= 0

    def order(self, fields: Sequence[str], where: str) -> list[int]:
        """Return the index of each column in a header line; -1 if it is absent.

        Raises ``SpecError`` where a column is missing, and warns of columns that are not read.
        """
        column_of = self._where(fields)
        others = [i for i in range(len(fields)) if i not in column_of.values()]
        missing = [key for key in list(self.names)[: len(self.names) - self.optional] if column_of[key] < 0]
        if self.open and len(missing) == len(others) == 1:
            column_of[missing.pop()] = others.pop()
        if missing:
            raise SpecError(f"{where}: no column is called {' or '.join(self.names[missing[0]])}", key="path")
        if others:
            warn(f"{where}: not read: column {', '.join(fields[i] for i in others)}", "path")
        return list(column_of.values())

    def _where(self, fields: Sequence[str]) -> dict[str, int]:
        lower = [name.lower() for name in fields]
        return {key: next((lower.index(one) for one in names if one in lower), -1) for key, names in self.names.items()}


PAIRS = Columns({**COLUMNS, "demand": ("demand",)}, open=True)
"""Columns of a list of demands."""


def open_rows(path: Path | Text) -> Iterator[Row]:
    """Yield the rows of a file or a text. Raises ``SpecError`` if the file does not exist."""
    if isinstance(path, Path) and not path.is_file():
        raise SpecError("no such file", key="path")
    return rows_of(path)


def read_lines(path: Path | Text, columns: Columns, rows: Iterable[Row]) -> Iterator[tuple[str, list[str]]]:
    """Yield (location for messages, fields in the order of the columns) of every line of a table except its header.

    A missing field is ''.

    Parameters
    ----------
    path: of the table, for messages.
    columns: the columns of a line; a header may reorder them.
    rows: of the table.

    Raises
    ------
    SpecError: a line has another number of fields.
    """
    needed, order, least, width = len(columns.names) - columns.optional, None, 0, 0
    for place, (number, fields) in enumerate(rows):
        where = f"{path}:{number}: {','.join(fields)}"
        if not place and columns.is_header(fields):
            order, width = columns.order(fields, f"{path}:{number}"), len(fields)
            least = max(order[:needed]) + 1
        elif order is None:
            if not needed <= len(fields) <= len(columns.names):
                raise SpecError(f"{where}: expected {','.join(columns.names)}", key="path")
            yield where, fields + [""] * (len(columns.names) - len(fields))
        else:
            if not least <= len(fields) <= width:
                raise SpecError(f"{where}: {len(fields)} fields where the header has {width}", key="path")
            yield where, [fields[i] if 0 <= i < len(fields) else "" for i in order]


def read_demand(path: Path | Text, names: Names, size: int | None, layout: Layout | None) -> sparse.csr_array:
    """Read a demand matrix from a table, float64 [size, size].

    Files of REPETITA, SNDlib, htsim, Noxim and RapidChiplet are recognised by their content. Other lines are
    ``src,dst,demand``, where repeated pairs add up, or the rows of a square matrix, with or without a header row and a
    header column of names. A header distinguishes the two, and so does any number of columns other than three.

    Parameters
    ----------
    path: a file, or a text.
    names: accepted names of the ends.
    size: size of the matrix; None: that of the table, whose ends are then numbers.
    layout: the layout; None: detected.

    Raises
    ------
    SpecError: a line is invalid, or the layout is ambiguous.
    """
    if layout is None and (entries := known_entries(path)) is not None:
        return _sum_pairs(((where, [source, target, amount]) for where, source, target, amount in entries), names, size)
    rows = open_rows(path)
    probed = list(islice(rows, PROBED_LINES))
    if not probed:
        raise SpecError("no demand at all", key="path")
    table = chain(probed, rows)
    if (layout or _layout(path, probed, names, size)) == "dense":
        return _read_dense(path, list(table), names, size)
    return _sum_pairs(read_lines(path, PAIRS, table), names, size)


PROBED_LINES = 7
"""Lines by which the layout is detected: more than a table of seven columns has with a header column only."""


def _layout(path: Path | Text, probed: Sequence[Row], names: Names, size: int | None) -> Layout:
    """Detect the layout of a table from its first :data:`PROBED_LINES` lines. Raises ``SpecError`` if it is
    ambiguous.
    """
    rows = [fields for _, fields in probed]
    if not rows[0][0]:
        return "dense"  # the corner of a header row and a header column
    if PAIRS.is_header(rows[0]):
        return "triples"
    if len(rows[0]) == len(rows) + 1 and resembles_noxim(rows):
        what = f"a matrix of {len(rows)} x {len(rows)} with a header column or a traffic table of Noxim"
        problem = f"may be {what}; say layout: dense, or begin a table of Noxim with a line of %"
        raise SpecError(f"{path}: {len(rows)} lines of {len(rows[0])} fields {problem}", key="path")
    if len(rows[0]) != 3:
        return "dense" if len(rows[0]) > 3 or len(rows[0]) == 2 <= len(rows) else "triples"
    if set(map(len, rows)) != {3}:
        return "triples"
    shape = _shape(rows, names)
    if shape is None or not shape.fits(names.count, size):
        return "triples"
    if not all(_may_be_end(end, names) and is_number(fields[2]) for fields in rows for end in fields[:2]):
        return "dense"
    what = f"a matrix of {shape.height} x {shape.width} or demands src,dst,demand"
    problem = f"{len(rows)} lines of 3 fields may be {what}; say layout: dense or layout: triples, or give it a header"
    raise SpecError(f"{path}: {problem}", key="path")


@dataclass(frozen=True)
class _Shape:
    """The matrix within a table. row, column: whether there is a header row, and a header column."""

    height: int
    width: int
    row: bool
    column: bool

    def fits(self, count: int, size: int | None) -> bool:
        """Whether the table may be a matrix of ``count`` ends. size: of the matrix; None where the table may be
        larger.
        """
        if size is None:
            return min(self.height, self.width) >= count
        largest = max(self.height, self.width)
        return largest <= size if self.row and self.column else largest == size


def _shape(rows: Sequence[list[str]], names: Names) -> _Shape | None:
    """Return the shape of the matrix in a table with rows of equal length; None if it contains none."""
    height, width, first = len(rows), len(rows[0]), rows[0]
    shapes = []
    if height == width + 1 and all(map(names.is_name, first)):
        shapes.append(_Shape(width, width, True, False))
    if height + 1 == width and names.is_name(first[0]):
        shapes.append(_Shape(height, height, False, True))
    if height > 1 and not is_number(first[0]):
        shapes.append(_Shape(height - 1, width - 1, True, True))
    if height + 1 == width:
        shapes.append(_Shape(height, height, False, True))
    if height == width:
        shapes.append(_Shape(width, width, False, False))
    return next((shape for shape in shapes if _is_numeric(rows, shape)), None)


def _is_numeric(rows: Sequence[list[str]], shape: _Shape) -> bool:
    """Whether all fields of the matrix are numbers."""
    return all(is_number(field) for fields in rows[shape.row :] for field in fields[shape.column :])


def table_entries(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield (source, target, demand) of a table or a ``.npy`` file, the ends as the table names or else numbers them.

    Repeated pairs of a list are summed; zeros of a matrix are left out.

    Raises
    ------
    SpecError: a line is invalid, or the layout is ambiguous.
    """
    if path.suffix == ".npy":
        values = read_dense(path, None)
        sources = targets = [str(i) for i in range(len(values))]
    else:
        names, rows = Names("end", 0), list(open_rows(path))
        if not rows:
            raise SpecError("no demand at all", key="path")
        if _layout(path, rows[:PROBED_LINES], names, None) == "triples":
            amounts: dict[tuple[str, str], float] = {}
            for where, (source, target, amount) in read_lines(path, PAIRS, rows):
                amounts[source, target] = amounts.get((source, target), 0.0) + demand_of(where, amount)
            yield from ((source, target, amount) for (source, target), amount in amounts.items())
            return
        shape, values = _parse_dense(path, rows, names)
        sources = [fields[0] for _, fields in rows[shape.row :]] if shape.column else list(map(str, range(len(values))))
        targets = rows[0][1][shape.column :] if shape.row else sources
        if all(map(is_number, targets)) != all(map(is_number, sources)):
            place = "column" if all(map(is_number, sources)) else "line"
            problem = f"the first {place} may be names or demands; give rows and columns the same names"
            raise SpecError(f"{path}:{rows[0][0]}: {problem}", key="path")
        if len({*sources}) < len(sources) or len({*targets}) < len(targets):
            raise SpecError(f"{path}:{rows[0][0]}: rows and columns must have names that occur once", key="path")
    for i, j in np.argwhere(values).tolist():
        yield sources[i], targets[j], float(values[i, j])


def _parse_dense(path: Path | Text, rows: list[Row], names: Names) -> tuple[_Shape, Floats]:
    """Return the shape and the numbers of a matrix, float64 [height, width]; square unless rows and columns have names.

    Raises ``SpecError``.
    """
    width, corner = len(rows[0][1]), not is_number(rows[0][1][0])
    for number, fields in rows:
        if len(fields) != width:
            raise SpecError(f"{path}:{number}: {len(fields)} fields where the first line has {width}", key="path")
    table = [fields for _, fields in rows]
    shape = _shape(table, names) or _Shape(len(rows), width, corner, corner)
    body = rows[shape.row :]
    values = np.array([_numbers(f"{path}:{number}", fields[shape.column :]) for number, fields in body], float)
    if not (shape.row and shape.column) and values.shape != (len(values),) * 2:
        table_size = f"{len(rows)} lines of {width} fields"
        problem = f"{table_size} are no square matrix, nor are they src,dst,demand"
        if (side := round(width**0.5)) ** 2 == width > 4:
            problem += (
                f"; if each line is a matrix of {side} x {side}, as in a series, write one of them as {side} lines"
            )
        if resembles_noxim(table):
            problem += "; a traffic table of Noxim begins with a line of %"
        raise SpecError(f"{path}: {problem}", key="path")
    return shape, values


def _read_dense(path: Path | Text, rows: list[Row], names: Names, size: int | None) -> sparse.csr_array:
    """Read a matrix from its rows, float64 [size, size]. Raises ``SpecError``."""
    shape, values = _parse_dense(path, rows, names)
    if size is None:
        return sparse.csr_array(_columns_in_row_order(path, rows, values) if shape.row and shape.column else values)
    if shape.row or shape.column:
        return _named_matrix(path, rows, shape, values, names)
    if len(values) != size:
        table_size = f"{names.count} {plural(names.what)}"
        raise SpecError(f"{path}: a matrix of {len(values)}; there are {table_size}", key="path")
    return sparse.csr_array(values)


def _columns_in_row_order(path: Path | Text, rows: list[Row], values: Floats) -> Floats:
    """Reorder the columns of a matrix like its rows, where names occur only in the table."""
    names, columns = [fields[0] for _, fields in rows[1:]], rows[0][1][1:]
    if sorted(names) != sorted(columns) or len(set(names)) < len(names):
        raise SpecError(f"{path}:{rows[0][0]}: columns must have the names of the rows, each once", key="path")
    return values[:, [columns.index(name) for name in names]]


def _named_matrix(path: Path | Text, rows: list[Row], shape: _Shape, values: Floats, names: Names) -> sparse.csr_array:
    """Build the matrix of a table with named rows or columns; unnamed ones have the order of the others."""
    (number, first), body = rows[0], rows[shape.row :]
    ends = []
    if shape.column:
        ends.append([(f"{path}:{line}", fields[0]) for line, fields in body])
    if shape.row:
        ends.append([(f"{path}:{number}", field) for field in first[shape.column :]])
    numbers_of_ends = [
        np.array([names.number(name, "path", where) for where, name in listed], np.int64) for listed in ends
    ]
    for listed, numbers in zip(ends, numbers_of_ends, strict=True):
        unique, count = np.unique(numbers, return_counts=True)
        if (count > 1).any():
            repeated = names.label(int(unique[count > 1][0]))
            raise SpecError(f"{listed[0][0]}: {names.what} {repeated} has two rows or columns", key="path")
    source, target = np.meshgrid(numbers_of_ends[0], numbers_of_ends[-1], indexing="ij")
    entries = values.ravel(), (source.ravel(), target.ravel())
    return sparse.csr_array(sparse.coo_array(entries, (names.count,) * 2))


def _numbers(where: str, fields: Sequence[str]) -> list[float]:
    """Parse the demands of a row. Raises ``SpecError``."""
    return [demand_of(f"{where}: {','.join(fields)}", field) for field in fields]


def demand_of(where: str, field: str) -> float:
    """Parse a demand. Raises ``SpecError``."""
    try:
        amount = number_of(field)
    except ValueError:
        raise SpecError(f"{where}: {field!r} is no demand", key="path") from None
    if not 0 <= amount < float("inf"):
        raise SpecError(f"{where}: demand must be finite and not negative", key="path")
    return amount


def _may_be_end(text: str, names: Names) -> bool:
    """Whether a field may be the name of an end: it is a name, or a whole number."""
    return names.is_name(text) or is_digits(text)


def _sum_pairs(entries: Iterable[tuple[str, list[str]]], names: Names, size: int | None) -> sparse.csr_array:
    """Sum demands by pair, float64 [size, size]. Raises ``SpecError``.

    entries: place for messages, and source, target and demand.
    """
    source, target, demand = [], [], []
    known = names if size is not None else Names(names.what, MAX_ENDS)
    for where, (src, dst, amount) in entries:
        demand.append(demand_of(where, amount))
        source.append(known.number(src, "path", where))
        target.append(known.number(dst, "path", where))
    return pair_matrix(source, target, demand, size)


MAX_ENDS = 10**6
"""Most hosts of a matrix whose size the file determines."""


def pair_matrix(source: list[int], target: list[int], demand: list[float], size: int | None) -> sparse.csr_array:
    """Sum demands by pair.

    Parameters
    ----------
    source, target, demand: [n].
    size: number of ends; None: the largest number + 1.

    Returns
    -------
    float64 [size, size], sparse.
    """
    if size is None:
        size = max(source + target, default=-1) + 1
    return sparse.csr_array(sparse.coo_array((np.array(demand, float), (source, target)), (size, size)))


def read_dense(path: Path, size: int | None) -> Floats:
    """Read a matrix, float64 [size, size], from a .npy file; any square if ``size`` is None. Raises ``SpecError``."""
    if not path.is_file():
        raise SpecError("no such file", key="path")
    try:
        matrix = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise SpecError(f"{path}: not a numpy array file: {error}", key="path") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) != (len(matrix) if size is None else size):
        expected = "a square" if size is None else f"{(size, size)}"
        raise SpecError(f"{path}: shape {matrix.shape}, expected {expected}", key="path")
    if not np.issubdtype(matrix.dtype, np.number) or np.iscomplexobj(matrix):
        raise SpecError(f"{path}: entries are {matrix.dtype}, not numbers", key="path")
    bad = np.argwhere(~((matrix >= 0) & np.isfinite(matrix)))
    if len(bad):
        i, j = bad[0]
        raise SpecError(f"{path}: entry [{i}, {j}] = {matrix[i, j]}: must be finite and not negative", key="path")
    demand: Floats = matrix.astype(float)
    return demand
