# SPDX-License-Identifier: Apache-2.0
"""A validated configuration file, with all that a run needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.application.workload import Workload
from flitlab.models.html import facts
from flitlab.models.instance import Instance
from flitlab.models.metrics.spec import MetricSpec
from flitlab.models.routing.routes import Routes
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.timeline.epochs import Timeline
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.application import PROGRAM_LOAD, reject_misplaced_keys
from flitlab.sim.config.budget import BudgetScenario, budget_scenarios, has_budget
from flitlab.sim.config.build import Builder, Built
from flitlab.sim.config.check import crash
from flitlab.sim.config.collective import Collective, expand_algorithms, reject_empty_study
from flitlab.sim.config.compatibility import validate_demand
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.draft import BUDGET, PROGRAMS, Draft, experiment_run
from flitlab.sim.config.errors import ConfigError, Diagnostic
from flitlab.sim.config.expand import Variant, expand
from flitlab.sim.config.experiments import AdaptiveConfig, BudgetConfig, RelativeConfig, SaturationConfig, SearchConfig
from flitlab.sim.config.files import with_files
from flitlab.sim.config.flows import LONG_LIVED_LOAD, counts_flows
from flitlab.sim.config.jobs import Job, isolated
from flitlab.sim.config.limits import has_too_many_points
from flitlab.sim.config.load import KeyPath, Node, load_file, read_text
from flitlab.sim.config.overrides import apply_quick, apply_set, is_sweep, put
from flitlab.sim.config.plugins import load_plugins, path_of
from flitlab.sim.config.reporting import ChoiceConfig, OutputsConfig, PublishedConfig
from flitlab.sim.config.requirements import ceilings_of, plain_question, require_keys, search_path
from flitlab.sim.config.schema import Config, MeasureConfig
from flitlab.sim.config.timeline import ScenarioEpoch, epochs_of
from flitlab.sim.config.units import without_units

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
    """

    label: str
    keys: dict[str, Any]
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
    resolved: dict[str, Any]
    jobs: tuple["JobCase", ...] = ()
    timeline: Timeline | None = None

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
        """The program that its hosts run; None if there is none."""
        work = None if self.scenario is None else self.scenario.work
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
    def grid(self) -> list[float]:
        """The loads, or tenths if a search finds them."""
        return self.loads or ([] if self.placing is None else TENTHS)

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
            **self.keys, "topology": f"{topology.kind}, {topology.switches} switches, {topology.hosts} hosts",
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
    set: tuple[str, ...]
    note: str


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

    def resolved(self) -> dict[str, Any]:
        """The configuration with every default: a configuration with the same results."""
        common: dict[str, Any] = {
            "schema": 1,
            "name": self.name,
            "experiment": self.experiment,
            "engine": self.engine,
        }
        common["outputs"] = self.outputs.model_dump(mode="json")
        if self.budgets:
            common["budget"] = {**self.budget.model_dump(mode="json"), "window": self.budgets[0].times}
        if self.plugins:
            common["plugins"] = self.plugins
        if self.published:
            common["published"] = [row.model_dump(mode="json", exclude_none=True) for row in self.published]
        if self.chosen:
            common["chosen"] = [choice.model_dump(mode="json") for choice in self.chosen]
        if [case.label for case in self.cases] == [self.name] and not self.cases[0].keys:
            return common | self.cases[0].resolved
        return common | {"cases": [{"label": case.label, "keys": case.keys, **case.resolved} for case in self.cases]}


