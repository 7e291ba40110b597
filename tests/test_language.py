# SPDX-License-Identifier: Apache-2.0
"""Identifiers use the terms of docs/glossary.md, not the words that they replace."""

import ast
import re

import pytest

from tests import ROOT
from tests.syntax_trees import syntax_tree

LAYERS = ("models", "fluid", "sim")

RETIRED = (
    "ahead", "alone", "appeal", "ask_for", "asked", "born", "doubts", "endless", "endures", "foresee", "found",
    "give_back", "given", "ladder", "lane", "lanes", "limbo", "looks", "mail", "meeting", "mistake", "mistakes",
    "nobody", "owed", "patience", "refusal", "refusals", "refuse", "room", "roomy", "rung", "silence",
    "soonest", "standstill", "stranger", "take_back", "tally", "think_again", "twin", "uncollected", "wanted",
    "way", "ways",
)  # fmt: skip
"""Words that no identifier contains: the glossary names the term for each, or they say nothing about a value."""

ALLOWED = {"ways": "the key of ecmp", "one_way": "a key of the cost model"}
"""Identifier -> why it keeps a retired word."""

WORD = re.compile(rf"(?:^|_)({'|'.join(RETIRED)})(?:_|$)")


def retired(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, identifier) of every definition whose name has a retired word."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            names.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.lineno, node.id))
    return [(line, name) for line, name in names if WORD.search(name.lower()) and name not in ALLOWED]


@pytest.mark.parametrize("layer", LAYERS)
def test_identifiers_have_no_retired_words(layer):
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for line, name in [(0, path.stem)] * bool(WORD.search(path.stem)) + retired(syntax_tree(path))
    ]
    assert not faults, "see docs/glossary.md:\n" + "\n".join(faults)


def test_exceptions_are_in_use():
    text = "\n".join(path.read_text("utf-8") for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    assert all(re.search(rf"\b{name}\b", text) for name in ALLOWED)


def test_definitions_are_found():
    text = "def give_back(self, room_left):\n    found = 1\n    for way in found: roomba = 2\nclass Tally: ..."
    assert [name for _, name in retired(ast.parse(text))] == ["give_back", "Tally", "room_left", "found", "way"]
