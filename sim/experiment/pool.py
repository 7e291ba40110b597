# SPDX-License-Identifier: Apache-2.0
"""Where tasks run: a process pool on this machine, this very process, or a cluster."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

from flitlab.models.cores import cores
from flitlab.models.threads import use_threads
from flitlab.sim.experiment.task import Outcome, start_worker
from flitlab.sim.signals import starting_processes

__all__ = ["InProcess", "Pool", "Processes", "SharedProcesses", "Task", "cores", "open_pool", "processes", "run_all"]


def processes(threads: int) -> int:
    """How many processes of so many threads the processors of this machine are enough for, at least 1."""
    return max(1, cores() // threads)


@dataclass(frozen=True, eq=False)
class Task:
    """A call to make in a worker, and what to do with the outcome that it returns.

    done: gets the outcome, in this process. skip: asked just before the call is made. name: what it computes, for
    messages. place: which one it is of all calls of its kind in the study, whatever is done already; shards go by it.
    """

    call: Callable[..., Outcome]
    arguments: tuple[Any, ...]
    done: Callable[[Outcome], None]
    skip: Callable[[], bool] = lambda: False
    name: str = ""
    place: int = 0


class Pool(Protocol):
    """Processes that make calls."""

    @property
    def max_in_flight(self) -> int:
        """Calls that may be under way at a time, those that wait for a process among them."""

    def submit(self, call: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """Makes a call; ``BrokenExecutor`` in its future says that the process died which made it, or another one."""

    def reopen(self) -> None:
        """Replaces the processes after one of them died."""

    def close(self, abandon: bool = False) -> None:
        """Ends the processes. abandon: also where calls are under way."""


class InProcess:
    """Makes each call at once, here. threads: that a ceiling may use."""

    max_in_flight = 1

    def __init__(self, threads: int = 1):
        self.threads = threads

    def submit(self, call: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """The finished future of ``call(*arguments)``."""
        future: Future[Outcome] = Future()
        before = use_threads(self.threads)
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        finally:
            use_threads(before)
        return future

    def reopen(self) -> None:
        """Does nothing: if this process dies, that is the end."""

    def close(self, abandon: bool = False) -> None:
        """Does nothing: no worker is to be ended."""


class Processes:
    """``jobs`` processes on this machine, each of which has loaded the plugins.

    threads: that a ceiling may use in each of them.
    """

    def __init__(self, jobs: int, plugins: Sequence[str], threads: int = 1):
        self.jobs = jobs
        self.plugins = plugins
        self.threads = threads
        self.max_in_flight = jobs + 1
        self.reopen()

    def reopen(self) -> None:
        """New processes in place of the old ones, if any."""
        # spawned, not forked: numba's and HiGHS's threads do not survive a fork
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(
            self.jobs, mp_context=context, initializer=start_worker, initargs=(self.plugins, self.threads)
        )

    def submit(self, call: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """Makes a call in one of the processes, which may have to be started."""
        with starting_processes():
            return self._executor.submit(call, *arguments)

    def close(self, abandon: bool = False) -> None:
        """Ends the processes."""
        workers = multiprocessing.active_children() if abandon else []
        self._executor.shutdown(wait=not abandon, cancel_futures=abandon)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join(5)


class SharedProcesses:
    """Processes on this machine that several runs use in turn: closing it at the end of one ends nothing.

    They start with the first call, also after some were abandoned, and hold no plugins.
    """

    def __init__(self, jobs: int):
        self.jobs = jobs
        self.max_in_flight = jobs + 1
        self.spent = 0.0
        """CPU seconds of all calls that have returned."""
        self._pool: Pool | None = None

    def submit(self, call: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """Makes a call in one of the processes, and counts its time."""
        self._pool = self._pool or open_pool(self.jobs)
        future: Future[Outcome] = Future()
        self._pool.submit(_timed, call, arguments).add_done_callback(lambda done: self._forward_result(done, future))
        return future

    def _forward_result(self, done: "Future[Any]", future: "Future[Outcome]") -> None:
        if done.cancelled():
            return
        if error := done.exception():
            future.set_exception(error)
            return
        outcome, seconds = done.result()
        self.spent += seconds
        future.set_result(outcome)

    def reopen(self) -> None:
        """Replaces the processes after one of them died."""
        if self._pool is not None:
            self._pool.reopen()

    def close(self, abandon: bool = False) -> None:
        """Keeps the processes, unless they are to be abandoned."""
        if abandon:
            self.end(abandon)

    def end(self, abandon: bool = False) -> None:
        """Ends the processes, if there are any."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(abandon)


