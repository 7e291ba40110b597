# SPDX-License-Identifier: Apache-2.0
"""From the text of a configuration to its cases: changes, scenarios, validation, construction."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flitlab.fluid.kinds.spec import CeilingSpec
from flitlab.models.files import name_of
from flitlab.sim.config.budget import budget_of
from flitlab.sim.config.build import build
from flitlab.sim.config.case import Budget, Case, Study, labels_of, swept
from flitlab.sim.config.checks import (
    ceilings_of,
    has_too_many_points,
    reject_misplaced_keys,
    require_keys,
    search_path,
    validate_demand,
)
from flitlab.sim.config.collective import expand_algorithms, reject_empty_study
from flitlab.sim.config.components import ComponentBuilder
from flitlab.sim.config.diagnostics import ConfigError, Diagnostic, Diagnostics, KeyPath, crash
from flitlab.sim.config.draft import BUDGET, PROGRAMS, Draft, experiment_run
from flitlab.sim.config.expand import Variant, expand, with_files
from flitlab.sim.config.networks import in_plots, network_cases
from flitlab.sim.config.overrides import apply_quick, apply_set, is_sweep, put
from flitlab.sim.config.packaged import packaged_file
from flitlab.sim.config.plugins import load_plugins, path_of
from flitlab.sim.config.schema import Config
from flitlab.sim.config.short_forms import expanded
from flitlab.sim.config.text import ConfigDocument, Node, base_of, load_file, read_text
from flitlab.sim.config.units import without_units


def read(
    file: str | Path,
    sets: Sequence[str] = (),
    quick: bool = False,
    engine: str | None = None,
    experiment: str | None = None,
    text: str | None = None,
    trust_plugins: bool = True,
    networks: Sequence[str] = (),
) -> Study:
    """Read, validate and build a configuration.

    Parameters
    ----------
    file: path of the configuration, or of one that is part of flitlab, such as ``configs/quick.yaml``.
    sets: ``key.path=value`` changes.
    quick: whether to apply the ``quick:`` mapping of the file, if it has one.
    engine, experiment: in place of the file's; ``ceilings`` of an application are its own.
    text: the configuration, if no file holds it; ``file`` is then its name in messages, and the base of relative paths.
    trust_plugins: whether plugins of the configuration are imported; False if it comes from a folder.
    networks: to add as cases that published values are not of, see :func:`~flitlab.sim.config.networks.network_cases`.

    Raises
    ------
    ConfigError: with all errors.
    """
    diagnostics = Diagnostics()
    file = file if text is not None else packaged_file(file) or file
    root = load_file(file, diagnostics, text)
    if is_sweep(root):
        problem = "a whole configuration cannot be swept: sweep one of its keys"
        raise ConfigError([Diagnostic(root.nearest(["sweep"]).where, "sweep", "", problem)])
    kind = root.get("experiment")
    if kind is not None and kind.value == "design":
        problem = f"is no simulation: simrun design {file} searches for networks"
        raise ConfigError([Diagnostic(kind.where, "experiment", "design", problem)])
    root = expanded(root)
    root = apply_quick(root, diagnostics) if quick else root
    for change in sets:
        root = expanded(apply_set(root, change, diagnostics))
    root = without_units(_named(root, name_of(file)), diagnostics)
    base = base_of(file)
    root = with_files(root, base, diagnostics)
    early = list(diagnostics.errors)
    document = ConfigDocument(expand_algorithms(root), diagnostics)
    load_plugins(document, base, trust_plugins)
    added = [network_cases(document.root, network, diagnostics) for network in networks]
    document = ConfigDocument(in_plots(document.root, added), diagnostics)
    own = document.at("experiment") or "load_sweep"
    if own in PROGRAMS and experiment in ("load_sweep", BUDGET):
        document.reject("experiment", "this command needs a load sweep")
        raise ConfigError(diagnostics.errors)
    experiment = own if own in PROGRAMS and experiment == "ceilings" else experiment or own
    name = str(document.at("name"))
    cases, budgets, config = _cases(document, [in_plots(one.root, added) for one in added], name, str(experiment), base)
    if experiment == BUDGET:
        name += f"-{BUDGET}"
    if not diagnostics.errors and not cases:
        reject_empty_study(document, config.collective)
    if not diagnostics.errors:
        _validate_labels(document, config, cases)
    if diagnostics.errors:
        # errors that follow from an unreadable value would mislead
        locations = {(error.where, error.key) for error in early}
        later = [error for error in diagnostics.errors[len(early) :] if (error.where, error.key) not in locations]
        raise ConfigError(early + later, diagnostics.warnings)
    return Study(
        file=str(file),
        name=name + ("-quick" if quick and document.has("quick") else ""),
        experiment=experiment_run(str(experiment)),
        engine=engine or config.engine,
        outputs=config.outputs,
        published=config.published,
        chosen=config.chosen,
        cases=cases,
        warnings=list(dict.fromkeys(map(str, diagnostics.warnings))),
        text=read_text(file) if text is None else text,
        changes=[f"--set {change}" for change in sets]
        + ["--quick"] * quick
        + [f"--network {network}" for network in networks],
        plugins=[path_of(name, base) for name in config.plugins],
        budgets=budgets,
        budget=config.budget,
        until=config.until if experiment == "ceilings" else None,
    )


def _validate_labels(document: ConfigDocument, config: Config, cases: Sequence[Case]) -> None:
    """Reject labels of scenarios that do not exist, and published values of several scenarios without ``over``."""
    labels, compared = [case.label for case in cases], [case for case in cases if case.compared]
    for i, entry in enumerate(config.published):
        part = document.part("published", i)
        if entry.per is not None and all(swept(case, entry.per) is None for case in compared):
            part.reject("per", "is no swept key", sorted({key for case in compared for key in case.keys}))
        for key, which in (("scenario", entry.scenario), ("relative_to", entry.relative_to)):
            matches = [] if which is None else labels_of(which, compared)
            if which is None or len(matches) == 1 or (matches and entry.over):
                continue
            problem = "names no scenario" if entry.over else "does not name one scenario"
            if matches:
                problem += f" but {len(matches)}: say over: mean, min, max or sum"
            part.reject(key, problem, () if matches else [case.label for case in compared])
    which = config.outputs.relative_to
    if which is not None and not labels_of(which, cases):
        document.reject("outputs.relative_to", "names no scenario", labels)
    if config.until is not None:
        if config.experiment != "ceilings":
            document.reject("until", "is for experiment: ceilings")
        elif all(swept(case, config.until.over) is None for case in cases):
            document.reject("until.over", "is no swept key", sorted({key for case in cases for key in case.keys}))
    for i, label in enumerate(config.budget.of or ()):
        if label not in labels:
            document.reject(("budget", "of", i), "names no scenario", labels)


def _named(root: Node, name: str) -> Node:
    """A configuration with a name, by default that of its file."""
    name_node = root.get("name")
    return (
        root if name_node is not None and name_node.value is not None else put(root, ("name",), Node(name, root.file))
    )


def _cases(
    document: ConfigDocument, added: Sequence[Node], name: str, experiment: str, base: Path
) -> tuple[list[Case], list[Budget], Config]:
    """The scenarios of a study, their budgets, and the configuration of the last scenario.

    added: the configuration with other cases, whose scenarios follow.
    """
    cases: list[Case] = []
    budgets: list[Budget] = []
    config, points, cache = Config(), 0, ComponentBuilder()
    # the keys that all scenarios share are validated with each
    variants = [one for root in (document.root, *added) for one in expand(root, name, document.diagnostics)]
    for variant in variants:
        draft = Draft(variant.node, experiment, base, document.diagnostics)
        config = draft.config
        ceilings = ceilings_of(draft)
        require_keys(draft)
        reject_misplaced_keys(draft)
        vary = search_path(draft) if draft.experiment == "search" else ()
        case = _built(cache, draft, variant, ceilings, vary)
        if case is None:
            continue
        case = replace(case, compared=variant.compared)
        if case.instance is not None:
            validate_demand(draft, case.instance, ceilings)
        cases.append(case)
        points += len(config.load_list) * len(config.seeds)
        if has_too_many_points(document, points):
            break
        if config.budget.of is not None and case.label not in config.budget.of:
            continue
        is_idle = draft.experiment == "load_sweep" and not case.simulated
        if draft.requests_budget:
            budgets += [budget_of(cache, draft, case)] if case.scenario is not None else []
        elif BUDGET in config.outputs.figures and (experiment == BUDGET or is_idle):
            draft.reject("switching.mode", "has no budget: budgets are for modes that simulate packets")
    return cases, budgets, config


def _built(
    cache: ComponentBuilder, draft: Draft, variant: Variant, ceilings: list[CeilingSpec], vary: KeyPath
) -> Case | None:
    """The case of a configuration. An exception in the code of plugins becomes an error."""
    try:
        return build(draft, cache, variant.label, variant.keys, ceilings, vary)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not draft.config.plugins:
            raise
        draft.reject("plugins", f"what they register could not be built: {crash(error)}")
        return None
