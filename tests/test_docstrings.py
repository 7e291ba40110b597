# SPDX-License-Identifier: Apache-2.0
"""The first sentence of every public docstring can be read out of place: in an index, a tooltip, a search result."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.syntax_trees import syntax_tree

LAYERS = ("models", "fluid", "sim")

FEWEST_WORDS = 3
"""Words of the shortest sentence; a fragment of fewer names a thing, but says nothing of it."""


def public(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """(name, node) of a module and of all classes, functions and methods in it that are not private."""
    yield name, node
    for child in getattr(node, "body", []):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            private = child.name.startswith("_") and not child.name.endswith("__")
            if not private and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from public(child, f"{name}:{child.name}" if name.endswith(".py") else f"{name}.{child.name}")


def first_sentence(text: str) -> str:
    """The first sentence of a docstring on one line; all of its first paragraph if no full stop ends it."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    found = re.match(r".+?[.!?](?=\s+[A-Z\"`:({]|$)", paragraph)
    return found[0] if found else paragraph


def fault(sentence: str) -> str:
    """What keeps a sentence from being read out of place; '' if nothing does."""
    if not sentence.endswith("."):
        return "does not end with a full stop"
    if len(sentence.split()) < FEWEST_WORDS:
        return f"has fewer than {FEWEST_WORDS} words"
    return ""


def faults(tree: ast.Module, place: str) -> list[str]:
    """A line for each public docstring of a source file whose first sentence is not plain."""
    found = []
    for name, node in public(tree, place):
        if doc := ast.get_docstring(node):  # type: ignore[arg-type]
            sentence = first_sentence(doc)
            if problem := fault(sentence):
                found.append(f"{name} {problem}: {sentence}")
    return found


def _sources(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


@pytest.mark.parametrize("layer", LAYERS)
def test_first_sentences_can_be_read_out_of_place(layer):
    found = [line for path in _sources(layer) for line in faults(syntax_tree(path), str(path.relative_to(ROOT)))]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "sentence",
    [
        "As above.", "See below.", "A number", "Everything.",
    ],
)  # fmt: skip
def test_fragments_are_rejected(sentence):
    assert fault(sentence)


@pytest.mark.parametrize(
    "sentence", ["Share of the load of each host.", "This channel's reverse, or -1.", "int64 [hosts]: flits sent."]
)
def test_sentences_are_accepted(sentence):
    assert not fault(sentence)


def test_public_docstrings_are_looked_at_wherever_they_stand():
    source = '"""Module docs."""\nclass A:\n    """Class docs."""\n    def m(self):\n        """Method docs."""\n'
    source += 'class _B:\n    """Private docs."""\ndef f():\n    """Function docs."""\n'
    assert [line.split()[0] for line in faults(ast.parse(source), "x.py")] == ["x.py", "x.py:A", "x.py:A.m", "x.py:f"]
