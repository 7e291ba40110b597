# SPDX-License-Identifier: Apache-2.0
"""A configuration to check, run and analyse, with pandas frames and matplotlib axes."""

import json
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from warnings import warn

import yaml

from flitlab.models.files import read_text
from flitlab.models.html import facts
from flitlab.models.mappings import Fields, JsonObject
from flitlab.models.registry import SpecError
from flitlab.models.signals import interruptible
from flitlab.models.validation import is_whole
from flitlab.sim.api.frames import columns_of, dataset_of, facts_of, frame_of
from flitlab.sim.api.inputs import component, configuration, plain
from flitlab.sim.config.case import Case, Study
from flitlab.sim.config.draft import PROGRAMS
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.schema import SECTIONS
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import NOT_AS_WRITTEN, altered, read_manifest
from flitlab.sim.experiment.store import Memory, Store
from flitlab.sim.measure.columns.registry import Column

if TYPE_CHECKING:  # slow imports are deferred
    import pandas as pd
    import xarray
    from matplotlib.axes import Axes

    from flitlab.sim.experiment.runner import Report

MAPPING = "configuration"
"""Name in messages of a configuration without a file, and name of its run folder."""

COLUMN = (3.5, 2.4)
"""Size of a figure in inches, as in ``sim/report/figures/style.mplstyle``."""

