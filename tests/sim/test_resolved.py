# SPDX-License-Identifier: Apache-2.0
"""What a run writes as its resolved configuration is read as the same study, and resolves to itself."""

from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from flitlab.models.registry import names
from flitlab.sim.api import Experiment
from flitlab.sim.cli import main
from flitlab.sim.config.case import Study, labels_of, swept
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

CONFIGS = Path(__file__).parents[2] / "configs"

READ = ("paper/*.yaml", "routing/*.yaml", "*quick.yaml", "spray_*.yaml", "panels.yaml")
"""Those that are read within seconds: the others have the keys of these, on larger networks."""

SOON = ("paper/mut-f01*", "paper/sin-f40[1-5]*", "paper/uni-f0[1-3]*")
"""Those that are read at once."""

EVERY = sorted({file for one in READ for file in CONFIGS.glob(one)} - {CONFIGS / "collectives_quick.yaml"})


def named(file: Path) -> str:
    return file.relative_to(CONFIGS).as_posix()


def again(study: Study) -> Study:
    """The study that is read from what another resolves to."""
    return read("again.yaml", text=yaml.safe_dump(study.resolved(), sort_keys=False, allow_unicode=True))


def assert_same(study: Study) -> None:
    second = again(study)
    assert second.resolved() == study.resolved()
    for one, other in zip(second.cases, study.cases, strict=True):
        assert (one.label, one.keys, one.loads, one.seeds) == (other.label, other.keys, other.loads, other.seeds)
        for part in ("scenario", "instance"):
            hashes = [None if (held := getattr(case, part)) is None else held.content_hash for case in (one, other)]
            assert hashes[0] == hashes[1], (one.label, part)


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(
            file, id=named(file), marks=[] if any(fnmatch(named(file), one) for one in SOON) else pytest.mark.long
        )
        for file in EVERY
    ],
)
def test_a_configuration_of_ours_resolves_to_itself(file):
    assert_same(read(file, quick=True))


CLUSTER = "{count: 8, ports: 6, servers: 1}"

NETWORKS = [
    "{kind: subdivided, base: {kind: rrg, n: 16, degree: 4, host_capacity: .inf}, p: 3}",
    "{kind: rail, servers: 4, gpus: 2, spines: 4, nvlink: null}",  # null where the default is a number
    f"{{kind: two_cluster, large: {CLUSTER}, small: {CLUSTER}, cross_links: 4}}",
]


@pytest.mark.parametrize("topology", NETWORKS)
def test_topologies_with_keys_that_exclude_each_other_are_read_back(topology):
    assert_same(read("c.yaml", text=f"experiment: metrics\ntopology: {topology}"))


@pytest.mark.parametrize("kind", sorted(set(names("transport")) - {"several", "none"}))
def test_transports_keep_the_defaults_of_their_mode(kind):
    text = """
        topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
        routing: {kind: ecmp}
        switching: {mode: MODE}
        traffic: {kind: permutation, arrivals: together, sizes: {kind: fixed, bytes: 100KB}}
        transport: {kind: KIND}
    """
    for mode in ("datagram", "spray"):
        try:
            study = read("c.yaml", text=text.replace("MODE", mode).replace("KIND", kind))
        except ConfigError as error:
            assert "mode" in str(error) or "transport" in str(error)
            continue
        assert_same(study)


def test_training_that_asks_for_the_best_algorithms_is_read_back():
    text = """
        experiment: application
        topology: {kind: torus, dims: [4], hosts_per_switch: 1}
        routing: {kind: minimal}
        switching: {vcs: 4, buffer_flits: 32, flit_ns: 2}
        application: {kind: training, pipeline: 2, algorithm: best, layers: 2, hidden: 64, sequence: 16}
    """
    assert_same(read("c.yaml", text=text))


SWEPT = """
name: swept
experiment: metrics
cases:
  - {label: ring, topology: {kind: torus, dims: [{sweep: [4, 6]}]}}
  - {label: cube, topology: {kind: hypercube, dim: 3}}
published:
  - {where: by a mapping, scenario: {case: ring, "dims[0]": 6}, quantity: diameter, value: 3}
  - {where: by part, scenario: {case: [ring]}, relative_to: {case: [cube]}, over: mean, quantity: diameter, value: 0.8}
  - {where: per case, scenario: {}, relative_to: {}, over: max, per: case, quantity: diameter, value: 1}
outputs: {plots: [{y: diameter, x: case}]}
"""


def test_swept_keys_keep_their_names_and_values():
    study = read("c.yaml", text=SWEPT)
    second = again(study)
    assert [case.keys for case in second.cases] == [
        {"case": "ring", "topology.dims[0]": 4}, {"case": "ring", "topology.dims[0]": 6}, {"case": "cube"},
    ]  # fmt: skip
    assert labels_of({"case": "ring"}, second.cases) == [case.label for case in second.cases[:2]]
    assert [swept(case, "topology.dims[0]") for case in second.cases] == [4, 6, None]
    assert_same(study)


def test_a_finished_run_is_opened_and_drawn_again(tmp_path):
    (tmp_path / "c.yaml").write_text(SWEPT)
    assert main(["run", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert main(["plot", str(tmp_path / "out"), "--format", "png"]) == 0
    opened = Experiment.open(tmp_path / "out")
    assert [case.keys["case"] for case in opened.scenarios.values()] == ["ring", "ring", "cube"]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("3", "cases[0].keys = 3: must be a mapping of columns to texts or numbers"),
        ("{topology.n: [1]}", "must be a mapping of columns to texts or numbers"),
        ("{load: 3}", "cases[0].keys.load: is no key that can be swept"),
    ],
)
def test_keys_that_are_no_columns_are_refused(keys, problem):
    with pytest.raises(ConfigError) as refused:
        read(
            "c.yaml",
            text=f"experiment: metrics\ntopology: {{kind: hypercube, dim: 3}}\ncases: [{{label: a, keys: {keys}}}]",
        )
    assert problem in str(refused.value)
