"""What the figures of the experiment ``metrics`` show: ``outputs.plots`` with their defaults, and their curves."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from statistics import fmean
from typing import Any

import numpy as np

from flitlab.models.near import near
from flitlab.sim.config.section import LONGEST_NAME
from flitlab.sim.experiment.saturation import compared
from flitlab.sim.measure.interval import mean_and_half
from flitlab.sim.measure.rows import number
from flitlab.sim.report.columns import AMOUNTS, MAIN, Quantity, end_of, spoken, with_unit
from flitlab.sim.report.frames import Curve, Row, Run

SCENARIO = "scenario"
"""The x of a chart that has no other: one line of the chart per scenario."""

MANY = 12
"""Distributions of more curves than this are not drawn unless asked for."""

ANSWERS = {
    "relative": ["relative"],
    "search": ["found"],
}
"""Experiment -> the columns of metrics.csv that it is about, where these are no ceilings."""

Values = tuple[str, ...]


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


@dataclass(frozen=True, eq=False)
class Series:
    """What was measured of one quantity for one combination of the values of ``by``."""

    quantity: Quantity
    values: Values
    curve: Curve


def plots_of(run: Run) -> tuple[list[Plot], list[str]]:
    """The figures asked for, or the usual ones, with unique names; and what is wrong with those left out."""
    plots: list[Plot] = []
    mistakes = []
    for entry in run.manifest.get("plots") or [{"y": columns} for columns in usual(run)]:
        try:
            plots.append(_plot(run, entry))
        except ValueError as error:
            mistakes.append(f"plot of {', '.join(entry['y'])}: {error}")
    return _unlike(plots), mistakes


def usual(run: Run) -> list[list[str]]:
    """What is drawn when nothing is asked for: what the experiment is about, then every metric; with their bounds."""
    experiment = run.manifest.get("experiment", "")
    found = [compared() if experiment == "ceilings" else ANSWERS.get(experiment, ["aspl", "moore_aspl"])]
    for metric in run.manifest.get("metrics", []):
        columns = [name for name in run.columns if re.fullmatch(rf"{re.escape(metric)}(_\w+)?", name)]
        columns.sort(key=lambda name: name != MAIN.get(metric))
        main = next((name for name in columns if _drawable(run, name)), None)
        if main:
            found.append([main, f"{metric}_bound"])
    known = [[name for name in columns if _drawable(run, name)] for columns in found]
    return [columns for i, columns in enumerate(known) if columns and columns not in known[:i]]


def _drawable(run: Run, column: str) -> bool:
    """Whether a figure of a column says anything: numbers, or distributions of not too many networks."""
    if is_distribution(run, column):
        return len(_combinations(run, _all(run))) <= MANY
    return numeric(run.metrics, column)


def numeric(rows: Iterable[Row], column: str) -> bool:
    """Whether a column holds numbers, and nothing else where it is not empty."""
    values = [row[column] for row in rows if row.get(column)]
    return bool(values) and all(math.isfinite(number({column: value}, column)) for value in values)


def is_distribution(run: Run, column: str) -> bool:
    """Whether a column holds lists or mappings."""
    return any((row.get(column) or "")[:1] in ("[", "{") for row in run.metrics)


def is_draw(key: str) -> bool:
    """Whether a swept key is a seed: its values are replicates of one another."""
    return key.rpartition(".")[2] == "seed"


def series(run: Run, plot: Plot) -> list[Series]:
    """The curves of a plot over a numeric x: means over replicates, by increasing x.

    Replicates are what shares the value of a swept x, else what differs in the swept seeds alone.
    """
    alike = [plot.x] if plot.x in run.swept else [key for key in run.swept if not is_draw(key)]
    x = Quantity(plot.x)
    found = []
    for quantity in plot.y:
        for values, rows in _groups(run.metrics, plot.by).items():
            known = [row for row in rows if math.isfinite(x(row)) and math.isfinite(quantity(row))]
            if known:
                replicates = list(_groups(known, alike).values())
                found.append(Series(quantity, values, _curve(run, replicates, x, quantity)))
    return found


def distributions(run: Run, plot: Plot) -> list[tuple[Quantity, Values, list[Any]]]:
    """(column, values of ``by``, one list or mapping per replicate)."""
    found = []
    for quantity in plot.y:
        for values, rows in _groups(run.metrics, plot.by).items():
            loaded = [json.loads(row[quantity.expression]) for row in rows if row.get(quantity.expression)]
            if loaded:
                found.append((quantity, values, loaded))
    return found


def categories(run: Run, plot: Plot) -> list[tuple[str, list[Row]]]:
    """The lines of a chart: name and rows, in order of appearance."""
    keys = [key for key in _all(run) if key not in plot.by] if plot.x == SCENARIO else [plot.x]
    groups = _groups(run.metrics, keys)
    if keys:
        return [(combined(keys, values), rows) for values, rows in groups.items()]
    alone = run.scenarios[0] if len(run.scenarios) == 1 else str(run.manifest.get("name") or "all")
    return [(alone, rows) for rows in groups.values()]


def chart(run: Run, plot: Plot) -> list[Series]:
    """The series of a chart by category; the x of their curves counts the categories from 0."""
    places: dict[tuple[Quantity, Values], list[tuple[int, list[Row]]]] = {}
    for place, (_, rows) in enumerate(categories(run, plot)):
        for values, part in _groups(rows, plot.by).items():
            for quantity in plot.y:
                known = [row for row in part if math.isfinite(quantity(row))]
                if known:
                    places.setdefault((quantity, values), []).append((place, known))
    order = {quantity: i for i, quantity in enumerate(plot.y)}
    found = []
    for (quantity, values), entries in sorted(places.items(), key=lambda item: order[item[0][0]]):
        means, halves = _means(run, [rows for _, rows in entries], quantity)
        x = np.array([place for place, _ in entries], float)
        found.append(Series(quantity, values, _plain(x, means, halves, [len(rows) for _, rows in entries])))
    return found


def combined(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name of a combination of swept values: words speak for themselves, numbers need their key.

    What is not swept in a case has no value there.

    >>> combined(["topology.kind", "topology.degree", "topology.n"], ["imase", "4", ""])
    'imase, degree=4'
    """
    return ", ".join(_says(key, value) for key, value in zip(keys, values, strict=True) if value)


