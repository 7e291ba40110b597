# SPDX-License-Identifier: Apache-2.0
"""How compiled code is written: state built by keyword, plain functions typed, everything documented."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.syntax_trees import syntax_tree

FOLDER = ROOT / "sim" / "engines" / "compiled"
FILES = sorted(FOLDER.rglob("*.py"))
COMPILED = {"inline", "kernel", "njit", "device_function"}
"""The decorators of :mod:`flitlab.models.jit`."""


tree_of = cache(syntax_tree)


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for file in FILES:
        yield file, tree_of(file)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def is_compiled(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id in COMPILED for one in function.decorator_list)


def is_named_tuple(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in node.bases)


def named_tuples() -> set[str]:
    """The named tuples that kernels read."""
    return {node.name for _, tree in trees() for node in ast.walk(tree) if is_named_tuple(node)}


def is_by_position(call: ast.AST, names: set[str]) -> bool:
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names and bool(call.args)


def test_compiled_functions_are_recognized():
    assert sum(is_compiled(function) for _, tree in trees() for function in functions(tree)) > 100


def test_parts_of_a_state_are_built_by_keyword():
    names = named_tuples()
    assert {"Net", "Pool", "RunCounters", "Program", "Ranks", "TimingWheel", "VctState", "DatagramConstants"} <= names
    wrong = [
        f"{file.name}:{node.lineno}: {ast.unparse(node.func)}"
        for file, tree in trees()
        for node in ast.walk(tree)
        if is_by_position(node, names)
    ]
    assert not wrong


def test_a_part_by_position_would_be_found():
    by_position = ast.parse("Delays(header, link, injection)", mode="eval").body
    by_keyword = ast.parse("Delays(header=header, link=link, injection=injection)", mode="eval").body
    assert is_by_position(by_position, {"Delays"})
    assert not is_by_position(by_keyword, {"Delays"})


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_functions_that_numba_does_not_compile_have_types(file):
    for function in functions(tree_of(file)):
        if is_compiled(function):
            continue
        arguments = [one for one in function.args.args if one.arg != "self"]
        assert all(one.annotation for one in arguments), f"{file.name}:{function.lineno}"
        assert function.returns or function.name == "__init__", f"{file.name}:{function.lineno}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_compiled_functions_say_what_they_do_and_name_what_they_take(file):
    for function in functions(tree_of(file)):
        if not is_compiled(function):
            continue
        where = f"{file.name}:{function.lineno}: {function.name}"
        text = ast.get_docstring(function)
        assert text and text.split()[0] not in ("As", "Of", "The"), where
        short = {one.arg for one in function.args.args if len(one.arg) == 1}
        assert short <= {"i"}, where
