# SPDX-License-Identifier: Apache-2.0
"""Labels of switches and hosts wherever their numbers may stand, and in all that a command prints and writes."""

import csv
import json
import re
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import yaml

from flitlab import Experiment
from flitlab.models.topology.names import split_path
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from tests import long_after

SWITCHES = ["Zürich", "New York", "c0-0c0s1", "9", "$x_1"]
HOSTS = ["Zürich/0", "Zürich/1", "c0-0c0s1", "9", "$x_1"]
COUNTS = [2, 0, 1, 1, 1]
LINKS = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3), (1, 4), (4, 2)]

NET = "graph [ {} {} ]".format(
    " ".join(f'node [ id {v} label "{label}" hosts {COUNTS[v]} ]' for v, label in enumerate(SWITCHES)),
    " ".join(f"edge [ source {u} target {v} ]" for u, v in LINKS),
)

BASE = {
    "topology": {"kind": "file", "path": "net.gml"}, "routing": {"kind": "minimal"}, "switching": {"vcs": 4},
    "traffic": {"kind": "uniform", "packet_flits": 2}, "loads": [0.1], "engine": "reference",
    "measure": {"warmup": 20, "ticks": 60, "ci": None}, "ceilings": [],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the network, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.gml").write_text(NET, "utf-8")
    return tmp_path


def written(folder, changes):
    """A configuration with changes by section, as a file; of another mode or duration a section is replaced."""
    config = dict(BASE)
    for key, value in changes.items():
        alone = not isinstance(value, dict) or {"mode", "seconds"} & value.keys()
        config[key] = value if alone else {**(BASE.get(key) or {}), **value}
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "c.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
    return folder / "c.yaml"


def hashes(case):
    """What a scenario depends on, without what names are printed of."""
    instance = case.instance
    topology = instance.topology
    parts = [topology.src, topology.dst, topology.capacity, topology.reverse, topology.host_switch]
    timeline = case.timeline
    epochs = [] if timeline is None else timeline.epochs
    events = [(epoch.tick, epoch.rate.tolist(), epoch.links.tolist(), epoch.switches.tolist()) for epoch in epochs]
    demand = [part.tolist() for part in instance.traffic.pairs()]
    return [part.tolist() for part in parts], demand, events, instance.routes.ports.tolist()


def pairs(*entries):
    """A table of demands."""
    return "src,dst,demand\n" + "".join(f'"{source}","{target}",{amount}\n' for source, target, amount in entries)


PLACES = {
    "hotspot": lambda s, h: {"traffic": {"kind": "hotspot", "hosts": [h[2], h[1]]}},
    "incast": lambda s, h: {"traffic": {"kind": "incast", "senders": 2, "receiver": h[3]}},
    "matrix": lambda s, h: {"traffic": {"kind": "matrix", "text": pairs((h[0], h[3], 2), (h[4], h[1], 1))}},
    "background": lambda s, h: {
        "traffic": {"kind": "hotspot", "hosts": [h[2]], "background": {"kind": "hotspot", "hosts": [h[4]], "load": 0.1}}
    },
    "hosts": lambda s, h: {"topology": {"hosts": {s[0]: 1, s[4]: 2}}},
    "capacity_of": lambda s, h: {
        "topology": {"capacity_of": {"links": [[s[0], s[1]], [s[4], s[2]]], "factor": 0.5}},
        "switching": {"mode": "datagram"}, "transport": {"kind": "none"}, "loads": None, "measure": {"seconds": 1},
    },
    "failed links": lambda s, h: {"topology": {"failures": {"links": [[s[3], s[0]], [s[1], s[4]]]}}},
    "failed switches": lambda s, h: {"topology": {"failures": {"switches": [s[1]]}}},
    "roots": lambda s, h: {"routing": {"kind": "updown", "roots": [s[3], s[1]]}},
    "timeline": lambda s, h: {
        "timeline": [
            {"at_tick": 10, "fail": {"links": [[s[1], s[3]]], "switches": []}},
            {"at_tick": 20, "fail": {"switches": [s[1]]}},
            {"at_tick": 40, "restore": {"switches": [s[1]], "links": [[s[3], s[1]]]}},
        ]
    },
}  # fmt: skip
"""Where names stand: changes of the configuration, from the names of switches and of hosts."""


@pytest.mark.parametrize("place", PLACES)
def test_a_label_may_stand_where_a_number_may(folder, place):
    numbers = [list(range(5)), list(range(5))]
    if place.startswith("matrix"):
        numbers = [list(map(str, part)) for part in numbers]
    (by_label,) = read(written(folder, PLACES[place](SWITCHES, HOSTS))).cases
    (by_number,) = read(written(folder, PLACES[place](*numbers))).cases
    assert hashes(by_label) == hashes(by_number)


def test_traces_and_placements_name_hosts(folder):
    (folder / "t.csv").write_text(
        "tick,src,dst\n" + "".join(f"{i},{host},{HOSTS[0]}\n" for i, host in enumerate(HOSTS[1:])), "utf-8"
    )
    (case,) = read(written(folder, {"traffic": {"kind": "trace", "path": "t.csv"}})).cases
    assert case.instance.traffic.recorded.source.tolist() == [1, 2, 3, 4]
    (folder / "p.csv").write_text("host,rank\n" + f"{HOSTS[3]},1\n{HOSTS[0]},0\n", "utf-8")
    program = {
        "experiment": "application",
        "switching": {"vcs": 4, "flit_ns": 1},
        "application": {"kind": "ping_pong", "ranks": 2},
        "placement": {"kind": "file", "path": "p.csv"},
        "loads": None,
        "traffic": None,
    }
    (case,) = read(written(folder, program)).cases
    assert case.workload.host.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("traffic.hosts", ["New York"], r"[0] = New York: 'New York' is a switch, which has no hosts"),
        ("traffic.hosts", [0, "Zürich"], "[1] = Zürich: 'Zürich' is a switch, whose 2 hosts are Zürich/0 to Zürich/1"),
        ("traffic.hosts", [7], "[0] = 7: '7' is no host: labels are Zürich/0, Zürich/1, c0-0c0s1, 9, $x_1, and hosts"),
        ("topology.hosts", {"Züri": 1}, ": 'Züri' is no switch: labels are"),
        ("topology.hosts", {"Züri": 1}, "did you mean 'Zürich'"),
        ("topology.hosts", {"Zürich": 1, "0": 2}, ": names a switch twice: '0' and 'Zürich'"),
        ("topology.failures.switches", ["NewYork"], "[0] = NewYork: 'NewYork' is no switch"),
        ("topology.failures.switches", [True], " = [true]: must be a list of switches, a share below 1, or a whole"),
        ("topology.failures.links", [["Zürich"]], ": must be a list of pairs of switches"),
        (
            "topology.failures.links", [["Zürich", "$x_1"]],
            "[0] = [Zürich, $x_1]: names no link: switch Zürich has none to switch $x_1; it has some",
        ),
        ("topology.capacity_of", {"links": [["a", 1]], "factor": 0.5}, ".links[0] = [a, 1]: names no link: 'a' is"),
        ("routing.roots", ["x"], "[0] = x: 'x' is no switch"),
        ("timeline", [{"at_tick": 5, "fail": {"switches": ["x"]}}], "[0].fail.switches[0] = x: 'x' is no switch"),
        ("timeline", [{"at_tick": 5, "fail": {"switches": ["9"]}}], "[0].fail.switches[0] = '9': has hosts"),
        ("timeline", [{"at_tick": 5, "fail": {"links": [["9", "x"]]}}], "[0].fail.links[0] = ['9', x]: names no link"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused_at_their_line(folder, place, value, said):
    kinds = {"traffic": {"kind": "hotspot"}, "topology": BASE["topology"], "routing": {"kind": "updown"}}
    section, *keys = place.split(".")
    for key in reversed(keys):
        value = {key: value}
    with pytest.raises(ConfigError) as error:
        read(written(folder, {section: {**kinds[section], **value} if keys else value}))
    (mistake,) = error.value.errors
    assert re.match(r".*c.yaml:\d+: ", str(mistake)) and f" {place}" in str(mistake) and said in str(mistake)


def test_networks_that_differ_in_labels_alone_are_not_taken_for_each_other(folder):
    (folder / "other.gml").write_text(
        NET.replace('"9"', '"-"').replace('"$x_1"', '"9"').replace('"-"', '"$x_1"'), "utf-8"
    )
    topology = {"kind": "file", "path": {"sweep": ["net.gml", "other.gml"]}}
    traffic = {"kind": "matrix", "text": "src,dst,demand\n9,c0-0c0s1,1\n"}
    cases = read(written(folder, {"topology": topology, "traffic": traffic})).cases
    assert [case.instance.traffic.pairs()[0].tolist() for case in cases] == [[3], [4]]


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_exported_routings_have_labels(folder):
    written(folder, {"routing": {"kind": "ksp", "k": 2}})
    assert main(["export-routing", "c.yaml", "--out", "out"]) == 0
    paths, ends = rows("out/paths.csv"), {(SWITCHES[u], SWITCHES[v]) for u, v in LINKS}
    assert {row["source"] for row in paths} == set(SWITCHES) - {"New York"}
    for row in paths:
        way = split_path(row["path"])
        assert way[0] == row["source"] and way[-1] == row["target"]
        assert all({pair, pair[::-1]} & ends for pair in pairwise(way))
    hops = rows("out/next_hops.csv")
    assert {row["next"] for row in hops} | {row["switch"] for row in hops} == set(SWITCHES)
    assert {row["source"] for row in rows("out/slacks.csv")} == {row["source"] for row in paths}


@pytest.mark.long
def test_budgets_and_ceilings_have_labels(folder, capsys):
    one_way = "graph [ directed 1 {} {} ]".format(
        " ".join(f'node [ id {v} label "{label}" ]' for v, label in enumerate(SWITCHES)),
        " ".join(f"edge [ source {v} target {(v + 1) % 5} ]" for v in range(5)),
    )
    (folder / "net.gml").write_text(one_way, "utf-8")
    changes = {"ceilings": ["mcf", "worst_case"], "budget": {"tolerance": 0.2, "sensitivities": []}}
    written(folder, changes)
    assert main(["ceilings", "c.yaml", "--json", "--jobs", "1"]) == 0
    notes = {row["ceiling"]: row["note"] for row in json.loads(capsys.readouterr().out)}
    (u, v) = re.search("the channel from switch (.+) to switch (.+) is full first", notes["worst_case"]).groups()
    assert (SWITCHES.index(v) - SWITCHES.index(u)) % 5 == 1
    assert main(["ceilings", "c.yaml", "--save", "proof", "--jobs", "1"]) == 0
    (saved,) = (folder / "proof").glob("**/*worst_case*.csv")
    assert {row[end] for row in rows(saved) for end in ("src", "dst")} <= set(SWITCHES)
    assert main(["budget", "c.yaml", "--out", "b", "--jobs", "1"]) == 0
    found = rows("b/budget_channels.csv")
    assert {row["from"] for row in found} == {row["to"] for row in found} == set(SWITCHES)
    assert re.search("5 channels limit every routing.*c0-0c0s1 -> 9 20.0%", capsys.readouterr().out)


def test_witnesses_have_labels(folder, capsys):
    claim = "topology: {kind: file, path: net.gml, failures: {links: [[Zürich, '9'], [New York, '9']]}}\n"
    claim += "traffic: {kind: matrix, level: switch, text: 'Zürich $x_1 1'}\nreported: [{load: 1.9}]\n"
    (folder / "claim.yaml").write_text(claim.replace("'Zürich $x_1 1'", '"src dst demand\\nZürich $x_1 1"'), "utf-8")
    assert main(["judge", "claim.yaml", "--json"]) == 3
    witness = json.loads(capsys.readouterr().out)["witness"]
    assert {end for channel in witness.get("channels", []) for end in channel[:2]} <= set(SWITCHES)
    assert witness.get("host") in (None, *HOSTS)
    assert any(name in witness["statement"] for name in (*SWITCHES, *HOSTS))


def test_tables_of_flows_and_events_have_labels(folder):
    written(folder, {
        "switching": {"mode": "datagram"}, "transport": {"kind": "none", "start_ms": 0}, "loads": None,
        "traffic": {"kind": "hotspot", "hosts": ["c0-0c0s1"], "fraction": 1}, "routing": {"kind": "ecmp"},
        "measure": {"seconds": 0.1}, "outputs": {"html": False, "figures": []},
        "timeline": [{"at_us": 50000, "fail": {"switches": ["New York"]}}],
    })  # fmt: skip
    assert main(["run", "c.yaml", "--out", "run"]) == 0
    flows = rows("run/flows.csv")
    assert {row["source"] for row in flows} == set(HOSTS) - {"c0-0c0s1"}
    assert {row["target"] for row in flows} == {"c0-0c0s1"}
    for row in flows:
        way = split_path(row["path"])
        assert way[0] == row["source"].split("/")[0] and way[-1] == "c0-0c0s1" and set(way) <= set(SWITCHES)
    assert "switch New York fails" in {row["what"] for row in rows("run/epochs.csv")}


def test_tables_of_programs_have_labels(folder):
    (folder / "p.csv").write_text("9\nZürich/1\n", "utf-8")
    written(folder, {
        "experiment": "application", "application": {"kind": "ping_pong", "size_bytes": 64, "ranks": 2},
        "loads": None, "traffic": None, "switching": {"vcs": 4, "flit_ns": 1},
        "placement": {"kind": "file", "path": "p.csv"}, "outputs": {"html": False, "figures": []},
    })  # fmt: skip
    assert main(["run", "c.yaml", "--out", "run"]) == 0
    assert [row["host"] for row in rows("run/ranks.csv")] == ["9", "Zürich/1"]


def test_cycles_of_waiting_packets_have_labels(folder):
    ring = "graph [ directed 1 {} {} ]".format(
        " ".join(f'node [ id {v} label "{label}" ]' for v, label in enumerate(SWITCHES)),
        " ".join(f"edge [ source {v} target {(v + 1) % 5} ]" for v in range(5)),
    )
    (folder / "net.gml").write_text(ring, "utf-8")
    with pytest.raises(ConfigError, match=r"\(c0-0c0s1->9, VC .*waits for \(9->\$x_1"):
        read(written(folder, {"switching": {"vcs": 1}, "routing": {"kind": "minimal", "vc_policy": "any"}}))


def test_packets_are_followed_by_label(folder, capsys):
    written(folder, {"traffic": {"kind": "incast", "senders": 1, "receiver": "9", "seed": 3}, "loads": [1.0]})
    assert main(["trace", "c.yaml", "--to", "40", "--json"]) == 0
    packets = json.loads(capsys.readouterr().out)["packets"]
    assert {packet["source"] for packet in packets} <= set(HOSTS)
    assert main(["trace", "c.yaml", "--packet", str(packets[0]["packet"])]) == 0
    told = capsys.readouterr().out
    assert f"from host {packets[0]['source']} (switch " in told and "to host 9 (switch 9)" in told
    assert "tail delivered to host 9" in told


def test_drawings_have_labels(folder):
    assert main(["topology", "net.gml", "--draw", "net.svg"]) == 0
    assert main(["topology", "net.gml", "--export", "net.dot"]) == 0
    dot = (folder / "net.dot").read_text("utf-8")
    assert all(f"[label={json.dumps(label, ensure_ascii=False)}]" in dot for label in SWITCHES)


def loaded(topology, traffic):
    """The scenario that Python's objects make, and what is warned of."""
    experiment = Experiment.load(
        {"experiment": "ceilings", "topology": topology, "traffic": traffic, "ceilings": ["bounds"]}
    )
    return experiment.study.cases[0].instance, experiment.warnings


def test_data_frames_are_read_by_label():
    graph = nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate(["Bern", "Ulm", "New York", "3"])))
    frame = pd.DataFrame([[0, 7.0], [1, 0]], index=["New York", "Bern"], columns=["Ulm", "Bern"])
    instance, _ = loaded(graph, frame)
    demand = np.zeros((4, 4))
    demand[2, 0], demand[0, 1] = 7, 1
    assert (instance.traffic.switch_demand == demand).all()
    with pytest.raises(ConfigError, match="'Rom' is no host"):
        loaded(graph, frame.rename(columns={"Ulm": "Rom"}))
    nx.set_node_attributes(graph, 2, "hosts")
    instance, _ = loaded(graph, frame)
    assert (instance.traffic.switch_demand == demand).all() and instance.topology.hosts == 8
    instance, _ = loaded(graph, pd.DataFrame([[1.0]], index=["Ulm/1"], columns=["Bern/0"]))
    assert [part.tolist() for part in instance.traffic.pairs()] == [[3], [0], [1]]


