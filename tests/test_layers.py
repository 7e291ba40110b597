# SPDX-License-Identifier: Apache-2.0
"""The house's rule: imports only point down, models <- fluid <- sim, and engines know neither LPs nor files."""

import ast
import graphlib
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.syntax_trees import syntax_tree

BELOW = {"models": {"models"}, "fluid": {"models", "fluid"}, "sim": {"models", "fluid", "sim"}}
ENGINE_ROOMS = ("sim/engines", "sim/measure")
FORBIDDEN_TO_ENGINES = ("fluid", "sim.config", "sim.report", "sim.experiment", "sim.cli")


def modules(package: str) -> list[Path]:
    """The files of a package, or of a room in it."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    return files


def name_of(path: Path) -> str:
    """The full name of the module in a file."""
    place = path.relative_to(ROOT).with_suffix("")
    return ".".join(("flitlab", *(part for part in place.parts if part != "__init__")))


@cache
def imported(path: Path) -> set[str]:
    """Full names of all that a file imports, also inside functions and for types only."""
    found = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms(path: Path) -> set[str]:
    """What a file imports of ours, without the prefix."""
    return {name.removeprefix("flitlab.") for name in imported(path) if name.startswith("flitlab.")}


@pytest.mark.parametrize("package", BELOW)
def test_imports_point_down(package):
    for path in modules(package):
        above = {name for name in rooms(path) if name.split(".")[0] not in BELOW[package]}
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


@pytest.mark.parametrize("package", BELOW)
def test_our_packages_have_one_name(package):
    """A module that is imported as ``models.x`` too would be there twice, with two registries."""
    for path in modules(package):
        bare = {name for name in imported(path) if name.split(".")[0] in BELOW}
        assert not bare, f"{path.relative_to(ROOT)} imports {bare}"


@pytest.mark.parametrize("room", ENGINE_ROOMS)
def test_engines_know_only_the_model(room):
    for path in modules(room):
        wrong = {name for name in rooms(path) if name.startswith(FORBIDDEN_TO_ENGINES)}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_rules_know_no_routing():
    """What decisions read of a routing is theirs (``models/rules/tables.py``), and routings import it from there."""
    for path in modules("models/rules"):
        wrong = {name for name in rooms(path) if name.startswith("models.routing")}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_no_module_imports_itself_by_way_of_others():
    """Imports inside functions and imports for types only count: a circle is one circle for its reader."""
    files = {name_of(path): path for package in BELOW for path in modules(package)}
    needs = {
        name: {part if part in files else part.rpartition(".")[0] for part in imported(path)} & set(files) - {name}
        for name, path in files.items()
    }
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
