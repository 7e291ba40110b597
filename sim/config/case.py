# SPDX-License-Identifier: Apache-2.0
"""What a configuration describes, built and validated: the scenarios of a study."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.application.workload import Workload
from flitlab.models.html import facts
from flitlab.models.instance import Instance
from flitlab.models.layout.energy import EnergyBasis
from flitlab.models.mappings import Keys
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.collective import Collective
from flitlab.sim.config.diagnostics import KeyPath
from flitlab.sim.config.draft import PROGRAMS
from flitlab.sim.config.expand import Label
from flitlab.sim.config.programs import Job
from flitlab.sim.config.reporting import ChoiceConfig, OutputsConfig, PublishedConfig
from flitlab.sim.config.schema import MeasureConfig
from flitlab.sim.config.sections import (
    AdaptiveConfig,
    BudgetConfig,
    RelativeConfig,
    SaturationConfig,
    SearchConfig,
    UntilConfig,
)
from flitlab.sim.config.timeline import ScenarioEpoch, epochs_of

TENTHS = [i / 10 for i in range(1, 11)]
"""Loads at which a load-dependent ceiling is computed if no others are known."""


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """A scenario of a study.

    Parameters
    ----------
    label: unique.
    keys: column of results.csv -> value, for the case and the swept keys.
    build_topology: builds the topology.
    metrics: to be measured.
    instance: None for the experiment ``metrics``.
    scenario: None if nothing is simulated.
    collective: of the experiment ``collective``.
    loads: ascending.
    placing: search for further loads, None if there is none.
    vary: path of the key that ``search`` varies.
    flit_ns: None if unknown.
    certificate: why the VC policy is free of deadlock.
    resolved: the configuration with all defaults.
    jobs: of a list of applications.
    timeline: None for a static network.
    channels: whether its points count the traffic of channels.
    compared: whether it is one of the scenarios that published values are of.
    one_subnet: the instance of one subnet, of which the others are copies; None where there is only one.
    """

    label: str
    keys: dict[str, Label]
    build_topology: Callable[[], Topology]
    metrics: list[MetricSpec]
    instance: Instance | None
    scenario: Scenario | None
    collective: Collective | None
    loads: list[float]
    placing: SaturationConfig | AdaptiveConfig | BudgetConfig | None
    seeds: list[int]
    measure: MeasureConfig
    ceilings: list[CeilingSpec]
    relative: RelativeConfig
    search: SearchConfig | None
    vary: KeyPath
    flit_ns: float | None
    certificate: str
    resolved: Keys
    jobs: tuple["JobCase", ...] = ()
    timeline: Timeline | None = None
    channels: bool = False
    compared: bool = True
    one_subnet: Instance | None = None

    @property
    def topology(self) -> Topology:
        """The topology of the instance; without an instance, it is built at each call."""
        return self.build_topology() if self.instance is None else self.instance.topology

    @property
    def simulated(self) -> bool:
        """Whether it has points."""
        return self.scenario is not None and bool(self.loads or self.placing)

    @property
    def workload(self) -> Workload | None:
        """The program that its hosts run; None if there is none, and for a trace."""
        work = None if self.scenario is None or self.scenario.follows_trace else self.scenario.work
        return work if isinstance(work, Workload) else None

    @property
    def program(self) -> Scenario[SwitchingMode, Workload] | None:
        """The scenario, if its hosts run a program; else None."""
        return cast("Scenario[SwitchingMode, Workload]", self.scenario) if self.workload is not None else None

    @cached_property
    def epochs(self) -> "list[ScenarioEpoch]":
        """The epochs of a network that changes, in order; empty for a static network."""
        if self.timeline is None or self.instance is None:
            return []
        return epochs_of(self.timeline, self.instance)

    @property
    def ticks(self) -> dict[str, int]:
        """Delay name -> ticks."""
        return {} if self.scenario is None else self.scenario.switching.delays

    @property
    def load_grid(self) -> list[float]:
        """The loads, or tenths if a search finds them."""
        return self.loads or ([] if self.placing is None else TENTHS)

    @property
    def grid(self) -> list[float]:
        """The same, in flits per tick of a host of rate 1, as ceilings are."""
        unit = self.flits_per_load
        return self.load_grid if unit == 1 else [load * unit for load in self.load_grid]

    @property
    def flits_per_load(self) -> float:
        """Flits per tick, the unit of ceilings, of a host of rate 1 at load 1: its channel's rate; 1 if unlimited."""
        if self.scenario is not None:
            return self.scenario.switching.flits_per_load(self.topology)
        hosts = 1.0 if self.instance is None else self.instance.topology.host_capacity
        return hosts if math.isfinite(hosts) else 1.0

    @property
    def routes(self) -> Routes | None:
        """The routes; None without a routing."""
        return None if self.instance is None else self.instance.routes

    def __repr__(self) -> str:
        return f"<Case {self.label}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        topology = self.topology
        about = {
            **self.keys, "topology": f"{topology.kind}, {topology.switches} switches, {topology.physical_hosts} hosts",
            "routing": self.routes and self.routes.kind,
            "traffic": self.instance and self.instance.traffic.kind,
            "switching": self.scenario and self.scenario.switching.mode,
            "loads": ", ".join(f"{load:g}" for load in self.loads) or None,
            "seeds": ", ".join(map(str, self.seeds)) if self.scenario else None,
            "ceilings": ", ".join(spec.kind for spec in self.ceilings) or None,
            "deadlock": self.certificate or None,
        }  # fmt: skip
        return facts(f"Case {self.label}", about)


