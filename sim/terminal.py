# SPDX-License-Identifier: Apache-2.0
"""Texts on a terminal and in figures: labels and notes of files that others wrote must not control them."""

import re
import sys

LONGEST_LABEL = 80
"""Characters of a label that are shown."""
TAIL = 15
"""Characters at the end of a label that stay where it is cut: labels often differ there."""

_CONTROLS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Escape sequences of ECMA-48: control sequences, operating system commands, and those of two characters."""


def printable(text: str) -> str:
    """A text on one line without what a terminal obeys: escape sequences, control characters, marks of direction.

    >>> printable("a\\x1b[31mb\\nc\\u202ed\\u00a0e")
    'ab cd e'
    """
    text = _CONTROLS.sub("", text)
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)


def shown_label(text: str, most: int = LONGEST_LABEL) -> str:
    """A label as it is shown: printable, and cut in the middle to ``most`` characters.

    >>> shown_label("x" * 100 + "y" * 15) == "x" * 64 + "…" + "y" * 15, shown_label("tab\\tb")
    (True, 'tab b')
    """
    text = printable(text)
    return text if len(text) <= most else f"{text[: most - TAIL - 1]}…{text[-TAIL:]}"


def say(*lines: str) -> None:
    """Lines on stdout, printable."""
    for line in lines:
        print(printable(line))


def complain(*lines: str) -> None:
    """Lines on stderr, printable."""
    for line in lines:
        print(printable(line), file=sys.stderr)
