# SPDX-License-Identifier: Apache-2.0
"""Exit codes of every command, and how a run ended as its manifest says it."""

from enum import StrEnum

OK = 0
"""All is done."""

FAILED = 1
"""Some of it could not be computed."""

BAD = 2
"""The configuration, or the way the command was called, is wrong; nothing was computed."""

CHECK_FAILED = 3
"""A simulation passed a ceiling, the two engines disagree, or a certificate does not prove what it claims."""

INTERNAL = 70
"""An unexpected error: a fault of flitlab, or memory, threads or open files ran out (``EX_SOFTWARE``)."""

INTERRUPTED = 130
"""Interrupted by Ctrl-C; the same command goes on from there. A command that SIGTERM has ended returns 143."""


BROKEN_PIPE = 141
"""The reader of the output has left before its end, as ``head`` does."""


class RunStatus(StrEnum):
    """``status`` in the manifest of a run."""

    RUNNING = "running"
    DONE = "done"
    SOME_FAILED = "some failed"
    CHECK_FAILED = "check failed"
    INTERRUPTED = "interrupted"

    @classmethod
    def of(cls, code: int) -> "RunStatus":
        """What an exit code says of a run."""
        ends = {OK: cls.DONE, FAILED: cls.SOME_FAILED, CHECK_FAILED: cls.CHECK_FAILED, INTERRUPTED: cls.INTERRUPTED}
        return ends[code]
