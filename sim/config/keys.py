# SPDX-License-Identifier: Apache-2.0
"""The keys of a configuration and their places, derived from the models."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from flitlab.fluid.kinds.spec import kinds as ceiling_kinds
from flitlab.models.registry import UnknownKindError, names, spec_class
from flitlab.sim.config.load import KeyPath
from flitlab.sim.config.schema import Config, PathConfig, SourceConfig

SECTIONS: dict[str, type[BaseModel] | None] = {
    "topology": None, "routing": PathConfig, "traffic": SourceConfig, "transport": None, "application": None,
    "placement": None, "switching": None,
}  # fmt: skip
"""Section whose keys depend on its ``kind`` -> model of the keys that all kinds share."""

MAX_PATHS = 4
"""A key with more places gets no hint."""


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of the mapping that a model describes."""
    return [field.alias or name for name, field in model.model_fields.items()]


def models_at(model: type[BaseModel], path: KeyPath) -> list[type[BaseModel]]:
    """The models of the mapping at ``path``, one for each form that it may have."""
    models = [model]
    for part in path:
        models = [inner for one in models for inner in _models(_annotation(one, part))] or models
    return models


def literals_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The choices of the key at ``path``, or of ``kind`` in the mapping there."""
    names = tuple(part for part in path if isinstance(part, str))
    if not names:
        return []
    annotation = _annotation(models_at(model, names[:-1])[0], names[-1])
    if annotation is None or not any(get_args(leaf) for leaf in _leaves(annotation)):
        annotation = _annotation(models_at(model, path)[0], "kind")
    return [str(leaf) for leaf in _leaves(annotation) if isinstance(leaf, str | int) and not isinstance(leaf, bool)]


def paths_of_key(key: str, kinds: Mapping[str, Any]) -> list[str]:
    """The places of a key, such as ``switching.flit_ns``; empty if there are too many.

    kinds: section of :data:`SECTIONS` -> kind of its component.
    """
    paths = list(_places(key, Config, ""))
    for section, more in SECTIONS.items():
        for model in [*_of_kinds(section, kinds.get(section)), *([more] if more else [])]:
            paths += _places(key, model, f"{section}.")
    if any(key in kind.model_fields for kind in ceiling_kinds().values()):
        paths.append(f"ceilings[].{key}")
    paths = sorted(dict.fromkeys(paths), key=lambda place: place.count("."))
    return paths if len(paths) <= MAX_PATHS else []


def sections(model: type[BaseModel] = Config, path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """(path, model) of the whole configuration and of every mapping in it whose keys do not depend on a ``kind``.

    Lists of mappings have ``[]`` behind their key, ``outputs.plots[]``.
    """
    yield path, model
    for name, field in model.model_fields.items():
        several = any(get_origin(leaf) is list for leaf in _leaves(field.annotation))
        for inner in _models(field.annotation):
            yield from sections(inner, f"{path}.{field.alias or name}{'[]' * several}".removeprefix("."))
    if model is Config:
        yield from ((name, shared) for name, shared in SECTIONS.items() if shared is not None)


def modes_with(key: str) -> list[str]:
    """The switching modes whose ``switching:`` has a key."""
    return [mode for mode in names("switching") if key in spec_class("switching", mode).model_fields]


def _of_kinds(section: str, kind: Any) -> list[type[BaseModel]]:
    """The models of a section: of the given kind; for ``switching:`` those of all modes."""
    if section == "switching":
        return [spec_class(section, mode) for mode in names(section)]
    try:
        return [] if kind is None else [spec_class(section, kind)]
    except (UnknownKindError, TypeError):
        return []


def _places(key: str, model: type[BaseModel], where: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        name = field.alias or name
        if name == key:
            yield where + name
        is_list = any(get_origin(leaf) is list for leaf in _leaves(field.annotation))
        for inner in _models(field.annotation):
            yield from _places(key, inner, f"{where}{name}{'[]' * is_list}.")


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, BaseModel)]


def _annotation(model: type[BaseModel], key: Any) -> Any:
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return field.annotation
    return None


def _leaves(annotation: Any) -> Iterator[Any]:
    """An annotation and all its arguments, recursively."""
    yield annotation
    for argument in get_args(annotation):
        yield from _leaves(argument)
