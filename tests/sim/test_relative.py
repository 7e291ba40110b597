# SPDX-License-Identifier: Apache-2.0
"""``experiment: relative``: throughput over that of random graphs of the same equipment, with its own demand."""

import csv

import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.experiment import relative
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run
from flitlab.sim.report.figures.metrics.series import chart
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.folder.run import Run

CONFIG = """\
experiment: relative
relative: {to: same_equipment, draws: 3}
topology: {kind: hypercube, dim: 3, host_capacity: .inf}
traffic: {kind: longest_matching}
ceilings: [{kind: mcf, method: exact}]
"""


def theta(topology):
    """Of a topology under its own longest matching."""
    traffic = make("traffic", kind="longest_matching").build(topology)
    return ceilings(Instance(topology, traffic), [ceiling_spec("mcf", method="exact")])[0].lower


def test_the_mean_of_the_ratios_and_its_interval(study, tmp_path):
    report = run(study(), tmp_path / "out")
    (row,) = report.metrics
    cube = {"kind": "hypercube", "dim": 3, "host_capacity": float("inf")}
    given = theta(make("topology", **cube).build())
    random = [theta(make("topology", kind="same_equipment", **{"as": cube}, seed=s).build()) for s in (1, 2, 3)]
    ratios = [given / value for value in random]
    mean = sum(ratios) / 3
    half = 4.302652729911275 * (sum((ratio - mean) ** 2 for ratio in ratios) / 2 / 3) ** 0.5
    assert len(set(random)) > 1 and given == pytest.approx(1)  # what is compared does differ
    assert row["theta"] == pytest.approx(given) and row["theta_random"] == pytest.approx(sum(random) / 3)
    assert row["relative"] == pytest.approx(mean) and row["relative_ci95"] == pytest.approx(half)
    drawn = list(csv.DictReader((tmp_path / "out/draws.csv").open()))
    assert [float(row["theta_random"]) for row in drawn] == pytest.approx(random)
    (plot,), _ = plots_of(Run.read(tmp_path / "out"))
    assert chart(Run.read(tmp_path / "out"), plot)[0].curve.half[0] == pytest.approx(half)


def test_where_the_equipment_leaves_no_choice_the_ratio_is_one(study, tmp_path):
    text = CONFIG.replace("{kind: hypercube, dim: 3,", "{kind: file, path: k5.txt, format: edgelist, directed: false,")
    edges = "".join(f"{a} {b}\n" for a in range(5) for b in range(a))
    (tmp_path / "k5.txt").write_text(edges)
    (row,) = run(study(text.replace("longest_matching", "all_to_all")), tmp_path / "out").metrics
    assert row["relative"] == pytest.approx(1, abs=1e-6) and row["relative_ci95"] == pytest.approx(0, abs=1e-6)


def test_resumed_draw_by_draw(study, tmp_path, monkeypatch):
    first = run(study(), tmp_path / "out").metrics
    files = sorted((tmp_path / "out/draws").iterdir())
    assert len(files) == 3
    files[1].unlink()
    seeds = []

    def counted(network, spec, real=relative.theta_of):
        seeds.append(network["topology"]["seed"])
        return real(network, spec)

    monkeypatch.setattr(relative, "theta_of", counted)
    assert run(study(), tmp_path / "out").metrics == first and len(seeds) == 1
    assert run(study(sets=["relative.draws=4"]), tmp_path / "out").exit_code == 0 and seeds[1:] == [4]


def test_a_draw_that_fails_leaves_the_ratio_out_and_is_tried_again(study, tmp_path, monkeypatch):
    def sometimes(network, spec, real=relative.theta_of):
        if network["topology"]["seed"] == 2:
            return relative.Outcome(problem="too hard")
        return real(network, spec)

    with monkeypatch.context() as patch:
        patch.setattr(relative, "theta_of", sometimes)
        report = run(study(), tmp_path / "out")
    assert report.exit_code == 1 and "random graph 2: too hard" in report.problems[0]
    assert "relative" not in report.metrics[0] and report.metrics[0]["mcf"] == pytest.approx(1)
    assert run(study(), tmp_path / "out").exit_code == 0


@pytest.mark.long
def test_any_number_of_processes_gives_the_same_bytes(study, tmp_path):
    for jobs in (1, 2):
        run(study(), tmp_path / str(jobs), RunOptions(jobs))
    assert (tmp_path / "1/metrics.csv").read_bytes() == (tmp_path / "2/metrics.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (CONFIG.replace("draws: 3", "draws: 1"), "c.yaml:2: relative.draws = 1: must be greater than or equal to 2"),
        (CONFIG.replace("draws", "drawz"), "c.yaml:2: relative.drawz = 3: unknown key; choices: by, draws, to;"),
        (CONFIG.replace("to: same_equipment", "to: fat_tree"), "c.yaml:2: relative.to = fat_tree: is not one of the "),
        (CONFIG.replace("traffic: {kind: longest_matching}\n", ""), "traffic: is missing: experiment relative needs"),
    ],
)
def test_mistakes(study, text, line):
    with pytest.raises(ConfigError) as caught:
        study(text)
    assert any(line in str(mistake) for mistake in caught.value.errors)


def test_mcf_is_there_though_other_ceilings_are_listed(study):
    kinds = [spec.kind for spec in study(CONFIG.replace("{kind: mcf, method: exact}", "bounds")).cases[0].ceilings]
    assert kinds == ["mcf", "bounds"]


def test_other_ceilings_than_the_concurrent_flow_can_be_compared(study, tmp_path):
    """Over the ways of a routing on both sides; the random graphs are those of the other ceiling."""
    text = CONFIG.replace("draws: 3}", "draws: 3, by: mcf_paths}").replace("kind: mcf,", "kind: mcf_paths,")
    text += "routing: {kind: ksp, k: 2}\n"
    row = run(study(text), tmp_path / "paths").metrics[0]
    topology = make("topology", kind="hypercube", dim=3, host_capacity=float("inf")).build()
    ratios = []
    for seed in (1, 2, 3):
        random = make("topology", kind="same_equipment", seed=seed, **{"as": {"kind": "hypercube", "dim": 3}}).build()
        random = random.with_hosts(1, float("inf"))
        ratios.append(over_two_paths(topology) / over_two_paths(random))
    assert row["relative"] == pytest.approx(sum(ratios) / 3, rel=1e-5)
    fair = run(study(text.replace("mcf_paths", "mmf").replace(", method: exact", "")), tmp_path / "mmf").metrics[0]
    assert fair["theta"] == fair["mmf"] > 0 and fair["relative"] > 0
    with pytest.raises(ConfigError, match="the paths of a routing"):
        study(text.replace("routing: {kind: ksp, k: 2}\n", ""))


def over_two_paths(topology):
    """As ``theta``, over the two shortest paths of every pair."""
    traffic = make("traffic", kind="longest_matching").build(topology)
    routes = make("routing", kind="ksp", k=2).build(topology)
    return ceilings(Instance(topology, traffic, routes), [ceiling_spec("mcf_paths", method="exact")])[0].lower
