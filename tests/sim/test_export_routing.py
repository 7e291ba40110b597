# SPDX-License-Identifier: Apache-2.0
"""``simrun export-routing``: what is written loads channels as what is simulated."""

import csv
import json
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import yaml

from flitlab.fluid.problem import Problem
from flitlab.fluid.split import split_use
from flitlab.fluid.weights import routes_for
from flitlab.models.arrays import sums
from flitlab.models.registry import make
from flitlab.models.routing.slack import slack_table
from flitlab.models.topology.distances import distances
from flitlab.sim.api import Experiment
from flitlab.sim.cli import main
from tests.scenarios import build

STUDY = {
    "schema": 1, "topology": {"kind": "random_digraph", "n": 12, "degree": 3, "hosts_per_switch": 2, "seed": 1},
    "routing": {"kind": "optimal"}, "traffic": {"kind": "longest_matching", "packet_flits": 4},
    "switching": {"mode": "vct", "vcs": 8, "buffer_flits": 16}, "loads": [0.1], "seeds": [1],
    "measure": {"warmup": 100, "ticks": 200, "ci": None}, "ceilings": ["split"],
}  # fmt: skip


def slack_load(topology, table, demand):
    """The load of every channel if packets draw a slack at their source, and a next hop at every switch."""
    n, steps = topology.switches, distances(topology)
    load = np.zeros(topology.channels)
    levels = int(table.slack.max(initial=0)) + 1
    carried = np.zeros((n, n, levels))
    np.add.at(
        carried, (table.first_target, table.first_source, table.first_slack),
        table.first_weight * demand[table.first_source, table.first_target],
    )  # fmt: skip
    budget = table.slack + steps[table.switch, table.target]
    for left in range(int(budget.max(initial=0)), 0, -1):
        now = np.flatnonzero(budget == left)
        target, channel = table.target[now], table.channel[now]
        flow = carried[target, table.switch[now], table.slack[now]] * table.weight[now]
        load += sums(channel, flow, topology.channels)
        there = topology.dst[channel]
        slack = left - 1 - steps[there, target].astype(np.int64)
        moving = there != target
        np.add.at(carried, (target[moving], there[moving], slack[moving]), flow[moving])
    return load


@pytest.mark.parametrize("routing", [{"kind": "optimal"}, {"kind": "ksp", "k": 4}, {"kind": "allpath", "hops": 4}])
@pytest.mark.parametrize("traffic", [{"kind": "uniform"}, {"kind": "longest_matching"}])
def test_weighted_next_hops_load_channels_as_the_paths(routing, traffic):
    topology = build("rrg", n=14, degree=4, hosts=2, seed=3)
    demand = make("traffic", **traffic).build(topology)
    routes = routes_for(make("routing", **routing), topology, demand)
    table = slack_table(topology, routes.paths, demand.switch_demand)
    paths = split_use(Problem.of(topology, demand, routes), topology, demand) * topology.capacity
    assert np.abs(slack_load(topology, table, demand.switch_demand) - paths).max() < 1e-12
    assert table.slack.max() > 0 <= table.slack.min()
    state = (table.target * 14 + table.switch) * 99 + table.slack
    assert np.allclose(np.bincount(state, table.weight)[np.unique(state)], 1)


