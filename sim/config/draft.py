# SPDX-License-Identifier: Apache-2.0
"""The configuration of one scenario, validated section by section."""

from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flitlab.models.registry import UnknownKindError, spec_class
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.sim.config.check import Model, spec_of, validated
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import Diagnostic
from flitlab.sim.config.keys import SECTIONS, keys_of
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import DEFAULT_KINDS, parse_path
from flitlab.sim.config.schema import Config, PathConfig, SourceConfig

BUDGET = "budget"
"""The experiment of ``simrun budget``: budgets without loads. Also the name of the figure."""

PROGRAMS = ("application", "collective")
"""Experiments in which hosts run a program."""

PATHS = ("path", "constants")
"""Keys of components whose values are file names."""


class Draft(ConfigDocument):
    """The configuration of one scenario, for checks and for building.

    The sections and ``switching:`` are validated at construction; their errors are added then.

    Attributes
    ----------
    config: the valid sections; a section with an error has its defaults.
    invalid_sections: the sections with errors.
    switching: the specification of the switching mode; None if it has errors.
    experiment: the experiment to run.
    base: the folder that paths are relative to.
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
        """Whether hosts run a program, instead of drawing packets."""
        return self.experiment in PROGRAMS

    def has_value(self, key: str) -> bool:
        """Whether a top-level key has a value, valid or not."""
        return key in self.invalid_sections or self.config.gives(key)

    def has_value_at(self, path: str) -> bool:
        """Whether a key has a value: ``transport`` (valid or not), ``traffic.sizes`` (valid).

        path: a top-level key, or a key of a section that does not belong to a component.
        """
        section, _, key = path.partition(".")
        if not key:
            return self.has_value(section)
        model = self.source if section == "traffic" else getattr(self.config, section)
        return isinstance(model, BaseModel) and key in model.model_fields_set and getattr(model, key) is not None

    @property
    def switching_mode(self) -> type[SwitchingMode] | None:
        """The switching mode, also if its keys have errors; None if the mode is unknown."""
        try:
            model = spec_class("switching", self.config.switching.get("mode", DEFAULT_KINDS["switching"]))
        except (UnknownKindError, TypeError):
            return None
        assert issubclass(model, SwitchingSpec)
        return model.switching_mode

    def spec(self, category: str) -> Any:
        """The specification of the component in the section of its category, such as ``topology``.

        None, with errors added, if it is invalid.
        """
        shared = SECTIONS[category]
        return spec_of(category, self, (category,), self.mapping(category), keys_of(shared) if shared else ())

    def mapping(self, *path: str | int) -> Any:
        """The value at a path, as plain values with absolute file names; None if the path does not exist."""
        return _absolute(self.at(*path), self.base)

    @cached_property
    def source(self) -> SourceConfig | None:
        """The keys of ``traffic:`` about arrivals and lengths, not about the pattern; None without a mapping."""
        return self._section_keys(SourceConfig, "traffic")

    @cached_property
    def path_draw(self) -> str:
        """``routing.path_draw``, or its default: how flows draw paths from those of the routing."""
        return (self._section_keys(PathConfig, "routing") or PathConfig()).path_draw

    def _section_keys(self, model: type[Model], section: str) -> Model | None:
        """The keys of a section that do not belong to its component; None without a mapping."""
        mapping = self.mapping(section)
        if not isinstance(mapping, dict):
            return None
        return validated(model, self, (section,), {key: mapping[key] for key in keys_of(model) if key in mapping})


def experiment_run(experiment: str) -> str:
    """The experiment that is run: a load sweep for those that search for their loads."""
    return "load_sweep" if experiment in ("saturation", BUDGET) else experiment


def _config(document: ConfigDocument) -> tuple[Config, frozenset[str]]:
    """The valid sections, and the names of the sections with errors, which are added to the document."""
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
