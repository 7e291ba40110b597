# SPDX-License-Identifier: Apache-2.0
"""Input that is read from a file or stands in the configuration itself."""

import codecs
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from flitlab.models.mappings import JsonObject
from flitlab.models.registry import SpecError

FilePath: TypeAlias = str | Path
"""Path of a file."""


@dataclass(frozen=True)
class Text:
    """The content of a file that exists only as text; messages call it ``text``."""

    content: str

    def __str__(self) -> str:
        return "text"


Readable: TypeAlias = FilePath | Text
"""Input of readers: a path, or the text of a file."""


Place = TypeVar("Place", str, Path)


def source_of(path: Place | None, text: str | None) -> Place | Text:
    """Return the input that ``path`` or ``text`` names. Raises ``SpecError`` unless exactly one of them is set."""
    if path is not None and text is not None:
        raise SpecError("cannot be combined with path", key="text")
    if path is not None:
        return path
    if text is None:
        raise SpecError("is missing", key="path", choices=("path", "text"))
    return Text(text)


_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']""")

_WIDE = re.compile(r"(utf|ucs|iso-10646)[-_]?(ucs-?)?(16|32|2|4)", re.IGNORECASE)
"""Encodings in which no byte is a character: a declaration that is read byte by byte is in none of them."""


def encoding_of(content: bytes) -> str:
    """Return the encoding of a file: UTF-16 by its byte order mark, or what its XML declares, or UTF-8.

    Programs that write XML as text in memory declare UTF-16, whatever the encoding in which it is saved afterwards.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _DECLARATION.match(content)
    name = declared[1].decode() if declared else "utf-8"
    return "utf-8-sig" if name.lower() == "utf-8" or _WIDE.match(name) else name


def head_of(path: FilePath, most: int) -> str:
    """Return the beginning of a file in UTF-8, or in UTF-16 with its byte order mark, as text.

    Line ends are ``\\n``, and bytes of other encodings are replaced. Raises ``OSError``.

    Parameters
    ----------
    path: the file.
    most: bytes that are read; -1: all.
    """
    with open(path, "rb") as file:
        head = file.read(most)
    text = head.decode(encoding_of(head[:2]), errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


class JsonError(ValueError):
    """A text is no JSON that is read. line: where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _DuplicateKeyError(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, object]]) -> JsonObject:
    """A JSON object without duplicate keys: RFC 8259 leaves open which value counts."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _DuplicateKeyError
    return values


_TOKEN = re.compile(r'[{}]|("(?:[^"\\]|\\.)*")(\s*:)?')
"""A brace, or a string of JSON, which a colon follows if it is a key."""


def _duplicate_key(text: str) -> JsonError:
    """Return the error of the first key that an object of a JSON text has twice."""
    keys: list[set[str]] = [set()]  # of the objects around a token
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            keys.append(set())
        elif token[0] == "}":
            keys.pop()
        elif token[2]:
            name = json.loads(token[1])
            if name in keys[-1]:
                line = text.count("\n", 0, token.start()) + 1
                return JsonError(line, f"duplicate key {name[:40]!r} in one object")
            keys[-1].add(name)
    raise AssertionError("no key is there twice")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    JsonError: no JSON, nested too deeply, or has a key twice in one object or a number of thousands of digits.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))
        return json.loads(text, object_pairs_hook=_object)
    except _DuplicateKeyError:
        raise _duplicate_key(str(text)) from None
    except json.JSONDecodeError as syntax:
        raise JsonError(syntax.lineno, f"not JSON: {syntax.msg}") from None
    except RecursionError:
        raise JsonError(1, "is nested too deeply") from None
    except UnicodeDecodeError:
        raise JsonError(1, "not UTF-8 text") from None
    except ValueError:
        raise JsonError(1, "has a number of too many digits") from None
