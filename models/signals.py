# SPDX-License-Identifier: Apache-2.0
"""SIGINT (Ctrl-C) and SIGTERM (the time limit of a batch system): both end a command, which can be resumed.

The first signal raises ``KeyboardInterrupt`` in the main thread, and the command ends in order: results are kept,
worker processes are ended. Python delivers signals only between its own instructions, so a solver or a compiled kernel
delays them; :func:`watchdog` therefore ends the process after :data:`GRACE` seconds. Imports nothing heavy.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from flitlab.models.files import remove_unfinished

SIGNALS = (signal.SIGINT, signal.SIGTERM)

GRACE = 2.0
"""Seconds from the first signal until the process is ended by force."""

RAISED_AGAIN = 0.01
"""Seconds until an interruption that Python dropped, or that would have crashed compiled code, is raised again."""


class _State:
    """Signal handlers are global to the process, so is their state.

    deferred: nested blocks that postpone signals. pending: whether the interruption is to be raised again.
    """

    received: list[int] | None = None
    deferred: int = 0
    pending: bool = False


@contextmanager
def interruptible(received: list[int] | None = None, stays: bool = False) -> Iterator[list[int]]:
    """Let the first SIGINT or SIGTERM within the block raise ``KeyboardInterrupt``; later ones are only recorded.

    A nested block has no effect, nor has one outside of the main thread, where no signal arrives.

    Parameters
    ----------
    received: list for the received signals; by default a new one.
    stays: whether signals are still recorded after the block, because the process is about to end.

    Yields
    ------
    The list of the signals received so far.
    """
    received = [] if received is None else received
    if _State.received is not None or threading.current_thread() is not threading.main_thread():
        yield received if _State.received is None else _State.received
        return
    _State.received, before = received, {}
    try:
        for number in SIGNALS:
            before[number] = signal.signal(number, _receive)
        yield received
    finally:
        if stays:
            _State.deferred += 1
        else:
            _State.received = None
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def deferring() -> Iterator[None]:
    """Postpone ``KeyboardInterrupt`` to the end of the block, so that files and processes are not left half-done.

    No effect outside of the main thread, where it is never raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with interruptible() as received:
        known = len(received)
        _State.deferred += 1
        try:
            yield
        finally:
            _State.deferred -= 1
        if received and not known and not _State.deferred:
            raise KeyboardInterrupt


@contextmanager
def starting_processes() -> Iterator[None]:
    """Postpone signals, and let processes started in the block ignore SIGINT from their first instruction.

    A terminal sends SIGINT to all processes of a command; the main process handles it.
    """
    with deferring():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive(number: int, frame: FrameType | None) -> None:
    received = _State.received
    if received is None:
        return
    received.append(number)
    if (len(received) == 1 or _State.pending) and not _State.deferred:
        if _converts_results(frame):
            _raise_again()
            return
        _State.pending = False
        raise KeyboardInterrupt


def _converts_results(frame: FrameType | None) -> bool:
    """Whether compiled code calls Python to convert its results: Numba expects no exception there, and crashes."""
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module == "numba.core.serialize" or module.startswith("namedtuple_"):
            return True
        frame = frame.f_back
    return False


def _raise_again() -> None:
    """Raise the interruption a little later, after what must not or cannot be interrupted.

    The main thread gets the signal, so that a call in which it waits ends.
    """
    _State.pending = True
    number = (_State.received or SIGNALS)[0]
    timer = threading.Timer(RAISED_AGAIN, signal.pthread_kill, (threading.main_thread().ident, number))
    timer.daemon = True
    timer.start()


@contextmanager
def watchdog(stays: bool) -> Iterator[None]:
    """End the process :data:`GRACE` seconds after a signal within the block, unless the block ends before.

    The exit code is that of :func:`exit_code`. Worker processes are killed, and unfinished files removed.

    Parameters
    ----------
    stays: whether the process is ended after the block, too, where threads of a solver may keep it alive.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        threading.Thread(target=_watch, args=(reader,), daemon=True).start()
        before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    except (RuntimeError, ValueError):  # no thread can be started, or this is not the main one
        os.close(writer)
        yield
        return
    try:
        yield
    finally:
        if not stays:
            signal.set_wakeup_fd(before)
            os.close(writer)


def _watch(reader: int) -> None:
    """Wait for a signal, then for the end of the block or of the grace period."""
    deadline, first = None, 0
    while deadline is None or select.select([reader], [], [], max(deadline - time.monotonic(), 0))[0]:
        number = os.read(reader, 1)
        if not number:
            os.close(reader)
            return
        if deadline is None and number[0] in SIGNALS:
            deadline, first = time.monotonic() + GRACE, number[0]
    _end(first)


def _end(number: int) -> None:
    """End this process and its workers without unwinding."""
    if multiprocessing := sys.modules.get("multiprocessing"):
        for child in multiprocessing.active_children():
            child.kill()
    remove_unfinished()
    show_cursor = "\x1b[?25h" if os.isatty(2) else ""
    os.write(2, f"{show_cursor}simrun: interrupted; the same command resumes\n".encode())
    os._exit(exit_code(number))


def exit_code(number: int) -> int:
    """Exit code of a command that a signal ended, by the convention of shells.

    >>> exit_code(signal.SIGINT), exit_code(signal.SIGTERM)
    (130, 143)
    """
    return 128 + number


@contextmanager
def quiet_interruptions() -> Iterator[None]:
    """Suppress the report of an interruption that Python drops, as in ``__del__``, and raise it again."""
    hook = sys.unraisablehook

    def report(dropped: "sys.UnraisableHookArgs") -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            hook(dropped)
        elif _State.received:
            _raise_again()

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = hook