def test_arrays_go_by_number_whatever_the_labels():
    graph = nx.relabel_nodes(nx.cycle_graph(4), {v: v + 1 for v in range(4)})
    matrix = np.arange(16.0).reshape(4, 4)
    for given in (matrix, pd.DataFrame(matrix)):
        instance, _ = loaded(graph, given)
        assert (instance.traffic.switch_demand == matrix).all()
    with pytest.raises(ConfigError, match=r"'1' is the number of one host and the label of another"):
        loaded(graph, pd.DataFrame(matrix, index=range(1, 5), columns=range(1, 5)))
    instance, _ = loaded({"graph": graph, "names": "labels"}, pd.DataFrame(matrix, range(1, 5), range(1, 5)))
    assert (instance.traffic.switch_demand == matrix).all()


def test_graphs_that_name_both_directions():
    graph = nx.DiGraph([(u, v) for u in "abc" for v in "abc" if u != v])
    instance, (warning,) = loaded(graph, {"kind": "uniform"})
    assert instance.topology.directed and "6 of 6 uni-directional channels are opposite pairs" in warning
    keys = {"pair_directions": True, "failures": {"links": [["a", "c"]]}}
    instance, said = loaded({"graph": graph, **keys}, {"kind": "uniform"})
    assert not said and not instance.topology.directed and instance.topology.channels == 4
    with pytest.raises(ConfigError, match="graph must be a networkx graph or a Topology"):
        loaded({"graph": "net.gml"}, {"kind": "uniform"})


@pytest.mark.parametrize("command", long_after(3, ["check", "topology", "judge", "run"]))
def test_warnings_are_printed_before_anything_runs(folder, capsys, command):
    (folder / "net.txt").write_text("0 1\n1 0\n1 2\n2 1\n2 0\n0 2\n")
    written(folder, {"topology": {"path": "net.txt"}, "loads": [0.01]})
    (folder / "claim.yaml").write_text("topology: net.txt\ntraffic: uniform\nreported: [{load: 0.01}]\n")
    file = {"topology": "net.txt", "judge": "claim.yaml"}.get(command, "c.yaml")
    assert main([command, file, *(["--out", "out"] if command in ("run", "judge") else [])]) == 0
    said = capsys.readouterr()
    text = said.out if command == "judge" else said.err
    assert "net.txt: warning: " in text and "pair_directions: true makes links of them" in text