@pytest.fixture
def export(tmp_path):
    def call(**changes):
        file = tmp_path / "study.yaml"
        file.write_text(yaml.safe_dump(STUDY | changes))
        return main(["export-routing", str(file), "--out", str(tmp_path / "out")]), tmp_path / "out"

    return call


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_tables_say_what_is_loaded(export):
    code, out = export()
    assert code == 0
    case = Experiment.load(STUDY).study.cases[0]
    topology, demand = case.topology, case.instance.traffic.switch_demand
    load, weight = np.zeros((12, 12)), {}
    for row in rows_of(out / "paths.csv"):
        way, ends = [int(v) for v in row["path"].split("-")], (int(row["source"]), int(row["target"]))
        assert (way[0], way[-1]) == ends and len(row["vcs"].split()) == len(way) - 1
        weight[ends] = weight.get(ends, 0) + float(row["weight"])
        for v, w in pairwise(way):
            load[v, w] += float(row["weight"]) * demand[ends]
    assert len(weight) == 12 * 11 and all(abs(one - 1) < 1e-9 for one in weight.values())
    assert 1 / load.max() == pytest.approx(case.routes.notes["theta"], rel=1e-9)
    again = np.zeros((12, 12))
    carried = {}
    for row in rows_of(out / "slacks.csv"):
        ends = int(row["source"]), int(row["target"])
        state = (ends[1], ends[0], int(row["slack"]))
        carried[state] = carried.get(state, 0) + float(row["weight"]) * demand[ends]
    hops = {}
    for row in rows_of(out / "next_hops.csv"):
        state = int(row["target"]), int(row["switch"]), int(row["slack"])
        hops.setdefault(state, []).append((int(row["next"]), float(row["weight"])))
    far = make_distances(topology)
    while carried:
        (target, switch, slack), flow = carried.popitem()
        for there, part in hops[target, switch, slack]:
            again[switch, there] += flow * part
            if there != target:
                state = (target, there, slack + far[switch, target] - 1 - far[there, target])
                carried[state] = carried.get(state, 0) + flow * part
    assert np.abs(again - load).max() < 1e-12
    described = json.loads((out / "routing.json").read_text())
    assert described["certificate"].startswith("rising") and described["notes"]["theta"] == case.routes.notes["theta"]


def make_distances(topology):
    from flitlab.models.topology.distances import distances

    return distances(topology).astype(int)