def _timed(call: Callable[..., Outcome], arguments: Sequence[Any]) -> Any:
    """What a call returns, and the CPU seconds that it took."""
    began = cpu_seconds()
    return call(*arguments), cpu_seconds() - began


def cpu_seconds() -> float:
    """CPU time of this process and of those that it has waited for."""
    own = time.process_time()  # to the nanosecond: a row may take less than the hundredth that the other counts by
    return own + sum(os.times()[2:4])


def open_pool(jobs: int, plugins: Sequence[str] = (), calls: int | None = None, each: int = 1) -> Pool:
    """A pool of ``jobs`` processes that have loaded the plugins; for one, this process itself.

    calls: how many there are, if that is known: of fewer calls than jobs each ceiling may use several threads, as many
    as make up the number of jobs. each: threads that a call may use in any case.
    """
    processes = max(1, jobs if calls is None else min(jobs, calls))
    threads = max(1, jobs * each // processes)
    return InProcess(threads) if processes == 1 else Processes(processes, plugins, threads)


def run_all(pool: Pool, *phases: Iterable[Task | None]) -> None:
    """Makes all calls in about the given order and closes the pool; returns when the last is done.

    A phase begins when all calls of the one before have returned. A task is submitted only when a process is about to
    be free, so that ``skip`` knows all that is known. None in the place of a task says that the next one is not known
    before a call that is under way has returned; if there is none under way, nothing comes any more.
    On an exception (Ctrl-C among them) calls under way are abandoned and their processes ended.
    """
    try:
        for tasks in phases:
            _Dispatcher(pool, iter(tasks)).run()
        pool.close()
    except BaseException:
        pool.close(abandon=True)
        raise


END = object()

CAPACITY_POLL_SECONDS = 5.0
"""Seconds after which it is asked again how much room there is: processes of a cluster come and go."""

MAX_CRASHES = 8
"""So many calls in a row that end the process which makes them are no longer taken for the fault of the calls."""

DIED = "the process that computed it died twice (out of memory?)"


class _Dispatcher:
    """Keeps a pool busy.

    When a process dies, every call under way is a suspect. Suspects are made again one at a time, with all the memory
    of the machine; one during which a process dies twice has failed.
    """

    def __init__(self, pool: Pool, tasks: Iterator[Task | None]):
        self.pool = pool
        self.tasks = tasks
        self.running: dict[Future[Outcome], Task] = {}
        self.suspects: list[Task] = []
        self.crashed_once: list[Task] = []
        self.has_more = True
        self.crashes = 0

    def run(self) -> None:
        """Until all is done."""
        while self.has_more or self.running or self.suspects:
            exclusive = None
            if self.suspects and not self.running:
                exclusive = self.suspects.pop(0)
                self._submit(exclusive)
            while self.has_more and not exclusive and not self.suspects and len(self.running) < self.pool.max_in_flight:
                if not self._submit_next():
                    break
            done = wait(self.running, None if exclusive else CAPACITY_POLL_SECONDS, FIRST_COMPLETED).done
            crashed = [task for future in done if (task := self._end(future)) is not None]
            if crashed:
                self._replace_workers(crashed, exclusive)

    def _submit_next(self) -> bool:
        """Whether there was a task to submit."""
        task = next((task for task in self.tasks if task is None or not task.skip()), END)
        self.has_more = task is not END and (task is not None or bool(self.running))
        if isinstance(task, Task):
            self._submit(task)
        return isinstance(task, Task)

    def _submit(self, task: Task) -> None:
        try:
            self.running[self.pool.submit(task.call, *task.arguments)] = task
        except BrokenExecutor as error:  # a process died while it had nothing to do
            future: Future[Outcome] = Future()
            future.set_exception(error)
            self.running[future] = task

    def _end(self, future: "Future[Outcome]") -> Task | None:
        """Passes on what a call came to; the task, if its process died."""
        task = self.running.pop(future)
        try:
            outcome = future.result()
        except BrokenExecutor:
            return task
        self.crashes = 0
        task.done(outcome)
        return None

    def _replace_workers(self, crashed: list[Task], exclusive: Task | None) -> None:
        crashed += [task for future in wait(self.running).done if (task := self._end(future)) is not None]
        self.crashes += 1
        if self.crashes > MAX_CRASHES:
            raise BrokenExecutor("processes die whatever they are to do")
        self.pool.reopen()
        if exclusive is not None and exclusive in self.crashed_once:
            exclusive.done(Outcome(problem=DIED))
            return
        if exclusive is not None:
            self.crashed_once.append(exclusive)
        self.suspects += crashed
