# SPDX-License-Identifier: Apache-2.0
"""``experiment: ceilings``: one row per scenario, replicates averaged, intervals stated, resumed."""

import csv
import json

import pytest

import flitlab.fluid.ceilings
from flitlab.models.threads import threads
from flitlab.sim.cli import main
from flitlab.sim.cli.components import documentation, kinds
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.pool import Processes, RunOptions, open_pool
from flitlab.sim.experiment.progress import Quiet
from flitlab.sim.experiment.runner import run
from flitlab.sim.experiment.store import Store
from flitlab.sim.experiment.task import Outcome
from flitlab.sim.report.figures.metrics.figure import figure_of
from flitlab.sim.report.figures.metrics.series import series
from flitlab.sim.report.figures.metrics.specification import plots_of
from flitlab.sim.report.figures.style import in_style
from flitlab.sim.report.folder.run import Run

CONFIG = """\
experiment: ceilings
topology: {kind: rrg, n: {sweep: [8, 10]}, degree: 3, host_capacity: .inf, seed: {sweep: [1, 2, 3]}}
traffic: {kind: all_to_all}
routing: {kind: ecmp}
loads: [0.4, 9.0]
ceilings: [mcf, mcf_paths, total, bounds]
metrics: [spectral_gap]
"""


@pytest.fixture
def config(tmp_path):
    def write(text=CONFIG, more=""):
        (tmp_path / "c.yaml").write_text(text.replace("9.0", "0.9") + more)
        return tmp_path / "c.yaml"

    return write


def table(folder, name="metrics.csv"):
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run folder, and the report of the run."""
    folder = tmp_path_factory.mktemp("ceilings")
    (folder / "c.yaml").write_text(CONFIG.replace("9.0", "0.9"))
    return folder / "out", run(read(folder / "c.yaml"), folder / "out")


def test_a_row_has_the_keys_the_metrics_and_every_ceiling(finished):
    folder, report = finished
    assert report.exit_code == 0
    rows = table(folder)
    assert [(row["topology.n"], row["topology.seed"]) for row in rows] == [
        (n, seed) for n in ("8", "10") for seed in "123"
    ]
    single = {(row["scenario"], row["ceiling"], row["load"]): row for row in table(folder, "ceilings.csv")}
    for row in rows:
        assert row["kind"] == "rrg" and float(row["spectral_gap"]) > 0 and row["status"] == "ok"
        own = single[row["scenario"], "mcf", ""]
        assert row["mcf"] == own["lower"] and row["mcf.upper"] == own["upper"]
        assert row["bounds"] == single[row["scenario"], "bounds", ""]["upper"]
        assert row["total@0.9"] == single[row["scenario"], "total", "0.9"]["lower"]
        assert float(row["mcf_paths"]) <= float(row["mcf.upper"]) <= float(row["bounds"]) * (1 + 1e-9)


def test_replicates_are_averaged_with_a_student_interval(finished):
    folder, _ = finished
    shown = Run.read(folder)
    plots, mistakes = plots_of(shown)
    assert not mistakes and [q.expression for q in plots[0].y] == ["mcf", "mcf_paths", "bounds"]
    curves = {entry.quantity.expression: entry.curve for entry in series(shown, plots[0])}
    values = [float(row["mcf"]) for row in table(folder) if row["topology.n"] == "10"]
    mean = sum(values) / 3
    half = 4.302652729911275 * (sum((v - mean) ** 2 for v in values) / 2 / 3) ** 0.5  # t with 2 degrees of freedom
    assert curves["mcf"].x.tolist() == [8, 10]
    assert curves["mcf"].y[1] == pytest.approx(mean) and curves["mcf"].half[1] == pytest.approx(half)


def test_figures_say_how_wide_the_intervals_are(finished, tmp_path):
    folder, _ = finished
    rows = table(folder)
    for row in rows:
        row["mcf.upper"] = str(float(row["mcf"]) * 1.03)
    with (tmp_path / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "manifest.json").write_text(json.dumps({"columns": ["topology.n", "topology.seed"], "plots": [
        {"y": ["mcf"], "x": "topology.n"}, {"y": ["mcf_paths"], "x": "topology.n"}]}))  # fmt: skip
    shown = Run.read(tmp_path)
    drawn = [in_style(figure_of)(shown, plot) for plot in plots_of(shown)[0]]
    titles = [figure.legends[0].get_title().get_text() if figure.legends else "" for figure in drawn]
    assert titles == ["certified to 3 %", ""]


def test_published_values_of_ceilings(config, tmp_path):
    entries = """\
