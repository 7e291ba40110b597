# SPDX-License-Identifier: Apache-2.0
"""Tables in text files: fields separated by commas, semicolons, tabs or blanks, and quoted where they contain one."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from sys import int_info
from typing import Any

from flitlab.models.readable import Readable, Text, encoding_of

DELIMITERS = ("\t", ";", ",")
"""Field separators, in the order in which a line is searched for them; a line without any is separated by blanks."""

_QUOTED = re.compile(r'"(?:[^"]|"")*"')

_FIELD = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')


def delimiter_of(line: str, delimiters: tuple[str, ...] = DELIMITERS) -> str | None:
    """Return the first of ``delimiters`` that a line has outside quotes; None: blanks separate its fields."""
    bare = _QUOTED.sub("", line)
    return next((one for one in delimiters if one in bare), None)


def fields_of(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of a line without quotes and surrounding blanks. delimiter: None for blanks.

    >>> fields_of('"New York",  1, ""', ","), fields_of(' a  "b c" 1', None)
    (['New York', '1', ''], ['a', 'b c', '1'])
    """
    if '"' not in line:
        return [field.strip() for field in line.split(delimiter)]
    if delimiter is None:
        return [match[2] if match[1] is None else match[1].replace('""', '"') for match in _FIELD.finditer(line)]
    row = next(csv.reader([line.strip(" ")], delimiter=delimiter, skipinitialspace=True), [])
    return [field.strip() for field in row]


def is_number(field: object) -> bool:
    """Whether a field, or a value of a file with types, is a number; true and false are none."""
    try:
        number_of(field)
    except (TypeError, ValueError):
        return False
    return not isinstance(field, bool)


def is_digits(text: str) -> bool:
    """Whether a text is a whole number in ASCII digits, without sign, of no more digits than Python converts."""
    return text.isascii() and text.isdecimal() and len(text) <= int_info.default_max_str_digits


def number_of(field: Any) -> float:
    """Return the number of a field, or of a value of a file with types.

    Digits are those of ASCII, without ``_`` between them: Python reads more, which files of no other program have.

    Raises
    ------
    TypeError, ValueError: it is no number.
    """
    if isinstance(field, str) and ("_" in field or not field.isascii()):
        raise ValueError(f"{field!r} is not a number")
    return float(field)


def quoted(field: str, special: str = "") -> str:
    """Put a field in quotes if it is empty or has a blank, a quote, a delimiter or a special character."""
    if field and not any(letter.isspace() or letter in f'",;{special}' for letter in field):
        return field
    return '"' + field.replace('"', '""') + '"'


def rows_of(source: Readable) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of the lines of a table; skip empty lines and comments (``#``).

    The first such line determines the delimiter. A file is in UTF-8, or in UTF-16 with its byte order mark.

    Raises
    ------
    OSError: the file cannot be read.
    UnicodeDecodeError: the file has another encoding.
    """
    delimiter, known = None, False
    for number, line in enumerate(lines_of(source), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not known:
            delimiter, known = delimiter_of(line), True
        yield number, fields_of(line, delimiter)


def lines_of(source: Readable) -> Iterator[str]:
    """Yield the lines of a file, in UTF-8 or with the mark of UTF-16, or of a text. Raises as :func:`rows_of`."""
    if isinstance(source, Text):
        yield from source.content.splitlines()
        return
    with open(source, "rb") as file:
        encoding = encoding_of(file.read(2))
    with open(source, encoding=encoding) as lines:
        for line in lines:
            yield line.rstrip("\n")


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return the content of a CSV file: a header, and rows of as many cells; None is an empty cell.

    >>> csv_text(["a", "b"], [[1, "x, y"], [None, 0.1]])
    'a,b\\n1,"x, y"\\n,0.1\\n'
    """
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
