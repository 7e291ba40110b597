# SPDX-License-Identifier: Apache-2.0
"""Tables of a run as pandas frames, with units."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from flitlab.models.mappings import JsonObject
from flitlab.sim.measure.columns.registry import Column, Table, columns

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd

    from flitlab.sim.config.case import Study

OF_TABLES: dict[str, tuple[Table, ...]] = {"ceilings.csv": ("ceilings",), "saturation.csv": ("saturation",)}
"""Tables with known columns, except results.csv, which has several forms."""


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
