# SPDX-License-Identifier: Apache-2.0
"""A configuration as written, with the errors and warnings found in it."""

from collections.abc import Iterable
from typing import Any

from flitlab.sim.config.errors import Diagnostic, key_path, show
from flitlab.sim.config.load import KeyPath, Node
from flitlab.sim.config.overrides import parse_path

Key = str | KeyPath
"""A key of a configuration: its path, or the text of the path, ``switching.vcs``."""


class ConfigDocument:
    """A configuration as written, and the errors found in it so far.

    Checks name the key of an error; the document adds file, line and value.

    Parameters
    ----------
    root: the node of the whole configuration.
    errors, warnings: lists that grow; several documents of one file may share them.
    """

    def __init__(self, root: Node, errors: list[Diagnostic], warnings: list[Diagnostic] | None = None):
        self._root = root
        self.errors = errors
        self.warnings: list[Diagnostic] = [] if warnings is None else warnings

    def reject(self, key: Key, problem: str, choices: Iterable[Any] = (), suggestion: str | None = None) -> None:
        """Add an error at a key, with the value that is written there.

        Parameters
        ----------
        key: a missing key has no value, and the line of its closest ancestor.
        problem: what is wrong.
        choices: what would be right.
        suggestion: the choice that was probably meant.
        """
        self.errors.append(self._diagnostic(key, problem, choices, suggestion))

    def warn(self, key: Key, problem: str) -> None:
        """Add a warning at a key whose value is allowed but probably not meant."""
        self.warnings.append(self._diagnostic(key, f"warning: {problem}", (), None))

    def _diagnostic(self, key: Key, problem: str, choices: Iterable[Any], suggestion: str | None) -> Diagnostic:
        path = parse_path(key) if isinstance(key, str) else key
        while path and not self.has(*path) and not (above := self._root.nearest(path)).is_map and not above.is_list:
            path = path[:-1]  # a scalar has no keys: the error is the scalar itself
        value = show(self.at(*path)) if self.has(*path) else ""
        return Diagnostic(
            self._root.nearest(path).where, key_path(path), value, problem, tuple(map(str, choices)), suggestion
        )

    def has(self, *path: str | int) -> bool:
        """Whether a path exists in the configuration, null included."""
        return self._root.get(*path) is not None

    def at(self, *path: str | int) -> Any:
        """The value at a path as plain dicts, lists and scalars; None if the path does not exist."""
        node = self._root.get(*path)
        return None if node is None else node.plain()

    def where(self, *path: str | int) -> str:
        """``file:line`` of a path, or of its closest ancestor that exists."""
        return self._root.nearest(path).where
