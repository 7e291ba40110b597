# SPDX-License-Identifier: Apache-2.0
"""Validation against the models: errors of pydantic and of components become diagnostics with file and line."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from flitlab.models.closest_match import closest_match, edit_distance
from flitlab.models.registry import SpecError, UnknownKindError, kind_key, names, spec_class
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.keys import SECTIONS, keys_of, literals_at, models_at, modes_with, paths_of_key
from flitlab.sim.config.load import KeyPath
from flitlab.sim.config.overrides import DEFAULT_KINDS, parse_path

Model = TypeVar("Model", bound=BaseModel)


def reject_unknown_key(document: ConfigDocument, path: KeyPath, choices: Sequence[str]) -> None:
    """Reject a key that is none of the choices; names the place where such a key exists.

    Parameters
    ----------
    document: the configuration.
    path: of the key.
    choices: keys that are valid there.
    """
    key = str(path[-1])
    if len(path) == 2 and path[0] == "switching" and (modes := modes_with(key)):
        document.reject(path, not_for(document.at("switching", "mode") or DEFAULT_KINDS["switching"], modes), choices)
        return
    paths = paths_of_key(key, {section: document.at(section, "kind") for section in SECTIONS})
    closest = closest_match(key, choices)
    if paths and closest is not None and edit_distance(key, closest) > 1:
        closest = None
    problem = f"unknown key; its place is {' or '.join(paths)}" if paths else "unknown key"
    document.reject(path, problem, choices, closest)


def not_for(mode: str, modes: Sequence[str]) -> str:
    """The problem of a key that only other switching modes have.

    >>> not_for("vct", ["datagram"]), not_for("flow", ["vct", "wormhole"])
    ('is not for mode vct, but for mode datagram', 'is not for mode flow, but for modes vct and wormhole')
    """
    others = f"modes {', '.join(modes[:-1])} and {modes[-1]}" if len(modes) > 1 else f"mode {modes[0]}"
    return f"is not for mode {mode}, but for {others}"


def validated(
    model: type[Model], document: ConfigDocument, path: KeyPath, value: Any, keys: Sequence[str] = ()
) -> Model | None:
    """A value of the configuration as a model; None, with errors added to the document, if it is invalid.

    Values are checked as JSON: strictly, but lists may stand for tuples and text for paths.

    Parameters
    ----------
    model: the pydantic model.
    document: collects the errors.
    path: of the value.
    value: plain dicts, lists and scalars.
    keys: further keys that are valid there, for the choices of a misspelt one.
    """
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        for one in error.errors():
            _reject_schema_error(one, model, document, path, keys)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third-party validator may raise anything
        document.reject(path, f"could not be checked: {crash(error)}")
    return None


def _reject_schema_error(
    error: Any, model: type[BaseModel], document: ConfigDocument, prefix: KeyPath, keys: Sequence[str]
) -> None:
    inner = _inner(error["loc"], document, prefix)
    path = (*prefix, *inner)
    kind = error["type"]
    if kind == "extra_forbidden" and re.match(r"\w+:\S", str(inner[-1])):
        document.reject(path, "unknown key; a space must follow the colon")
    elif kind == "extra_forbidden":
        known = {key for one in models_at(model, inner[:-1]) for key in keys_of(one)}
        reject_unknown_key(document, path, sorted(known | set(keys if len(inner) == 1 else ())))
    elif kind == "missing":
        document.reject(path, "is missing")
    elif kind == "literal_error":
        choices = literals_at(model, inner)
        closest = closest_match(error["input"], choices) if isinstance(error["input"], str) else None
        document.reject(path, "is not one of the choices", choices, closest)
    elif kind == "dict_type" and len(path) == 1 and path[0] in SECTIONS:
        key = kind_key(str(path[0]))
        document.reject(path, f"must be a mapping with the key {key}", names(str(path[0])))
    elif kind == "not_a_choice":
        choices = error["ctx"]["choices"]
        document.reject(path, "is not one of the choices", choices, closest_match(error["input"], choices))
    else:
        document.reject(path, _in_our_words(error["msg"]))


OURS = {
    "a valid dictionary": "a mapping", "an object": "a mapping", "valid array": "list",
    "a valid boolean": "true or false",
}  # fmt: skip
"""Type names of pydantic -> those of our messages."""


def _in_our_words(message: str) -> str:
    """A message of pydantic in the words of our other messages."""
    message = re.sub(r"^(Value error, )?(Input should|List should|String should)", "must", message)
    message = re.sub("^Input is not a valid path.*", "must be a path", message)
    for pydantic_words, own_words in (
        ("a valid dictionary", "a mapping"),
        ("an object", "a mapping"),
        ("valid array", "list"),
        ("a valid boolean", "true or false"),
    ):
        message = message.replace(pydantic_words, own_words)
    return re.sub(r" after validation, not \d+$", "", message).removeprefix("Value error, ")


def _inner(loc: KeyPath, document: ConfigDocument, prefix: KeyPath) -> KeyPath:
    """The path of a pydantic error below ``prefix``, without the tags of union members.

    Tags are in angle brackets (flitlab.sim.config.schema). A key of the file may have such a name, too.
    """
    inner: KeyPath = ()
    for part in loc:
        if not re.fullmatch("<[a-z]+>", str(part)) or document.has(*prefix, *inner, part):
            inner = (*inner, part)
    return inner


def spec_of(category: str, document: ConfigDocument, path: KeyPath, mapping: Any, without: Sequence[str] = ()) -> Any:
    """The specification of a component; None, with errors added to the document, if it is invalid.

    Parameters
    ----------
    category: of the registry, for example ``topology``.
    document: collects the errors.
    path: of the mapping.
    mapping: the keys of the component, as plain values.
    without: keys of the mapping that do not belong to the component.
    """
    if not isinstance(mapping, dict):
        return None  # rejected by the schema
    key = kind_key(category)
    kind = mapping.get(key, DEFAULT_KINDS.get(category))
    if not isinstance(kind, str):
        document.reject((*path, key), "must be a text" if key in mapping else "is missing", names(category))
        return None
    try:
        model = spec_class(category, kind)
    except UnknownKindError as error:
        problem = f"unknown {category}" if key == "kind" else "is not one of the choices"
        document.reject((*path, key), problem, error.choices, error.suggestion)
        return None
    own = {key: value for key, value in mapping.items() if key not in without}
    return validated(model, document, path, own, keys=without)


def reject_build_error(error: BaseException, section: str | KeyPath, document: ConfigDocument) -> None:
    """Reject a component whose construction raised an exception.

    Parameters
    ----------
    error: the exception; its ``key`` and ``choices`` are used if it is a ``SpecError``.
    section: the section, or the path, of the component.
    document: collects the errors.
    """
    prefix: KeyPath = (section,) if isinstance(section, str) else section
    if isinstance(error, SpecError):
        path = (*prefix, *parse_path(error.key)) if error.key else prefix
        suggestion = getattr(error, "suggestion", None) or closest_match(str(path[-1]), error.choices)
        document.reject(path, str(error), error.choices, suggestion)
    elif isinstance(error, OSError | UnicodeDecodeError):
        path = (*prefix, "path") if document.has(*prefix, "path") else prefix
        document.reject(
            path, error.strerror or str(error) if isinstance(error, OSError) else "is not a text file (UTF-8)"
        )
    elif isinstance(error, ValueError):
        document.reject(prefix, str(error))
    else:
        document.reject(prefix, f"could not be built: {crash(error)}")


def crash(error: BaseException) -> str:
    """An unexpected exception in one line: type, message, file and line."""
    traceback = error.__traceback__
    location = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            location = f" ({file}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split())))) + location
