# SPDX-License-Identifier: Apache-2.0
"""Networks that are added to a row: their cases, what published values are of, and ``simrun reproduce --network``."""

import csv
import json
from pathlib import Path

import networkx as nx
import pytest

from flitlab.models.registry import make
from flitlab.models.topology.formats.topobench import write_topobench
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

ODD = "0   1\t2  3\n\n  1 2   3\n2 3\n3   4\n4 5   6\n5 6 0\n6\t1\n"
"""A network of seven switches and twelve links in topobench's format, with blanks and tabs as they come."""

LINKS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6), (0, 5), (1, 6)]

METRICS = """\
experiment: metrics
metrics: [cost]
topology: {hosts_per_switch: 2}
cases:
  - {label: cube, topology: {kind: hypercube, dim: {sweep: [2, 3]}}}
  - {label: random, topology: {kind: rrg, n: 8, degree: 3}}
outputs:
  html: false
  formats: [png]
  plots:
    - {y: aspl, x: switches, where: {case: [cube]}, name: cubes}
    - {y: aspl, x: topology.dim, where: {case: cube}, name: dims}
published:
  - {where: largest, over: max, quantity: switches, value: 8}
  - {where: cubes, scenario: {case: cube}, over: mean, quantity: switches, value: 6}
"""

RELATIVE = """\
experiment: relative
relative: {draws: 2}
ceilings: [mcf]
traffic: {kind: all_to_all}
topology: {kind: hypercube, dim: 3, host_capacity: .inf}
outputs: {html: false, formats: [png]}
published: [{where: cube, quantity: relative, value: 1, tolerance: 0.2}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with two rows and a network, as the current one."""
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()
    Path("rows/abc-f1.yaml").write_text(METRICS)
    Path("rows/abc-f2.yaml").write_text(RELATIVE)
    Path("odd.topobench").write_text(ODD)
    return tmp_path


def study(text, *networks):
    return read("rows/row.yaml", text=text, networks=networks or ("odd.topobench",))


def added(text, *networks):
    return {case.label: case for case in study(text, *networks).cases if not case.compared}


def reproduce(*words):
    return main(["reproduce", *words, "--configs", "rows", "--full", "--jobs", "1"])


def metrics(folder):
    with Path(folder, "metrics.csv").open() as file:
        return {row["scenario"]: row for row in csv.DictReader(file)}


def test_a_network_is_measured_as_the_others(capsys):
    assert reproduce("abc-f1", "--network", "odd.topobench") == 0
    rows = metrics("runs/abc-f1-odd")
    assert list(rows) == ["cube, dim=2", "cube, dim=3", "random", "odd"]
    graph = nx.Graph(LINKS)
    assert float(rows["odd"]["aspl"]) == pytest.approx(nx.average_shortest_path_length(graph))
    assert (rows["odd"]["links"], rows["odd"]["hosts"]) == ("12", "14")
    own = make("topology", kind="file", path="odd.topobench", hosts_per_switch=2).build()
    cost = make("metric", kind="cost").measure(own)["total"]
    assert float(rows["odd"]["cost_total"]) == pytest.approx(cost)
    out, err = capsys.readouterr()
    assert "max of 3" in out and "figures over topology.dim do not show the network" in err
    assert Path("runs/abc-f1-odd/figures/cubes.png").exists()
    assert not Path("runs/paper").exists(), "the record of the rows is another one"


def test_published_values_are_not_of_the_network_also_in_the_resolved_configuration(capsys):
    large = make("topology", kind="torus", dims=[5, 5]).build()
    write_topobench(large, Path("large.topobench"))
    assert reproduce("abc-f1", "--network", "large.topobench", "--out", "out") == 0
    published = json.loads(Path("out/abc-f1/manifest.json").read_text())["published"]
    assert [row["measured"] for row in published] == [8, 6]
    assert main(["out/abc-f1/config.resolved.yaml", "--out", "again", "--jobs", "1"]) == 0
    again = json.loads(Path("again/manifest.json").read_text())["published"]
    assert [(row["measured"], row["scenario"]) for row in again] == [
        (row["measured"], row["scenario"]) for row in published
    ]


def test_networks_of_two_formats_relative_to_random_graphs_of_their_equipment(capsys):
    Path("odd.txt").write_text("".join(f"{u} -- {v}\n" for u, v in LINKS))
    networks = "--network", "odd.topobench", "--network", "{path: odd.txt, label: edges}"
    assert reproduce("abc-f2", *networks, "--json") == 0
    (document,) = json.loads(capsys.readouterr().out)["rows"]
    (cube, odd, edges) = document["metrics"]
    assert [row["scenario"] for row in document["metrics"]] == ["abc-f2", "odd", "edges"]
    assert odd["theta"] == edges["theta"] and odd["relative"] == edges["relative"]
    # hosts do not limit the throughput, as in the row: the cut of 0 to 3 has three links for 4 * 3 demands of 1/6
    assert cube["theta"] > 1 and odd["theta"] == pytest.approx(1.5)
    assert document["published"][0]["measured"] == cube["relative"]


