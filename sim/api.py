"""The Python interface: a configuration to check, run and look at, with pandas frames and matplotlib axes.

>>> from flitlab import Experiment
>>> experiment = Experiment.load("configs/quick.yaml", loads=[0.2, 0.6], seeds=[1])  # doctest: +SKIP
>>> experiment.run(jobs=1).results[["scenario", "load", "accepted", "latency_mean"]]  # doctest: +SKIP
>>> ax = experiment.plot("latency_load")  # doctest: +SKIP
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import yaml

from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import Case, Study, read
from flitlab.sim.exit import INTERRUPTED
from flitlab.sim.experiment.pool import processes
from flitlab.sim.experiment.runner import Report
from flitlab.sim.experiment.runner import run as run_study
from flitlab.sim.experiment.store import StoreError
from flitlab.sim.measure.columns.registry import Table, columns
from flitlab.sim.report.folder.run import Run

if TYPE_CHECKING:  # what takes longest to import waits until it is used
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["ConfigError", "Experiment", "RunError", "StoreError"]

MAPPING = "configuration"
"""What messages call a configuration that stands in no file, and the name of its run folder."""

COLUMN = (3.5, 2.4)
"""Inches of a figure, as in ``sim/report/figures/style.mplstyle``."""

MOST_PROBLEMS = 20
"""More problems than this are counted, not listed."""


class RunError(Exception):
    """A run of which points or ceilings failed, or in which a simulation passed its ceiling.

    What did succeed is in the run folder, and so in the frames of the experiment. ``report`` has it too, with every
    problem.
    """

    def __init__(self, report: Report):
        more = len(report.problems) - MOST_PROBLEMS
        lines = [*report.problems[:MOST_PROBLEMS], *([f"... and {more} more"] if more > 0 else [])]
        super().__init__("\n".join(lines) or f"see status and message of the rows in {report.folder}")
        self.report = report


class Experiment:
    """A configuration and, once it has run, its results.

    Made by :meth:`load`, or by :meth:`open` from the folder of an earlier run.

    Attributes
    ----------
    folder : Path or None
        The run folder; None before the first run.
    """

    def __init__(self, study: Study | None, folder: Path | None = None):
        self._study = study
        self.folder = folder

    @classmethod
    def load(
        cls, source: str | Path | Mapping[str, Any], *, quick: bool = False, sets: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> Self:  # fmt: skip
        """Reads, checks and builds a configuration.

        Parameters
        ----------
        source
            A YAML file, or a mapping with the same names. Paths in a mapping are relative to the current folder.
        quick
            Apply the ``quick:`` mapping of the configuration.
        sets
            Changes by key path, as ``--set`` of the command line takes them: ``{"topology.n": 64}``.
        overrides
            The same, with two underscores for a dot: ``topology__n=64, loads=[0.1, 0.2]``.

        Raises
        ------
        ConfigError
            With everything that is wrong, one line each; ``mistakes`` has them one by one.
        """
        changes = dict(sets or {}) | {key.replace("__", "."): value for key, value in overrides.items()}
        lines = [f"{key}={_flow(value)}" for key, value in changes.items()]
        if isinstance(source, Mapping):
            text = yaml.safe_dump(_plain(source), sort_keys=False, allow_unicode=True)
            return cls(read(MAPPING, lines, quick, text=text))
        return cls(read(source, lines, quick))

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """An experiment that has run, from its folder.

        Raises
        ------
        FileNotFoundError
            The folder holds no run.
        """
        if not (Path(folder) / "manifest.json").exists():
            raise FileNotFoundError(f"{folder}: no run folder: it holds no manifest.json")
        return cls(None, Path(folder))

    @property
    def study(self) -> Study:
        """The configuration as it was understood; of an opened folder, read from its config.resolved.yaml."""
        if self._study is None:
            assert self.folder is not None
            self._study = read(self.folder / "config.resolved.yaml")
        return self._study

    @property
    def scenarios(self) -> dict[str, Case]:
        """Every scenario by its label.

        Of each, among others: ``topology``, ``routes``, ``certificate`` (why it cannot deadlock), ``loads``, ``seeds``
        and ``scenario``, the object that the engines and :mod:`fluid` take.
        """
        return {case.label: case for case in self.study.cases}

    @property
    def warnings(self) -> list[str]:
        """What is odd about the configuration, but no mistake."""
        return self.study.warnings

    def check(self) -> "pd.DataFrame":
        """What would run: a row for each scenario, with its size, points, ceilings and certificate against deadlock."""
        import pandas as pd

        return pd.DataFrame([_described(case) for case in self.study.cases]).set_index("scenario")

    def run(self, out: str | Path | None = None, jobs: int | None = None, threads: int = 1) -> Self:
        """Runs what the folder does not hold yet.

        Parameters
        ----------
        out
            The run folder; by default ``runs/<name>``, as on the command line.
        jobs
            Processes; by default as many as have a processor for each of their threads. 1 computes in this process.
        threads
            Threads that may share a simulation, where that is possible; results are the same for any number.

        Returns
        -------
        The experiment itself, with the results.

        Raises
        ------
        RunError
            Some points failed, or a simulation passed its ceiling. The frames hold what succeeded.
        StoreError
            The folder cannot be written, or another run is using it.
        KeyboardInterrupt
            The run was interrupted; the same call goes on from what is in the folder.
        """
        folder = Path("runs") / self.study.name if out is None else Path(out)
        with _without_main():
            report = run_study(self.study, folder, jobs or processes(threads), threads=threads)
        self.folder = folder
        if report.exit_code == INTERRUPTED:
            raise KeyboardInterrupt
        if report.exit_code:
            raise RunError(report)
        return self

    @property
    def results(self) -> "pd.DataFrame":
        """results.csv: a row for each scenario, load and seed."""
        return self._frame("results.csv")

    @property
    def ceilings(self) -> "pd.DataFrame":
        """ceilings.csv: every ceiling as a certified interval [lower, upper]."""
        return self._frame("ceilings.csv")

    @property
    def metrics(self) -> "pd.DataFrame":
        """metrics.csv: a row for each scenario of an experiment other than a load sweep."""
        return self._frame("metrics.csv")

    @property
    def flows(self) -> "pd.DataFrame":
        """flows.csv: a row for each flow of mode datagram."""
        return self._frame("flows.csv")

    @property
    def saturation(self) -> "pd.DataFrame":
        """saturation.csv: a row for each scenario whose saturation point was searched for."""
        return self._frame("saturation.csv")

    @property
    def published(self) -> "pd.DataFrame":
        """published.csv: published and measured values, with the verdict."""
        return self._frame("published.csv")

    @property
    def columns(self) -> "pd.DataFrame":
        """The columns of results.csv that were measured, by name: unit, label of an axis, and what each means."""
        import pandas as pd

        run = Run.read(self._ran())
        forms: list[Table] = ["programs"] if run.of_programs else ["flows", "packets"] if run.of_flows else ["packets"]
        table = columns(*forms)
        found = [table[name] for name in self.results.columns if name in table]
        rows = [{"column": one.name, "unit": one.unit, "label": one.axis, "meaning": one.meaning} for one in found]
        return pd.DataFrame(rows, columns=["column", "unit", "label", "meaning"]).set_index("column")

    def table(self, name: str) -> "pd.DataFrame":
        """Any table of the run folder by the name of its file: of an application ``steps``, ``ranks``, ..."""
        return self._frame(f"{name}.csv")

    def plot(self, name: str = "latency_load", ax: "Axes | None" = None) -> "Axes":
        """Draws one of the figures that ``simrun plot`` draws.

        Parameters
        ----------
        name
            ``latency_load``, ``accepted_load``, ... of a load sweep; else the name of one of ``outputs.plots``.
        ax
            Axes to draw on; by default new ones, in a figure of the size of a paper's column.

        Raises
        ------
        ValueError
            There is no such figure, or nothing to show in it.
        """
        from flitlab.sim.report.figures.draw import draw_on
        from flitlab.sim.report.folder.plugins import know_figures

        alone = ax is None
        ax = _column() if ax is None else ax
        know_figures(self._ran(), [name])
        draw_on(ax, Run.read(self._ran()), name, alone=alone)
        return ax

    def _ran(self) -> Path:
        if self.folder is None:
            raise RuntimeError("this experiment has not run: call run(), or Experiment.open(DIR) for an earlier run")
        return self.folder

    def _frame(self, name: str) -> "pd.DataFrame":
        import pandas as pd

        path = self._ran() / name
        if not path.exists():
            held = ", ".join(sorted(file.name for file in path.parent.glob("*.csv")))
            raise FileNotFoundError(f"{path.parent}: this run has no {name}; it has {held or 'no tables'}")
        try:
            # names such as "NA" are no missing numbers
            return pd.read_csv(path, keep_default_na=False, na_values=[""])
        except pd.errors.EmptyDataError:
            return pd.DataFrame()

    def __repr__(self) -> str:
        name = self._study.name if self._study is not None else self._ran().name
        return f"<Experiment {name}, {f'in {self.folder}' if self.folder else 'not run yet'}>"


def _described(case: Case) -> dict[str, Any]:
    topology = case.topology
    return {
        "scenario": case.label, **case.keys, "switches": topology.switches, "channels": topology.channels,
        "hosts": topology.hosts, "points": len(case.loads) * len(case.seeds) if case.scenario else 0,
        "ceilings": ", ".join(spec.kind for spec in case.ceilings), "certificate": case.certificate,
    }  # fmt: skip


def _column() -> "Axes":
    """Axes of their own on a screen, at the proportions of a figure in a paper."""
    from matplotlib import pyplot

    from flitlab.sim.report.figures.style import in_style

    # not within the style: the first figure chooses the backend, and what that sets in a notebook would end with it
    figure = pyplot.figure(figsize=COLUMN, layout="constrained", dpi=200)
    return in_style(figure.add_subplot)()


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    text: str = yaml.safe_dump([_plain(value)], default_flow_style=True, width=sys.maxsize, allow_unicode=True)
    return text.strip()[1:-1]


def _plain(value: Any) -> Any:
    """Mappings, lists and scalars as YAML knows them, from what is usual in Python."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


@contextmanager
def _without_main() -> Iterator[None]:
    """Hides the calling script from new processes, which would import it and so run it again; ours need none of it."""
    main = sys.modules["__main__"].__dict__
    kept: dict[str, Any] = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.pop("__spec__")
        main.update(kept)
