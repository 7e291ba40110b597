# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings of a configuration: one line each, collected and reported at once."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""Path of a value: keys and list indices from the top."""

MAX_VALUE_LENGTH = 60
"""Characters of the longest value that a message shows; for longer ones the line must do."""


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning, printed as ``file:line: key.path = value: problem; choices: a, b; did you mean 'x'?``.

    Parameters
    ----------
    where: ``file:line``, or the name of an option.
    key: the path of the key, '' for the whole file.
    value: the value as written, '' to leave it out.
    problem: what is wrong, as a clause whose subject is the key.
    choices: what would be right.
    suggestion: the choice closest to the value.
    """

    where: str
    key: str
    value: str
    problem: str
    choices: tuple[str, ...] = ()
    suggestion: str | None = None

    def __str__(self) -> str:
        subject = " = ".join(part for part in (self.key, self.value) if part)
        parts = [self.problem]
        if self.choices:
            parts.append("choices: " + ", ".join(self.choices))
        if self.suggestion:
            parts.append(f"did you mean {self.suggestion!r}?")
        return ": ".join(part for part in (self.where, subject, "; ".join(parts)) if part)


class ConfigError(Exception):
    """A configuration that cannot be run.

    ``errors`` and ``warnings`` have a :class:`Diagnostic` for each error and warning.
    """

    def __init__(self, errors: Iterable[Diagnostic], warnings: Iterable[Diagnostic] = ()):
        self.errors, self.warnings = list(dict.fromkeys(errors)), list(dict.fromkeys(warnings))
        super().__init__("\n".join(map(str, self.errors)))


class Rejected(Exception):
    """Nothing more of a scenario can be checked: the errors are among its diagnostics."""


class Diagnostics:
    """The errors and warnings of a configuration, as they are found."""

    def __init__(self) -> None:
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def reject(
        self,
        where: str,
        key: str | KeyPath,
        problem: str,
        value: str = "",
        choices: Iterable[object] = (),
        suggestion: str | None = None,
    ) -> None:
        """Add an error; parameters as of :class:`Diagnostic`."""
        text = key if isinstance(key, str) else key_path(key)
        self.errors.append(Diagnostic(where, text, value, problem, tuple(map(str, choices)), suggestion))

    def new_errors(self) -> "NewErrors":
        """The errors that will be added from now on."""
        return NewErrors(self, len(self.errors))

    def raise_errors(self) -> None:
        """Raise :class:`ConfigError` if there are errors."""
        if self.errors:
            raise ConfigError(self.errors, self.warnings)


@dataclass(frozen=True)
class NewErrors:
    """The errors from the one with number ``first`` on; true if there are any."""

    diagnostics: Diagnostics
    first: int

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics.errors[self.first :])

    def __bool__(self) -> bool:
        return len(self.diagnostics.errors) > self.first

    def stop(self) -> None:
        """Raise :class:`Rejected` if there are any."""
        if self:
            raise Rejected


def show(value: object) -> str:
    """A value as a user would write it on one line; '' for a mapping, and for a text that is too long.

    >>> show([1, 2]), show("imase"), show("4"), show(True), show(None)
    ('[1, 2]', 'imase', "'4'", 'true', 'null')
    """
    if isinstance(value, dict):
        return ""
    if isinstance(value, list):
        parts = [show(item) for item in value]
        text = f"[{', '.join(parts)}]" if all(parts) else ""
    elif value is None or isinstance(value, bool):
        text = "null" if value is None else str(value).lower()
    elif isinstance(value, str):
        plain = (
            value.isprintable()
            and value.strip()
            and not re.fullmatch(r"[-+.\d]+([eE][-+]?\d+)?|true|false|null", value)
        )
        text = value if plain else repr(value)
    else:
        text = str(value).replace("inf", ".inf")
    return text if len(text) <= MAX_VALUE_LENGTH else ""


def key_path(path: Sequence[str | int]) -> str:
    """``topology.dims[2]`` from its parts.

    >>> key_path(["topology", "dims", 2])
    'topology.dims[2]'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def parse_path(text: str) -> KeyPath:
    """The keys and indices of ``cases[0].topology.n`` or ``cases.0.topology.n``.

    >>> parse_path("cases[0].topology.n")
    ('cases', 0, 'topology', 'n')
    """
    parts = [part for part in re.split(r"[.\[\]]", text) if part]
    return tuple(int(part) if re.fullmatch("[0-9]{1,18}", part) else part for part in parts)


def crash(error: BaseException) -> str:
    """An unexpected exception in one line: type, message, file and line."""
    traceback = error.__traceback__
    location = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            location = f" ({file}:{traceback.tb_lineno})"
        traceback = traceback.tb_next
    return ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split())))) + location
