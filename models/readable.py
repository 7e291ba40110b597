# SPDX-License-Identifier: Apache-2.0
"""What is read from a file, or stands in a configuration itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from flitlab.models.registry import SpecError

FilePath: TypeAlias = str | Path
"""Place of a file."""


@dataclass(frozen=True)
class Text:
    """What a file would hold, where no file holds it; messages call it ``text``."""

    content: str

    def __str__(self) -> str:
        return "text"


Readable: TypeAlias = FilePath | Text
"""What readers read: a file, or the text of one."""


Place = TypeVar("Place", str, Path)


def source_of(path: Place | None, text: str | None) -> Place | Text:
    """What is read: the file of this name, or this text. Raises ``SpecError`` unless exactly one is given."""
    if path is not None and text is not None:
        raise SpecError("stands beside path: give one of the two", key="text")
    if path is not None:
        return path
    if text is None:
        raise SpecError("is missing", key="path", choices=("path", "text"))
    return Text(text)
