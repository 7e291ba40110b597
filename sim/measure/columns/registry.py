# SPDX-License-Identifier: Apache-2.0
"""The registry of columns, from which headers, reports, axes and documentation follow.

A measured column of results.csv is a function of counters, under :func:`column`. The built-in ones are in the modules
of this package; a plugin's function does the same. A derived column is a function of a measured point, under
:func:`derived`. All others are declared with :func:`declare`.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from flitlab.models.hashing import content_hash
from flitlab.models.mappings import Row
from flitlab.sim.measure.rows import MeasuredPoint

PACKAGE = "flitlab.sim.measure.columns"
"""The package of the built-in columns."""

Table = Literal["packets", "flows", "programs", "ceilings", "saturation", "metrics"]
"""The table of a column: results.csv has three forms, by kind of traffic; the others are files."""

RESULTS: tuple[Table, ...] = ("packets", "flows", "programs")
"""The forms of results.csv: flits in packets, datagrams in flows, and programs."""

TICKS, RATE = "ticks", "flits/tick/host"
"""Units that are converted to nanoseconds where the duration of a flit is known."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    meaning: in Markdown. unit: '' for pure numbers and texts. label: on axes. lead: whether it comes before the others
    in every results.csv of its form. report, summary: its headings in the table of the report and on the console, '' to
    hide it. scale: factor of the numbers under these headings. text: whether its cells are texts, not numbers. measure:
    computes it from counters, derive: from a measured point; None for other columns.
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
    text: bool = False
    measure: Callable[[Any], object] | None = None
    derive: "Derive | None" = None

    @property
    def axis(self) -> str:
        """Name and unit, for an axis."""
        name = self.label or self.name.replace("_", " ")
        return f"{name} ({self.unit})" if self.unit else name


Measure = TypeVar("Measure", bound=Callable[[Any], object])

Derive = Callable[[MeasuredPoint], object]
"""Computes a derived column; None where a point has no such column."""

_registered: dict[Table, dict[str, Column]] = {table: {} for table in get_args(Table)}
_discovered: list[str] = []


def column(
    table: Table, name: str, unit: str = "", label: str = "", lead: bool = False, report: str | None = None,
    summary: str = "", scale: float = 1.0,
) -> Callable[[Measure], Measure]:  # fmt: skip
    """Decorator: register a function as a column of results.csv; its docstring is the meaning of the column.

    The function gets the counters: of packets a :class:`~flitlab.sim.measure.window.Window`, of flows a
    :class:`~flitlab.sim.measure.datagram.Counted`, of programs an :class:`~flitlab.sim.measure.executed.Executed`; it
    returns a number, a text or None.

    Parameters
    ----------
    table : str
        ``packets``, ``flows`` or ``programs``.
    name : str
        Name of the column.
    unit, label, summary, scale
        See :class:`Column`.
    lead : bool
        See :class:`Column`.
    report : str, optional
        Heading in the report; by default the name.

    Raises
    ------
    ValueError
        For a name that is registered already.
    """

    def enter(measure: Measure) -> Measure:
        if not _is_ours(measure):
            _discover()
        meaning = " ".join((inspect.getdoc(measure) or "").split())
        heading = name if report is None else report
        declare(Column(table, name, meaning, unit, label, lead, heading, summary, scale, measure=measure))
        return measure

    return enter


def derived(one: Column) -> Callable[[Derive], Derive]:
    """Decorator: register a column that the function derives from a measured point."""

    def enter(derive: Derive) -> Derive:
        declare(replace(one, derive=derive))
        return derive

    return enter


def declare(*columns: Column) -> None:
    """Register columns of tables. Raises ``ValueError`` for a name that another column of the same table has."""
    for one in columns:
        existing = _registered[one.table].get(one.name)
        if existing is not None and _origin(existing) != _origin(one):
            raise ValueError(f"column {one.name!r} of {one.table} is registered already")
        _registered[one.table][one.name] = one


def columns(*tables: Table) -> dict[str, Column]:
    """Return columns by name, in their order; of a name that several tables have, the first."""
    _discover()
    by_name: dict[str, Column] = {}
    for table in tables:
        for name, one in _registered[table].items():
            by_name.setdefault(name, one)
    return by_name


def measured(table: Table, counted: object) -> Row:
    """Return every measured column, by name. Raises ``TypeError`` for a value that no cell can hold."""
    return {
        name: _cell(one, one.measure(counted)) for name, one in columns(table).items() if one.measure is not None
    }  # fmt: skip


def derived_columns(point: MeasuredPoint) -> Row:
    """Return the derived columns of a point, by name."""
    values = {one.name: one.derive(point) for one in columns(point.scenario.counted).values() if one.derive is not None}
    return {name: value for name, value in values.items() if value is not None}


def added(table: Table, plugins: Sequence[str]) -> dict[str, str]:
    """Return the columns that plugins have registered: name -> hash of the plugin's code.

    plugins: full paths of files, or modules.
    """
    return {one.name: _code(one) for one in _third_party(table) if _is_of(one, plugins)}


def third_party_columns(table: Table) -> set[str]:
    """Return the names of the columns of a table that any plugin has registered in this process."""
    return {one.name for one in _third_party(table)}


def _third_party(table: Table) -> list[Column]:
    registered = _registered[table].values()
    return [one for one in registered if one.measure is not None and not _is_ours(one.measure)]


def _file(one: Column) -> Path | None:
    """The file that defines a measured column's function."""
    assert one.measure is not None
    file = getattr(sys.modules.get(one.measure.__module__), "__file__", None)
    return None if file is None else Path(file)


def _code(one: Column) -> str:
    file = _file(one)
    return content_hash(None if file is None else file.read_text("utf-8"))


def _is_ours(measure: Callable[..., object]) -> bool:
    return measure.__module__.startswith("flitlab.")


def _is_of(one: Column, plugins: Sequence[str]) -> bool:
    assert one.measure is not None
    module, file = one.measure.__module__, _file(one)
    return any(
        Path(plugin) == file if plugin.endswith(".py") else f"{module}.".startswith(f"{plugin}.") for plugin in plugins
    )


def _origin(one: Column) -> tuple[bool, str]:
    """The identity of a column's definition; only the same function, of a reloaded file, may replace it."""
    return (True, "") if one.measure is None else (_is_ours(one.measure), one.measure.__qualname__)


def _cell(one: Column, value: object) -> object:
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
