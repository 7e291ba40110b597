# SPDX-License-Identifier: Apache-2.0
"""Single questions about a network, answered in memory: what it delivers, and what it could deliver at most."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from flitlab.fluid.ceiling import Ceiling
from flitlab.models.closest_match import closest_match
from flitlab.models.signals import interruptible
from flitlab.sim.api.experiment import Experiment
from flitlab.sim.config.diagnostics import ConfigError, Diagnostic

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd
    from matplotlib.axes import Axes

SHOWN = ("load", "seed", "accepted", "latency_mean", "latency_p99", "hops_mean", "saturated", "status")
"""Columns of a simulation in a notebook."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """The answer of :func:`simulate`: a row for each load and seed, with every column of results.csv.

    A column is an attribute, too, ``simulation.accepted``: its value where there is one row, else a series.

    Attributes
    ----------
    frame : pandas.DataFrame
        All rows; ``attrs["units"]`` and ``attrs["meaning"]`` say what the columns are.
    experiment : Experiment
        What was run, with its ``scenarios``, ``ceilings`` and ``plot``; its ``run(out)`` keeps all in a folder.
    """

    frame: "pd.DataFrame"
    experiment: Experiment

    def __getattr__(self, name: str) -> Any:
        """The value of a column, or its values."""
        if name.startswith("_") or name not in self.frame.columns:
            suggestion = None if name.startswith("_") else closest_match(name, list(self.frame.columns))
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
            raise AttributeError(f"a simulation has no column {name!r}{hint}")
        column = self.frame[name]
        return column.iloc[0] if len(column) == 1 else column

    def plot(self, name: str = "latency_load", ax: "Axes | None" = None) -> "Axes":
        """Draw a figure of the simulation, as :meth:`Experiment.plot` does.

        Parameters
        ----------
        name
            ``latency_load``, ``accepted_load``, ...
        ax
            Axes to draw on; by default new ones.

        Raises
        ------
        ValueError
            There is no such figure, or nothing to show in it.
        """
        return self.experiment.plot(name, ax)

    def __dir__(self) -> list[str]:
        """Attributes, and names of columns."""
        return sorted([*super().__dir__(), *self.frame.columns])

    def __repr__(self) -> str:
        return f"<Simulation of {len(self.frame)} points>\n{self._shown.to_string(index=False)}"

    def _repr_html_(self) -> str:
        """HTML for notebooks: a table of the main columns."""
        table: str = self._shown.to_html(index=False)
        return table

    @property
    def _shown(self) -> "pd.DataFrame":
        return self.frame[[name for name in SHOWN if name in self.frame.columns]]


@interruptible()
def simulate(
    topology: object,
    routing: object = "minimal",
    traffic: object = "uniform",
    load: float | str | Sequence[float] | Mapping[str, object] = 0.5,
    *,
    seeds: int | Sequence[int] = 1,
    jobs: int = 1,
    threads: int = 1,
    **keys: Any,
) -> Simulation:
    """Simulates one scenario and measures it; nothing is written.

    Parameters
    ----------
    topology
        The name of a topology, a mapping with its keys, a networkx graph or a :class:`Topology`. Of a graph the
        attributes ``capacity`` and ``delay`` of edges and ``hosts`` of nodes count; a switch has one host if no node
        has the attribute.
    routing
        The name of a routing, or a mapping with its keys.
    traffic
        The name of a pattern, a mapping with its keys, or a matrix of demands: an array, a sparse array or a frame,
        [hosts, hosts] or [switches, switches], in flits per tick at load 1. Rows and columns of switches are in the
        order of the graph's nodes.
    load
        One load, in (0, 1], or several: the factor of the demand.
    seeds
        One seed or several; a row each.
    jobs, threads
        Processes, and threads that may share a simulation; results are the same for any number.
    keys
        Further keys of a configuration, two underscores for a dot: ``switching__vcs=4, measure__ticks=5000,
        traffic__packet_flits=8, ceilings=["mcf"], engine="reference"``.

    Raises
    ------
    ConfigError
        With everything that is wrong, one line each.
    ValueError
        ``jobs`` or ``threads`` is no whole number from 1.
    RunError
        The simulation failed, or passed a ceiling that was asked for.
    """
    config = {
        "name": "simulation", "topology": topology, "routing": routing, "traffic": traffic,
        "loads": load, "seeds": seeds if isinstance(seeds, Iterable) else [seeds], "ceilings": [],
    }  # fmt: skip
    experiment = Experiment.load(config, **keys).run(jobs=jobs, threads=threads)
    return Simulation(experiment.results, experiment)


@interruptible()
def ceiling(
    topology: object,
    demand: object = "uniform",
    kind: str | Mapping[str, object] = "mcf",
    *,
    routing: object = None,
    load: float | None = None,
    **keys: Any,
) -> Ceiling:
    """The certified interval of what a topology can carry of a demand; nothing is simulated, nothing is written.

    Parameters
    ----------
    topology, demand
        As the ``topology`` and ``traffic`` of :func:`simulate`. A matrix of demands is taken as it is, so that theta is
        its largest factor that can be carried.
    kind
        The name of a ceiling, as ``simrun list ceiling`` has them, or a mapping with its keys. ``mcf`` is what any
        routing could reach.
    routing
        As that of :func:`simulate`, for ceilings of a routing (``mcf_paths``, ``split``, ...).
    load
        Where it depends on the load (``total``).
    keys
        Further keys of a configuration, two underscores for a dot.

    Returns
    -------
    Ceiling
        With ``lower`` and ``upper``, their ``unit``, and what proves them.

    Raises
    ------
    ConfigError
        With everything that is wrong, one line each; also where there is no such ceiling of this network.
    """
    from flitlab.fluid.ceilings import ceilings
    from flitlab.fluid.problem import FluidError

    config = {
        "name": "ceiling", "experiment": "ceilings", "topology": topology, "traffic": demand,
        "ceilings": [dict(kind) if isinstance(kind, Mapping) else kind],
    }  # fmt: skip
    if routing is not None:
        config["routing"] = routing
    if load is not None:
        config["loads"] = [load]
    (case,) = Experiment.load(config, **keys).study.cases
    (spec,) = case.ceilings
    assert case.instance is not None
    try:
        rows = ceilings(case.instance, [spec], case.loads, keep_flow=True)
    except FluidError as error:
        raise _ceiling_error(spec.kind, str(error)) from None
    ceiling_row = next((row for row in rows if row.ceiling == spec.kind), None)
    if ceiling_row is None:
        raise _ceiling_error(spec.kind, "there is none of this network")
    if ceiling_row.method == "omitted":
        raise _ceiling_error(spec.kind, ceiling_row.note)
    return replace(ceiling_row, lower=float(ceiling_row.lower), upper=float(ceiling_row.upper))


def _ceiling_error(kind: str, problem: str) -> ConfigError:
    return ConfigError([Diagnostic("configuration", "ceilings[0]", kind, problem)])
