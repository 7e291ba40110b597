# SPDX-License-Identifier: Apache-2.0
"""The command line ``simrun``. Every command is one file of this folder (see ``parser.py``)."""

import atexit
import io
import os
import platform
import shlex
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import NoReturn

from typing_extensions import Buffer

import flitlab
from flitlab.models.signals import exit_code, interruptible, quiet_interruptions, watchdog
from flitlab.sim.exit import ExitCode


def main(arguments: list[str] | None = None) -> int:
    """Run ``simrun`` with the arguments (default: those of the process); returns the exit code.

    0 done, 1 some points failed, 2 bad configuration or usage, 3 a ceiling or engine-agreement check failed, 70 an
    unexpected error, 130 interrupted and resumable (143 by SIGTERM), 141 the reader of the output closed it.
    """
    is_process = arguments is None
    output = _open_streams() if is_process else None
    received: list[int] = []
    try:
        with interruptible(received, stays=is_process), watchdog(stays=is_process), quiet_interruptions():
            code = _run(sys.argv[1:] if arguments is None else arguments, received)
    except KeyboardInterrupt:
        code = _interrupted()
    except SystemExit as end:  # of --help and of wrong options
        if output is None or not isinstance(end.code, int):
            raise
        code = end.code
    if output is not None:
        code = code or output.exit_code()
    if not received or code != ExitCode.INTERRUPTED:
        return code
    if is_process:
        _leave(exit_code(received[0]))
    return exit_code(received[0])


def _leave(code: int) -> NoReturn:
    """End the process with an exit code.

    An interruption that passes the ``exec`` of a text, as in the definition of a dataclass, makes Python end by SIGINT
    instead, although the interruption was caught.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _run(arguments: list[str], received: list[int]) -> int:
    """Run a command; returns the exit code, whatever fails. received: the signals so far.

    Raises ``KeyboardInterrupt``.
    """
    try:
        from flitlab.sim.cli.parser import parse

        _escape_characters()
        options = parse(arguments)
        code: int = options.run(options)
    except Exception as error:
        if received:
            return _interrupted()
        if isinstance(error, ImportError) and error.name == "numba":  # it is missing, or does not compile
            print(f"simrun: {error}", file=sys.stderr)
            return ExitCode.BAD
        return _report_unexpected(error)
    # another error may follow an interruption that Python drops
    return _interrupted() if received and code not in (ExitCode.OK, ExitCode.INTERRUPTED) else code


def _interrupted() -> int:
    print("simrun: interrupted", file=sys.stderr)
    return ExitCode.INTERRUPTED


MAX_MESSAGE = 300
"""Characters of the message that are printed; the file has all."""


def _report_unexpected(error: BaseException) -> int:
    """Print one line on stderr that names the file with the traceback; returns the exit code."""
    message = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
    with suppress(OSError):  # stderr may be what fails
        print(f"simrun: unexpected error: {message[:MAX_MESSAGE]}; {_keep_traceback(error)}", file=sys.stderr)
    return ExitCode.INTERNAL


def _keep_traceback(error: BaseException) -> str:
    """Write the traceback to a temporary file; returns where it is, as a clause."""
    head = f"simrun {shlex.join(sys.argv[1:])}\nflitlab {flitlab.__version__}, Python {platform.python_version()}\n\n"
    text = head + "".join(traceback.format_exception(error))
    try:
        handle, path = tempfile.mkstemp(prefix="simrun-", suffix=".txt")
        try:
            os.write(handle, text.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)
    except OSError as problem:
        return f"its traceback cannot be written: {problem.strerror}"
    return f"its traceback is in {path}; please report it"


class _Output(io.FileIO):
    """Standard output. After a failure output is discarded, so that the command still completes its files."""

    error: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        """Write bytes, or discard them after a failure."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes

    def exit_code(self) -> int:
        """Flush the output; returns the exit code for its failures."""
        sys.stdout.flush()
        if self.error is None:
            return ExitCode.OK
        if isinstance(self.error, BrokenPipeError):  # the reader closed it early
            return ExitCode.BROKEN_PIPE
        print(f"simrun: standard output: {self.error.strerror}", file=sys.stderr)
        return ExitCode.FAILED


def _open_streams() -> _Output | None:
    """Replace Python's standard output by our own; None if it is closed.

    Closed streams are opened, so that no other file gets their number and their output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False))
    if sys.stdout is None:
        return None
    output, before = _Output(1, "w", closefd=False), sys.stdout
    line_buffering = getattr(before, "line_buffering", False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(output), before.encoding, before.errors, line_buffering=line_buffering
    )
    return output


def _escape_characters() -> None:
    """Print characters that the stream cannot encode as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) in ("strict", "surrogateescape") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
