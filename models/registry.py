# SPDX-License-Identifier: Apache-2.0
"""Names of the components a configuration may use: ``(category, kind) -> spec class``.

A component is a pydantic model (:class:`Parameters`) under :func:`register`; its ``build`` method makes the frozen data
object that the engines and the LPs work on. The built-in ones are found by importing every module of the category's
packages, so adding a file is all that adding a component takes; a user's file does the same through ``plugins:``.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from flitlab.models.closest_match import closest_match
from flitlab.models.mappings import Keys

CATEGORIES: dict[str, tuple[str, ...]] = {
    "topology": ("flitlab.models.topology.families",),
    "routing": ("flitlab.models.routing",),
    "traffic": ("flitlab.models.traffic",),
    "metric": ("flitlab.models.metrics", "flitlab.fluid.metrics"),
    "switching": ("flitlab.models.switching",),
    "transport": ("flitlab.models.transport",),
    "application": ("flitlab.models.application.skeletons",),
    "placement": ("flitlab.models.application.placements",),
    "ceiling": ("flitlab.fluid.kinds",),
    "algorithm": ("flitlab.fluid.collective.algorithms",),
}
"""Category -> packages whose modules register its built-in kinds."""


KIND = {"switching": "mode"}
"""Category -> key that names the kind, where that is not ``kind``."""


def kind_key(category: str) -> str:
    """Return the key that names the kind of a component: ``mode`` for a switching mode, ``kind`` for all others."""
    return KIND.get(category, "kind")


def whole(value: object) -> Any:
    """Convert a whole float to int, so that an integer parameter may be written as 1e4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Parameters(BaseModel):
    """Parameters of one component as they stand in a YAML file; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants", use_attribute_docstrings=True)


class Spec(Parameters):
    """Parameters of a component that is named by its ``kind``.

    The base class of a category names the method that a kind implements: ``graph`` of a topology, ``routes`` of a
    routing, ``demand`` of traffic, ``transport``, ``program`` of an application, ``hosts`` of a placement, ``measure``
    of a metric. The base class also has the keys that all kinds share, and two methods: ``validated``, which checks a
    result, and ``build`` (``columns`` of a metric), which calls the method and checks its result. A ``build`` that a
    kind defines itself is checked as well.
    """

    kind: str
    """Which component it is."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "build" in own and "validated" not in own and hasattr(cls, "validated"):
            cls.build = _validated(own["build"])  # type: ignore[attr-defined]


def _validated(own: Callable[..., object]) -> Callable[..., Any]:
    """Wrap a ``build`` method so that its result is validated."""

    @wraps(own)
    def build(self: Any, *on: Any) -> Any:
        return self.validated(own.__get__(self), *on)

    return build


def is_third_party(spec: object) -> bool:
    """Whether a component is defined outside flitlab; its results are always validated."""
    return not type(spec).__module__.startswith("flitlab.")


class SpecError(ValueError):
    """A component cannot be built from its parameters.

    ``key`` names the offending parameter inside the component's mapping (None: the component as a whole), so that the
    message can point at its line. ``choices``: the accepted values.
    """

    def __init__(self, message: str, key: str | None = None, choices: Sequence[str] = ()):
        super().__init__(message)
        self.key = key
        self.choices = choices


class SpecWarning(UserWarning):
    """Parameters or files of a component are accepted, but are probably not what was intended.

    ``key`` names the parameter inside the component's mapping, as in :class:`SpecError`.
    """

    def __init__(self, message: str, key: str | None = None):
        super().__init__(message)
        self.key = key


def warn(message: str, key: str | None = None) -> None:
    """Issue a :class:`SpecWarning`: a configuration shows it at the line of the key, Python as any other warning."""
    warnings.warn(SpecWarning(message, key), stacklevel=3)


@contextmanager
def recorded_warnings() -> Iterator[list[SpecWarning]]:
    """Collect the :class:`SpecWarning` issued inside the block; the list is filled when the block ends."""
    recorded: list[SpecWarning] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SpecWarning)
            yield recorded
    finally:
        for message in caught:
            if isinstance(message.message, SpecWarning):
                recorded.append(message.message)
            else:
                warnings.warn_explicit(
                    message.message, message.category, message.filename, message.lineno, source=message.source
                )


@contextmanager
def warnings_below(key: str) -> Iterator[None]:
    """Re-issue the warnings of the block with keys below ``key``."""
    try:
        with recorded_warnings() as recorded:
            yield
    finally:
        for one in recorded:
            warn(str(one), f"{key}.{one.key}" if one.key else key)


class FaultyError(SpecError):
    """A component returned an invalid object. ``errors``: one text of each kind of error."""

    def __init__(self, errors: Sequence[str], key: str | None = None):
        super().__init__("; ".join(errors), key)
        self.errors = errors


