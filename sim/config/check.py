"""From the errors of pydantic and of components to mistakes with file and line."""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from models.registry import Spec, SpecError, UnknownKindError, spec_class
from sim.config.errors import Mistake, key_path, near, show
from sim.config.load import Node, Place
from sim.config.overrides import parse_path, put


def mistake_at(root: Node, path: Place, problem: str, choices: Any = (), suggestion: str | None = None) -> Mistake:
    """A mistake at a key, which need not be there: then the closest key above it lends its line."""
    while path and root.get(*path) is None and not (above := root.nearest(path)).is_map and not above.is_list:
        path = path[:-1]  # nothing can stand under a scalar: it is the scalar that is wrong
    node = root.get(*path)
    value = show(node.plain()) if node is not None else ""
    choices = tuple(map(str, choices))
    return Mistake(root.nearest(path).where, key_path(path), value, problem, choices, suggestion)


def validated(model: type[BaseModel], root: Node, prefix: Place, mistakes: list[Mistake], keys: Any = ()) -> Any:
    """The mapping at ``prefix`` as a model, or None with its errors added to ``mistakes``.

    Values are checked as JSON: strictly, but lists may stand for tuples and text for paths.
    keys: further keys that belong there, for the choices of a misspelt one.
    """
    node = root.get(*prefix)
    plain = node.plain() if node is not None else {}
    try:
        return model.model_validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        mistakes += [_from_pydantic(one, model, root, prefix, keys) for one in error.errors()]
        return None


def _from_pydantic(error: Any, model: type[BaseModel], root: Node, prefix: Place, keys: Any) -> Mistake:
    # parts in angle brackets name a form of the key (sim.config.schema), not a place in the file
    inner = tuple(part for part in error["loc"] if not str(part).startswith("<"))
    path = (*prefix, *inner)
    kind = error["type"]
    if kind == "extra_forbidden":
        if re.match(r"\w+:\S", str(inner[-1])):
            return mistake_at(root, path, "unknown key; a space must follow the colon")
        known = {key for one in _models_at(model, inner[:-1]) for key in _keys(one)}
        choices = sorted(known | set(keys if len(inner) == 1 else ()))
        return mistake_at(root, path, "unknown key", choices, near(str(inner[-1]), choices))
    if kind == "missing":
        return mistake_at(root, path, "is missing")
    if kind == "literal_error":
        choices = _literals(model, inner)
        found = near(error["input"], choices) if isinstance(error["input"], str) else None
        return mistake_at(root, path, "is not one of the choices", choices, found)
    message = re.sub(r"^(Value error, )?(Input should|List should|String should)", "must", error["msg"])
    message = (
        message.replace("a valid dictionary", "a mapping")
        .replace("an object", "a mapping")
        .replace("valid array", "list")
    )
    message = re.sub(r" after validation, not \d+$", "", message)
    return mistake_at(root, path, message.removeprefix("Value error, "))


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _annotation(model: type[BaseModel], key: Any) -> Any:
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return field.annotation
    return None


def _leaves(annotation: Any) -> Iterator[Any]:
    """Everything that an annotation is made of."""
    yield annotation
    for argument in get_args(annotation):
        yield from _leaves(argument)


def _models_at(model: type[BaseModel], path: Place) -> list[type[BaseModel]]:
    """The models that describe the mapping at ``path``: one for each form that it may have."""
    models = [model]
    for part in path:
        leaves = [leaf for one in models for leaf in _leaves(_annotation(one, part))]
        models = [leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, BaseModel)] or models
    return models


def _literals(model: type[BaseModel], path: Place) -> list[str]:
    """The choices of the Literal at ``path``."""
    names = tuple(part for part in path if isinstance(part, str))
    if names:
        inside = _models_at(model, path)[0]
        annotation = _annotation(_models_at(model, names[:-1])[0], names[-1])
        if annotation is None or not any(get_args(leaf) for leaf in _leaves(annotation)):
            annotation = _annotation(inside, "kind")
        return [str(leaf) for leaf in _leaves(annotation) if isinstance(leaf, str | int) and not isinstance(leaf, bool)]
    return []


def spec_of(
    category: str, root: Node, mistakes: list[Mistake], without: Any = (), place: Place | None = None
) -> Spec | None:
    """A component of the category, or None with what is wrong added to ``mistakes``.

    without: keys of the mapping that are not the component's. place: of the mapping, by default the
    top-level key of the category's name.
    """
    place = place or (category,)
    section = root.get(*place)
    if section is None or not section.is_map:
        return None  # the schema says what is wrong with that
    kind = section.get("kind")
    if kind is None or not isinstance(kind.value, str):
        problem = "is missing" if kind is None else "must be a text"
        mistakes.append(mistake_at(root, (*place, "kind"), problem, names_of(category)))
        return None
    try:
        model = spec_class(category, kind.value)
    except UnknownKindError as error:
        mistakes.append(mistake_at(root, (*place, "kind"), f"unknown {category}", error.choices, error.suggestion))
        return None
    own = section.with_value({key: node for key, node in section.value.items() if key not in without})
    return validated(model, put(root, place, own), place, mistakes, keys=without)


def names_of(category: str) -> list[str]:
    """Kinds of a category."""
    from models.registry import names

    return names(category)


def from_build(error: Exception, section: str, root: Node) -> Mistake:
    """The mistake behind an exception that a component raised while it was built."""
    if isinstance(error, SpecError):
        path = (section, *parse_path(error.key)) if error.key else (section,)
        suggestion = getattr(error, "suggestion", None) or near(str(path[-1]), error.choices)
        return mistake_at(root, path, str(error), error.choices, suggestion)
    if isinstance(error, OSError | UnicodeDecodeError):
        path = (section, "path") if root.get(section, "path") else (section,)
        unreadable = error.strerror or str(error) if isinstance(error, OSError) else "is not a text file (UTF-8)"
        return mistake_at(root, path, unreadable)
    if isinstance(error, ValueError):
        return mistake_at(root, (section,), str(error))
    return mistake_at(root, (section,), f"could not be built: {crash(error)}")


def crash(error: BaseException) -> str:
    """An unexpected exception in one line: its type, message and place."""
    traceback = error.__traceback__
    place = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            place = f" ({file}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {' '.join(str(error).split())}{place}"
