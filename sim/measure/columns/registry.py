# SPDX-License-Identifier: Apache-2.0
"""The table of columns, from which headers, reports, axes and documentation follow; a column is registered here.

A column of results.csv that is measured is a function of what was counted, under :func:`column`. The built-in ones
are in the modules of this package; a plugin's function does the same. Columns that follow from others, or that are the
run's own, are declared with :func:`declare`.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from flitlab.models.hashing import content_hash

PACKAGE = "flitlab.sim.measure.columns"
"""Where the built-in columns are."""

Table = Literal["packets", "flows", "programs", "ceilings", "saturation", "metrics"]
"""The table that a column is of: results.csv has three forms, by what was simulated; the others are files."""

RESULTS: tuple[Table, ...] = ("packets", "flows", "programs")
"""The forms of results.csv: of flits in packets, of datagrams in flows, and of programs."""

TICKS, RATE = "ticks", "flits/tick/host"
"""Units that are printed in nanoseconds where the duration of a flit is known."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    meaning: what it is, in Markdown. unit: '' for pure numbers and texts. label: what an axis calls it. lead: whether
    it stands before those that are not, in every results.csv of its form. report, summary: its headings in the table of
    the report and in what a run prints, '' where it is not shown. scale: factor of the numbers under these headings.
    measure: computes it from what was counted, None where it follows from others.
    """

    table: Table
    name: str
    meaning: str
    unit: str = ""
    label: str = ""
    lead: bool = False
    report: str = ""
    summary: str = ""
    scale: float = 1.0
    measure: Callable[[Any], Any] | None = None

    @property
    def axis(self) -> str:
        """Name and unit, for an axis."""
        name = self.label or self.name.replace("_", " ")
        return f"{name} ({self.unit})" if self.unit else name


Measure = TypeVar("Measure", bound=Callable[[Any], Any])

_registered: dict[Table, dict[str, Column]] = {table: {} for table in get_args(Table)}
_discovered: list[str] = []


def column(
    table: Table, name: str, unit: str = "", label: str = "", lead: bool = False, report: str | None = None,
    summary: str = "", scale: float = 1.0,
) -> Callable[[Measure], Measure]:  # fmt: skip
    """Decorator: makes a function a column of results.csv; its docstring is what the column means.

    The function gets what was counted: of packets a :class:`~flitlab.sim.measure.window.Window`, of flows a
    :class:`~flitlab.sim.measure.datagram.Counted`, of programs an :class:`~flitlab.sim.measure.executed.Executed`; it
    returns a number, a text or None. report: by default the name. Raises ``ValueError`` for a name that is taken.
    """

    def enter(measure: Measure) -> Measure:
        if not _is_ours(measure):
            _discover()
        meaning = " ".join((inspect.getdoc(measure) or "").split())
        heading = name if report is None else report
        declare(Column(table, name, meaning, unit, label, lead, heading, summary, scale, measure))
        return measure

    return enter


def declare(*columns: Column) -> None:
    """Adds columns to the table. Raises ``ValueError`` for a name that another column of the same table has."""
    for one in columns:
        holder = _registered[one.table].get(one.name)
        if holder is not None and _origin(holder) != _origin(one):
            raise ValueError(f"column {one.name!r} of {one.table} is registered already")
        _registered[one.table][one.name] = one


def columns(*tables: Table) -> dict[str, Column]:
    """Columns by name, in their order; of a name that several tables have, the first."""
    _discover()
    found: dict[str, Column] = {}
    for table in tables:
        for name, one in _registered[table].items():
            found.setdefault(name, one)
    return found


def measured(table: Table, counted: Any) -> dict[str, Any]:
    """Every column that is measured, by name. Raises ``TypeError`` for what no cell can hold."""
    return {
        name: _cell(one, one.measure(counted)) for name, one in columns(table).items() if one.measure is not None
    }  # fmt: skip


def added(table: Table, plugins: Sequence[str]) -> dict[str, str]:
    """Columns that plugins (full paths of files, or modules) have registered: name -> hash of the plugin's code."""
    return {one.name: _code(one) for one in _foreign(table) if _is_of(one, plugins)}


def foreign(table: Table) -> set[str]:
    """Names of the columns of a table that any plugin has registered in this process."""
    return {one.name for one in _foreign(table)}


def _foreign(table: Table) -> list[Column]:
    found = _registered[table].values()
    return [one for one in found if one.measure is not None and not _is_ours(one.measure)]


def _file(one: Column) -> Path | None:
    """The file that a measured column's function stands in."""
    assert one.measure is not None
    file = getattr(sys.modules.get(one.measure.__module__), "__file__", None)
    return None if file is None else Path(file)


def _code(one: Column) -> str:
    file = _file(one)
    return content_hash(None if file is None else file.read_text("utf-8"))


def _is_ours(measure: Callable[..., Any]) -> bool:
    return measure.__module__.startswith("flitlab.")


def _is_of(one: Column, plugins: Sequence[str]) -> bool:
    assert one.measure is not None
    module, file = one.measure.__module__, _file(one)
    return any(
        Path(plugin) == file if plugin.endswith(".py") else f"{module}.".startswith(f"{plugin}.") for plugin in plugins
    )


def _origin(one: Column) -> tuple[bool, str]:
    """What may take the place of a column: the same function of a file that is loaded again."""
    return (True, "") if one.measure is None else (_is_ours(one.measure), one.measure.__qualname__)


def _cell(one: Column, value: Any) -> Any:
    """A measured value as JSON and CSV can hold it."""
    plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if plain is not None and not isinstance(plain, bool | int | float | str):
        raise TypeError(f"column {one.name!r}: must be a number or a text, and is a {type(value).__name__}")
    return plain


def _discover() -> None:
    if not _discovered:
        _discovered.append(PACKAGE)
        for module in pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__):
            importlib.import_module(f"{PACKAGE}.{module.name}")