@dataclass(frozen=True, eq=False)
class JobCase:
    """A job of a scenario. isolated: the scenario without the other jobs."""

    job: Job
    isolated: Case


@dataclass(frozen=True, eq=False)
class LevelScenario:
    """A scenario that a budget measures.

    case: None if it is omitted. set: its changes, as ``--set`` takes them. note: why it is omitted, or a remark.
    """

    case: Case | None
    set: tuple[str, ...] = ()
    note: str = ""

    @property
    def scenario(self) -> Scenario | None:
        """The scenario of its case; None if it is omitted."""
        return None if self.case is None else self.case.scenario


@dataclass(frozen=True, eq=False)
class Budget:
    """The scenarios of the budget of a case: levels by name, and single changes by name.

    window: ticks of the longest run, warm-up included. times: packet times; None where ``measure`` has its length.
    """

    case: Case
    levels: dict[str, LevelScenario]
    changes: dict[str, LevelScenario]
    window: int
    times: int | None


@dataclass(frozen=True, eq=False)
class Study:
    """All scenarios of a configuration file.

    text: of the file. changes: ``--set`` options and ``--quick``. plugins: modules and absolute paths of files that
    each process must load.
    """

    file: str
    name: str
    experiment: str
    engine: str
    outputs: OutputsConfig
    published: list[PublishedConfig]
    chosen: list[ChoiceConfig]
    cases: list[Case]
    warnings: list[str]
    text: str
    changes: list[str]
    plugins: list[str]
    budgets: list[Budget]
    budget: BudgetConfig
    until: UntilConfig | None = None

    @property
    def all_cases(self) -> list[Case]:
        """The cases, the scenarios of their budgets, and each of their jobs isolated."""
        scenarios = (
            scenario
            for budget in self.budgets
            for part in (budget.levels, budget.changes)
            for scenario in part.values()
        )
        isolated_jobs = (one.isolated for case in self.cases for one in case.jobs)
        return [*self.cases, *(scenario.case for scenario in scenarios if scenario.case is not None), *isolated_jobs]

    def energy_basis(self, case: Case) -> EnergyBasis | None:
        """What the power of a case follows from; None without ``outputs.energy``.

        The rate of a channel of capacity 1 is that of ``switching``, else the rate of the profile.
        """
        if self.outputs.energy is None:
            return None
        prices = self.outputs.energy.prices()
        keys, messages = case.resolved.get("switching") or {}, case.resolved.get("messages") or {}
        if keys.get("nic_mbps") is not None:
            return EnergyBasis(prices, keys["nic_mbps"] / 1000)
        size = (messages if self.runs_programs else keys).get("flit_bytes")
        if size is None or case.flit_ns is None:
            return EnergyBasis(prices, prices.gbps)
        tick = None if case.scenario is None else case.scenario.switching.tick_ns(case.topology, 1.0)
        return EnergyBasis(prices, 8 * size * float(tick or 1) / case.flit_ns)

    @property
    def simulates(self) -> bool:
        """Whether its main table is results.csv, of simulated points."""
        return self.experiment == "load_sweep" or self.runs_programs

    @property
    def runs_programs(self) -> bool:
        """Whether hosts run programs, instead of drawing packets."""
        return self.experiment in PROGRAMS

    @property
    def columns(self) -> list[str]:
        """Columns of the case and the swept keys."""
        return list(dict.fromkeys(key for case in self.cases for key in case.keys))

    def resolved(self) -> Keys:
        """The configuration with every default: a configuration with the same results."""
        common: Keys = {
            "schema": 1,
            "name": self.name,
            "experiment": self.experiment,
            "engine": self.engine,
        }
        common["outputs"] = self.outputs.model_dump(mode="json")
        if self.budgets:
            common["budget"] = {**self.budget.model_dump(mode="json"), "window": self.budgets[0].times}
        if self.until is not None:
            common["until"] = self.until.model_dump(mode="json")
        if self.plugins:
            common["plugins"] = self.plugins
        if self.published:
            common["published"] = [row.model_dump(mode="json", exclude_none=True) for row in self.published]
        if self.chosen:
            common["chosen"] = [choice.model_dump(mode="json") for choice in self.chosen]
        if [case.label for case in self.cases] == [self.name] and not self.cases[0].keys:
            return common | self.cases[0].resolved
        return common | {"cases": [_named(case) | case.resolved for case in self.cases]}


def _named(case: Case) -> Keys:
    """The keys of a resolved case itself."""
    return {"label": case.label, "keys": case.keys} | ({} if case.compared else {"compared": False})


def labels_of(which: str | Keys, cases: Sequence[Case]) -> list[str]:
    """The labels of the scenarios that match a label, or a mapping of swept keys to values or lists of values."""
    if isinstance(which, str):
        return [case.label for case in cases if case.label == which]
    allowed = {key: value if isinstance(value, list) else [value] for key, value in which.items()}
    return [case.label for case in cases if all(swept(case, key) in allowed[key] for key in allowed)]


def swept(case: Case, key: str) -> Label | None:
    """The value of a swept key of a case, by its path or an unambiguous end of it."""
    ends = [value for path, value in case.keys.items() if path == key or path.endswith("." + key)]
    return ends[0] if len(ends) == 1 else None
