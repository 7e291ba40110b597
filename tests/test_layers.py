"""The house's rule: imports only point down, models <- fluid <- sim, and engines know neither LPs nor files."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BELOW = {"models": {"models"}, "fluid": {"models", "fluid"}, "sim": {"models", "fluid", "sim"}}
ENGINE_ROOMS = ("sim/engines", "sim/measure")
FORBIDDEN_TO_ENGINES = ("fluid", "sim.config", "sim.report", "sim.experiment", "sim.cli")


def imported(path: Path) -> set[str]:
    """Full names of all modules a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("package", BELOW)
def test_imports_point_down(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        ours = {name for name in imported(path) if name.split(".")[0] in BELOW}
        above = {name for name in ours if name.split(".")[0] not in BELOW[package]}
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


@pytest.mark.parametrize("room", ENGINE_ROOMS)
def test_engines_know_only_the_model(room):
    for path in sorted((ROOT / room).rglob("*.py")):
        wrong = {n for n in imported(path) if n.startswith(FORBIDDEN_TO_ENGINES)}
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"