def test_settings_of_cases():
    own = (
        "experiment: ceilings\nceilings: [mcf]\ncases:\n"
        "  - {label: a, topology: {kind: torus, dims: [3, 3]}, traffic: {kind: all_to_all}}\n"
        "  - {label: b, topology: {kind: torus, dims: [4, 4]}, traffic: {kind: all_to_all}}\n"
        "  - {label: c, topology: {kind: torus, dims: [3, 3]}, traffic: {kind: permutation, seed: {sweep: [1, 2]}}}\n"
    )
    cases = added(own)
    assert list(cases) == ["odd as a", "odd as c, seed=1", "odd as c, seed=2"]
    assert cases["odd as c, seed=2"].instance.traffic.kind == "permutation"
    shared = own.replace("ceilings: [mcf]\n", "ceilings: [mcf]\ntraffic: {kind: all_to_all}\n")
    assert list(added(shared.replace(", traffic: {kind: all_to_all}}", "}"))) == ["odd"]


def test_common_keys_are_those_of_all_topologies():
    text = (
        "experiment: ceilings\nceilings: [mcf]\ntraffic: {kind: all_to_all}\ncases:\n"
        "  - {label: a, topology: {kind: torus, dims: [3, 3], host_capacity: .inf, capacity: 2, hosts_per_switch: 3}}\n"
        "  - {label: b, topology: {kind: rrg, n: 8, degree: 3, host_capacity: .inf, hosts_per_switch: 3}}\n"
    )
    (case,) = added(text).values()
    assert case.topology.host_capacity == float("inf") and set(case.topology.capacity) == {1}
    assert set(case.topology.host_count) == {3}
    # servers that the file places, and keys of the option, go first
    Path("servers.topobench_servers").write_text("0 1 1 2\n1 4 2\n2 0\n")
    networks = "servers.topobench_servers", "{path: odd.topobench, hosts_per_switch: 1, capacity: 5}"
    servers, own = added(text, *networks).values()
    assert servers.topology.host_count.tolist() == [1, 4, 0]
    assert set(own.topology.host_count) == {1} and set(own.topology.capacity) == {5}


def test_a_figure_over_the_number_of_switches_shows_the_network():
    text = (
        "experiment: metrics\ncases:\n"
        "  - {label: a, topology: {kind: rrg, n: {sweep: [8, 10]}, degree: 3}}\n"
        "  - {label: b, topology: {kind: rrg, n: {sweep: [8, 10]}, degree: 4}}\n"
        "outputs: {plots: [{y: aspl, x: topology.n, where: {case: a}, name: p}]}\n"
    )
    both = study(text, "odd.topobench", "{kind: torus, dims: [3, 3], label: t}")
    assert [case.keys for case in both.cases[-2:]] == [{"case": "odd", "topology.n": 7}, {"case": "t", "topology.n": 9}]
    assert both.outputs.plots[0].where == {"case": ["a", "odd", "t"]}
    # n of a fat tree is none of switches
    other = text.replace("rrg, n: {sweep: [8, 10]}, degree: 4", "dcell, n: 4, k: 1")
    assert study(other).cases[-1].keys == {"case": "odd"}


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("none.txt", "none.txt: No such file or directory"),
        ("{path: odd.topobench, label: cube}", "--network: label = cube: is the label of a case"),
        ("{kind: torsu}", "unknown topology"),
        ("{path: ", "--network: YAML syntax"),
        ("{path: odd.topobench, dim: 3}", "dim"),
        (" ", "--network: must be a file"),
    ],
)
def test_what_is_no_network(network, message, capsys):
    assert reproduce("abc-f1", "--network", network, "--out", "out") == 2
    err = capsys.readouterr().err
    assert err.startswith("abc-f1: a network does not fit this row:\n") and message in err
    assert not Path("out").exists()


def test_a_row_that_no_other_network_fits_does_not_stop_the_others(capsys):
    Path("rows/abc-f0.yaml").write_text(
        "topology: {kind: hypercube, dim: 3}\ntraffic: {kind: transpose}\nexperiment: ceilings\nceilings: [mcf]\n"
    )
    assert reproduce("abc-f0", "abc-f1", "--network", "odd.topobench", "--out", "out") == 2
    assert "transpose: needs a power-of-two number of hosts; the topology has 7" in capsys.readouterr().err
    assert [path.name for path in Path("out").iterdir()] == ["abc-f1"]


def test_rows_have_to_be_named(capsys):
    assert reproduce("--network", "odd.topobench") == 2
    assert capsys.readouterr().err == "simrun reproduce: --network: say which rows, such as mut-f05\n"


def test_compared_is_a_key_of_cases():
    text = METRICS.replace("degree: 3}}", "degree: 3}, compared: false}")
    assert [case.compared for case in study(text).cases] == [True, True, False, False]
    with pytest.raises(ConfigError, match=r"cases\[1\].compared = 3: must be true or false"):
        study(text.replace("compared: false", "compared: 3"))
    with pytest.raises(ConfigError, match="names no scenario"):
        study(text.replace("scenario: {case: cube}", "scenario: {case: random}"))