def test_next_hops_of_equal_weight_and_what_has_none(export, capsys, tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("routing.json", "paths.csv", "slacks.csv"):  # of a routing of paths, exported here before
        (tmp_path / "out" / name).write_text("")
    code, out = export(routing={"kind": "minimal"})
    assert code == 0 and {path.name for path in out.iterdir()} == {"next_hops.csv", "routing.json"}
    of = {}
    for row in rows_of(out / "next_hops.csv"):
        of.setdefault((row["target"], row["switch"]), []).append(float(row["weight"]))
    assert len(of) == 12 * 11 and all(sum(weights) == pytest.approx(1) for weights in of.values())
    for routing, text in (({"kind": "minimal", "select": "adaptive"}, "queues"), ({"kind": "deflection"}, "any free")):
        assert export(routing=routing)[0] == 2
        assert text in capsys.readouterr().err
    assert export(routing={"sweep": [{"kind": "minimal"}, {"kind": "optimal"}]})[0] == 2
    assert "choose one by --scenario LABEL" in capsys.readouterr().err
    (tmp_path / "out" / "routing.json").unlink()
    assert export()[0] == 2
    assert "not a folder of this command" in capsys.readouterr().err


def test_weighted_next_hops_are_written_as_they_are_drawn(export, monkeypatch, capsys):
    monkeypatch.setattr("flitlab.models.routing.optimal.MAX_LISTED_PATHS", 0)
    monkeypatch.setattr("flitlab.fluid.weights.NEAR_OPTIMAL", 9)
    uniform = {"kind": "uniform", "packet_flits": 4}
    code, out = export(traffic=uniform)
    assert code == 0 and {path.name for path in out.iterdir()} == {"next_hops.csv", "routing.json"}
    case = Experiment.load(STUDY | {"traffic": uniform}).study.cases[0]
    of, far = {}, make_distances(case.topology)
    for row in rows_of(out / "next_hops.csv"):
        of.setdefault((int(row["target"]), int(row["switch"])), []).append((int(row["next"]), float(row["weight"])))
    assert all(sum(weight for _, weight in hops) == 1 for hops in of.values())
    load, demand = np.zeros((12, 12)), case.instance.traffic.switch_demand
    for t in range(12):
        carried = demand[:, t].copy()
        for v in sorted(set(range(12)) - {t}, key=lambda v: -far[v, t]):
            for there, weight in of[t, v]:
                load[v, there] += carried[v] * weight
                carried[there] += carried[v] * weight
    assert min(1 / load.max(), 1) == pytest.approx(case.routes.notes["theta"], rel=1e-9)
    assert export(traffic=uniform, routing={"kind": "optimal", "select": "adaptive"})[0] == 2
    assert "routing.select = adaptive: adaptive needs whole paths" in capsys.readouterr().err


@pytest.mark.parametrize("routed", ["source", "hops"])
def test_tables_of_subnets_are_those_of_one_and_can_be_read_again(export, tmp_path, routed):
    """A ring of three switches, one way round: each pair has one path, and each next hop is the next switch."""
    ring = {"kind": "file", "format": "edgelist", "directed": True, "text": "0 1\n1 2\n2 0\n", "hosts_per_switch": 1}
    switching = {"mode": "vct", "vcs": 2, "buffer_flits": 16, "subnets": 2}
    study = {"topology": ring, "switching": switching, "traffic": {"kind": "uniform", "packet_flits": 4}}
    routing = {"kind": "ecmp", "ways": 1, "routed": "source"} if routed == "source" else {"kind": "minimal"}
    code, out = export(**study, routing=routing)
    assert code == 0 and json.loads((out / "routing.json").read_text())["switches"] == 3
    hops = rows_of(out / "next_hops.csv")
    if routed == "source":
        paths = rows_of(out / "paths.csv")
        assert [row["path"] for row in paths] == ["0-1", "0-1-2", "1-2-0", "1-2", "2-0", "2-0-1"]
        assert [row["vcs"] for row in paths] == ["0..1", "0 1", "0 1", "0..1", "0..1", "0 1"]
    else:
        assert {(row["switch"], row["next"]) for row in hops} == {("0", "1"), ("1", "2"), ("2", "0")}
        assert len(hops) == 6
    file = tmp_path / ("paths.csv" if routed == "source" else "next_hops.csv")
    file.write_bytes((out / file.name).read_bytes())
    before = (out / file.name).read_text()
    code, out = export(**study, routing={"kind": "table", "path": str(file)})
    assert code == 0 and (out / file.name).read_text() == before


def test_layers_of_a_multistage_network_lead_to_where_hosts_eject(export):
    code, out = export(
        topology={"kind": "butterfly", "k": 2, "n": 2}, traffic={"kind": "uniform", "packet_flits": 4},
        routing={"kind": "minimal", "vc_policy": "layered"}, switching={"mode": "vct", "vcs": 2, "buffer_flits": 16},
    )  # fmt: skip
    rows = rows_of(out / "layers.csv")
    assert code == 0 and [(row["source"], row["target"]) for row in rows] == [(s, t) for s in "01" for t in "23"]


@pytest.mark.parametrize(("routing", "vcs"), [("minimal", 2), ("valiant", 5)])
def test_layers_of_next_hops_have_no_cycle(export, routing, vcs):
    """Oracle: a dependency graph of (channel, VC) from the tables alone, each VC of a pair, or leg, with each."""
    code, out = export(
        topology={"kind": "torus", "dims": [3, 3]}, traffic={"kind": "uniform", "packet_flits": 4},
        routing={"kind": routing, "vc_policy": "layered"}, switching={"mode": "vct", "vcs": vcs, "buffer_flits": 16},
    )  # fmt: skip
    assert code == 0 and {path.name for path in out.iterdir()} == {"layers.csv", "next_hops.csv", "routing.json"}
    following = {}
    for row in rows_of(out / "next_hops.csv"):
        following.setdefault((row["target"], row["switch"]), []).append(row["next"])
    layers = rows_of(out / "layers.csv")
    legs = {"minimal": [""], "valiant": ["1", "2"]}[routing]
    assert [(row["source"], row["target"], row["leg"]) for row in layers] == [
        (str(s), str(t), leg) for s in range(9) for t in range(9) if s != t for leg in legs
    ]
    graph, plain = nx.DiGraph(), nx.DiGraph()
    ends_before = dict.fromkeys(legs, -1)
    for row in layers:
        first, _, last = row["vcs"].partition("..")
        allowed = range(int(first), int(last or first) + 1)
        ends_before[row["leg"]] = max(ends_before[row["leg"]], allowed[-1])
        reached = [row["source"]]
        for switch in reached:
            for there in following.get((row["target"], switch), []):
                plain.add_edges_from(((switch, there), (there, on)) for on in following.get((row["target"], there), []))
                graph.add_edges_from(
                    ((switch, there, vc), (there, on, other))
                    for on in following.get((row["target"], there), []) for vc in allowed for other in allowed
                )  # fmt: skip
                reached += [] if there in reached else [there]
    assert nx.is_directed_acyclic_graph(graph) and not nx.is_directed_acyclic_graph(plain)
    if routing == "valiant":  # legs have VCs of their own, so that nothing leads back from the second
        assert ends_before["1"] < min(int(row["vcs"].split("..")[0]) for row in layers if row["leg"] == "2")
