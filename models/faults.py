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

Found = Iterator[tuple[str, str]]
"""Faults as (sort, text)."""

T = TypeVar("T")


def one_of_each(found: Iterable[tuple[str, str]]) -> list[str]:
    """The first text of each sort, with the number of others."""
    sorts: dict[str, list[str]] = {}
    for sort, text in found:
        sorts.setdefault(sort, []).append(text)
    return [counted(texts[0], len(texts)) for texts in sorts.values()]


def counted(text: str, count: int) -> str:
    """A text that stands for ``count`` faults of its sort."""
    return text if count == 1 else f"{text} (and {count - 1} more of this sort)"


def at_first(sort: str, places: np.ndarray, text: Callable[[int], str]) -> Found:
    """A fault that shows at several places, told of the first."""
    if len(places):
        yield sort, counted(text(int(places[0])), len(places))


def refuse(found: Iterable[tuple[str, str]], key: str | None = None) -> None:
    """Raise :class:`~flitlab.models.registry.FaultyError` that tells one fault of each sort, if there are any."""
    if texts := one_of_each(found):
        raise FaultyError(texts, key)


def refuse_other(given: Any, wanted: type, by: str = "build", key: str | None = None) -> None:
    """Raise ``FaultyError`` if a component gives something else than it should. by: name of the method that gave it."""
    if not isinstance(given, wanted):
        raise FaultyError([f"{by}() must return a {wanted.__name__}, not {type(given).__name__}"], key)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, numpy's included, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


_NUMBERS: dict[type, str] = {np.integer: "whole numbers", np.floating: "floating-point numbers"}


def array_faults(name: str, array: Any, dtype: type, *shape: int) -> Found:
    """What keeps compiled code from reading an array. dtype: exact, or ``np.integer``, ``np.floating``."""
    readable = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    if readable and _is_of(array.dtype, dtype) and array.shape == shape:
        return
    found = f"{array.dtype} of shape {array.shape}" if readable else _kind(array)
    yield f"array {name}", f"{name} must be {_NUMBERS.get(dtype, dtype.__name__)} of shape {shape}, and is {found}"


def _is_of(found: np.dtype, wanted: type) -> bool:
    return np.issubdtype(found, wanted) if wanted in _NUMBERS else found == wanted


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def notes_faults(notes: Any, name: str = "notes") -> Found:
    """Whether notes, or another mapping of that name, can be written down."""
    try:
        json.dumps(notes)
    except (TypeError, ValueError, RecursionError) as error:
        yield name, f"{name} must be plain numbers, texts, lists and mappings ({error}); use int(), float(), tolist()"
        return
    if not isinstance(notes, dict):
        yield name, f"{name} must be a mapping, and are {_kind(notes)}"


def plain(array: np.ndarray, dtype: type, copy: bool) -> np.ndarray:
    """An array with its numbers as compiled code takes them: in one piece, writable, of this type."""
    array = np.asarray(array)
    return np.array(array, dtype, order="C") if copy else np.require(array, dtype, ("C", "W"))


def rebuilt(kind: type[T], given: Any, **changed: Any) -> T:
    """A dataclass with the fields of another that has them, and nothing of what else that may hold."""
    return kind(**{field.name: getattr(given, field.name) for field in fields(kind) if field.init} | changed)  # type: ignore[arg-type]
