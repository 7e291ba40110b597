# SPDX-License-Identifier: Apache-2.0
"""Caches of values that belong to objects, valid while the objects are referenced elsewhere."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np

from flitlab.models.arrays import Masks

T = TypeVar("T")
K = TypeVar("K")


def cached_while_referenced(find: Callable[[K], T]) -> Callable[[K], T]:
    """Cache a function of one object: it is called once per object, while the object exists.

    >>> @cached_while_referenced
    ... def length(members: frozenset[int]) -> int:
    ...     print("counted")
    ...     return len(members)
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


class _CachedTable(NamedTuple, Generic[T]):
    table: ref[Masks]
    checksum: bytes
    value: T


class TableCache(Generic[T]):
    """Tables, uint64 [rows, columns], by key, each with a value; an entry expires when nothing else references its
    table.

    >>> cache = TableCache[str]()
    >>> table = np.zeros((2, 2), np.uint64)
    >>> cache.put("zeros", table, "four of them")
    >>> cache.get("zeros")[1]
    'four of them'
    >>> table[0, 1] = 1
    >>> cache.get("zeros") is None  # the table has changed
    True
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _CachedTable[T]] = {}

    def get(self, key: Hashable) -> tuple[Masks, T] | None:
        """Return (table, value) of a key; None if nothing references the table, or if it has changed since
        :meth:`put`.
        """
        entry = self._known.get(key)
        table = entry and entry.table()
        return None if entry is None or table is None or _checksum(table) != entry.checksum else (table, entry.value)

    def put(self, key: Hashable, table: Masks, value: T) -> None:
        """Store a table and its value, without keeping the table alive.

        Parameters
        ----------
        key: identifies the entry.
        table: uint64 [rows, columns].
        value: what :meth:`get` returns with the table.
        """
        self._known[key] = _CachedTable(ref(table, lambda _: self._known.pop(key, None)), _checksum(table), value)


def _checksum(table: Masks) -> bytes:
    """Return a weighted sum of each row, which any likely change alters. 10,000 x 10,000 entries take about 0.1 s."""
    rows = table.reshape(len(table), -1)
    weight = np.arange(1, 2 * rows.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (rows @ weight).tobytes()
