# SPDX-License-Identifier: Apache-2.0
"""The configuration of one scenario while it is understood."""

from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flitlab.models.registry import UnknownKindError, spec_class
from flitlab.models.switching.discipline import Discipline, SwitchingSpec
from flitlab.sim.config.check import Model, spec_of, validated
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import Diagnostic
from flitlab.sim.config.keys import SECTIONS, keys_of
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import DEFAULT_KINDS, parse_path
from flitlab.sim.config.schema import Config, PathConfig, SourceConfig

BUDGET = "budget"
"""The experiment that ``simrun budget`` makes of a configuration: budgets and no loads. It is the name of their figure.
"""

PROGRAMS = ("application", "collective")
"""Experiments in which hosts run a program."""

PATHS = ("path", "constants")
"""Keys of components whose texts are names of files."""


class Draft(ConfigDocument):
    """The configuration of one scenario with what it says: the one thing that checks and builders look at.

    It is read when it is made, and what is wrong with its sections and with ``switching:`` is among its mistakes then.
    config: as far as it could be read; a section with a mistake has its defaults. wrong: the sections that have one.
    switching: the keys of the discipline; None where they have a mistake. experiment: what is asked of the scenario.
    base: folder that paths are relative to.
    """

    def __init__(
        self,
        root: Node,
        experiment: str,
        base: Path,
        errors: list[Diagnostic],
        warnings: list[Diagnostic] | None = None,
    ):
        super().__init__(root, errors, warnings)
        self.base = base
        config, self.invalid_sections = _config(self)
        keys = self.mapping("switching") if self.has("switching") else {}
        self.switching: SwitchingSpec | None = spec_of("switching", self, ("switching",), keys)
        if self.switching is None:
            self.invalid_sections |= {"switching"}
        self.experiment = experiment_run(experiment)
        self.config = config
        if experiment == "saturation" and "loads" not in self.invalid_sections:
            self.config = config.searching()
        elif experiment == BUDGET:
            self.config = config.budgeting(BUDGET)

    @property
    def runs_program(self) -> bool:
        """Whether its hosts run a program, instead of drawing packets."""
        return self.experiment in PROGRAMS

    def has_value(self, key: str) -> bool:
        """Whether a key at the top of the configuration has a value, right or wrong."""
        return key in self.invalid_sections or self.config.gives(key)

    def has_value_at(self, place: str) -> bool:
        """Whether the key at a place has a value, right or wrong at the top: ``transport``, ``traffic.sizes``.

        place: a key at the top, or of a section, that belongs to no component of a kind.
        """
        section, _, key = place.partition(".")
        if not key:
            return self.has_value(section)
        model = self.source if section == "traffic" else getattr(self.config, section)
        return isinstance(model, BaseModel) and key in model.model_fields_set and getattr(model, key) is not None

    @property
    def discipline(self) -> type[Discipline] | None:
        """The discipline that is asked for, also where its keys are wrong; None where nobody knows it."""
        try:
            model = spec_class("switching", self.config.switching.get("mode", DEFAULT_KINDS["switching"]))
        except (UnknownKindError, TypeError):
            return None
        assert issubclass(model, SwitchingSpec)
        return model.discipline

    def spec(self, category: str) -> Any:
        """The keys of the component that stands under its category, such as ``topology``, checked.

        None once what is wrong with them is refused.
        """
        shared = SECTIONS[category]
        return spec_of(category, self, (category,), self.mapping(category), keys_of(shared) if shared else ())

    def mapping(self, *place: str | int) -> Any:
        """What is written at a place, as plain values with absolute names of files; None where nothing is."""
        return _absolute(self.at(*place), self.base)

    @cached_property
    def source(self) -> SourceConfig | None:
        """The keys of ``traffic:`` that say how packets arrive, not whereto; None where there is no such mapping."""
        return self._section_keys(SourceConfig, "traffic")

    @cached_property
    def path_draw(self) -> str:
        """The value of ``routing.path_draw``, given or by default: how flows draw paths from those of the routing."""
        return (self._section_keys(PathConfig, "routing") or PathConfig()).path_draw

    def _section_keys(self, model: type[Model], section: str) -> Model | None:
        """The keys of a mapping that are not its component's; None where there is no such mapping."""
        mapping = self.mapping(section)
        if not isinstance(mapping, dict):
            return None
        return validated(model, self, (section,), {key: mapping[key] for key in keys_of(model) if key in mapping})


def experiment_run(experiment: str) -> str:
    """The name of the experiment that is carried out: for those that place their loads, a load sweep."""
    return "load_sweep" if experiment in ("saturation", BUDGET) else experiment


def _config(document: ConfigDocument) -> tuple[Config, frozenset[str]]:
    """What is written, without the sections that have mistakes; and these, once the mistakes are refused."""
    before = len(document.errors)
    config = validated(Config, document, (), document.at(), keys=("cases",))
    if config is not None:
        return config, frozenset()
    paths = [parse_path(diagnostic.key) for diagnostic in document.errors[before:]]
    wrong = frozenset(str(path[0]) for path in paths if path)
    rest = {key: value for key, value in document.at().items() if key in keys_of(Config) and key not in wrong}
    return validated(Config, ConfigDocument(Node({}, ""), []), (), rest) or Config(), wrong


def _absolute(value: Any, base: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(inner, base) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _absolute(inner, base) for key, inner in value.items()}
    return changed | {
        key: str(base / changed[key]) for key in PATHS if isinstance(changed.get(key), str) and changed[key]
    }
