# SPDX-License-Identifier: Apache-2.0
"""Short names of scenarios."""

import re
from collections.abc import Sequence
from enum import IntEnum

from flitlab.sim.terminal import shown_label


class Longest(IntEnum):
    """Characters of a name in a figure; tables have the full label."""

    NAME = 48
    """In a key: about the width of one column."""
    ROW = 28
    """Beside a row, which takes width from the axes."""
    TITLE = 2 * NAME
    """In the title of a panel, which has several lines."""


class Names:
    """Short names of scenarios for a legend, without the parts that all labels share; long ones are cut.

    >>> names = Names(["routing=minimal, vcs=4", "routing=deflection, vcs=4"])
    >>> names.title, names["routing=minimal, vcs=4"]
    ('routing', 'minimal')
    >>> names = Names(["transport=roce", "transport=roce timeout_us=5000"])
    >>> names.title, names["transport=roce timeout_us=5000"]
    ('', 'timeout_us=5000')
    """

    def __init__(self, labels: Sequence[str]):
        self.labels = tuple(labels)
        self._parts = {label: _parts(label) for label in labels}
        shared = set.intersection(*map(set, self._parts.values())) if len(labels) > 1 else set()
        self._own = {label: [p for p in parts if p not in shared] for label, parts in self._parts.items()}
        keys = {part.partition("=")[0] for parts in self._own.values() for part in parts}
        one_key = len(keys) == 1 and all(parts and all("=" in p for p in parts) for parts in self._own.values())
        self.title = next(iter(keys)) if one_key else ""
        self._names = dict(zip(labels, shown_names([self._name(label) for label in labels]), strict=True))

    def __getitem__(self, label: str) -> str:
        return self._names[label]

    def _name(self, label: str) -> str:
        return ", ".join(map(self._plain, self._own[label])) or label

    def _plain(self, part: str) -> str:
        """The value alone where it speaks for itself: under a title, or if it is a word."""
        key, _, value = part.partition("=")
        if not re.fullmatch(r"[\w.]+", key):
            return part
        return value if self.title or re.match(r"(?!(?:true|false|none|null)$)[a-z]", value, re.I) else part


def shown_names(names: Sequence[str], most: int = Longest.NAME) -> list[str]:
    """Names as a figure shows them: cut to ``most`` characters, and different where they are.

    >>> [name[-20:] for name in shown_names(["x" * 100, "y", "x" * 50 + "z" + "x" * 49])]
    ['xxxx…xxxxxxxxxxxxxxx', 'y', '…xxxxxxxxxxxxxxx (2)']
    """
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        cut = name if len(name) <= most else shown_label(name, most - 4)
        alike.setdefault(cut, []).append(name)
    shown = {
        name: f"{cut} ({number})" if number > 1 else cut
        for cut, some in alike.items() for number, name in enumerate(some, 1)
    }  # fmt: skip
    return [shown[name] for name in names]


def _parts(label: str) -> list[str]:
    """The ``key=value`` parts of a label (keys without their path), or the label itself."""
    parts = re.split(r"[,;\s]+(?=[\w.]+=)", label)
    if not all(re.match(r"[\w.]+=", part) for part in parts):
        return [label]
    return [re.sub(r"^[\w.]*\.", "", part) for part in parts]
