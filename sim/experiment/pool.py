# SPDX-License-Identifier: Apache-2.0
"""Executors of tasks: processes on this machine, this process, or a cluster."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol, Self

from flitlab.models.signals import starting_processes
from flitlab.models.threads import cores, set_thread_limit
from flitlab.sim.experiment.progress import show_solvers
from flitlab.sim.experiment.task import Outcome, start_worker


@dataclass(frozen=True, eq=False)
class Task:
    """A call in a worker, and the handler of its outcome.

    Parameters
    ----------
    call, arguments: must be picklable.
    done: gets the outcome, in this process.
    skip: evaluated just before the call; True omits it.
    name: for messages.
    task_index: index among all calls of its kind in the study, done ones included; decides the shard.
    """

    call: Callable[..., Outcome]
    arguments: tuple[object, ...]
    done: Callable[[Outcome], None]
    skip: Callable[[], bool] = lambda: False
    name: str = ""
    task_index: int = 0


@dataclass(frozen=True)
class Shard:
    """Every ``count``-th task of each kind, from the ``index``-th on (1, 2, ..., count)."""

    index: int = 1
    count: int = 1

    def takes(self, task_index: int) -> bool:
        """Whether the task with an index (from 0) belongs to the shard."""
        return task_index % self.count == self.index - 1

    def of(self, tasks: Iterable[Task | None]) -> Iterator[Task | None]:
        """The tasks of the shard."""
        return (task for task in tasks if task is None or self.takes(task.task_index))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class Pool(Protocol):
    """An executor of calls."""

    @property
    def max_in_flight(self) -> int:
        """Calls in flight at most, those that wait for a process included."""

    def submit(self, call: Callable[..., Outcome], *arguments: object) -> "Future[Outcome]":
        """Submit a call; ``BrokenExecutor`` in its future says that a process died, its own or another one."""

    def reopen(self) -> None:
        """Replace the processes after one of them died."""

    def close(self, abandon: bool = False) -> None:
        """End the processes. abandon: even with calls in flight."""


@dataclass(frozen=True)
class RunOptions:
    """How a run uses processors. Results do not depend on it.

    Parameters
    ----------
    jobs: processes on this machine.
    threads: that may share a simulation, in each process.
    pool: in place of these processes.
    """

    jobs: int = 1
    threads: int = 1
    pool: Pool | None = None

    @classmethod
    def of(cls, jobs: int | None, threads: int = 1) -> Self:
        """As many processes as this machine has processors for, unless a number is given."""
        return cls(jobs or max(1, cores() // threads), threads)


IN_PROCESS = RunOptions()
"""Everything in this process."""


class InProcess:
    """Runs each call immediately in this process. threads: that a ceiling may use."""

    max_in_flight = 1

    def __init__(self, threads: int = 1):
        self.threads = threads
        show_solvers()

    def submit(self, call: Callable[..., Outcome], *arguments: object) -> "Future[Outcome]":
        """The finished future of ``call(*arguments)``."""
        future: Future[Outcome] = Future()
        before = set_thread_limit(self.threads)
        try:
            future.set_result(call(*arguments))
        except Exception as error:
            future.set_exception(error)
        finally:
            set_thread_limit(before)
        return future

    def reopen(self) -> None:
        """No effect: this process cannot be replaced."""

    def close(self, abandon: bool = False) -> None:
        """No effect: there are no workers."""


class Processes:
    """``jobs`` processes on this machine, each with the plugins.

    threads: that a ceiling may use in each of them.
    """

    def __init__(self, jobs: int, plugins: Sequence[str], threads: int = 1):
        self.jobs = jobs
        self.plugins = plugins
        self.threads = threads
        self.max_in_flight = jobs + 1
        self.reopen()

    def reopen(self) -> None:
        """Start new processes in place of the old ones."""
        # spawned, not forked: threads of Numba and HiGHS do not survive a fork
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(
            self.jobs, mp_context=context, initializer=start_worker, initargs=(self.plugins, self.threads)
        )

    def submit(self, call: Callable[..., Outcome], *arguments: object) -> "Future[Outcome]":
        """Submit a call; starts processes as needed."""
        with starting_processes():
            return self._executor.submit(call, *arguments)

    def close(self, abandon: bool = False) -> None:
        """End the processes."""
        workers = multiprocessing.active_children() if abandon else []
        self._executor.shutdown(wait=not abandon, cancel_futures=abandon)
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join(5)


class SharedProcesses:
    """Processes on this machine that several runs share; closing the pool at the end of a run keeps them.

    They start with the first call, also after they were abandoned, and have no plugins.
    """

    def __init__(self, jobs: int):
        self.jobs = jobs
        self.max_in_flight = jobs + 1
        self.spent = 0.0
        """CPU seconds of all completed calls."""
        self._pool: Pool | None = None

    def submit(self, call: Callable[..., Outcome], *arguments: object) -> "Future[Outcome]":
        """Submit a call, and count its CPU time."""
        self._pool = self._pool or open_pool(RunOptions(self.jobs))
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
        """Replace the processes after one of them died."""
        if self._pool is not None:
            self._pool.reopen()

    def close(self, abandon: bool = False) -> None:
        """Keep the processes, unless they are abandoned."""
        if abandon:
            self.end(abandon)

    def end(self, abandon: bool = False) -> None:
        """End the processes, if there are any."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(abandon)


