# SPDX-License-Identifier: Apache-2.0
"""Threads of this process: tasks of one table or solve run in parallel, as compiled code releases the GIL.

Neither the split into tasks nor the order in which results are combined depends on the number of threads: results are
the same bytes for any.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
Task = TypeVar("Task")

_limit = 0
"""Threads that a call may use; 0: one per processor."""


def threads() -> int:
    """Number of threads that a call in this process uses."""
    return _limit or cores()


def set_thread_limit(limit: int) -> int:
    """Set the number of threads of calls in this process, 0: one per processor; return the previous limit."""
    global _limit
    previous, _limit = _limit, limit
    return previous


def parallel_map(call: Callable[[Task], T], tasks: Iterable[Task]) -> Iterator[T]:
    """Yield the results of a call for all tasks, in the order of the tasks; the calls run on :func:`threads` threads.

    ``tasks`` is read in the thread of the caller, at most 2 * threads + 1 tasks ahead of the results, so few results
    are buffered. Nothing runs before the first result is requested. With one thread each call runs in the thread of the
    caller when its result is requested.

    Parameters
    ----------
    call: function of a task; several run at once, so they share no state that they write. It is parallel as far as it
        releases the GIL, as compiled code does.
    tasks: any number, also without end.

    Raises
    ------
    What a call raises, in place of its result; tasks that were submitted before are completed first.
    """
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
"""Rows of a table per task."""


def map_row_blocks(call: Callable[[int, int], T], rows: int) -> list[T]:
    """Return the results of call(first, last) for blocks of range(rows), in order; a small table is one block."""
    blocks = [(first, min(first + ROWS_PER_TASK, rows)) for first in range(0, rows, ROWS_PER_TASK)]
    if len(blocks) < 2:
        return [call(*block) for block in blocks]
    return list(parallel_map(lambda part: call(*part), blocks))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_thread() -> None:
    """Set numerical libraries to one thread, unless the user has set a number. Call before importing numpy.

    Processes use the processors, and sums over several threads are not reproducible.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
