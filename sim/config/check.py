"""From the errors of pydantic and of components to mistakes with file and line."""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from flitlab.models.near import edits, near
from flitlab.models.registry import Spec, SpecError, UnknownKindError, spec_class
from flitlab.sim.config.errors import Mistake, key_path, show
from flitlab.sim.config.keys import keys_of, literals_at, models_at, places_of
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.overrides import parse_path, put


def mistake_at(root: Node, path: Place, problem: str, choices: Any = (), suggestion: str | None = None) -> Mistake:
    """A mistake at a key, which need not be there: then the closest key above it lends its line."""
    while path and root.get(*path) is None and not (above := root.nearest(path)).is_map and not above.is_list:
        path = path[:-1]  # nothing can stand under a scalar: it is the scalar that is wrong
    node = root.get(*path)
    value = show(node.plain()) if node is not None else ""
    choices = tuple(map(str, choices))
    return Mistake(root.nearest(path).where, key_path(path), value, problem, choices, suggestion)


def unknown_key(root: Node, path: Place, choices: Sequence[str]) -> Mistake:
    """The mistake of a key that is none of the choices, but perhaps has its place elsewhere."""
    key = str(path[-1])
    places, meant = places_of(key, root), near(key, choices)
    if places and meant is not None and edits(key, meant) > 1:
        meant = None
    problem = f"unknown key; its place is {' or '.join(places)}" if places else "unknown key"
    return mistake_at(root, path, problem, choices, meant)


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
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a stranger's own validator
        mistakes.append(mistake_at(root, prefix, f"could not be checked: {crash(error)}"))
    return None


def _from_pydantic(error: Any, model: type[BaseModel], root: Node, prefix: Place, keys: Any) -> Mistake:
    inner = _place(error["loc"], root, prefix)
    path = (*prefix, *inner)
    kind = error["type"]
    if kind == "extra_forbidden":
        if re.match(r"\w+:\S", str(inner[-1])):
            return mistake_at(root, path, "unknown key; a space must follow the colon")
        known = {key for one in models_at(model, inner[:-1]) for key in keys_of(one)}
        return unknown_key(root, path, sorted(known | set(keys if len(inner) == 1 else ())))
    if kind == "missing":
        return mistake_at(root, path, "is missing")
    if kind == "literal_error":
        choices = literals_at(model, inner)
        found = near(error["input"], choices) if isinstance(error["input"], str) else None
        return mistake_at(root, path, "is not one of the choices", choices, found)
    if kind == "not_a_choice":
        choices = error["ctx"]["choices"]
        return mistake_at(root, path, "is not one of the choices", choices, near(error["input"], choices))
    message = re.sub(r"^(Value error, )?(Input should|List should|String should)", "must", error["msg"])
    message = (
        message.replace("a valid dictionary", "a mapping")
        .replace("an object", "a mapping")
        .replace("valid array", "list")
    )
    message = re.sub(r" after validation, not \d+$", "", message)
    return mistake_at(root, path, message.removeprefix("Value error, "))


def _place(loc: Place, root: Node, prefix: Place) -> Place:
    """Where pydantic's error is in the mapping at ``prefix``, without the parts that name a form of the key.

    Those are in angle brackets (flitlab.sim.config.schema); but the file may have keys of such names.
    """
    inner: Place = ()
    for part in loc:
        if not re.fullmatch("<[a-z]+>", str(part)) or root.get(*prefix, *inner, part) is not None:
            inner = (*inner, part)
    return inner


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
    from flitlab.models.registry import names

    return names(category)


def from_build(error: BaseException, section: str, root: Node) -> Mistake:
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
    return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split())))) + place
