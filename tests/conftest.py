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


@pytest.fixture
def study(tmp_path, request):
    """Reads a configuration, by default the test file's CONFIG, as a user's file would be."""
    from flitlab.sim.config.study import read

    def write(text=None, sets=()):
        (tmp_path / "c.yaml").write_text(request.module.CONFIG if text is None else text)
        return read(tmp_path / "c.yaml", sets)

    return write
