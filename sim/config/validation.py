# SPDX-License-Identifier: Apache-2.0
"""Validation against the models: errors of pydantic and of components become diagnostics with file and line."""

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from flitlab.models.closest_match import closest_match, edit_distance
from flitlab.models.registry import SpecError, UnknownKindError, canonical_kind, kind_key, names, spec_class
from flitlab.sim.config.diagnostics import KeyPath, crash, parse_path
from flitlab.sim.config.link_rate import OWN_KEYS
from flitlab.sim.config.overrides import CLASSES, DEFAULT_KINDS, default_kind
from flitlab.sim.config.schema import SECTIONS, keys_of, kinds_with, literals_at, models_at, paths_of_key
from flitlab.sim.config.text import ConfigDocument
from flitlab.sim.config.units import has_unit

Model = TypeVar("Model", bound=BaseModel)


def reject_unknown_key(document: ConfigDocument, path: KeyPath, choices: Sequence[str]) -> None:
    """Reject a key that is none of the choices; names the place where such a key exists.

    Parameters
    ----------
    document: the configuration, or a part of it.
    path: of the key.
    choices: keys that are valid there.
    """
    key, whole = str(path[-1]), document.whole
    section = (*document.path, *path[:-1])
    if section == ("switching",) and (modes := kinds_with("switching", key)):
        problem = not_for(whole.at("switching", "mode") or DEFAULT_KINDS["switching"], modes)
        if key in OWN_KEYS:
            own = [one for one in (*OWN_KEYS, "link_gbps") if one in choices]
            problem += f"; here the rate of a link is {' or '.join(own)}"
        document.reject(path, problem, choices)
        return
    if len(section) == 1 and section[0] in SECTIONS and 0 < len(kinds := kinds_with(str(section[0]), key)) <= FEW_KINDS:
        document.reject(path, not_for(str(whole.at(*section, "kind")), kinds, "kind"), choices)
        return
    if (meant := _meant(key, choices)) is not None:
        document.reject(path, "unknown key", choices, meant)
        return
    paths = paths_of_key(key, {section: whole.at(section, "kind") for section in SECTIONS})
    closest = closest_match(key, choices)
    if paths and closest is not None and edit_distance(key, closest) > 1:
        closest = None
    problem = f"unknown key; its place is {' or '.join(paths)}" if paths else "unknown key"
    document.reject(path, problem, choices, closest)


ELSEWHERE = {
    "bandwidth": ("link_gbps", "nic_mbps"), "buffer_size": ("buffer_flits", "queue_packets"),
    **dict.fromkeys(("degree", "fan_in", "fanin"), ("senders",)),
    "file": ("path",), "flow_size": ("sizes",), "k": ("dims",), "link_delay": ("link_ns", "link_us"),
    "link_latency": ("link_ns", "link_us"), "link_speed": ("link_gbps", "nic_mbps"),
    "message_size": ("size_bytes",), "select": ("per",), "vc_buf_size": ("buffer_flits",),
}  # fmt: skip
"""Key of other simulators, or of other kinds -> ours of the same meaning, the first that is valid in a place."""


def _meant(key: str, choices: Sequence[str]) -> str | None:
    """The key of this place that a name from elsewhere, or one without its unit, means; None if there is none.

    >>> _meant("size", ["kind", "size_bytes"]), _meant("file", ["kind", "path"]), _meant("link", ["link_ns", "link_us"])
    ('size_bytes', 'path', None)
    """
    same = [one for one in ELSEWHERE.get(key, ()) if one in choices][:1]
    same = same or [one for one in choices if re.fullmatch(f"{re.escape(key)}_(bytes|flits|ticks|mbps)", one)]
    return same[0] if len(same) == 1 else None


FEW_KINDS = 3
"""A key that at most this many other kinds of its section have is reported with them."""


def not_for(mode: str, modes: Sequence[str], noun: str = "mode") -> str:
    """The problem of a key that only other switching modes, or kinds, have.

    >>> not_for("vct", ["datagram"]), not_for("flow", ["vct", "wormhole"])
    ('is not for mode vct, but for mode datagram', 'is not for mode flow, but for modes vct and wormhole')
    """
    others = f"{noun}s {', '.join(modes[:-1])} and {modes[-1]}" if len(modes) > 1 else f"{noun} {modes[0]}"
    return f"is not for {noun} {mode}, but for {others}"


def validated(model: type[Model], document: ConfigDocument, value: object, keys: Sequence[str] = ()) -> Model | None:
    """A part of the configuration as a model; None, with errors added, if it is invalid.

    Values are checked as JSON: strictly, but lists may stand for tuples and text for paths.

    Parameters
    ----------
    model: the pydantic model.
    document: the part; collects the errors.
    value: the part, or some of its keys, as plain dicts, lists and scalars.
    keys: further keys that are valid there, for the choices of a misspelt one.
    """
    try:
        return model.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        for one in error.errors():
            _reject_schema_error(one, model, document, keys)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third-party validator may raise anything
        document.reject((), f"could not be checked: {crash(error)}")
    return None


