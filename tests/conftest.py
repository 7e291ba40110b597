# SPDX-License-Identifier: Apache-2.0
"""What all tests share: two commands, one or all engines, a folder of its own for every test.

``pytest`` runs what one wants to know after each change. ``pytest -m long`` runs the tests that are marked ``long``,
and those that draw their cases, with all of their examples; the first command tries a tenth of these. Draws are the
same every time. The first command has kernels compiled with less optimisation, which takes half of the time; the second
has those of users. A test of either engine is long on the compiled one, but for those that compare the two.
``pytest --engine compiled`` (or ``reference``) restricts the tests of both engines to one, and
``pytest --part 2/3`` runs the second third of the tests, as fits any other number of parts.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.known_prices import known_price

ENGINES = ("compiled", "reference")

WITH_KERNELS = {"conformance", "test_oracles.py"}
"""Where the first command tries both engines; elsewhere the reference one, which needs no kernels, unless a test names
the other."""

COMPILING = (
    "test_oracles.py", "test_dcqcn.py", "test_collective_times.py", "test_application.py", "test_flow.py",
    "test_datagram.py",
)  # fmt: skip
"""The files to begin with: each makes other kernels ready, so that processes do not wait for one another's."""

OF_ONE_PROCESS = (
    ("sim/test_dcqcn.py", "sim/test_spray_alone.py", "sim/test_priority_classes.py", "sim/test_completion.py"),
    ("conformance/test_traffic.py", "conformance/test_faults.py", "sim/test_channels.py", "sim/test_arrivals.py"),
)
"""Groups of files of which one process runs all: variants of a kernel share most of what they compile."""

WITH_FIGURES = {"test_report.py"}
"""The tests of runs whose pages have all figures, which take longer than most runs; elsewhere those that a run drew."""

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_configure(config):
    if "not long" in config.option.markexpr:
        os.environ.setdefault("NUMBA_OPT", "1")  # before Numba is imported, here and in processes of tests


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    places = {name: place for place, name in enumerate(COMPILING)}
    items.sort(key=lambda item: places.get(item.path.name, len(COMPILING) + (item.path.parent.name == "sim")))
    short = "not long" in config.option.markexpr
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            if short:
                few(item.obj, item.path.parent.name == "conformance")
            else:
                item.add_marker("long")
    if config.option.part:
        keep_part(config, items, *config.option.part)


@pytest.hookimpl(optionalhook=True)  # without processes, there is no such hook
def pytest_xdist_make_scheduler(config, log):
    """Give the files of a group of :data:`OF_ONE_PROCESS` to one process, any other file by itself."""
    from xdist.scheduler import LoadFileScheduling

    class GroupScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return next((group[0] for group in OF_ONE_PROCESS if file.removeprefix("tests/") in group), file)

    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish(session):
    """Let garbage collection pass over modules and tests, which stay until the end."""
    gc.collect()
    gc.freeze()


def part_of(text):
    """The number of a part, from 1, and how many there are, of ``K/N``."""
    part, parts = (int(number) for number in text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def keep_part(config, items, part, parts):
    """Deselect all tests but those of one of ``parts``, to which the tests of each file belong in turn."""
    kept = set(items[part - 1 :: parts])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def few(test, compiles):
    """Let a test try a tenth of its examples, but 4 if it has as many; called once for each of its parameters.

    compiles: whether each example may need kernels of its own, as in tests of conformance: they try 1.
    """
    full = test._hypothesis_internal_use_settings
    if not hasattr(test, "few"):
        some = 1 if compiles else max(4, full.max_examples // 10)
        test.few = settings(full, max_examples=min(full.max_examples, some))
        test._hypothesis_internal_use_settings = test.few


def pytest_addoption(parser):
    parser.addoption("--engine", choices=ENGINES, help="run the engine-independent tests on this engine only")
    parser.addoption("--part", type=part_of, metavar="K/N", help="run the K-th of N parts of the tests")


def pytest_generate_tests(metafunc):
    if "engine_name" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("engine")
        slow = [mark.args[0] for mark in metafunc.definition.iter_markers("long_on")]
        if chosen is None and not WITH_KERNELS.intersection(metafunc.definition.path.parts[-2:]):
            slow.append("compiled")
        engines = [chosen] if chosen else ENGINES
        metafunc.parametrize(
            "engine_name", [pytest.param(name, marks=pytest.mark.long if name in slow else ()) for name in engines]
        )


@pytest.fixture(autouse=True)
def _runs_leave_nothing_here(tmp_path, monkeypatch):
    """Default run folders are made under the current directory: give every test its own. No test compiles in the
    background: those beside it use the other core.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flitlab.sim.experiment.early_kernels.any_compiled", lambda: True)


@pytest.fixture(autouse=True)
def _pages_draw_no_figures(request, monkeypatch):
    """Pages of runs without figures stay without."""
    plain = request.path.parent.name == "sim" and request.path.name not in WITH_FIGURES
    if plain and not request.node.get_closest_marker("long"):
        monkeypatch.setattr("flitlab.sim.report.html.draw", lambda folder: [])


@pytest.fixture(autouse=True)
def _known_prices(request, monkeypatch):
    """Only long tests measure what the hops of a mode cost on this machine; elsewhere ``simrun check`` knows it."""
    if request.node.get_closest_marker("long"):
        return
    from flitlab.sim.experiment.prices import Prices  # imports Numba, whose level of optimisation is set above

    measured = Prices._price

    def price(self, name, measure):
        """Prices that a test has stored, those of ceilings, and known ones for the rest."""
        known = name in self._known or name.startswith("ceiling")
        return measured(self, name, measure) if known else known_price(name)

    monkeypatch.setattr(Prices, "_price", price)


@pytest.fixture
def study(tmp_path, request):
    """Reads a configuration, by default the test file's CONFIG, as a user's file would be."""
    from flitlab.sim.config.pipeline import read

    def write(text=None, sets=()):
        (tmp_path / "c.yaml").write_text(request.module.CONFIG if text is None else text)
        return read(tmp_path / "c.yaml", sets)

    return write
