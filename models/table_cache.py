# SPDX-License-Identifier: Apache-2.0
"""What is known of tables, and of other objects, remembered for as long as somebody else holds them."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from flitlab.models.arrays import Masks

T = TypeVar("T")
K = TypeVar("K")


def cached_while_referenced(find: Callable[[K], T]) -> Callable[[K], T]:
    """Let a function of one object be called once for each, as long as somebody holds the object.

    >>> @while_held
    ... def length(of: frozenset[int]) -> int:
    ...     print("counted")
    ...     return len(of)
    >>> two = frozenset((1, 2))
    >>> length(two) + length(two)
    counted
    4
    """
    known: WeakKeyDictionary[K, T] = WeakKeyDictionary()

    @wraps(find)
    def cached(key: K) -> T:
        if key not in known:
            known[key] = find(key)
        return known[key]

    return cached


class _Entry(NamedTuple, Generic[T]):
    table: ref[Masks]
    checksum: bytes
    value: T


class TableCache(Generic[T]):
    """Tables, uint64 [rows, columns], that others hold, each with what is known of it, by a key.

    >>> held = WhileHeld[str]()
    >>> table = np.zeros((2, 2), np.uint64)
    >>> held.keep("zeros", table, "four of them")
    >>> held.get("zeros")[1]
    'four of them'
    >>> table[0, 1] = 1
    >>> held.get("zeros") is None  # it is none of zeros any more
    True
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Entry[T]] = {}

    def get(self, key: Hashable) -> tuple[Masks, T] | None:
        """The table of that key and what is known of it; None if nobody holds it, or if it has changed."""
        entry = self._known.get(key)
        table = entry and entry.table()
        return None if entry is None or table is None or _checksum(table) != entry.checksum else (table, entry.value)

    def put(self, key: Hashable, table: Masks, value: T) -> None:
        """Remembers a table and what is known of it, until nobody else holds the table."""
        self._known[key] = _Entry(ref(table, lambda _: self._known.pop(key, None)), _checksum(table), value)


def _checksum(table: Masks) -> bytes:
    """A weighted sum of each row, which any likely change of a table changes; of 10,000 x 10,000 in about 0.1 s."""
    weight = np.arange(1, 2 * table.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (table @ weight).tobytes()
