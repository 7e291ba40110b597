# SPDX-License-Identifier: Apache-2.0
"""What a plugin must not give is refused by name before anything runs; what is merely odd gives right numbers."""

import csv
import re

import pytest

from flitlab.models.registry import _registered
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from tests.sim.hostile import ALL, HEAD, run_alone, write

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _forget():
    """Names that a test registers are gone after it."""
    yield
    for kinds in _registered.values():
        kinds.pop("hostile", None)


def test_there_are_enough_of_them():
    assert len(ALL) >= 50


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.category}: {case.name}")
def test_it_is_refused_by_name(case, tmp_path):
    with pytest.raises(ConfigError) as caught:
        read(write(case, tmp_path))
    said = str(caught.value)
    assert re.search(case.says, said), said
    assert f".yaml:{line_of(case, tmp_path)}: " in said, said


def line_of(case, folder) -> int:
    """The line of the configuration that uses the plugin."""
    text = next(folder.glob("*.yaml")).read_text()
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.startswith(f"{case.category}:"))


def test_it_ends_with_exit_code_2_and_without_a_folder(tmp_path):
    assert run_alone(ALL[0], tmp_path) == "named"


ODD = (
    HEAD
    + '''
class Own(Routes):
    """Says something else than it holds."""

    def tables(self, topology):
        return super().tables(topology)._replace(ports=np.full((9, 9), 1 << 60, np.uint64))


def strided(topology):
    wide = np.zeros((18, 27), np.uint64)
    wide[::2, ::3] = routes(topology).ports
    return replace(routes(topology), ports=wide[::2, ::3])


def sealed(topology):
    given = routes(topology)
    given.ports.setflags(write=False)
    return given


SHARED = np.zeros((9, 9), np.uint64)


def shared(topology):
    SHARED[:] = routes(topology).ports
    return replace(routes(topology), ports=SHARED)


def spoiled(topology):
    SHARED[:] = 1 << 50
    return routes(topology)


MAKE = {
    "strided": strided, "columns first": lambda t: replace(routes(t), ports=np.asfortranarray(routes(t).ports)),
    "sealed": sealed, "shared": shared, "spoiled": spoiled,
    "a class of its own": lambda t: Own("x", routes(t).ports, Selection.RANDOM, 4),
    "numbers of numpy": lambda t: replace(routes(t), select=np.int8(0), hops_max=np.uint16(4), layers=np.int64(0)),
    "hops_max too large": lambda t: replace(routes(t), hops_max=8),
}


@register("routing", "hostile")
class Hostile(RoutingSpec):
    """x"""

    how: str

    def routes(self, topology):
        return MAKE[self.how](topology)
'''
)

ODDITIES = ["strided", "columns first", "sealed", "shared", "spoiled", "a class of its own", "numbers of numpy",
            "hops_max too large"]  # fmt: skip


def test_what_is_merely_odd_runs_as_if_it_were_not(tmp_path):
    (tmp_path / "odd.py").write_text(ODD)
    odd = ", ".join(f"{{kind: hostile, how: {how}}}" for how in ODDITIES)
    (tmp_path / "c.yaml").write_text(
        "plugins: [odd.py]\ntopology: {kind: mesh, dims: [3, 3]}\ntraffic: {kind: uniform, packet_flits: 2}\n"
        f"routing: {{sweep: [{{kind: minimal}}, {odd}]}}\nswitching: {{vcs: 8}}\nloads: [0.3]\nceilings: [mcf_paths]\n"
        "measure: {warmup: 50, ticks: 500, ci: null}\n"
    )
    assert main([str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    for name, columns in (("results.csv", ("accepted", "latency_mean", "hops_mean")), ("ceilings.csv", ("upper",))):
        with (tmp_path / "out" / name).open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 1 + len(ODDITIES)
        assert len({tuple(row[column] for column in columns) for row in rows}) == 1
