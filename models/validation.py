# SPDX-License-Identifier: Apache-2.0
"""Validation of what a component returns, before anything is computed on it.

Compiled code does not check array bounds, so arrays must be as documented. An error is a pair (kind, text); messages
report one error of each kind.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from flitlab.models.registry import FaultyError

Errors = Iterator[tuple[str, str]]
"""Errors as (kind, text)."""

T = TypeVar("T")


def error_texts(errors: Iterable[tuple[str, str]]) -> list[str]:
    """Return the first text of each kind, with the number of the others of its kind."""
    texts_by_kind: dict[str, list[str]] = {}
    for kind, text in errors:
        texts_by_kind.setdefault(kind, []).append(text)
    return [with_count(texts[0], len(texts)) for texts in texts_by_kind.values()]


def with_count(text: str, count: int) -> str:
    """Return the text of an error that stands for ``count`` errors of its kind."""
    return text if count == 1 else f"{text} (and {count - 1} more of this sort)"


def first_error(kind: str, indices: np.ndarray, text: Callable[[int], str]) -> Errors:
    """Yield one error for the first of several indices.

    Parameters
    ----------
    kind: kind of the error.
    indices: int64 [n], where the error occurs; nothing is yielded for n = 0.
    text: makes the message of an index.
    """
    if len(indices):
        yield kind, with_count(text(int(indices[0])), len(indices))


def raise_errors(errors: Iterable[tuple[str, str]], key: str | None = None) -> None:
    """Raise :class:`~flitlab.models.registry.FaultyError` with one text of each kind, if there are any errors.

    Parameters
    ----------
    errors: (kind, text) of each.
    key: configuration key of the component, for the message.
    """
    if texts := error_texts(errors):
        raise FaultyError(texts, key)


def require_type(value: object, expected: type, method: str = "build", key: str | None = None) -> None:
    """Raise ``FaultyError`` if a component returns a value of another type.

    Parameters
    ----------
    value: what the component returned.
    expected: the required type.
    method: name of the component's method.
    key: configuration key of the component, for the message.
    """
    if not isinstance(value, expected):
        raise FaultyError([f"{method}() must return a {expected.__name__}, not {type(value).__name__}"], key)


def is_whole(value: object) -> bool:
    """Whether a value is an integer, Python's or NumPy's, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


_NUMBERS: dict[type, str] = {np.integer: "whole numbers", np.floating: "floating-point numbers"}


def array_errors(name: str, array: Any, dtype: type, *shape: int) -> Errors:
    """Yield an error if an array does not have the documented type and shape.

    Parameters
    ----------
    name: name of the array, for the message.
    array: the value to check.
    dtype: the exact element type, or ``np.integer`` or ``np.floating`` for any width.
    shape: the required shape.
    """
    readable = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    if readable and _matches(array.dtype, dtype) and array.shape == shape:
        return
    actual = f"{array.dtype} of shape {array.shape}" if readable else _type_name(array)
    yield f"array {name}", f"{name} must be {_NUMBERS.get(dtype, dtype.__name__)} of shape {shape}, and is {actual}"


def _matches(actual: np.dtype, expected: type) -> bool:
    return np.issubdtype(actual, expected) if expected in _NUMBERS else actual == expected


def _type_name(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def notes_errors(notes: object, name: str = "notes") -> Errors:
    """Yield an error if ``notes``, or another mapping of that name, cannot be written as JSON."""
    try:
        json.dumps(notes)
    except (TypeError, ValueError, RecursionError) as error:
        yield name, f"{name} must be plain numbers, texts, lists and mappings ({error}); use int(), float(), tolist()"
        return
    if not isinstance(notes, dict):
        yield name, f"{name} must be a mapping, and are {_type_name(notes)}"


def contiguous(array: np.ndarray, dtype: type, copy: bool) -> np.ndarray:
    """Return an array as compiled code requires it: C-contiguous, writable, of type ``dtype``.

    Parameters
    ----------
    array: any array that converts to ``dtype``.
    dtype: element type of the result.
    copy: whether to copy also where that is not necessary.
    """
    array = np.asarray(array)
    return np.array(array, dtype, order="C") if copy else np.require(array, dtype, ("C", "W"))


def copy_fields(kind: type[T], source: object, **changed: object) -> T:
    """Return a dataclass with the fields of another object, without that object's other attributes.

    Parameters
    ----------
    kind: the dataclass.
    source: an object that has its fields.
    changed: fields with other values.
    """
    return kind(**{field.name: getattr(source, field.name) for field in fields(kind) if field.init} | changed)  # type: ignore[arg-type]