RELATED: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES} | {
    "topology": {"xgft": "clos", "pgft": "clos"},
    "routing": dict.fromkeys(("adaptive", "adaptive_escape", "duato", "min_adapt", "odd_even", "west_first"), "minimal")
    | dict.fromkeys(("o1turn", "xy_yx"), "table"),
}
"""Kinds of other simulators -> the kind whose keys express most of theirs."""


class UnknownKindError(SpecError):
    """No component of that kind exists; ``choices`` are the kinds, ``suggestion`` is a near miss or None."""

    def __init__(self, category: str, kind: str):
        known = names(category)
        super().__init__(f"unknown {category}", kind_key(category), [with_aliases(category, one) for one in known])
        closest = RELATED[category].get(str(kind).casefold()) or closest_match(kind, [*known, *_aliases[category]])
        self.suggestion = None if closest is None else _aliases[category].get(closest, closest)


_registered: dict[str, dict[str, type[Parameters]]] = {category: {} for category in CATEGORIES}
_aliases: dict[str, dict[str, str]] = {category: {} for category in CATEGORIES}
_discovered: set[str] = set()

S = TypeVar("S", bound=type[Parameters])


def register(category: str, kind: str, *, aliases: Sequence[str] = ()) -> Callable[[S], S]:
    """Class decorator: make a :class:`Spec` available as ``kind`` of ``category``.

    Parameters
    ----------
    category: of :data:`CATEGORIES`.
    kind: the name, with underscores.
    aliases: other names of it; results have ``kind``. Case, ``-`` and ``_`` do not matter in any name.

    Raises
    ------
    KeyError: the category is unknown.
    ValueError: another class is registered as this kind.
    """
    table = _registered[category]

    def enter(cls: S) -> S:
        holder = table.get(kind)
        if holder is not None and holder.__qualname__ != cls.__qualname__:
            raise ValueError(f"{category} {kind!r} is registered already, by {holder.__module__}")
        table[kind] = cls
        _aliases[category] |= dict.fromkeys(aliases, kind)
        return cls

    return enter


def _discover(category: str) -> None:
    if category in _discovered:
        return
    _discovered.add(category)
    for name in CATEGORIES[category]:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{name}.{module.name}")


def names(category: str) -> list[str]:
    """Sorted kinds of a category."""
    _discover(category)
    return sorted(_registered[category])


def aliases_of(category: str, kind: str) -> list[str]:
    """Other names of a kind."""
    _discover(category)
    return [alias for alias, known in _aliases[category].items() if known == kind]


def with_aliases(category: str, kind: str) -> str:
    """A kind with its other names in brackets, for messages."""
    others = aliases_of(category, kind)
    return f"{kind} ({', '.join(others)})" if others else kind


def canonical_kind(category: str, name: str) -> str:
    """The kind of a name: itself, the kind of an alias, or one that differs in case, ``-`` and ``_`` only.

    A name of no kind, or what is no text, is returned unchanged.
    """
    _discover(category)
    if not isinstance(name, str) or name in _registered[category]:
        return name
    known = {_bare(one): one for one in _registered[category]}
    known |= {_bare(alias): one for alias, one in _aliases[category].items()}
    return known.get(_bare(name), name)


def _bare(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def spec_class(category: str, kind: str) -> type[Parameters]:
    """The spec class of a kind, or of another name of it. Raises :class:`UnknownKindError`."""
    try:
        return _registered[category][canonical_kind(category, kind)]
    except KeyError:
        raise UnknownKindError(category, kind) from None


def make(category: str, **parameters: Any) -> Any:
    """Make the spec of ``parameters["kind"]`` (``parameters["mode"]`` for a switching mode) from plain values.

    Raises :class:`UnknownKindError` or ``pydantic.ValidationError``.
    """
    key = kind_key(category)
    model = spec_class(category, parameters[key])
    return model.model_validate(parameters | {key: canonical_kind(category, parameters[key])})


R = TypeVar("R")


def nested(category: str, parameters: Keys, key: str, build: Callable[[Any], R]) -> R:
    """Build the component that a parameter of another component describes.

    Parameters
    ----------
    category: category of the nested component.
    parameters: its mapping, with ``kind``.
    key: name of the parameter that holds the mapping, for errors.
    build: makes the result from the spec.

    Raises
    ------
    SpecError: the component cannot be built; ``key`` is the path to the offending parameter.
    """
    if not isinstance(parameters.get("kind"), str):
        raise SpecError(f"is missing: the kind of the {category}", key=f"{key}.kind")
    try:
        with warnings_below(key):
            return build(make(category, **parameters))
    except SpecError as error:
        error.key = f"{key}.{error.key}" if error.key else key
        raise
    except ValidationError as error:
        first = error.errors()[0]
        path = f"{key}.{'.'.join(map(str, first['loc']))}"
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            fields = spec_class(category, parameters["kind"]).model_fields.items()
            raise SpecError("unknown key", path, sorted(field.alias or name for name, field in fields)) from None
        if first["type"] == "missing":
            raise SpecError("is missing", path) from None
        message = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
        raise SpecError(message, path) from None
