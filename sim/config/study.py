# SPDX-License-Identifier: Apache-2.0
"""A configuration file, understood: everything that is needed to run it."""

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
from flitlab.models.switching.discipline import Discipline
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
"""The loads at which a ceiling is drawn that depends on them, where no others are known."""


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One scenario of a study.

    keys: column of results.csv -> value, for the case label and the swept keys. loads: ascending.
    again: gives the topology. metrics: what is to be measured of it. instance: None for the experiment ``metrics``.
    scenario: None where nothing is simulated. collective: of the experiment of that name. placing: how further loads
    are found, None if they are not. vary: place of the key that ``search`` varies. flit_ns: None if not given. jobs: of
    a list of applications. timeline: None where nothing happens.
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
        """The topology of the instance; where there is none, it is built again at need."""
        return self.build_topology() if self.instance is None else self.instance.topology

    @property
    def simulated(self) -> bool:
        """Whether it has points: of a load sweep or an application, in any discipline."""
        return self.scenario is not None and bool(self.loads or self.placing)

    @property
    def workload(self) -> Workload | None:
        """The program that its hosts run, if they do."""
        work = None if self.scenario is None else self.scenario.work
        return work if isinstance(work, Workload) else None

    @property
    def program(self) -> Scenario[Discipline, Workload] | None:
        """The scenario, if its hosts run a program."""
        return cast("Scenario[Discipline, Workload]", self.scenario) if self.workload is not None else None

    @cached_property
    def epochs(self) -> "list[ScenarioEpoch]":
        """The epochs of a network that changes, in order; none where it stays as it is."""
        if self.timeline is None or self.instance is None:
            return []
        return epochs_of(self.timeline, self.instance)

    @property
    def ticks(self) -> dict[str, int]:
        """Delay name -> ticks."""
        return {} if self.scenario is None else self.scenario.switching.delays

    @property
    def grid(self) -> list[float]:
        """The loads, or tenths where they are only found as the run goes."""
        return self.loads or ([] if self.placing is None else TENTHS)

    @property
    def routes(self) -> Routes | None:
        """What packets follow; None where there is no routing."""
        return None if self.instance is None else self.instance.routes

    def __repr__(self) -> str:
        return f"<Case {self.label}>"

    def _repr_html_(self) -> str:
        """Shows it in notebooks, as a table of what is simulated and bounded."""
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
    """A job of a scenario. alone: the same scenario without the others."""

    job: Job
    isolated: Case


@dataclass(frozen=True, eq=False)
class LevelScenario:
    """A scenario that a budget measures. case: None where it is left out. set: the changes that make it. note: why it
    is left out, or how it is made."""

    case: Case | None
    set: tuple[str, ...]
    note: str


@dataclass(frozen=True, eq=False)
class Budget:
    """What a budget measures of a case: rungs by name, and changes, one at a time, by theirs.

    window, times: ticks of a run, warm-up among them, and packet times; None where ``measure`` says how long it is.
    """

    case: Case
    levels: dict[str, LevelScenario]
    changes: dict[str, LevelScenario]
    window: int
    times: int | None


