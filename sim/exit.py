# SPDX-License-Identifier: Apache-2.0
"""Exit codes of all commands, and the status of a run in its manifest."""

from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """Exit code of a command."""

    OK = 0
    """All done."""

    FAILED = 1
    """Some results could not be computed."""

    BAD = 2
    """The configuration or the command line is wrong; nothing was computed."""

    CHECK_FAILED = 3
    """A simulation exceeded a ceiling, the engines disagree, or a certificate does not prove its claim."""

    INTERNAL = 70
    """An unexpected error: a bug in flitlab, or no memory, threads or open files left (``EX_SOFTWARE``)."""

    INTERRUPTED = 130
    """Interrupted by Ctrl-C; the same command resumes. A command that SIGTERM ended returns 143."""

    BROKEN_PIPE = 141
    """The reader of the output closed it early, as ``head`` does."""


class RunStatus(StrEnum):
    """The ``status`` in the manifest of a run."""

    RUNNING = "running"
    DONE = "done"
    SOME_FAILED = "some failed"
    CHECK_FAILED = "check failed"
    INTERRUPTED = "interrupted"

    @classmethod
    def of(cls, code: int) -> "RunStatus":
        """The status that belongs to an exit code."""
        ends: dict[int, RunStatus] = {
            ExitCode.OK: cls.DONE,
            ExitCode.FAILED: cls.SOME_FAILED,
            ExitCode.CHECK_FAILED: cls.CHECK_FAILED,
            ExitCode.INTERRUPTED: cls.INTERRUPTED,
        }
        return ends[code]
