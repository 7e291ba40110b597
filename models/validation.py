# SPDX-License-Identifier: Apache-2.0
"""Faults of what a component was built to, told in words, before anything is computed on it.

Compiled code reads arrays without a look at their bounds: what it is given must be as it is documented.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from flitlab.models.registry import FaultyError

Errors = Iterator[tuple[str, str]]
"""Faults as (sort, text)."""

T = TypeVar("T")


def error_texts(errors: Iterable[tuple[str, str]]) -> list[str]:
    """The first text of each sort, with the number of others."""
    texts_by_kind: dict[str, list[str]] = {}
    for kind, text in errors:
        texts_by_kind.setdefault(kind, []).append(text)
    return [with_count(texts[0], len(texts)) for texts in texts_by_kind.values()]


def with_count(text: str, count: int) -> str:
    """A text that stands for ``count`` faults of its sort."""
    return text if count == 1 else f"{text} (and {count - 1} more of this sort)"


def first_error(kind: str, indices: np.ndarray, text: Callable[[int], str]) -> Errors:
    """A fault that shows at several places, told of the first."""
    if len(indices):
        yield kind, with_count(text(int(indices[0])), len(indices))


def raise_errors(errors: Iterable[tuple[str, str]], key: str | None = None) -> None:
    """Raise :class:`~flitlab.models.registry.FaultyError` that tells one fault of each sort, if there are any."""
    if texts := error_texts(errors):
        raise FaultyError(texts, key)


def require_type(value: Any, expected: type, method: str = "build", key: str | None = None) -> None:
    """Raise ``FaultyError`` if a component gives something else than it should. by: name of the method that gave it."""
    if not isinstance(value, expected):
        raise FaultyError([f"{method}() must return a {expected.__name__}, not {type(value).__name__}"], key)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, numpy's included, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


_NUMBERS: dict[type, str] = {np.integer: "whole numbers", np.floating: "floating-point numbers"}


def array_errors(name: str, array: Any, dtype: type, *shape: int) -> Errors:
    """What keeps compiled code from reading an array. dtype: exact, or ``np.integer``, ``np.floating``."""
    readable = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    if readable and _matches(array.dtype, dtype) and array.shape == shape:
        return
    actual = f"{array.dtype} of shape {array.shape}" if readable else _type_name(array)
    yield f"array {name}", f"{name} must be {_NUMBERS.get(dtype, dtype.__name__)} of shape {shape}, and is {actual}"


def _matches(actual: np.dtype, expected: type) -> bool:
    return np.issubdtype(actual, expected) if expected in _NUMBERS else actual == expected


def _type_name(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def notes_errors(notes: Any, name: str = "notes") -> Errors:
    """Whether notes, or another mapping of that name, can be written down."""
    try:
        json.dumps(notes)
    except (TypeError, ValueError, RecursionError) as error:
        yield name, f"{name} must be plain numbers, texts, lists and mappings ({error}); use int(), float(), tolist()"
        return
    if not isinstance(notes, dict):
        yield name, f"{name} must be a mapping, and are {_type_name(notes)}"


def contiguous(array: np.ndarray, dtype: type, copy: bool) -> np.ndarray:
    """An array with its numbers as compiled code takes them: in one piece, writable, of this type."""
    array = np.asarray(array)
    return np.array(array, dtype, order="C") if copy else np.require(array, dtype, ("C", "W"))


def copy_fields(kind: type[T], source: Any, **changed: Any) -> T:
    """A dataclass with the fields of another that has them, and nothing of what else that may hold."""
    return kind(**{field.name: getattr(source, field.name) for field in fields(kind) if field.init} | changed)  # type: ignore[arg-type]
