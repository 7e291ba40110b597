# SPDX-License-Identifier: Apache-2.0
"""A configuration as it is written, and what is wrong with it."""

from collections.abc import Iterable
from typing import Any

from flitlab.sim.config.errors import Diagnostic, key_path, show
from flitlab.sim.config.load import KeyPath, Node
from flitlab.sim.config.overrides import parse_path

Key = str | KeyPath
"""Type of what names a key of a configuration: its place, or the text of that, ``switching.vcs``."""


class ConfigDocument:
    """A configuration as it is written, and the mistakes found in it so far.

    Whoever finds a mistake names its key; only the page knows the line. mistakes, warnings: pages of the same file
    may share them.
    """

    def __init__(self, root: Node, errors: list[Diagnostic], warnings: list[Diagnostic] | None = None):
        self._root = root
        self.errors = errors
        self.warnings: list[Diagnostic] = [] if warnings is None else warnings

    def reject(self, key: Key, problem: str, choices: Iterable[Any] = (), suggestion: str | None = None) -> None:
        """Add a mistake at a key, with the value that it has.

        A key that is not there has no value, and the line of the closest key above it. choices: what would be right.
        suggestion: what is likely to be meant.
        """
        self.errors.append(self._diagnostic(key, problem, choices, suggestion))

    def warn(self, key: Key, problem: str) -> None:
        """Add a warning of what is allowed at a key but unlikely to be meant."""
        self.warnings.append(self._diagnostic(key, f"warning: {problem}", (), None))

    def _diagnostic(self, key: Key, problem: str, choices: Iterable[Any], suggestion: str | None) -> Diagnostic:
        path = parse_path(key) if isinstance(key, str) else key
        while path and not self.has(*path) and not (above := self._root.nearest(path)).is_map and not above.is_list:
            path = path[:-1]  # nothing can stand under a scalar: it is the scalar that is wrong
        value = show(self.at(*path)) if self.has(*path) else ""
        return Diagnostic(
            self._root.nearest(path).where, key_path(path), value, problem, tuple(map(str, choices)), suggestion
        )

    def has(self, *path: str | int) -> bool:
        """Whether anything is written at a place, null included."""
        return self._root.get(*path) is not None

    def at(self, *path: str | int) -> Any:
        """What is written at a place, as plain values; None where nothing is."""
        node = self._root.get(*path)
        return None if node is None else node.plain()

    def where(self, *path: str | int) -> str:
        """The place ``file:line`` of what is written at a path or, where nothing is, of the closest key above it."""
        return self._root.nearest(path).where
