# SPDX-License-Identifier: Apache-2.0
"""The figures of metrics.csv: ``outputs.plots``, with defaults filled in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

from flitlab.models.closest_match import closest_match
from flitlab.models.mappings import Keys
from flitlab.sim.config.sections import MAX_NAME_BYTES
from flitlab.sim.experiment.saturation import compared
from flitlab.sim.report.figures.metrics.quantity import MAIN, Quantity
from flitlab.sim.report.figures.metrics.rows import (
    SCENARIO,
    Values,
    combinations,
    differing,
    grouped,
    is_distribution,
    numeric,
)
from flitlab.sim.report.folder.run import Run

MANY = 12
"""The most curves of a distribution that is drawn by default."""

ANSWERS = {
    "relative": ["relative"],
    "search": ["found"],
}
"""Experiment -> its main columns of metrics.csv, where these are not ceilings."""


@dataclass(frozen=True)
class Plot:
    """A figure: y over x, a curve for each combination of the values of ``by``.

    name: of the files. y: columns or ratios of two. where: column -> texts that a row may have there. log: which
    axes are logarithmic; None to choose. cumulative: of a distribution. style: ``lines`` or ``points``.
    """

    name: str
    y: tuple[Quantity, ...]
    x: str
    by: Values
    where: Mapping[str, Values] = field(default_factory=dict)
    log: str | None = None
    x_label: str | None = None
    y_label: str | None = None
    cumulative: bool = False
    style: str = "lines"

    @property
    def y_title(self) -> str:
        """The label of the axis of y: the quantity, or of several the unit that all share; '' if they share none."""
        if self.y_label:
            return self.y_label
        own = [quantity for quantity in self.y if not quantity.bound] or list(self.y)
        if len(own) == 1:
            return own[0].title
        units = {quantity.unit for quantity in own}
        return units.pop() if len(units) == 1 else ""


def plots_of(run: Run) -> tuple[list[Plot], list[str]]:
    """Return the configured figures, or the default ones, with unique names; and errors of those left out."""
    plots: list[Plot] = []
    errors = []
    for entry in run.manifest.get("plots") or [{"y": columns} for columns in usual(run)]:
        try:
            plots.append(_plot(run, entry))
        except ValueError as error:
            errors.append(f"plot of {', '.join(entry['y'])}: {error}")
    return _with_unique_names(plots), errors


def usual(run: Run) -> list[list[str]]:
    """Return the default plots: the main columns of the experiment, then every metric, with their bounds."""
    experiment = run.manifest.get("experiment", "")
    column_sets = [compared() if experiment == "ceilings" else ANSWERS.get(experiment, ["aspl", "moore_aspl"])]
    for metric in run.manifest.get("metrics", []):
        columns = [name for name in run.columns if re.fullmatch(rf"{re.escape(metric)}(_\w+)?", name)]
        columns.sort(key=lambda name: name != MAIN.get(metric))
        main = next((name for name in columns if _drawable(run, name)), None)
        if main:
            column_sets.append([main, f"{metric}_bound"])
    known = [[name for name in columns if _drawable(run, name)] for columns in column_sets]
    return [columns for i, columns in enumerate(known) if columns and columns not in known[:i]]


def _drawable(run: Run, column: str) -> bool:
    """Whether a figure of a column is useful: numbers, or distributions of not too many networks."""
    if is_distribution(run, column):
        return len(combinations(run, differing(run))) <= MANY
    return numeric(run.metrics, column)


def _plot(run: Run, entry: Keys) -> Plot:
    """Return a plot with defaults filled in. Raises ``ValueError`` for an invalid one."""
    where = {key: _texts(value) for key, value in entry.get("where", {}).items()}
    _check(run, (), list(where))
    run = run.where(where)
    if not run.metrics:
        raise ValueError("no row is as where says")
    y = tuple(Quantity(expression) for expression in entry["y"])
    by = None if entry.get("by") is None else tuple(entry["by"])
    _check(run, y, [*(by or ()), *filter(None, [entry.get("x")])])
    if is_distribution(run, y[0].expression):
        x, by = SCENARIO, differing(run) if by is None else by
    elif entry.get("x"):
        x = entry["x"]
        by = (() if x == SCENARIO else _others(run, x)) if by is None else by
    else:
        x, by = _usual_axes(run, by)
    rest = {key: entry.get(key) for key in ("log", "x_label", "y_label")}
    shown = [quantity.expression for quantity in y if not quantity.bound] or [y[0].expression]
    name = entry.get("name") or _file_name([*shown, *([] if x == SCENARIO else [x])])
    cumulative, style = bool(entry.get("cumulative")), entry.get("style") or "lines"
    return Plot(name=name, y=y, x=x, by=by, where=where, cumulative=cumulative, style=style, **rest)


def _texts(value: object) -> Values:
    """How a value, or each of a list, may stand in metrics.csv."""
    items = value if isinstance(value, list) else [value]
    decimals = [repr(float(item)) for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
    return (*map(str, items), *decimals)


def _check(run: Run, y: Sequence[Quantity], others: Sequence[str]) -> None:
    """Raise ``ValueError`` if columns do not exist, or cannot be drawn together."""
    for column in [*(column for quantity in y for column in quantity.columns), *others]:
        if column not in run.columns:
            suggestion = closest_match(column, run.columns)
            hint = f"did you mean {suggestion!r}?" if suggestion else f"choices: {', '.join(run.columns)}"
            raise ValueError(f"metrics.csv has no column {column!r}; {hint}")
    forms = {_form(run, quantity) for quantity in y}
    if len(forms) > 1:
        raise ValueError(f"{' and '.join(sorted(forms))} do not go into one figure")
    if forms == {TEXT}:
        raise ValueError("holds no numbers")


TEXT = "texts"


def _form(run: Run, quantity: Quantity) -> str:
    """The form of the cells of a quantity."""
    cells = [row.get(column) or "" for row in run.metrics for column in quantity.columns]
    begins = {cell[:1] for cell in cells if cell}
    if len(quantity.columns) == 1 and begins in ({"["}, {"{"}):
        return "lists" if begins == {"["} else "mappings"
    return "numbers" if all(numeric(run.metrics, column) for column in quantity.columns) else TEXT


def _usual_axes(run: Run, by: Values | None) -> tuple[str, Values]:
    """Default x and ``by``: the swept number with most values, else the size, else the scenarios.

    A number that only some networks have, all with the same value, does not count.
    """
    numbers = [key for key in differing(run) if numeric(run.metrics, key) and key not in (by or ())]
    numbers = [key for key in numbers if len({row[key] for row in run.metrics if row.get(key)}) > 1]
    if numbers:
        x = max(numbers, key=lambda key: len(combinations(run, [key])))
        return x, _others(run, x) if by is None else by
    curves = _families(run, "switches") if by is None else by
    sizes = [{row.get("switches") for row in rows} for rows in grouped(run.metrics, curves).values()]
    if max(map(len, sizes), default=0) > 1:
        return "switches", curves
    return SCENARIO, by or ()


def _families(run: Run, x: str) -> Values:
    """Kind and swept keys without those that determine x: networks that differ in nothing else differ in x, too."""
    keys = ["kind", *differing(run)]
    for key in keys[1:]:
        rest = [other for other in keys if other != key]
        groups = [grouped(rows, [key]) for rows in grouped(run.metrics, rest).values()]
        several = [group for group in groups if len(group) > 1]
        if several and all(len(grouped(chain(*g.values()), [x])) == len(g) for g in several):
            keys = rest
    return tuple(keys[1:] if len(combinations(run, keys[1:])) == len(combinations(run, keys)) else keys)


def _others(run: Run, x: str) -> Values:
    """Keys that make curves for a given x, without the swept number that x stands for."""
    keys = [key for key in differing(run) if key != x]
    if x not in run.swept and numeric(run.metrics, x):
        numbers = [key for key in keys if numeric(run.metrics, key)]
        if not numbers:
            return _families(run, x)
        keys.remove(max(numbers, key=lambda key: len(combinations(run, [key]))))
    return tuple(keys)


def _file_name(parts: Sequence[str]) -> str:
    """
    >>> _file_name(["aspl / moore_aspl", "topology.n"])
    'aspl_per_moore_aspl_n'
    """
    words = [re.sub(r"\s*/\s*", "_per_", part).rpartition(".")[2] for part in parts]
    name = re.sub(r"[^\w-]+", "_", "_".join(words)).strip("_") or "plot"
    return name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _with_unique_names(plots: list[Plot]) -> list[Plot]:
    """Return the plots with a number added to names that another plot has."""
    by_name: dict[str, Plot] = {}
    for plot in plots:
        names = chain([plot.name], (f"{plot.name}_{i}" for i in count(2)))
        name = next(name for name in names if name not in by_name)
        by_name[name] = replace(plot, name=name)
    return list(by_name.values())
