# SPDX-License-Identifier: Apache-2.0
"""Text on a terminal and in figures: labels and notes from files of others must not control it."""

import re
import sys

MAX_LABEL_LENGTH = 80
"""Characters of a label that are shown."""
TAIL = 15
"""Characters at the end of a label that stay where it is cut: labels often differ there."""

_CONTROLS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Escape sequences of ECMA-48: control sequences, operating system commands, and two-character sequences."""


def printable(text: str) -> str:
    """The text on one line, without escape sequences, control characters and direction marks.

    >>> printable("a\\x1b[31mb\\nc\\u202ed\\u00a0e")
    'ab cd e'
    """
    text = _CONTROLS.sub("", text)
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)


def shown_label(text: str, most: int = MAX_LABEL_LENGTH) -> str:
    """A label, printable and cut in the middle to ``most`` characters.

    >>> shown_label("x" * 100 + "y" * 15) == "x" * 64 + "…" + "y" * 15, shown_label("tab\\tb")
    (True, 'tab b')
    """
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - TAIL - 1]}…{text[-TAIL:]}"


def say(*lines: str) -> None:
    """Print lines to stdout, made printable."""
    for line in lines:
        print(printable(line))


def complain(*lines: str) -> None:
    """Print lines to stderr, made printable."""
    for line in lines:
        print(printable(line), file=sys.stderr)