published:
  - {where: a, scenario: {n: 10}, over: mean, quantity: mcf_paths / mcf, value: 1}
  - {where: b, scenario: {n: 10}, relative_to: {n: 8}, over: mean, quantity: mcf, value: 1}
  - {where: c, scenario: {n: 10}, over: max, quantity: total@0.9, value: 1}
  - {where: d, scenario: {n: 10, seed: 2}, quantity: mcf.upper, value: 1}
  - {where: e, scenario: {n: 10, seed: 2}, quantity: mmf, value: 1}
"""
    run(read(config(more=entries)), tmp_path / "out")
    rows = table(tmp_path / "out")
    ten, eight = ([row for row in rows if row["topology.n"] == n] for n in ("10", "8"))
    found = {row["where"]: row["measured"] for row in table(tmp_path / "out", "published.csv")}

    def mean(rows, get):
        return sum(map(get, rows)) / len(rows)

    assert float(found["a"]) == pytest.approx(mean(ten, lambda r: float(r["mcf_paths"]) / float(r["mcf"])))
    ratio = mean(ten, lambda r: float(r["mcf"])) / mean(eight, lambda r: float(r["mcf"]))
    assert float(found["b"]) == pytest.approx(ratio)
    assert float(found["c"]) == max(float(row["total@0.9"]) for row in ten)
    assert float(found["d"]) == float(ten[1]["mcf.upper"]) and found["e"] == ""


def test_a_failed_ceiling_is_one_point_and_the_others_go_on(config, tmp_path, monkeypatch):
    real, calls = flitlab.fluid.ceilings.ceilings, []

    def sometimes(scenario, specs, loads=(), **more):
        calls.append([spec.kind for spec in specs])
        if "mcf_paths" in calls[-1] and scenario.topology.switches == 8:
            raise ValueError("too hard")
        return real(scenario, specs, loads, **more)

    monkeypatch.setattr(flitlab.fluid.ceilings, "ceilings", sometimes)
    study = read(config())
    report = run(study, tmp_path / "out")
    assert report.exit_code == 1 and len(report.problems) == 3 and "too hard" in report.problems[0]
    rows = table(tmp_path / "out")
    assert [row["status"] for row in rows] == ["partial"] * 3 + ["ok"] * 3
    assert rows[0]["mcf"] and not rows[0]["mcf_paths"] and rows[3]["mcf_paths"]
    monkeypatch.setattr(flitlab.fluid.ceilings, "ceilings", real)
    before = len(calls)
    assert run(study, tmp_path / "out").exit_code == 0  # what had failed is tried again, nothing else
    assert len(calls) == before and table(tmp_path / "out")[0]["mcf_paths"]


@pytest.mark.long
def test_any_number_of_processes_gives_the_same_bytes(finished, config, tmp_path):
    run(read(config()), tmp_path / "two", RunOptions(2))
    assert (tmp_path / "two/metrics.csv").read_bytes() == (finished[0] / "metrics.csv").read_bytes()


def test_ceilings_that_take_longest_are_started_first(config, tmp_path):
    text = """\
