# SPDX-License-Identifier: Apache-2.0
"""Tables of a run as pandas frames, and as xarray datasets with a dimension for each quantity that was varied."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flitlab.models.closest_match import closest_match
from flitlab.models.mappings import JsonObject, Keys
from flitlab.sim.measure.columns.registry import Column, Table, columns

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd
    import xarray

    from flitlab.sim.config.case import Study

OF_TABLES: dict[str, tuple[Table, ...]] = {"ceilings.csv": ("ceilings",), "saturation.csv": ("saturation",)}
"""Tables with known columns, except results.csv, which has several forms."""

VARIED = ("load", "seed")
"""Columns that are dimensions wherever a table has them, after swept keys and requested columns."""


def frame_of(file: Path | str, known: Iterable[Column]) -> "pd.DataFrame":
    """A CSV table as a frame. file: its path, or its text. known: columns that it may have.

    ``attrs["units"]`` has the unit of every column that has one, ``attrs["meaning"]`` its description.
    """
    import pandas as pd

    source = file if isinstance(file, Path) else io.StringIO(file)
    try:
        # names such as "NA" are no missing numbers
        frame = pd.read_csv(source, keep_default_na=False, na_values=[""])
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame()
    present = [one for one in known if one.name in frame.columns]
    frame.attrs["units"] = {one.name: one.unit for one in present if one.unit}
    frame.attrs["meaning"] = {one.name: one.meaning for one in present if one.meaning}
    return frame


def columns_of(name: str, programs: bool, flows: bool) -> dict[str, Column]:
    """The known columns of a table, by name.

    Parameters
    ----------
    name : str
        File name of the table.
    programs, flows : bool
        Whether results.csv has the form of programs, or of flows.
    """
    forms: tuple[Table, ...] = ("programs",) if programs else ("flows", "packets") if flows else ("packets",)
    return columns(*(forms if name == "results.csv" else OF_TABLES.get(name, ())))


def facts_of(study: "Study") -> JsonObject:
    """Properties of a study for a table."""
    points = sum(len(case.loads) * len(case.seeds) for case in study.cases if case.scenario)
    return {"experiment": study.experiment, "scenarios": len(study.cases), "points": points or None}


def dataset_of(
    frame: "pd.DataFrame", keys: Mapping[str, Keys], known: Iterable[Column], over: Sequence[str],
    about: Mapping[str, str],
) -> "xarray.Dataset":  # fmt: skip
    """A table as a dataset, whose dimensions are the swept keys, other varied quantities, and requested columns.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    keys : mapping
        Scenario -> values of the swept keys.
    known : iterable of Column
        Columns that the table may have.
    over : sequence of str
        Further columns that are dimensions.
    about : mapping
        Attributes of the dataset.

    Raises
    ------
    ModuleNotFoundError
        xarray is not installed.
    KeyError
        The table lacks a column of ``over``.
    ValueError
        Two rows have the same coordinates.
    """
    import pandas as pd

    _require_xarray()
    if unknown := [name for name in over if name not in frame.columns]:
        suggestion = closest_match(unknown[0], list(frame.columns))
        raise KeyError(f"no column {unknown[0]!r}" + (f"; did you mean {suggestion!r}?" if suggestion else ""))
    swept = pd.DataFrame([keys.get(label, {}) for label in frame.get("scenario", [])], index=frame.index)
    frame = pd.concat([swept, frame.drop(columns=["scenario", *swept.columns], errors="ignore")], axis="columns")
    names = dict.fromkeys([*swept.columns, *over, *VARIED])
    dims = [name for name in names if name in frame.columns and frame[name].notna().any()]
    for name in dims:
        frame = _everywhere(frame, name)
    if not dims or frame.duplicated(dims).any():
        columns = f"by {', '.join(dims)} alone" if dims else "by anything that was varied"
        raise ValueError(f"rows are not unique {columns}: add columns, dataset(NAME, over=[...])")
    dataset: xarray.Dataset = frame.set_index(dims).to_xarray()
    texts = [name for name in dims if not pd.api.types.is_numeric_dtype(frame[name])]
    dataset = dataset.reindex({name: frame[name].unique() for name in texts})  # in the order of the run
    for name in dataset.data_vars:
        dataset[name] = _of_one_kind(dataset[name])
    for one in known:
        if one.name in dataset.variables:
            attributes = {
                "units": one.unit,
                "long_name": one.label or one.name.replace("_", " "),
                "description": one.meaning,
            }
            dataset[one.name].attrs.update({key: text for key, text in attributes.items() if text})
    return dataset.assign_attrs(about)


def _require_xarray() -> None:
    try:
        import xarray  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "xarray":
            raise
        problem = "datasets need xarray, which is not installed: pip install 'flitlab[xarray]'"
        raise ModuleNotFoundError(problem, name="xarray") from None


def _everywhere(frame: "pd.DataFrame", name: str) -> "pd.DataFrame":
    """The table with each row that has no value of a dimension repeated for every value."""
    import pandas as pd

    missing = frame[name].isna()
    if not missing.any():
        return frame
    values = pd.DataFrame({name: frame.loc[~missing, name].unique()})
    return pd.concat([frame[~missing], frame[missing].drop(columns=name).merge(values, how="cross")])


def _of_one_kind(variable: "xarray.DataArray") -> "xarray.DataArray":
    """Values of one type despite empty cells: text that may be '', numbers that may be NaN for truth values."""
    if variable.dtype != object:
        return variable
    types = {type(value) for value in variable.values.ravel() if value == value and value is not None}
    if types <= {bool}:
        return variable.astype(float)
    return variable.fillna("").astype(str) if types == {str} else variable
