# SPDX-License-Identifier: Apache-2.0
"""``simrun new``, ``check`` and ``quick``: starters, what a run will cost, and a moment of every scenario."""

import csv
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec, kinds
from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.sim.cli import main
from flitlab.sim.cli.new import STARTERS
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment import estimate
from flitlab.sim.experiment import prices as calibration
from flitlab.sim.experiment.estimate import Cost, cost, memory, wall
from flitlab.sim.experiment.prices import Prices, load_of
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after

CONFIG = """\
name: tiny
topology: {kind: imase, n: 8, degree: 3, hosts_per_switch: 2}
routing: {sweep: [{kind: minimal}, {kind: deflection}]}
switching: {vcs: 4, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 3}
loads: [0.1, 0.3]
seeds: [1, 2]
measure: {warmup: 100, ticks: 300, ci: null}
ceilings: [mcf, split, bounds]
"""

HOP = {"point": 0.01, "pairs": 0.0, "idle": 0.0, "hop": [1e-6] * 4, "growth": 0.0, "size": 40}
"""Prices of a machine that takes 10 ms for a point and a microsecond for a hop."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def prices(folder, monkeypatch):
    """Known prices, in a cache of their own."""
    monkeypatch.setattr(calibration, "cache_folder", lambda: folder / "cache" / "numba")
    known = Prices(lambda text: None)
    known._known = {name: HOP for name in ("compiled vct, shared inputs", "compiled vct", "compiled deflection",
                                           "reference vct, shared inputs", "reference deflection")}  # fmt: skip
    known._known |= {f"ceiling {kind}": 0.5 for kind, spec in kinds().items() if spec.growth}
    known.file.parent.mkdir(parents=True)
    known.file.write_text(json.dumps(known._known))
    return known


def study(text=CONFIG, sets=()):
    return read("c.yaml", sets, text=text)


# ---- what a run will cost


def test_the_cost_of_a_point_is_that_of_its_hops(prices):
    case = study(sets=["loads=[0.1]", "seeds=[1]"]).cases[0]
    hops = 16 * 0.1 / 3 * (calibration.mean_hops(case.topology) + 1)
    found = cost(case, "compiled", prices)
    assert found.points == 1
    assert found.seconds == found.longest == pytest.approx(0.01 + 400 * hops * 1e-6)
    assert cost(replace(case, seeds=[1, 2, 3]), "compiled", prices).seconds == pytest.approx(3 * found.seconds)
    assert cost(case, "both", prices).seconds == pytest.approx(2 * found.seconds)


def test_what_channels_cannot_carry_costs_nothing_more(prices):
    case = study(sets=["topology.hosts_per_switch=8"]).cases[0]
    assert load_of(case, 0.1).hops < load_of(case, 0.8).hops == load_of(case, 1.0).hops
    assert load_of(case, 1.0).fill == calibration.FULLEST


def test_loads_that_are_found_are_counted_about(prices):
    search = study(sets=["loads={saturation: {tolerance: 0.01}}"]).cases[0]
    assert cost(search, "compiled", prices).points == 2 * 9
    curve = study(sets=["loads={at: [0.1], adaptive: {points: 7}}"]).cases[0]
    assert cost(curve, "compiled", prices).points == 2 * 7


def test_ceilings_grow_with_their_size_and_some_are_not_known(prices):
    small, large = (
        study(sets=[f"topology.n={n}", "switching.vcs=8", "ceilings=[mcf, cuts]"]).cases[0] for n in (8, 64)
    )
    of_small, of_large = (cost(case, "compiled", prices).ceilings for case in (small, large))
    assert of_small["mcf"] < of_large["mcf"] / 20 and of_small["cuts"] is None


def test_wall_time_is_at_least_that_of_the_longest_point(prices):
    costs = [cost(case, "compiled", prices) for case in study().cases]
    total = sum(one.seconds for one in costs)
    assert wall(costs, 1) == pytest.approx(total)
    assert wall(costs, 1000) == pytest.approx(max(one.longest for one in costs) + estimate.START_SECONDS)


def test_threads_shorten_what_they_can_share():
    shared, alone = (Cost(3, 30.0, 12.0, {}, shared=several) for several in (True, False))
    assert wall([shared], 1, 2) == pytest.approx(30 / 1.8) and wall([alone], 1, 2) == 30
    assert wall([shared, alone], 1, 3) == pytest.approx(30 / 2.6 + 30)
    assert wall([alone, shared], 100, 3) == 12 + estimate.START_SECONDS


def test_memory_is_that_of_the_largest_scenario(prices):
    small, large = study(), study(sets=["topology.n={sweep: [8, 400]}", "switching.vcs=10"])
    assert memory(large.cases) > memory(small.cases) + 5e6
    assert memory(study("experiment: metrics\ntopology: {kind: hypercube, dim: 3}").cases) == estimate.COMPILED_BYTES


@pytest.mark.long
def test_memory_is_about_that_which_a_run_allocates(prices):
    """Of arrays, on top of the process: routes, the state, and what is counted."""
    network = "topology={kind: rrg, n: 300, degree: 6, hosts_per_switch: 2}"
    case = study(sets=[network, "routing={kind: minimal}", "switching.vcs=6"]).cases[0]
    scenario, how = case.scenario, Measure(100, 300, None)
    measure("compiled", scenario, 0.3, 1, how)  # kernels are loaded
    tracemalloc.start()
    routes = make("routing", kind="minimal").build(scenario.topology)
    measure("compiled", scenario, 0.3, 1, how)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert routes.content_hash == scenario.routes.content_hash
    assert taken / 1.5 < memory([case]) - estimate.COMPILED_BYTES < taken * 1.5


@pytest.mark.long
def test_a_machine_is_calibrated_once(folder, monkeypatch):
    monkeypatch.setattr(calibration, "cache_folder", lambda: folder / "cache" / "numba")
    told = []
    scenario = study(sets=["routing={kind: minimal}"]).cases[0].scenario
    found = Prices(told.append).of("reference", scenario)
    assert found["point"] > 0 and len(found["hop"]) == len(calibration.PRICED) and max(found["hop"]) > 0
    assert told == ["calibrating: reference vct, shared inputs on this machine, once"]
    assert Prices(told.append).of("reference", scenario) == found and len(told) == 1
    file = Prices(told.append).file
    file.write_text("{")
    assert Prices(told.append).of_ceiling("bounds") > 0 and len(told) == 2


def test_check_says_what_a_run_costs(prices, capsys):
    Path("c.yaml").write_text(CONFIG)
    assert main(["check", "c.yaml", "--json", "--jobs", "4"]) == 0
    printed = json.loads(capsys.readouterr().out)
    total = printed["estimate"]
    assert (printed["points"], total["points"], total["jobs"]) == (8, 8, 4)
    assert total["cpu_s"] == pytest.approx(sum(one["estimate"]["cpu_s"] for one in printed["scenarios"]))
    assert total["cpu_s"] > 0.08
    assert total["memory_mb"] > 4 * 300 and total["ceilings_cpu_s"] > 0
    alone = [one["estimate"]["ceilings_cpu_s"] for one in printed["scenarios"]]
    assert alone[0].keys() == {"mcf", "split", "bounds"}
    shared = alone[1]["mcf"] + alone[1]["bounds"]  # which depend on no routing
    every = sum(seconds for one in alone for seconds in one.values() if seconds is not None)
    assert total["ceilings_cpu_s"] == pytest.approx(every - shared)
    assert main(["check", "c.yaml", "--set", "loads={saturation: {}}"]) == 0
    out = capsys.readouterr().out
    assert "s of CPU time for the points" in out and "about 18: the search for saturation, seeds 1, 2" in out


@pytest.mark.parametrize("experiment", ["metrics", "ceilings", "relative"])
def test_check_of_what_simulates_nothing(prices, capsys, experiment):
    Path("c.yaml").write_text(
        f"experiment: {experiment}\ntopology: {{kind: hypercube, dim: 3}}\ntraffic: {{kind: uniform}}"
    )
    assert main(["check", "c.yaml"]) == 0
    assert "0 points" in capsys.readouterr().out


# ---- a moment of every scenario


@pytest.mark.parametrize("mode", ["{mode: ideal}", "{mode: spray, nic_mbps: 100}"])
def test_quick_runs_the_loads_of_the_file_where_hosts_are_slow(folder, capsys, mode):
    sizes = ", sizes: {kind: fixed, bytes: 9000}" * ("spray" in mode)
    Path("c.yaml").write_text(
        "topology: {kind: mesh, dims: [2], hosts_per_switch: 2, host_capacity: 0.25}\nrouting: minimal\n"
        f"switching: {mode}\ntraffic: {{kind: uniform{sizes}}}\nloads: [0.4]\nceilings: []\n"
    )
    assert main(["quick", "c.yaml", "--engine", "reference", "--jobs", "1", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["scenarios"]
    assert line["load"] == "0.4"
    rate = 0.25 if "ideal" in mode else 1  # flits per tick, or parts of the rate of hosts
    assert float(line["accepted"]) == pytest.approx(0.4 * rate, rel=0.3)


def test_quick_runs_every_scenario_and_leaves_nothing(folder, capsys):
    Path("c.yaml").write_text(CONFIG)
    assert main(["quick", "c.yaml", "--engine", "reference", "--jobs", "1", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["scenarios"]
    assert [line["scenario"] for line in lines] == ["routing=minimal", "routing=deflection"]
    assert lines[0]["load"] == "0.1, 0.3" and lines[0]["ceilings"].startswith("split 0.")
    assert all(len(line["accepted"].split(", ")) == len(line["latency"].split(", ")) == 2 for line in lines)
    assert sorted(path.name for path in folder.iterdir()) == ["c.yaml"]


def test_quick_says_what_fails(folder, capsys, monkeypatch):
    from flitlab.sim.measure import measure as door

    def fails(*_):
        raise RuntimeError("no luck")

    Path("c.yaml").write_text(CONFIG)
    monkeypatch.setattr(door, "measure", fails)
    assert main(["quick", "c.yaml", "--jobs", "1"]) == 1
    assert "no luck" in capsys.readouterr().out


def test_quick_of_what_simulates_nothing(folder, capsys):
    Path("c.yaml").write_text(
        "experiment: metrics\ntopology: {kind: hypercube, dim: {sweep: [2, 3]}}\nmetrics: [bisection]"
    )
    assert main(["quick", "c.yaml", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.count("built") == 2
    assert main(["quick", "none.yaml"]) == 2


# ---- configurations to begin with


@pytest.mark.parametrize("kind", long_after(1, reversed(STARTERS)))
def test_every_starter_is_right_and_runs(folder, capsys, kind):
    assert main(["new", kind]) == 0
    text = Path(f"{kind}.yaml").read_text()
    assert text.startswith("#") and text.count("#") > 8
    cases = read(f"{kind}.yaml").cases
    assert cases and read(f"{kind}.yaml").name == kind
    assert main(["quick", f"{kind}.yaml", "--quick", "--jobs", "1", "--set", "seeds=[1]"]) == 0
    assert main(["new", kind]) == 2
    assert "exists already" in capsys.readouterr().err and Path(f"{kind}.yaml").read_text() == text


def test_a_starter_runs_to_the_end(folder):
    assert main(["new", "own_graph", "my net.yaml"]) == 0
    assert Path("my net_edges.txt").exists()
    assert main(["my net.yaml", "--quick", "--engine", "reference", "--jobs", "1", "--set", "measure.ticks=500",
                 "--set", "outputs={figures: [], html: false}"]) == 0  # fmt: skip
    with Path("runs/my net-quick/saturation.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["scenario"] == "my net" and row["ceiling"] == "mcf"


@pytest.mark.long
def test_names_that_yaml_would_read_as_something_else(folder):
    for name in ("1e3", "true", "a b"):
        assert main(["new", "sweep", f"{name}.yaml"]) == 0 and read(f"{name}.yaml", quick=True).name == f"{name}-quick"


def test_no_starter_half_written(folder, capsys):
    Path("a_edges.txt").write_text("mine")
    assert main(["new", "own_graph", "a.yaml"]) == 2
    assert not Path("a.yaml").exists() and Path("a_edges.txt").read_text() == "mine"
    assert main(["new", "main", "nowhere/a.yaml"]) == 2
    assert main(["new", "nothing"]) == 2
    assert "nowhere/a.yaml: No such file" in capsys.readouterr().err


def test_check_reads_no_table_for_its_hash(folder):
    """At 10,000 switches a table of next hops has 800 MB, and every routing that selects otherwise another hash."""
    Path("c.yaml").write_text(CONFIG.replace("{kind: minimal}", "{kind: minimal}, {kind: minimal, select: hash}"))
    for case in read("c.yaml").cases:
        assert case.certificate and "content_hash" not in vars(case.scenario.routes)


RRG = "topology: {kind: rrg, n: 8, degree: 3, seed: 1, hosts_per_switch: 2}\nseeds: [1]\nceilings: [split]\n"
UNIFORM = "traffic: {kind: uniform}\n"
OPTIMAL = "routing: {kind: optimal, hops: 3}\n"
MODES = {
    **{
        mode: RRG + OPTIMAL + UNIFORM + f"loads: [0.1]\nswitching: {{mode: {mode}}}\n"
        for mode in ("vct", "wormhole", "ideal")
    },
    "datagram": RRG + OPTIMAL + UNIFORM + "switching: {mode: datagram}\nmeasure: {seconds: 0.01}\n",
    "spray": RRG + OPTIMAL + "traffic: {kind: uniform, sizes: {kind: fixed, bytes: 9000}}\nloads: [0.1]\n"
    "switching: {mode: spray}\nmeasure: {seconds: 0.0001}\n",
    "flow": RRG.replace("[split]", "[]") + "switching: {mode: flow, flit_ns: 1}\n"
    "routing: {kind: optimal, hops: 3, for: {kind: uniform}}\nexperiment: application\n"
    "application: {kind: all_to_all, size_bytes: 64}\n",
    "ceilings": RRG + OPTIMAL + UNIFORM + "experiment: ceilings\n",
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_check_tells_in_every_mode_what_the_routing_promises(tmp_path, monkeypatch, capsys, mode):
    """The theta of finished tables is the split of the demand that they were made for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(MODES[mode])
    costs = [Cost(1, 1.0, 1.0, {"split": 1.0})]
    monkeypatch.setattr("flitlab.sim.cli.check._costs", lambda study: costs)
    assert main(["check", "c.yaml", "--json"]) == 0
    (scenario,) = json.loads(capsys.readouterr().out)["scenarios"]
    routing, (case,) = scenario["routing"], read("c.yaml").cases
    assert routing["kind"] == "optimal" and routing["hops_max"] <= 3
    assert (routing["vc_policy"] is None) is (mode in ("datagram", "spray", "ceilings"))
    uniform = make("traffic", kind="uniform").build(case.topology)
    (split,) = ceilings(Instance(case.topology, uniform, case.routes), [ceiling_spec("split")])
    assert split.upper < 1 and routing["theta"] == pytest.approx(split.upper, rel=1e-6)
    assert routing["theta_upper"] >= routing["theta"]
    assert main(["check", "c.yaml"]) == 0
    assert "  routing      optimal: " in capsys.readouterr().out


