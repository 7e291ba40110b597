# SPDX-License-Identifier: Apache-2.0
"""The configuration of one scenario, validated section by section."""

from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flitlab.models.layout.design_prices import profiles
from flitlab.models.registry import UnknownKindError, spec_class
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.sim.config.diagnostics import Diagnostics, parse_path
from flitlab.sim.config.link_rate import with_link_rate
from flitlab.sim.config.overrides import DEFAULT_KINDS
from flitlab.sim.config.schema import SECTIONS, Config, MessagesConfig, PathConfig, SourceConfig, keys_of
from flitlab.sim.config.text import ConfigDocument, Node
from flitlab.sim.config.validation import Model, spec_of, validated

BUDGET = "budget"
"""The experiment of ``simrun budget``: budgets without loads. Also the name of the figure."""

PROGRAMS = ("application", "collective")
"""Experiments in which hosts run a program."""

PATHS = ("path", "constants")
"""Keys of components whose values are file names; ``constants`` may be the name of a profile instead."""


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

    def __init__(self, root: Node, experiment: str, base: Path, diagnostics: Diagnostics):
        super().__init__(root, diagnostics)
        self.base = base
        config, self.invalid_sections = _config(self)
        keys = self.mapping("switching") if self.has("switching") else {}
        self.switching: SwitchingSpec | None = spec_of("switching", self.part("switching"), keys)
        self.experiment = experiment_run(experiment)
        self.config = config
        if self.switching is not None:
            self.switching = with_link_rate(self, self.switching, self.messages.flit_bytes)
        if self.switching is None:
            self.invalid_sections |= {"switching"}
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
        return spec_of(category, self.part(category), self.mapping(category), keys_of(shared) if shared else ())

    def mapping(self, *path: str | int) -> Any:
        """The value at a path, as plain values with absolute file names; None if the path does not exist."""
        return _absolute(self.at(*path), self.base)

    @property
    def requests_budget(self) -> bool:
        """Whether the configuration requests budgets, and its scenario simulates packets."""
        is_requested = BUDGET in self.config.outputs.figures and self.experiment == "load_sweep"
        return is_requested and self.switching_mode is not None and self.switching_mode.counts == "packets"

    @property
    def follows_trace(self) -> bool:
        """Whether hosts send the packets of a trace or a batch: without loads, where packets are simulated."""
        mode, traffic = self.switching_mode, self.mapping("traffic")
        is_trace = (
            isinstance(traffic, dict) and traffic.get("kind") in ("trace", "batch") and self.experiment == "load_sweep"
        )
        can_follow = mode is not None and mode.counts == "packets" and mode.programs
        return is_trace and can_follow and not self.has_value("loads") and BUDGET not in self.config.outputs.figures

    @cached_property
    def messages(self) -> MessagesConfig:
        """``messages:`` in force: a collective sends all eagerly, unless they set ``rendezvous_bytes``."""
        messages = self.config.messages
        if self.experiment != "collective" or "rendezvous_bytes" in messages.model_fields_set:
            return messages
        return messages.model_copy(update={"rendezvous_bytes": None})

    def path_of_event(self, key: str) -> str:
        """The path of a key of an event: ``timeline.factor`` is that of the event that slows links most."""
        factors = {i: event.factor for i, event in enumerate(self.config.timeline or ()) if event.factor is not None}
        if key != "timeline.factor" or not factors:
            return key
        return f"timeline[{min(factors, key=lambda i: factors[i])}].factor"

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
        return validated(model, self.part(section), {key: mapping[key] for key in keys_of(model) if key in mapping})


def experiment_run(experiment: str) -> str:
    """The experiment that is run: a load sweep for those that search for their loads."""
    return "load_sweep" if experiment in ("saturation", BUDGET) else experiment


def _config(document: ConfigDocument) -> tuple[Config, frozenset[str]]:
    """The valid sections, and the names of the sections with errors, which are added to the document."""
    errors = document.new_errors()
    config = validated(Config, document, document.at(), keys=("cases",))
    if config is not None:
        return config, frozenset()
    paths = [parse_path(error.key) for error in errors]
    wrong = frozenset(str(path[0]) for path in paths if path)
    rest = {key: value for key, value in document.at().items() if key in keys_of(Config) and key not in wrong}
    return validated(Config, ConfigDocument(Node({}, ""), Diagnostics()), rest) or Config(), wrong


def _absolute(value: object, base: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(inner, base) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _absolute(inner, base) for key, inner in value.items()}
    return changed | {key: str(base / changed[key]) for key in PATHS if _is_file_name(key, changed.get(key))}


def _is_file_name(key: str, value: object) -> bool:
    """Whether the value of one of :data:`PATHS` is a file name: ``constants`` may be the name of a profile."""
    return isinstance(value, str) and value != "" and not (key == "constants" and value in profiles())