@dataclass(frozen=True, eq=False)
class Study:
    """All scenarios of a configuration file, and what is asked of them.

    given: the text of the file. changes: the ``--set`` options and ``--quick`` that were applied to it.
    plugins: modules and full paths of files that a process has to load before it works for this study.
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
        """All that is computed: the cases, then what is measured for their budgets, and each of their jobs alone."""
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
        """Whether its answer is a table of points, results.csv."""
        return self.experiment == "load_sweep" or self.runs_programs

    @property
    def runs_programs(self) -> bool:
        """Whether hosts run programs, instead of drawing packets."""
        return self.experiment in PROGRAMS

    @property
    def columns(self) -> list[str]:
        """Names of the columns for the case label and the swept keys."""
        return list(dict.fromkeys(key for case in self.cases for key in case.keys))

    def resolved(self) -> dict[str, Any]:
        """The configuration as it was understood, every default filled in: a configuration with the same results."""
        head: dict[str, Any] = {
            "schema": 1,
            "name": self.name,
            "experiment": self.experiment,
            "engine": self.engine,
        }
        head["outputs"] = self.outputs.model_dump(mode="json")
        if self.budgets:
            head["budget"] = {**self.budget.model_dump(mode="json"), "window": self.budgets[0].times}
        if self.plugins:
            head["plugins"] = self.plugins
        if self.published:
            head["published"] = [row.model_dump(mode="json", exclude_none=True) for row in self.published]
        if self.chosen:
            head["chosen"] = [choice.model_dump(mode="json") for choice in self.chosen]
        if [case.label for case in self.cases] == [self.name] and not self.cases[0].keys:
            return head | self.cases[0].resolved
        return head | {"cases": [{"label": case.label, "keys": case.keys, **case.resolved} for case in self.cases]}


def read(
    file: str | Path,
    sets: Sequence[str] = (),
    quick: bool = False,
    engine: str | None = None,
    experiment: str | None = None,
    text: str | None = None,
    trust_plugins: bool = True,
) -> Study:
    """Reads, checks and builds a configuration.

    sets: ``key.path=value`` changes. quick: apply the ``quick:`` mapping of the file, if it has one.
    engine, experiment: in place of the file's (but ``ceilings`` of an application are its own). text: of the
    configuration, where no file holds it; ``file`` is then what messages call it, and where paths begin.
    trust_plugins: whether plugins are imported that the configuration names; False where it comes from a folder.

    Raises :class:`~flitlab.sim.config.errors.ConfigError` with all mistakes.
    """
    errors: list[Diagnostic] = []
    root = load_file(file, errors, text)
    if is_sweep(root):
        problem = "is no key of a whole configuration: sweep one of its keys"
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
        # what follows from a value that could not be read would only confuse
        places = {(diagnostic.where, diagnostic.key) for diagnostic in early}
        raise ConfigError(
            early + [m for m in errors[len(early) :] if (m.where, m.key) not in places], document.warnings
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
    """The labels of the scenarios that a label, or a mapping of swept keys, means; a list fits each of its values."""
    if isinstance(which, str):
        return [case.label for case in cases if case.label == which]
    allowed = {key: value if isinstance(value, list) else [value] for key, value in which.items()}
    return [case.label for case in cases if all(swept(case, key) in allowed[key] for key in allowed)]


def swept(case: Case, key: str) -> Any:
    """A swept key of a case, by its whole path or, where that is unambiguous, its end."""
    ends = [value for path, value in case.keys.items() if path == key or path.endswith("." + key)]
    return ends[0] if len(ends) == 1 else None


def _validate_published(document: ConfigDocument, published: Sequence[PublishedConfig], cases: Sequence[Case]) -> None:
    """Refuses published values of scenarios that are not there, or of several at once without ``over``."""
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
    """Refuses ``outputs.relative_to`` that is no scenario's."""
    if which is not None and not labels_of(which, cases):
        document.reject("outputs.relative_to", "names no scenario", [case.label for case in cases])


def _validate_budget_labels(document: ConfigDocument, of: Sequence[str], cases: Sequence[Case]) -> None:
    """Refuses entries of ``budget.of`` that are no scenario's label."""
    labels = [case.label for case in cases]
    for i, label in enumerate(of):
        if label not in labels:
            document.reject(("budget", "of", i), "names no scenario", labels)


def _named(root: Node, name: str) -> Node:
    """A configuration that has a name, by default that of its file."""
    name_node = root.get("name")
    return (
        root if name_node is not None and name_node.value is not None else put(root, ("name",), Node(name, root.file))
    )


def _cases(
    root: Node, document: ConfigDocument, name: str, experiment: str, base: Path
) -> tuple[list[Case], list[Budget], Config]:
    """The scenarios of a study, the budgets of those that have one, and the configuration of the last of them."""
    cases: list[Case] = []
    budgets: list[Budget] = []
    config, points, builder = Config(), 0, Builder()
    # also the keys that no scenario sees are checked, on any scenario
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
            draft.reject("switching.mode", "has no budget: only of packets is it told where they are lost")
    return cases, budgets, config


def _is_budgeted(config: Config, case: Case) -> bool:
    """Whether a scenario is one of those that ``budget.of`` names, if it names any."""
    return config.budget.of is None or case.label in config.budget.of


def _is_idle(draft: Draft, case: Case) -> bool:
    """Whether there would be nothing to run at all, though something is to be run."""
    return draft.experiment == "load_sweep" and not case.simulated


def _budget(builder: Builder, draft: Draft, variant: Variant, case: Case, built: Built) -> Budget:
    """The budget of a case: everything that it measures has its own stable load, found in the same way."""
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
    """What a configuration is built to. Whatever else the code of plugins raises than it should is a mistake of it."""
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
    """The loads, or what stands for those of programs and of flows, that have none."""
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
    """A case without all jobs but one."""
    assert case.program is not None
    scenario = isolated(case.program, job)
    return replace(
        case, label=f"{case.label}: {job.name} alone", instance=scenario.instance, scenario=scenario, ceilings=ceilings
    )  # fmt: skip