def _reject_schema_error(
    error: ErrorDetails, model: type[BaseModel], document: ConfigDocument, keys: Sequence[str]
) -> None:
    path, kind, value = _inner(error["loc"], document), error["type"], error["input"]
    section = (*document.path, *path)
    if kind == "extra_forbidden" and re.match(r"\w+:\S", str(path[-1])):
        document.reject(path, "unknown key; a space must follow the colon")
    elif kind == "extra_forbidden":
        known = {key for one in models_at(model, path[:-1]) for key in keys_of(one)}
        reject_unknown_key(document, path, sorted(known | set(keys if len(path) == 1 else ())))
    elif kind == "literal_error" and "<text>" in error["loc"] and has_unit(value):
        choices = literals_at(model, path)
        document.reject(path, f"must be {' or '.join(choices)}, or a number {_without_unit(section)}")
    elif kind in ("literal_error", "not_a_choice"):
        choices = literals_at(model, path) if kind == "literal_error" else error["ctx"]["choices"]
        closest = closest_match(value, choices) if isinstance(value, str) else None
        document.reject(path, "is not one of the choices", choices, closest)
    elif kind == "dict_type" and len(section) == 1 and section[0] in SECTIONS:
        name = str(section[0])
        document.reject(path, f"must be the name of a kind, or a mapping with the key {kind_key(name)}", names(name))
    else:
        plain = kind in ("float_type", "int_type") and has_unit(value)
        document.reject(path, _in_our_words(error["msg"]) + f" {_without_unit(section)}" * plain)


def _without_unit(path: KeyPath) -> str:
    """That a number has no unit; of one in ticks that it is in ticks."""
    in_ticks = path == ("measure", "warmup") or re.search("(^|_)ticks?$", str(path[-1]))
    return "without a unit" + ", of ticks" * bool(in_ticks)


WORDS = {
    "a valid dictionary": "a mapping", "an object": "a mapping", "valid array": "list",
    "a valid boolean": "true or false",
}  # fmt: skip
"""Type names of pydantic -> those of our messages."""


def _in_our_words(message: str) -> str:
    """A message of pydantic in the words of our other messages."""
    message = re.sub(r"^(Value error, )?(Input should|List should|String should)", "must", message)
    message = re.sub("^Input is not a valid path.*", "must be a path", message)
    message = re.sub("^Field required$", "is missing", message)
    for theirs, ours in WORDS.items():
        message = message.replace(theirs, ours)
    return re.sub(r" after validation, not \d+$", "", message).removeprefix("Value error, ")


def _inner(loc: KeyPath, document: ConfigDocument) -> KeyPath:
    """The path of a pydantic error in a part, without the tags of union members.

    Tags are in angle brackets (flitlab.sim.config.sections). A key of the file may have such a name, too.
    """
    inner: KeyPath = ()
    for part in loc:
        if not re.fullmatch("<[a-z]+>", str(part)) or document.has(*inner, part):
            inner = (*inner, part)
    return inner


def spec_of(category: str, document: ConfigDocument, mapping: object, without: Sequence[str] = ()) -> Any:
    """The specification of a component; None, with errors added, if it is invalid.

    Parameters
    ----------
    category: of the registry, for example ``topology``.
    document: the part of the component; collects the errors.
    mapping: the keys of the component, as plain values.
    without: keys of the mapping that do not belong to the component.
    """
    if not isinstance(mapping, dict):
        return None  # rejected by the schema
    key = kind_key(category)
    kind = mapping.get(key, default_kind(category, mapping))
    if not isinstance(kind, str):
        document.reject(key, "must be a text" if key in mapping else "is missing", names(category))
        return None
    try:
        model = spec_class(category, kind)
    except UnknownKindError as error:
        problem = f"unknown {category}" if key == "kind" else "is not one of the choices"
        document.reject(key, problem, error.choices, error.suggestion)
        return None
    own = {key: value for key, value in mapping.items() if key not in without}
    if key in own:
        own[key] = canonical_kind(category, kind)
    if kind == CLASSES and category == "traffic":
        own["kind"] = kind  # which may be omitted
    return validated(model, document, own, keys=without)


def reject_build_error(error: BaseException, document: ConfigDocument) -> None:
    """Reject a component, a part of the configuration, whose construction raised an exception.

    The key and choices of a ``SpecError`` are used.
    """
    if isinstance(error, SpecError):
        path = (*document.path, *parse_path(error.key or ""))
        suggestion = getattr(error, "suggestion", None) or closest_match(str(path[-1]), error.choices)
        document.reject(error.key or "", str(error), error.choices, suggestion)
    elif isinstance(error, OSError | UnicodeDecodeError):
        key = "path" if document.has("path") else ""
        document.reject(
            key, error.strerror or str(error) if isinstance(error, OSError) else "is not a text file (UTF-8)"
        )
    elif isinstance(error, ValueError):
        document.reject("", str(error))
    else:
        document.reject("", f"could not be built: {crash(error)}")
