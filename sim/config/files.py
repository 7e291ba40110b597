# SPDX-License-Identifier: Apache-2.0
"""Sweeps over files: ``path: {glob: 'zoo/*.graphml'}``."""

from glob import glob
from pathlib import Path

from flitlab.sim.config.errors import Diagnostic, key_path
from flitlab.sim.config.load import KeyPath, Node

KEY = "glob"
"""The key of a mapping that stands for all matching files."""


def with_files(node: Node, base: Path, errors: list[Diagnostic], path: KeyPath = ()) -> Node:
    """A configuration with every ``{glob: ...}`` under a key ``path`` expanded to a sweep over the matching files.

    Parameters
    ----------
    node: the configuration.
    base: the folder that patterns are relative to.
    errors: gets patterns without a match.
    path: of the node.
    """
    if node.is_list:
        return node.with_value([with_files(one, base, errors, (*path, i)) for i, one in enumerate(node.value)])
    if not node.is_map:
        return node
    if path and path[-1] == "path" and set(node.value) == {KEY}:
        return _files(node, base, errors, path)
    return node.with_value(
        {key: with_files(inner, base, errors, (*path, key)) for key, inner in node.value.items()}
    )  # fmt: skip


def _files(node: Node, base: Path, errors: list[Diagnostic], path: KeyPath) -> Node:
    pattern = node.value[KEY]

    def reject(problem: str) -> Node:
        errors.append(Diagnostic(pattern.where, key_path((*path, KEY)), str(pattern.plain()), problem))
        return node.with_value(None)

    if not isinstance(pattern.value, str) or not pattern.value.strip():
        return reject("must be a pattern of names, such as zoo/*.graphml")
    matches = sorted(glob(pattern.value, root_dir=base, recursive=True))
    files = [name for name in matches if (base / name).is_file()]
    if not files:
        return reject(f"matches no file in {base}")
    return node.with_value({"sweep": node.with_value([pattern.with_value(name) for name in files])})