QUEUES = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
routing: ecmp
switching: {mode: spray, mtu_bytes: 4000, %s}
traffic: {kind: permutation, arrivals: together, sizes: {kind: fixed, bytes: 9000}}
ceilings: []
"""


def test_check_states_the_queues_of_spray_in_bytes(tmp_path, capsys):
    """20 packets of 4,000 bytes, marked from 4 packets on and all from 16; lossless queues have the buffers of pfc."""
    for keys, queues in (
        ("queue_packets: 20, ecn: [4, 16]", {"queue_bytes": [80_000, 80_000], "ecn_bytes": [16_000, 64_000]}),
        ("queue_packets: 20, queue: drop_tail", {"queue_bytes": [80_000, 80_000]}),
        ("queue: lossless", {}),
    ):
        (tmp_path / "q.yaml").write_text(QUEUES % keys)
        assert main(["check", str(tmp_path / "q.yaml"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["scenarios"][0]["queues"] == queues


def test_check_states_the_queues_of_small_flows_that_arrive(tmp_path, capsys):
    """At load 1 each host would open more than one flow in the time of a packet."""
    text = (QUEUES % "queue_packets: 20").replace("together", "poisson").replace("9000", "1000")
    (tmp_path / "q.yaml").write_text(text + "loads: [0.1, 0.2]\nmeasure: {seconds: 0.0001}\n")
    assert main(["check", str(tmp_path / "q.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scenarios"][0]["queues"]["queue_bytes"] == [80_000, 80_000]