def read(
    file: str | Path,
    sets: Sequence[str] = (),
    quick: bool = False,
    engine: str | None = None,
    experiment: str | None = None,
    text: str | None = None,
    trust_plugins: bool = True,
) -> Study:
    """Read, validate and build a configuration.

    Parameters
    ----------
    file: path of the configuration.
    sets: ``key.path=value`` changes.
    quick: whether to apply the ``quick:`` mapping of the file, if it has one.
    engine, experiment: in place of the file's; ``ceilings`` of an application are its own.
    text: the configuration, if no file holds it; ``file`` is then its name in messages, and the base of relative paths.
    trust_plugins: whether plugins of the configuration are imported; False if it comes from a folder.

    Raises
    ------
    ConfigError: with all errors.
    """
    errors: list[Diagnostic] = []
    root = load_file(file, errors, text)
    if is_sweep(root):
        problem = "a whole configuration cannot be swept: sweep one of its keys"
        raise ConfigError([Diagnostic(root.nearest(["sweep"]).where, "sweep", "", problem)])
    root = apply_quick(root, errors) if quick else root
    for change in sets:
        root = apply_set(root, change, errors)
    root = without_units(_named(root, Path(file).stem), errors)
    base = Path(file).resolve().parent
    root = with_files(root, base, errors)
    early = list(errors)
    root = expand_algorithms(root)
    document = ConfigDocument(root, errors)
    load_plugins(document, base, trust_plugins)
    own = document.at("experiment") or "load_sweep"
    if own in PROGRAMS and experiment in ("load_sweep", BUDGET):
        document.reject("experiment", "this command needs a load sweep")
        raise ConfigError(errors)
    experiment = own if own in PROGRAMS and experiment == "ceilings" else experiment or own
    name = str(document.at("name"))
    cases, budgets, config = _cases(root, document, name, str(experiment), base)
    if experiment == BUDGET:
        name += f"-{BUDGET}"
    if not errors and not cases:
        reject_empty_study(document, config.collective)
    if not errors:
        _validate_published(document, config.published, cases)
        _validate_relative_to(document, config.outputs.relative_to, cases)
        _validate_budget_labels(document, config.budget.of or [], cases)
    if errors:
        # errors that follow from an unreadable value would mislead
        locations = {(diagnostic.where, diagnostic.key) for diagnostic in early}
        raise ConfigError(
            early + [m for m in errors[len(early) :] if (m.where, m.key) not in locations], document.warnings
        )
    return Study(
        file=str(file),
        name=name + ("-quick" if quick and document.has("quick") else ""),
        experiment=experiment_run(str(experiment)),
        engine=engine or config.engine,
        outputs=config.outputs,
        published=config.published,
        chosen=config.chosen,
        cases=cases,
        warnings=list(dict.fromkeys(map(str, document.warnings))),
        text=read_text(file) if text is None else text,
        changes=[f"--set {change}" for change in sets] + ["--quick"] * quick,
        plugins=[path_of(name, base) for name in config.plugins],
        budgets=budgets,
        budget=config.budget,
    )


def labels_of(which: str | dict[str, Any], cases: Sequence[Case]) -> list[str]:
    """The labels of the scenarios that match a label, or a mapping of swept keys to values or lists of values."""
    if isinstance(which, str):
        return [case.label for case in cases if case.label == which]
    allowed = {key: value if isinstance(value, list) else [value] for key, value in which.items()}
    return [case.label for case in cases if all(swept(case, key) in allowed[key] for key in allowed)]


def swept(case: Case, key: str) -> Any:
    """The value of a swept key of a case, by its path or an unambiguous end of it."""
    ends = [value for path, value in case.keys.items() if path == key or path.endswith("." + key)]
    return ends[0] if len(ends) == 1 else None


def _validate_published(document: ConfigDocument, published: Sequence[PublishedConfig], cases: Sequence[Case]) -> None:
    """Reject published values of unknown scenarios, or of several without ``over``."""
    labels = [case.label for case in cases]
    for i, entry in enumerate(published):
        if entry.per is not None and all(swept(case, entry.per) is None for case in cases):
            document.reject(
                ("published", i, "per"), "is no swept key", sorted({key for case in cases for key in case.keys})
            )
        for key in ("scenario", "relative_to"):
            which = getattr(entry, key)
            matches = [] if which is None else labels_of(which, cases)
            if which is None or len(matches) == 1 or (matches and entry.over):
                continue
            problem = "names no scenario" if entry.over else "does not name one scenario"
            if matches:
                problem += f" but {len(matches)}: say over: mean, min, max or sum"
            document.reject(("published", i, key), problem, () if matches else labels)


def _validate_relative_to(document: ConfigDocument, which: str | dict[str, Any] | None, cases: Sequence[Case]) -> None:
    """Reject ``outputs.relative_to`` without a matching scenario."""
    if which is not None and not labels_of(which, cases):
        document.reject("outputs.relative_to", "names no scenario", [case.label for case in cases])


def _validate_budget_labels(document: ConfigDocument, of: Sequence[str], cases: Sequence[Case]) -> None:
    """Reject entries of ``budget.of`` that are no labels."""
    labels = [case.label for case in cases]
    for i, label in enumerate(of):
        if label not in labels:
            document.reject(("budget", "of", i), "names no scenario", labels)


def _named(root: Node, name: str) -> Node:
    """A configuration with a name, by default that of its file."""
    name_node = root.get("name")
    return (
        root if name_node is not None and name_node.value is not None else put(root, ("name",), Node(name, root.file))
    )


