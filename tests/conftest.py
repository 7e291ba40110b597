"""``pytest --engine compiled`` (or ``reference``) restricts the tests that run on every engine to one."""

import pytest

ENGINES = ("compiled", "reference")


def pytest_addoption(parser):
    parser.addoption("--engine", choices=ENGINES, help="run the engine-independent tests on this engine only")


def pytest_generate_tests(metafunc):
    if "engine_name" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("engine")
        metafunc.parametrize("engine_name", [chosen] if chosen else ENGINES)


@pytest.fixture(autouse=True)
def _runs_leave_nothing_here(tmp_path, monkeypatch):
    """Default run folders are made under the current directory: give every test its own."""
    monkeypatch.chdir(tmp_path)