def _timed(call: Callable[..., Outcome], arguments: Sequence[object]) -> Any:
    """The result of a call, and its CPU seconds."""
    began = cpu_seconds()
    return call(*arguments), cpu_seconds() - began


def cpu_seconds() -> float:
    """CPU time of this process and of its ended children."""
    own = time.process_time()  # in nanoseconds; os.times() counts hundredths, and a row may take less
    return own + sum(os.times()[2:4])


def open_pool(options: RunOptions, plugins: Sequence[str] = (), calls: int | None = None) -> Pool:
    """The pool of a run: processes with the plugins; for one job, this process.

    Parameters
    ----------
    options: of the run.
    plugins: modules and files that each process loads.
    calls: their number, if known; with fewer calls than jobs, each ceiling may use several threads, up to
        ``jobs`` in all.
    """
    if options.pool is not None:
        return options.pool
    jobs = options.jobs
    processes = max(1, jobs if calls is None else min(jobs, calls))
    threads = max(1, jobs * options.threads // processes)
    return InProcess(threads) if processes == 1 else Processes(processes, plugins, threads)


def run_all(pool: Pool, *phases: Iterable[Task | None]) -> None:
    """Make all calls in about the given order, and close the pool; returns when the last is done.

    A phase begins when all calls of the one before have returned. A task is submitted only when a process is about to
    become free, so that ``skip`` uses the latest results. None in place of a task: the next one depends on a call in
    flight; without calls in flight, the phase ends. After an exception (Ctrl-C included), calls in flight are abandoned
    and their processes ended.
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
"""Seconds until the number of workers is read again: processes of a cluster join and leave."""

MAX_CRASHES = 8
"""Consecutive crashes of workers after which the run stops: the calls are not the cause."""

DIED = "the process that computed it died twice (out of memory?)"


class _Dispatcher:
    """Keeps a pool busy.

    When a process dies, all calls in flight are suspects. Each suspect runs again without other calls, with all the
    memory of the machine; if a process dies again, the call has failed.
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
        """Run until all calls are done."""
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
        """Submit the next task; returns whether there was one."""
        task = next((task for task in self.tasks if task is None or not task.skip()), END)
        self.has_more = task is not END and (task is not None or bool(self.running))
        if isinstance(task, Task):
            self._submit(task)
        return isinstance(task, Task)

    def _submit(self, task: Task) -> None:
        try:
            self.running[self.pool.submit(task.call, *task.arguments)] = task
        except BrokenExecutor as error:  # a process died while idle
            future: Future[Outcome] = Future()
            future.set_exception(error)
            self.running[future] = task

    def _end(self, future: "Future[Outcome]") -> Task | None:
        """Handle the outcome of a call; returns the task if its process died, else None."""
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
            raise BrokenExecutor(f"{MAX_CRASHES} worker processes in a row died, with different calls")
        self.pool.reopen()
        if exclusive is not None and exclusive in self.crashed_once:
            exclusive.done(Outcome(problem=DIED))
            return
        if exclusive is not None:
            self.crashed_once.append(exclusive)
        self.suspects += crashed
