# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings of a configuration: one line each, all reported at once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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


def show(value: Any) -> str:
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
        text = {None: "null", True: "true", False: "false"}[value]
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
