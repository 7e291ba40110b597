# SPDX-License-Identifier: Apache-2.0
"""The configuration of one scenario while it is understood."""

from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flitlab.models.registry import UnknownKindError, spec_class
from flitlab.models.switching.switching_mode import SwitchingMode, SwitchingSpec
from flitlab.sim.config.check import Model, spec_of, validated
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.keys import SECTIONS, keys_of
from flitlab.sim.config.load import Node
from flitlab.sim.config.overrides import USUAL, parse_path
from flitlab.sim.config.page import Page
from flitlab.sim.config.schema import Config, PathConfig, SourceConfig

BUDGET = "budget"
"""The experiment that ``simrun budget`` makes of a configuration: budgets and no loads. It is the name of their figure.
"""

PROGRAMS = ("application", "collective")
"""Experiments in which hosts run a program."""

PATHS = ("path", "constants")
"""Keys of components whose texts are names of files."""


class Draft(Page):
    """The configuration of one scenario with what it says: the one thing that checks and builders look at.

    It is read when it is made, and what is wrong with its sections and with ``switching:`` is among its mistakes then.
    config: as far as it could be read; a section with a mistake has its defaults. wrong: the sections that have one.
    switching: the keys of the discipline; None where they have a mistake. experiment: what is asked of the scenario.
    base: folder that paths are relative to.
    """

    def __init__(
        self, root: Node, experiment: str, base: Path, mistakes: list[Mistake], warnings: list[Mistake] | None = None
    ):
        super().__init__(root, mistakes, warnings)
        self.base = base
        config, self.wrong = _config(self)
        given = self.mapping("switching") if self.has("switching") else {}
        self.switching: SwitchingSpec | None = spec_of("switching", self, ("switching",), given)
        if self.switching is None:
            self.wrong |= {"switching"}
        self.experiment = carried_out(experiment)
        self.config = config
        if experiment == "saturation" and "loads" not in self.wrong:
            self.config = config.searching()
        elif experiment == BUDGET:
            self.config = config.budgeting(BUDGET)

    @property
    def runs_program(self) -> bool:
        """Whether its hosts run a program, instead of drawing packets."""
        return self.experiment in PROGRAMS

    def given(self, key: str) -> bool:
        """Whether a key at the top of the configuration has a value, right or wrong."""
        return key in self.wrong or self.config.gives(key)

    def states(self, place: str) -> bool:
        """Whether the key at a place has a value, right or wrong at the top: ``transport``, ``traffic.sizes``.

        place: a key at the top, or of a section, that belongs to no component of a kind.
        """
        section, _, key = place.partition(".")
        if not key:
            return self.given(section)
        model = self.source if section == "traffic" else getattr(self.config, section)
        return isinstance(model, BaseModel) and key in model.model_fields_set and getattr(model, key) is not None

    @property
    def switching_mode(self) -> type[SwitchingMode] | None:
        """The discipline that is asked for, also where its keys are wrong; None where nobody knows it."""
        try:
            found = spec_class("switching", self.config.switching.get("mode", USUAL["switching"]))
        except (UnknownKindError, TypeError):
            return None
        assert issubclass(found, SwitchingSpec)
        return found.switching_mode

    def spec(self, category: str) -> Any:
        """The keys of the component that stands under its category, such as ``topology``, checked.

        None once what is wrong with them is refused.
        """
        more = SECTIONS[category]
        return spec_of(category, self, (category,), self.mapping(category), keys_of(more) if more else ())

    def mapping(self, *place: str | int) -> Any:
        """What is written at a place, as plain values with absolute names of files; None where nothing is."""
        return _absolute(self.at(*place), self.base)

    @cached_property
    def source(self) -> SourceConfig | None:
        """The keys of ``traffic:`` that say how packets arrive, not whereto; None where there is no such mapping."""
        return self._own(SourceConfig, "traffic")

    @cached_property
    def path_draw(self) -> str:
        """The value of ``routing.path_draw``, given or by default: how flows draw paths from those of the routing."""
        return (self._own(PathConfig, "routing") or PathConfig()).path_draw

    def _own(self, model: type[Model], section: str) -> Model | None:
        """The keys of a mapping that are not its component's; None where there is no such mapping."""
        given = self.mapping(section)
        if not isinstance(given, dict):
            return None
        return validated(model, self, (section,), {key: given[key] for key in keys_of(model) if key in given})


def carried_out(experiment: str) -> str:
    """The name of the experiment that is carried out: for those that place their loads, a load sweep."""
    return "load_sweep" if experiment in ("saturation", BUDGET) else experiment


def _config(page: Page) -> tuple[Config, frozenset[str]]:
    """What is written, without the sections that have mistakes; and these, once the mistakes are refused."""
    before = len(page.mistakes)
    config = validated(Config, page, (), page.at(), keys=("cases",))
    if config is not None:
        return config, frozenset()
    paths = [parse_path(mistake.key) for mistake in page.mistakes[before:]]
    wrong = frozenset(str(path[0]) for path in paths if path)
    rest = {key: value for key, value in page.at().items() if key in keys_of(Config) and key not in wrong}
    return validated(Config, Page(Node({}, ""), []), (), rest) or Config(), wrong


def _absolute(value: Any, base: Path) -> Any:
    if isinstance(value, list):
        return [_absolute(inner, base) for inner in value]
    if not isinstance(value, dict):
        return value
    changed = {key: _absolute(inner, base) for key, inner in value.items()}
    return changed | {
        key: str(base / changed[key]) for key in PATHS if isinstance(changed.get(key), str) and changed[key]
    }
