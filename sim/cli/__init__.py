# SPDX-License-Identifier: Apache-2.0
"""The command line: ``simrun``. Every command is one file; what it needs is imported when it runs."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flitlab.sim.cli.parser import parse
from flitlab.sim.exit import INTERRUPTED, OK


def main(arguments: list[str] | None = None) -> int:
    """Runs ``simrun`` with the given arguments (default: those of the process); returns the exit code.

    0 done, 1 some points failed, 2 bad configuration or usage, 3 a ceiling or engine-agreement check failed,
    130 interrupted and resumable.
    """
    _say_all_characters()
    options = parse(sys.argv[1:] if arguments is None else arguments)
    with _interrupts() as seen:
        try:
            code = options.run(options)
        except KeyboardInterrupt:
            code = _interrupted()
        except BrokenPipeError:  # the reader of our output has seen enough
            sys.stderr.close()
            return OK
        # where a kernel is being compiled, Python drops the interruption, and something else fails
        return _interrupted() if seen and code not in (OK, INTERRUPTED) else code


def _interrupted() -> int:
    print("simrun: interrupted", file=sys.stderr)
    return INTERRUPTED


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The interruptions by Ctrl-C so far, each of which raises; when all is done, none does any more harm."""
    seen: list[int] = []

    def interrupt(number: int, _: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    alone = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not alone or before is not signal.default_int_handler:
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, _dropped(sys.unraisablehook)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def _dropped(hook: Callable[[Any], object]) -> Callable[[Any], object]:
    """What Python does with an exception that nobody can catch, but of interruptions it says nothing."""

    def tell(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            hook(dropped)

    return tell


def _say_all_characters() -> None:
    """Lets what a terminal, or a pipe, cannot show be printed as an escape instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