experiment: ceilings
topology: {kind: rrg, n: {sweep: [8, 16, 12]}, degree: 3, host_capacity: .inf}
traffic: {kind: {sweep: [permutation, all_to_all]}}
ceilings: [mcf, cuts]
"""
    store = Store(tmp_path / "out")
    tasks = list(CeilingRuns(read(config(text)), store).tasks(Quiet()))
    store.close()
    solved = [task.name for task in tasks if task.name.endswith("mcf")]
    assert [name.split(": ")[0] for name in solved] == [
        f"n={n}, kind={kind}" for kind in ("all_to_all", "permutation") for n in (16, 12, 8)
    ]
    assert [task.name for task in tasks][:6] == solved
    assert sorted(task.task_index for task in tasks) == list(range(12))


def threads_now(*_):
    """A task: the threads that a ceiling may use."""
    return Outcome(threads())


@pytest.mark.parametrize("jobs, calls, processes, each", [(1, 5, 1, 1), (4, 9, 4, 1), (4, 2, 2, 2), (3, 1, 1, 3)])
def test_processes_and_their_threads_are_no_more_than_the_jobs(jobs, calls, processes, each, monkeypatch):
    monkeypatch.setattr(Processes, "reopen", lambda self: None)
    pool, before = open_pool(RunOptions(jobs), (), calls), threads()
    if processes == 1:
        assert pool.submit(threads_now).result().result == each and threads() == before
    else:
        assert (pool.jobs, pool.threads) == (processes, each)


def test_the_resolved_configuration_gives_the_same_table(finished, tmp_path):
    folder, _ = finished
    again = run(read(folder / "config.resolved.yaml"), tmp_path / "again")
    assert [row["mcf"] for row in again.metrics] == [float(row["mcf"]) for row in table(folder)]
    (tmp_path / "c.yaml").write_text(CONFIG.replace("loads: [0.4, 9.0]\n", "").replace("total, ", ""))
    few = run(read(tmp_path / "c.yaml", ["topology={kind: imase, n: 4, degree: 2}"]), tmp_path / "few")
    assert read(few.folder / "config.resolved.yaml").cases[0].loads == []


def test_throughput_under_failures(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "experiment: ceilings\nceilings: [{kind: mcf, method: exact}]\ntraffic: {kind: all_to_all}\n"
        "topology: {kind: torus, dims: [4, 4], host_capacity: .inf, "
        "failures: {links: {sweep: [0.0, 0.1, 0.2]}, seed: {sweep: [1, 2]}}}\n"
    )
    report = run(read(tmp_path / "c.yaml"), tmp_path / "out")
    by_seed = [[row["mcf"] for row in report.metrics if row["topology.failures.seed"] == seed] for seed in (1, 2)]
    for values in by_seed:  # with one seed, more failures include the fewer
        assert values[0] > values[1] >= values[2]
        assert values[0] == pytest.approx(2 * 15 / 16)  # 8 / k, without what hosts send to themselves
    assert plots_of(Run.read(tmp_path / "out"))[0][0].x == "topology.failures.links"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("outputs: {plots: [{y: mcf, z: n}]}", "c.yaml:8: outputs.plots[0].z = n: unknown key; choices: by, "),
        ("published: [{where: x, value: 1, quantity: mcf, over: median}]", "published[0].over = median: is not one of"),
    ],
)
def test_mistakes(config, more, line):
    with pytest.raises(ConfigError) as caught:
        read(config(more=more))
    assert any(line in str(mistake) for mistake in caught.value.errors)


def test_every_ceiling_is_described():
    assert kinds("ceiling") and all(documentation("ceiling", kind) for kind in kinds("ceiling"))


def test_of_two_methods_the_first_is_in_the_table(config, tmp_path):
    text = (
        "experiment: ceilings\ntopology: {kind: rrg, n: 40, degree: 4, host_capacity: .inf}\n"
        "traffic: {kind: permutation}\n"
        "ceilings: [{kind: mcf, method: approx, gap: 0.1}, {kind: mcf, method: approx, gap: 0.01}]\n"
    )
    report = run(read(config(text)), tmp_path / "out")
    wide, tight = report.ceilings
    assert wide["upper"] - wide["lower"] > tight["upper"] - tight["lower"]
    assert report.metrics[0]["mcf"] == wide["lower"]


def test_total_needs_loads(config):
    with pytest.raises(ConfigError, match="total depends on the load; loads is missing"):
        read(config(CONFIG.replace("loads: [0.4, 9.0]\n", "")))


@pytest.mark.long
def test_saved_certificates_are_verified_and_false_ones_are_not(config, tmp_path, capsys):
    text = (
        "topology: {kind: rrg, n: 8, degree: 3, host_capacity: .inf, seed: {sweep: [1, 2]}}\n"
        "routing: {kind: ecmp}\ntraffic: {kind: all_to_all}\nceilings: [mcf, mcf_paths, bounds]\n"
    )
    path, saved = str(config(text)), tmp_path / "saved"
    assert main(["ceilings", path, "--json", "--save", str(saved)]) == 0
    claimed = {(row["scenario"], row["ceiling"]): row for row in json.loads(capsys.readouterr().out)}
    assert main(["ceilings", "--verify", str(saved), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {("seed=1", "mcf"), ("seed=2", "mcf_paths"), ("seed=1", "bounds")} <= {
        (row["scenario"], row["ceiling"]) for row in rows
    }
    for row in rows:
        own = claimed[row["scenario"], row["ceiling"]]
        assert row["verdict"] == "confirmed" and row["proven_upper"] <= own["upper"] * (1 + 1e-9)
        if row["ceiling"] in ("mcf", "mcf_paths"):
            assert row["proven_lower"] >= own["lower"] * (1 - 1e-9)
    first, second = (saved / row["file"] for row in rows if row["ceiling"] == "mcf")
    second.write_bytes(first.read_bytes())
    assert main(["ceilings", "--verify", str(saved)]) == 3
    assert "is not the file of the index: its SHA-256 differs" in capsys.readouterr().out
    assert main(["ceilings", "--verify", str(tmp_path)]) == 2
    assert "holds no saved certificates" in capsys.readouterr().err


def test_an_infinite_bound_claims_nothing(config, tmp_path, capsys):
    """A triangle with hosts at two of its switches: a switch of three ports could have both, and no link would bind."""
    text = (
        'topology: {kind: file, format: topobench_servers, text: "0 1 1 2\\n1 1 2\\n2 0\\n"}\n'
        "traffic: {kind: all_to_all}\nceilings: [bounds]\n"
    )
    saved = str(tmp_path / "saved")
    assert main(["ceilings", str(config(text)), "--json", "--save", saved, "--jobs", "1"]) == 0
    assert {row["ceiling"]: row["upper"] for row in json.loads(capsys.readouterr().out)}["bounds"] == 1
    assert main(["ceilings", "--verify", saved, "--json"]) == 0
    verdicts = {row["ceiling"]: row["verdict"] for row in json.loads(capsys.readouterr().out)}
    assert set(verdicts.values()) == {"confirmed"} and "bounds:equipment" not in verdicts


def test_certificates_of_epochs_are_verified_as_such(config, tmp_path, capsys):
    text = (
        "experiment: ceilings\ntopology: {kind: torus, dims: [4], host_capacity: .inf}\ntraffic: {kind: all_to_all}\n"
        "routing: {kind: minimal}\nceilings: [{kind: mcf, method: exact}]\n"
        "timeline: [{at_tick: 100, fail: {links: [[0, 1]]}, reroute_after: 10}]\n"
    )
    saved = str(tmp_path / "saved")
    assert main(["ceilings", str(config(text)), "--json", "--save", saved, "--jobs", "1"]) == 0
    rows = {row["ceiling"]: row for row in json.loads(capsys.readouterr().out)}
    assert main(["ceilings", "--verify", saved, "--json"]) == 0
    verified = {row["scenario"].partition(", ")[2]: row for row in json.loads(capsys.readouterr().out)}
    assert verified[""]["lower"] == rows["mcf"]["lower"] == pytest.approx(1.5)  # 8 channels, 4 hosts, 4 / 3 hops
    # between the halves of the line that is left, 4 of 12 pairs cross a channel
    assert verified["epoch 2"]["lower"] == rows["mcf:epoch_2"]["lower"] == pytest.approx(0.75)
    assert verified["epoch 2"]["topology"] != verified[""]["topology"]


def test_ceilings_on_the_command_line_are_kept_and_drawn(config, tmp_path, capsys, monkeypatch):
    text = "topology: {kind: fat_tree, k: 4, host_capacity: .inf}\ntraffic: {kind: permutation}\nceilings: [mcf]\n"
    path, out, picture = str(config(text)), str(tmp_path / "kept"), tmp_path / "b.png"
    assert main(["ceilings", path, "--json", "--out", out, "--draw", str(picture)]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first[0]["lower"] == pytest.approx(1) and (tmp_path / "kept/ceilings.csv").exists()
    assert picture.read_bytes()[:4] == b"\x89PNG"
    monkeypatch.setattr(flitlab.fluid.ceilings, "ceilings", None)  # nobody is asked again
    assert main(["ceilings", path, "--json", "--out", out]) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_check_prices_a_total_where_nothing_is_simulated(tmp_path, capsys):
    """A case of this experiment has an instance and no scenario."""
    text = "topology: {kind: torus, dims: [3, 3]}\ntraffic: {kind: uniform}\nexperiment: ceilings\n"
    (tmp_path / "total.yaml").write_text(text + "loads: [0.5, 1.0]\nceilings: [total]\n")
    assert main(["check", str(tmp_path / "total.yaml"), "--json"]) == 0
    (scenario,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert scenario["estimate"]["ceilings_cpu_s"]["total"] >= 0


@pytest.mark.parametrize(("capacity", "unit"), [(1, "load"), (0.5, "flits/tick/host"), (".inf", "theta_hose")])
def test_the_unit_of_a_ceiling_is_a_rate_where_load_1_is_another(tmp_path, capsys, capacity, unit):
    """Half a flit per tick is load 1 of hosts of that rate; uniform traffic of a ring of four needs no more."""
    (tmp_path / "c.yaml").write_text(
        f"experiment: ceilings\ntopology: {{kind: torus, dims: [4], host_capacity: {capacity}}}\n"
        "traffic: uniform\nceilings: [mcf]\n"
    )
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["unit"] == unit
    assert row["upper"] == pytest.approx({1: 1, 0.5: 0.5, ".inf": 1.5}[capacity])


def test_theta_of_a_demand_that_is_not_scaled_is_a_factor_of_it(tmp_path, capsys):
    """Host 1 receives 60 over a channel of 300, so all demands grow by 5; it is no traffic of a host, which is 300."""
    (tmp_path / "c.yaml").write_text(
        "experiment: ceilings\ntopology: {kind: torus, dims: [4], capacity: 1000, host_capacity: 300}\n"
        'traffic: {kind: matrix, text: "src,dst,demand\\n0,1,10\\n3,1,50\\n", normalise: none}\nceilings: [mcf]\n'
    )
    for scaled, unit, value in (("none", "theta", 5), ("hose", "flits/tick/host", 300)):
        assert main(["ceilings", str(tmp_path / "c.yaml"), "--json", "--set", f"traffic.normalise={scaled}"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["unit"], row["upper"]) == (unit, pytest.approx(value))


FAST_HOSTS = """
topology:
  {kind: file, format: edgelist, directed: false, hosts: [2, 2, 1], host_capacity: 4, text: "0 1 1\\n1 2 2\\n0 2 1\\n"}
routing: {kind: minimal}
switching: {mode: ideal}
traffic: {kind: uniform, packet_flits: 2}
loads: [0.6, 1.0]
measure: {warmup: 100, ticks: 200, ci: null}
ceilings: [{kind: total, method: exact}]
"""


def test_a_total_is_at_the_load_that_a_run_has(tmp_path, capsys):
    """Five hosts of rate 4 at loads .6 and 1 offer 2.4 and 4 each; a run has ticks of a quarter, in which a host sends
    one flit at load 1. The totals are those of a linear program written for the purpose.
    """
    (tmp_path / "hosts.yaml").write_text(FAST_HOSTS)
    assert main(["ceilings", str(tmp_path / "hosts.yaml"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["load"] for row in rows] == pytest.approx([2.4, 4.0])
    assert [row["upper"] for row in rows] == pytest.approx([1.76, 2.4])
    report = run(read(tmp_path / "hosts.yaml"), tmp_path / "out")
    assert [row["load"] for row in report.ceilings] == [0.6, 1.0]
    assert [row["upper"] for row in report.ceilings] == pytest.approx([0.44, 0.6])