def axis_title(run: Run, column: str) -> str:
    """What an x axis is called; a swept ``n`` that counts switches says so, and an amount whether it is a share."""
    if end_of(column) in AMOUNTS:
        some = [row[column] for row in run.metrics if number(row, column) > 0]  # none is no share and no number
        shares = ["." in value for value in some]
        what = "share of " if all(shares) else "number of " if not any(shares) else ""
        return what + spoken(column)[0]
    for other, swept in (("switches", "n"), ("degree_max", "degree"), ("hosts", "hosts_total")):
        if column.rpartition(".")[2] == swept:
            same = all(number(row, column) == number(row, other) for row in run.metrics)
            return Quantity(other).title if same else with_unit(*spoken(column))
    return Quantity(column).title


def _says(key: str, value: str) -> str:
    if key == "case" or re.match(r"(?!(?:true|false|none|null)$)[a-z]", value, re.I):
        return value
    return f"{spoken(key)[0]}={value}"


def _plot(run: Run, given: dict[str, Any]) -> Plot:
    """A plot as it was given, what it leaves out filled in. Raises ``ValueError`` if it cannot be."""
    where = {key: _texts(value) for key, value in given.get("where", {}).items()}
    _check(run, (), list(where))
    run = run.where(where)
    if not run.metrics:
        raise ValueError("no row is as where says")
    y = tuple(Quantity(expression) for expression in given["y"])
    by = None if given.get("by") is None else tuple(given["by"])
    _check(run, y, [*(by or ()), *filter(None, [given.get("x")])])
    if is_distribution(run, y[0].expression):
        x, by = SCENARIO, _all(run) if by is None else by
    elif given.get("x"):
        x = given["x"]
        by = (() if x == SCENARIO else _others(run, x)) if by is None else by
    else:
        x, by = _usual_axes(run, by)
    rest = {key: given.get(key) for key in ("log", "x_label", "y_label")}
    shown = [quantity.expression for quantity in y if not quantity.bound] or [y[0].expression]
    name = given.get("name") or _file_name([*shown, *([] if x == SCENARIO else [x])])
    cumulative, style = bool(given.get("cumulative")), given.get("style") or "lines"
    return Plot(name=name, y=y, x=x, by=by, where=where, cumulative=cumulative, style=style, **rest)


def _texts(value: Any) -> Values:
    """How a value, or each of a list, may stand in metrics.csv."""
    items = value if isinstance(value, list) else [value]
    decimals = [repr(float(item)) for item in items if isinstance(item, int | float) and not isinstance(item, bool)]
    return (*map(str, items), *decimals)


def _check(run: Run, y: Sequence[Quantity], others: Sequence[str]) -> None:
    """Raises ``ValueError`` if columns are not there, or hold nothing that can be drawn together."""
    for column in [*(column for quantity in y for column in quantity.columns), *others]:
        if column not in run.columns:
            meant = near(column, run.columns)
            hint = f"did you mean {meant!r}?" if meant else f"choices: {', '.join(run.columns)}"
            raise ValueError(f"metrics.csv has no column {column!r}; {hint}")
    forms = {_form(run, quantity) for quantity in y}
    if len(forms) > 1:
        raise ValueError(f"{' and '.join(sorted(forms))} do not go into one figure")
    if forms == {TEXT}:
        raise ValueError("holds no numbers")