def _cases(
    root: Node, document: ConfigDocument, name: str, experiment: str, base: Path
) -> tuple[list[Case], list[Budget], Config]:
    """The scenarios of a study, their budgets, and the configuration of the last scenario."""
    cases: list[Case] = []
    budgets: list[Budget] = []
    config, points, builder = Config(), 0, Builder()
    # the keys that all scenarios share are validated with each
    for variant in expand(root, name, document.errors):
        draft = Draft(variant.node, experiment, base, document.errors, document.warnings)
        config = draft.config
        ceilings = ceilings_of(draft)
        require_keys(draft)
        reject_misplaced_keys(draft)
        vary = search_path(draft) if draft.experiment == "search" else ()
        built = _built(builder, draft)
        if built is None:
            continue
        if built.instance is not None:
            validate_demand(draft, built.instance, ceilings)
        built = replace(built, resolved=built.resolved | plain_question(draft, ceilings))
        cases.append(_case(variant, draft, built, ceilings, vary))
        points += len(config.load_list) * len(config.seeds)
        if has_too_many_points(document, points):
            break
        if not _is_budgeted(config, cases[-1]):
            continue
        if has_budget(draft):
            budgets += [_budget(builder, draft, variant, cases[-1], built)] if built.scenario is not None else []
        elif BUDGET in config.outputs.figures and (experiment == BUDGET or _is_idle(draft, cases[-1])):
            draft.reject("switching.mode", "has no budget: budgets are for modes that simulate packets")
    return cases, budgets, config


def _is_budgeted(config: Config, case: Case) -> bool:
    """Whether ``budget.of`` includes a scenario."""
    return config.budget.of is None or case.label in config.budget.of


def _is_idle(draft: Draft, case: Case) -> bool:
    """Whether a load sweep has no points."""
    return draft.experiment == "load_sweep" and not case.simulated


def _budget(builder: Builder, draft: Draft, variant: Variant, case: Case, built: Built) -> Budget:
    """The budget of a case: each of its scenarios gets its own search, with equal settings."""
    scenarios = budget_scenarios(builder, draft, variant.node, built)
    ceilings = [spec for spec in case.ceilings if not spec.by_load]

    def level(name: str, one: BudgetScenario) -> LevelScenario:
        if one.built is None or one.built.scenario is None:
            return LevelScenario(None, one.set, one.note)
        of = replace(
            case, label=f"{case.label}: {name}", instance=one.built.instance, scenario=one.built.scenario, loads=[],
            placing=draft.config.budget, measure=scenarios.measure, ceilings=ceilings,
            certificate=one.built.certificate, resolved=one.built.resolved,
        )  # fmt: skip
        return LevelScenario(of, one.set, one.note)

    levels, changes = (
        {name: level(name, one) for name, one in part.items()} for part in (scenarios.levels, scenarios.changes)
    )
    return Budget(case, levels, changes, scenarios.ticks, scenarios.times)


def _built(builder: Builder, draft: Draft) -> Built | None:
    """The scenario of a configuration. An exception in the code of plugins becomes an error."""
    try:
        return builder.build(draft)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not draft.config.plugins:
            raise
        draft.reject("plugins", f"what they register could not be built: {crash(error)}")
        return None


def _loads(draft: Draft) -> list[float]:
    """The loads; programs and flows without loads have one."""
    if draft.runs_program:
        return [PROGRAM_LOAD]
    has_flows = draft.experiment == "load_sweep" and counts_flows(draft)
    return draft.config.load_list or ([LONG_LIVED_LOAD] if has_flows else [])


def _case(variant: Variant, draft: Draft, built: Built, ceilings: list[CeilingSpec], vary: KeyPath) -> Case:
    config = draft.config
    case = Case(
        label=variant.label, keys=variant.keys, build_topology=built.build_topology, metrics=built.metrics,
        instance=built.instance, scenario=built.scenario, collective=built.collective,
        loads=_loads(draft), placing=config.placing, seeds=config.seeds,
        measure=config.measure, ceilings=ceilings, relative=config.relative, search=config.search, vary=vary,
        flit_ns=None if draft.switching is None else draft.switching.tick_ns,
        certificate=built.certificate,
        resolved={k: v for k, v in built.resolved.items() if v is not None}, timeline=built.timeline,
    )  # fmt: skip
    if case.program is None:
        return case
    of_program = [spec for spec in ceilings if spec.of_program]
    return replace(case, jobs=tuple(JobCase(job, _isolated(case, job, of_program)) for job in built.jobs))


def _isolated(case: Case, job: Job, ceilings: list[CeilingSpec]) -> Case:
    """A case with one job only."""
    assert case.program is not None
    scenario = isolated(case.program, job)
    return replace(
        case, label=f"{case.label}: {job.name} alone", instance=scenario.instance, scenario=scenario, ceilings=ceilings
    )  # fmt: skip
