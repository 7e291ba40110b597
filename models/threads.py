# SPDX-License-Identifier: Apache-2.0
"""Work in threads: compiled code holds no lock of Python's, so that parts of one table or solve are made side by side.

How work is cut into parts, and in which order their results are put together, never depends on the number of threads:
results are the same bytes for any.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from flitlab.models.cores import cores

T = TypeVar("T")
Task = TypeVar("Task")

_limit = 0
"""Threads that a call may use; 0: as many as there are processors."""


def threads() -> int:
    """Threads that a call in this process uses."""
    return _limit or cores()


def set_thread_limit(limit: int) -> int:
    """Let calls in this process use so many threads, 0: as many as there are processors; what was said before."""
    global _most
    before, _most = _most, limit
    return before


def parallel_map(call: Callable[[Task], T], tasks: Iterable[Task]) -> Iterator[T]:
    """The results of a call for each part, in the order of the parts; few of them wait to be asked for."""
    number = threads()
    if number == 1:
        yield from map(call, tasks)
        return
    with ThreadPoolExecutor(number) as pool:
        running: deque[Future[T]] = deque()
        for task in tasks:
            running.append(pool.submit(call, task))
            if len(running) > 2 * number:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


ROWS_PER_TASK = 1024
"""Rows of a table that are one part of the work."""


def map_row_blocks(call: Callable[[int, int], T], rows: int) -> list[T]:
    """The results of call(first, last) for parts of range(rows), in order; small tables are one part."""
    blocks = [(first, min(first + ROWS_PER_TASK, rows)) for first in range(0, rows, ROWS_PER_TASK)]
    if len(blocks) < 2:
        return [call(*part) for part in blocks]
    return list(parallel_map(lambda part: call(*part), blocks))
