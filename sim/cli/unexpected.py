# SPDX-License-Identifier: Apache-2.0
"""Handler of unexpected exceptions: one line, an exit code, and a file with the traceback."""

import os
import platform
import shlex
import sys
import tempfile
import traceback
from contextlib import suppress

import flitlab
from flitlab.sim.exit import INTERNAL

MAX_MESSAGE = 300
"""Characters of the message that are printed; the file has all."""


def report(error: BaseException) -> int:
    """Print one line on stderr that names the file with the traceback; returns the exit code."""
    message = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
    with suppress(OSError):  # stderr may be what fails
        print(f"simrun: unexpected error: {message[:MAX_MESSAGE]}; {_keep(error)}", file=sys.stderr)
    return INTERNAL


def _keep(error: BaseException) -> str:
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