TEXT = "texts"


def _form(run: Run, quantity: Quantity) -> str:
    """What is in the columns of a quantity."""
    cells = [row.get(column) or "" for row in run.metrics for column in quantity.columns]
    begins = {cell[:1] for cell in cells if cell}
    if len(quantity.columns) == 1 and begins in ({"["}, {"{"}):
        return "lists" if begins == {"["} else "mappings"
    return "numbers" if all(numeric(run.metrics, column) for column in quantity.columns) else TEXT


def _usual_axes(run: Run, by: Values | None) -> tuple[str, Values]:
    """x and ``by`` where no x is given: the swept number with most values, else the size, else the scenarios."""
    numbers = [key for key in _all(run) if numeric(run.metrics, key) and key not in (by or ())]
    if numbers:
        x = max(numbers, key=lambda key: len(_combinations(run, [key])))
        return x, _others(run, x) if by is None else by
    curves = _families(run, "switches") if by is None else by
    sizes = [{row.get("switches") for row in rows} for rows in _groups(run.metrics, curves).values()]
    if max(map(len, sizes), default=0) > 1:
        return "switches", curves
    return SCENARIO, by or ()


def _families(run: Run, x: str) -> Values:
    """Kind and swept keys without those that set x: networks that differ in nothing else differ in x too."""
    keys = ["kind", *_all(run)]
    for key in keys[1:]:
        rest = [other for other in keys if other != key]
        groups = [_groups(rows, [key]) for rows in _groups(run.metrics, rest).values()]
        several = [group for group in groups if len(group) > 1]
        if several and all(len(_groups(chain(*g.values()), [x])) == len(g) for g in several):
            keys = rest
    return tuple(keys[1:] if len(_combinations(run, keys[1:])) == len(_combinations(run, keys)) else keys)


def _all(run: Run) -> Values:
    """The swept keys that differ, but for seeds."""
    return tuple(key for key in run.swept if not is_draw(key) and len(_combinations(run, [key])) > 1)


def _others(run: Run, x: str) -> Values:
    """What makes a curve each where x is given: not what x stands for, which is the number with most values."""
    keys = [key for key in _all(run) if key != x]
    if x not in run.swept and numeric(run.metrics, x):
        numbers = [key for key in keys if numeric(run.metrics, key)]
        if not numbers:
            return _families(run, x)
        keys.remove(max(numbers, key=lambda key: len(_combinations(run, [key]))))
    return tuple(keys)


def _combinations(run: Run, keys: Sequence[str]) -> list[Values]:
    return list(_groups(run.metrics, keys))


def _groups(rows: Iterable[Row], keys: Sequence[str]) -> dict[Values, list[Row]]:
    """The rows by the values of some columns, in order of appearance."""
    found: dict[Values, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(key) or "" for key in keys), []).append(row)
    return found


def _curve(run: Run, replicates: list[list[Row]], x: Quantity, y: Quantity) -> Curve:
    replicates = sorted(replicates, key=lambda rows: fmean(map(x, rows)))
    means, halves = _means(run, replicates, y)
    return _plain(np.array([fmean(map(x, rows)) for rows in replicates]), means, halves, list(map(len, replicates)))


def _means(run: Run, replicates: list[list[Row]], y: Quantity) -> np.ndarray:
    """Means and half-widths; a mean over other things than random draws has no interval."""
    fixed = [key for key in run.swept if not is_draw(key)]
    found = []
    for rows in replicates:
        mean, half = mean_and_half([y(row) for row in rows], number(rows[0], f"{y.expression}_ci95"))
        found.append((mean, half if len(_groups(rows, fixed)) == 1 else math.nan))
    return np.array(found).T


def _plain(x: np.ndarray, y: np.ndarray, half: np.ndarray, counts: list[int]) -> Curve:
    """A curve that belongs to no single scenario, and of which no point is past saturation."""
    return Curve("", x, x, y, half, np.zeros(len(x), bool), np.array(counts))


def _file_name(parts: Sequence[str]) -> str:
    """
    >>> _file_name(["aspl / moore_aspl", "topology.n"])
    'aspl_per_moore_aspl_n'
    """
    words = [re.sub(r"\s*/\s*", "_per_", part).rpartition(".")[2] for part in parts]
    name = re.sub(r"[^\w-]+", "_", "_".join(words)).strip("_") or "plot"
    return name.encode()[:LONGEST_NAME].decode(errors="ignore")


def _unlike(plots: list[Plot]) -> list[Plot]:
    """A number is added to a name that another plot has."""
    found: dict[str, Plot] = {}
    for plot in plots:
        names = chain([plot.name], (f"{plot.name}_{i}" for i in count(2)))
        name = next(name for name in names if name not in found)
        found[name] = replace(plot, name=name)
    return list(found.values())
