# SPDX-License-Identifier: Apache-2.0
"""The syntax trees of source files, for tests that walk those of the whole project."""

import ast
from pathlib import Path

from flitlab.models.gc_disabled import gc_disabled


def syntax_tree(path: Path) -> ast.Module:
    """The tree of a file, without collections of garbage meanwhile, which take as long as parsing."""
    with gc_disabled():
        return ast.parse(path.read_text("utf-8"))
