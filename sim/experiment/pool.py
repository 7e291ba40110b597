"""Where tasks run: a process pool on this machine, or this very process."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from sim.experiment.task import start_worker


@dataclass(frozen=True, eq=False)
class Task:
    """A call to make in a worker, and what to do with what it returns.

    skip: asked just before the call is made. done: gets the returned value, in this process.
    """

    call: Callable[..., Any]
    arguments: tuple
    done: Callable[[Any], None]
    skip: Callable[[], bool] = lambda: False


class InProcess(Executor):
    """An executor that makes each call at once, here."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """The finished future of ``fn(*args, **kwargs)``."""
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_pool(jobs: int, plugins: Sequence[str] = ()) -> Executor:
    """An executor with ``jobs`` processes that have loaded the plugins; for one, this process itself."""
    if jobs == 1:
        return InProcess()
    # spawned, not forked: numba's and HiGHS's threads do not survive a fork
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=start_worker, initargs=(plugins,))


def run_all(tasks: Iterable[Task | None], jobs: int, plugins: Sequence[str] = ()) -> None:
    """Makes all calls, ``jobs`` at a time, in about the given order; returns when the last is done.

    A task is submitted only when a process is about to be free, so that ``skip`` knows all that is known. None in
    the place of a task says that the next one is not known before a call that is under way has returned.
    On an exception (Ctrl-C among them) calls under way are abandoned and their processes ended.
    """
    pool = open_pool(jobs, plugins)
    try:
        _feed(pool, iter(tasks), jobs + 1 if jobs > 1 else 1)
        pool.shutdown()
    except BaseException:
        _abandon(pool)
        raise


END = object()


def _feed(pool: Executor, tasks: Iterator[Task | None], window: int) -> None:
    running: dict[Future, Task] = {}
    more = True
    while more or running:
        while more and len(running) < window:
            task = next((task for task in tasks if task is None or not task.skip()), END)
            more = task is not END
            if not isinstance(task, Task):
                break
            running[pool.submit(task.call, *task.arguments)] = task
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            running.pop(future).done(future.result())


def _abandon(pool: Executor) -> None:
    workers = multiprocessing.active_children()
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(5)