MAX_ROWS = 20
"""Rows of the table of scenarios in a notebook."""

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Writer of YAML: that of libyaml, if PyYAML has it, takes a tenth of the time."""

MAX_PROBLEMS = 20
"""Problems that are listed; further ones are counted."""


class RunError(Exception):
    """Points or ceilings of a run failed, or a simulation exceeded its ceiling.

    Successful results are in the run folder and in the frames of the experiment. ``report`` has all problems.
    """

    def __init__(self, report: "Report"):
        unlisted = len(report.problems) - MAX_PROBLEMS
        lines = [*report.problems[:MAX_PROBLEMS], *([f"... and {unlisted} more"] if unlisted > 0 else [])]
        super().__init__("\n".join(lines) or f"see status and message of the rows in {report.folder}")
        self.report = report


class Experiment:
    """A configuration and, once it has run, its results.

    Made by :meth:`load`, or by :meth:`open` from the folder of an earlier run.

    Attributes
    ----------
    folder : Path or None
        The run folder; None before the first run, and where that is kept in memory.
    """

    def __init__(self, study: Study | None, folder: Path | None = None, trust_plugins: bool = True):
        self._study = study
        self._trust_plugins = trust_plugins
        self._memory: Memory | None = None
        self.folder = folder

    @classmethod
    def load(
        cls, source: str | Path | Mapping[str, object], *, quick: bool = False,
        sets: Mapping[str, object] | None = None, **overrides: object,
    ) -> Self:  # fmt: skip
        """Reads, checks and builds a configuration.

        Parameters
        ----------
        source
            A YAML file, or a mapping with the same names. Paths in a mapping are relative to the current folder.
            In place of a component's mapping its name will do, of ``topology`` a networkx graph or a ``Topology``,
            of ``traffic`` a matrix of demands: an array [hosts, hosts] or [switches, switches] in flits per tick at
            load 1, taken as it is, or a data frame whose index and columns have the labels of hosts or switches. A
            graph may have keys of ``kind: file`` beside it: ``{"graph": graph, "pair_directions": True}``.
        quick
            Apply the ``quick:`` mapping of the configuration.
        sets
            Changes by key path, as ``--set`` of the command line takes them: ``{"topology.n": 64}``.
        overrides
            The same, with two underscores for a dot: ``topology__n=64, loads=[0.1, 0.2]``.

        Raises
        ------
        ConfigError
            With everything that is wrong, one line each; ``errors`` has them one by one.
        """
        changes = dict(sets or {}) | {key.replace("__", "."): value for key, value in overrides.items()}
        whole = configuration(source) if isinstance(source, Mapping) else None
        topology = changes.get("topology", source.get("topology") if isinstance(source, Mapping) else None)
        components = {
            key: component(key, value, topology) if key in SECTIONS else value for key, value in changes.items()
        }
        lines = [f"{key}={_flow(value, key)}" for key, value in components.items()]
        if whole is not None:
            text = yaml.dump(whole, Dumper=DUMPER, sort_keys=False, allow_unicode=True)
            return cls(read(MAPPING, lines, quick, text=text))
        return cls(read(str(source), lines, quick))

    @classmethod
    def open(cls, folder: str | Path, *, trust_plugins: bool = False) -> Self:
        """An experiment that has run, from its folder.

        Parameters
        ----------
        folder
            The run folder.
        trust_plugins
            Import the plugins that the configuration in the folder names, where they are needed: they are code, with
            all your rights. Without, what needs them raises ``ConfigError``, unless they are imported already.

        Raises
        ------
        FileNotFoundError
            The folder holds no run.
        ValueError
            Its manifest is damaged. Files that are not as the run wrote them cause a warning.
        """
        if not (Path(folder) / "manifest.json").exists():
            raise FileNotFoundError(f"{folder}: no run folder: it holds no manifest.json")
        for name in altered(Path(folder), read_manifest(Path(folder))):
            warn(f"{Path(folder) / name}: {NOT_AS_WRITTEN}", stacklevel=2)
        return cls(None, Path(folder), trust_plugins)

    @property
    def study(self) -> Study:
        """The validated configuration; of an opened folder, read from its config.resolved.yaml."""
        if self._study is None:
            assert self.folder is not None, "an experiment has one of the two"
            self._study = read(self.folder / "config.resolved.yaml", trust_plugins=self._trust_plugins)
        return self._study

    @property
    def scenarios(self) -> dict[str, Case]:
        """Every scenario by its label.

        A scenario has ``topology``, ``routes``, ``certificate`` (why it cannot deadlock), ``loads``, ``seeds`` and
        ``scenario``, the object that the engines and :mod:`fluid` take, among others.
        """
        return {case.label: case for case in self.study.cases}

    @property
    def warnings(self) -> list[str]:
        """Warnings about the configuration."""
        return self.study.warnings

    @interruptible()
    def check(self) -> "pd.DataFrame":
        """What would run: a row for each scenario, with its size, points, ceilings and certificate against deadlock."""
        import pandas as pd

        return pd.DataFrame([_described(case) for case in self.study.cases]).set_index("scenario")

    def run(self, out: str | Path | None = None, jobs: int | None = None, threads: int = 1) -> Self:
        """Runs what has not been run yet.

        Parameters
        ----------
        out
            The run folder, such as ``runs/<name>``, where the command line has it. By default that of the experiment,
            or none: everything is then kept in memory, until a folder is given.
        jobs
            Processes; by default as many as have a processor for each of their threads. 1 computes in this process.
        threads
            Threads that may share a simulation, where that is possible; results are the same for any number.

        Returns
        -------
        The experiment itself, with the results.

        Raises
        ------
        ValueError
            ``jobs`` or ``threads`` is no whole number from 1.
        RunError
            Some points failed, or a simulation passed its ceiling. The frames hold what succeeded.
        StoreError
            The folder cannot be written, or another run is using it.
        KeyboardInterrupt
            The run was interrupted; the same call goes on from what is in the folder.
        """
        from flitlab.sim.experiment.pool import RunOptions
        from flitlab.sim.experiment.runner import run

        threads = _count("threads", threads)
        options = RunOptions.of(None if jobs is None else _count("jobs", jobs), threads)
        folder = self.folder if out is None else Path(out)
        study, memory = self.study, self._memory or Memory()
        if folder is not None and self._memory is not None:
            with closing(Store(folder)):
                memory.copy(folder)
        with _without_main():
            report = run(study, memory if folder is None else folder, options)
        self.folder, self._memory = folder, memory if folder is None else None
        if report.exit_code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if report.exit_code:
            raise RunError(report)
        return self

    @property
    def results(self) -> "pd.DataFrame":
        """results.csv: a row for each scenario, load and seed.

        ``attrs["units"]`` and ``attrs["meaning"]`` of a frame have the unit of each column, and what it is.
        """
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
        """flows.csv: a row for each flow of modes datagram and spray."""
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

        names = list(self.results.columns)
        table = columns_of("results.csv", self._of_programs, "host_throughput" in names)
        measured = [table[name] for name in names if name in table]
        rows = [{"column": one.name, "unit": one.unit, "label": one.axis, "meaning": one.meaning} for one in measured]
        return pd.DataFrame(rows, columns=["column", "unit", "label", "meaning"]).set_index("column")

    def table(self, name: str) -> "pd.DataFrame":
        """Any table of the run folder by the name of its file: of an application ``steps``, ``ranks``, ..."""
        return self._frame(f"{name}.csv")

    def dataset(self, name: str = "results", over: Sequence[str] = ()) -> "xarray.Dataset":
        """Any table of the run as a dataset of xarray, with a dimension for each thing that was varied.

        Dimensions are the swept keys, by the names that they have in results.csv, then the columns ``over``, ``load``
        and ``seed`` as far as the table has them; of ceilings also ``ceiling``. Cells of combinations that were not run
        are empty (NaN, or ''); a ceiling that does not depend on the load stands at every load. ``attrs`` of a variable
        have its ``units``, ``long_name`` and ``description``.

        Parameters
        ----------
        name
            The name of a table's file: ``results``, ``ceilings``, ``metrics``, ``saturation``, ``flows``, ...
        over
            Columns that are dimensions, too, of tables with several rows for each point, such as ``["flow"]``.

        Raises
        ------
        ModuleNotFoundError
            xarray is not installed: it comes with ``pip install 'flitlab[xarray]'``.
        ValueError
            The dimensions do not tell all rows apart.
        KeyError
            The table has no such column.
        """
        manifest = self._manifest
        keys = {scenario["label"]: scenario["keys"] for scenario in manifest.get("scenarios", [])}
        version = manifest["versions"].get("flitlab") or ""
        about = {"title": manifest["name"], "source": f"flitlab {version}".strip()}
        frame, over = self.table(name), ["ceiling", *over] if name == "ceilings" else over
        return dataset_of(frame, keys, self._known(f"{name}.csv", frame), over, about)

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
        from flitlab.sim.report.figures.draw import draw_on, load_figure_plugins
        from flitlab.sim.report.folder.run import Run

        single = ax is None
        ax = _column() if ax is None else ax
        with self._on_disk() as folder:
            load_figure_plugins(folder, [name], self._trust_plugins)
            draw_on(ax, Run.read(folder), name, single=single)
        return ax

    @contextmanager
    def _on_disk(self) -> Iterator[Path]:
        """The run folder; of a run in memory, a temporary copy."""
        self._require_run()
        if self.folder is not None:
            yield self.folder
            return
        assert self._memory is not None
        with tempfile.TemporaryDirectory() as folder:
            self._memory.copy(Path(folder))
            yield Path(folder)

    def _require_run(self) -> None:
        if self.folder is None and self._memory is None:
            raise RuntimeError("this experiment has not run: call run(), or Experiment.open(DIR) for an earlier run")

    @property
    def _tables(self) -> dict[str, Path | str]:
        """The tables of the run by name: files, or texts in memory."""
        self._require_run()
        if self.folder is not None:
            return {file.name: file for file in sorted(self.folder.glob("*.csv"))}
        assert self._memory is not None
        return {name: text for name, text in sorted(self._memory.files.items()) if name.endswith(".csv")}

    @property
    def _of_programs(self) -> bool:
        """Whether the results are those of programs."""
        if self._study is not None:
            return self._study.runs_programs
        return self._manifest.get("experiment") in PROGRAMS

    @property
    def _manifest(self) -> JsonObject:
        """The contents of manifest.json."""
        self._require_run()
        if self.folder is not None:
            text = read_text(self.folder / "manifest.json")
        else:
            assert self._memory is not None
            text = self._memory.files["manifest.json"]
        manifest: JsonObject = json.loads(text)
        return manifest

    def _frame(self, name: str) -> "pd.DataFrame":
        tables = self._tables
        if name not in tables:
            location = "memory" if self.folder is None else self.folder
            raise FileNotFoundError(f"{location}: this run has no {name}; it has {', '.join(tables) or 'no tables'}")
        return frame_of(tables[name], self._known(name, frame_of(tables[name], ())))

    def _known(self, name: str, frame: "pd.DataFrame") -> Collection[Column]:
        """The known columns of a table."""
        return columns_of(name, self._of_programs, "host_throughput" in frame.columns).values()

    def __repr__(self) -> str:
        name = self.folder.name if self._study is None and self.folder is not None else self.study.name
        return f"<Experiment {name}, {self._state}>"

    @property
    def _state(self) -> str:
        if self.folder is not None:
            return f"in {self.folder}"
        return "not run yet" if self._memory is None else "in memory"

    def _repr_html_(self) -> str:
        """HTML for notebooks: name, location of the results, and scenarios."""
        tables = ", ".join(self._tables) if self.folder or self._memory else None
        about = {**facts_of(self.study), "results": self._state, "tables": tables}
        scenarios: str = self.check().to_html(max_rows=MAX_ROWS)
        return facts(f"Experiment {self.study.name}", about) + scenarios


def _described(case: Case) -> JsonObject:
    topology = case.topology
    return {
        "scenario": case.label, **case.keys, "switches": topology.switches, "channels": topology.channels,
        "hosts": topology.hosts, "points": len(case.loads) * len(case.seeds) if case.scenario else 0,
        "ceilings": ", ".join(spec.kind for spec in case.ceilings), "certificate": case.certificate,
    }  # fmt: skip


def _column() -> "Axes":
    """Axes of their own on a screen, with the proportions of a figure in a paper."""
    from matplotlib import pyplot

    from flitlab.sim.report.figures.style import in_style

    # outside of the style context, which would reset what the first figure's backend sets in a notebook
    figure = pyplot.figure(figsize=COLUMN, layout="constrained", dpi=200)
    return in_style(figure.add_subplot)()


def _count(name: str, value: Any) -> int:
    """A number of processes or threads. Raises :class:`~flitlab.models.registry.SpecError`, a ``ValueError``."""
    if not is_whole(value) or value < 1:
        raise SpecError(f"{name} = {value!r}: must be a whole number from 1", key=name)
    return int(value)


def _flow(value: object, key: str) -> str:
    """The value of a key as YAML on one line."""
    text: str = yaml.safe_dump([plain(value, key)], default_flow_style=True, width=sys.maxsize, allow_unicode=True)
    return text.strip()[1:-1]


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the calling script from new processes, which would import and so run it again."""
    main = sys.modules["__main__"].__dict__
    saved: Fields = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.pop("__spec__")
        main.update(saved)
