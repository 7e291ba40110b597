# SPDX-License-Identifier: Apache-2.0
"""Racks, bundles and blueprints, against counts and lengths done by hand and the text of SIN section 6.5."""

import csv
import json
from collections import Counter
from math import comb

import networkx as nx
import numpy as np
import pytest

from flitlab.models.layout.blueprint import rows
from flitlab.models.layout.prices import ports
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli import main


def topology(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def measure(of, **parameters):
    return make("metric", kind="cabling", **parameters).measure(of)


def test_four_switches_in_a_cluster_by_hand():
    """Two racks of two switches and two of two hosts on a 2 x 2 floor of 0.6 m x 2.1 m.

    Racks 0 and 1 have the switches (all places are equally near to the centre), at (0, 0) and (0.6, 0); hosts 0, 1 are
    at (0, 2.1) and 2, 3 at (0.6, 2.1). Links 0-1 and 2-3 are inside racks.
    """
    ring = Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1)
    found = measure(ring, switches_per_rack=2, hosts_per_rack=2)
    assert (found["racks"], found["switch_racks"], found["number"], found["to_hosts"]) == (4, 2, 8, 4)
    assert (found["inside_racks"], found["bundles"], found["bundle_max"]) == (2, 3, 2)
    assert found["max"] == pytest.approx(4.1) and found["max_between_switches"] == pytest.approx(2.6)
    assert found["total"] == pytest.approx(4 * 4.1 + 2 * 1 + 2 * 2.6)


def test_cables_of_cards_are_those_of_hosts():
    """Two planes of a switch with three hosts: each host has a cable to both, by ports 0 and 1 of its card."""
    planes = topology("planes", count=2, of={"kind": "torus", "dims": [2], "hosts_per_switch": 3})
    found = measure(planes, switches_per_rack=4, hosts_per_rack=6)
    assert (found["racks"], found["switch_racks"], found["number"], found["to_hosts"]) == (2, 1, 14, 12)
    assert (found["inside_racks"], found["bundles"], found["bundle_max"]) == (2, 1, 12)
    plan = make("metric", kind="cabling", racks="mixed", switches_per_rack=1).blueprint(planes)[1]
    written = list(rows(planes, plan))
    ends = Counter((row[5], row[6]) for row in written[:12])  # host, and its port
    assert ends == {(f"h{host}", port): 1 for host in range(6) for port in (0, 1)}
    assert all(row[2][0] == row[5][0] == "s" for row in written[12:])
    used = Counter((row[2], row[3]) for row in written) + Counter((row[5], row[6]) for row in written[12:])
    assert set(used.values()) == {1}


@pytest.mark.parametrize("seed", range(5))
def test_ports_of_channels_and_links_at_one_switch_are_those_that_have_a_price(seed):
    """A uni-directional cable out and one in share a port: as many ports as `ports` counts, each with a cable a way."""
    rng = np.random.default_rng(seed)
    arcs, reverse = [], []
    for a, b in (rng.choice(5, 2, replace=False).tolist() for _ in range(12)):
        is_link = bool(rng.integers(2))
        reverse += [len(arcs) + 1, len(arcs)] if is_link else [-1]
        arcs += [(a, b), (b, a)] if is_link else [(a, b)]
    network = Topology.from_channels("random", 5, arcs, reverse).with_hosts([0, 2, 1, 0, 1])
    plan = make("metric", kind="cabling").blueprint(network)[1]
    outputs, inputs = Counter(), Counter()
    for k, ((a, b), (p, q)) in enumerate(zip(plan.ends.tolist(), plan.ports.tolist(), strict=True)):
        outputs[a, p] += 1
        if k >= plan.hosts:
            inputs[b, q] += 1
    assert max(outputs.values()) == 1 and max(inputs.values()) == 1
    for node, count in enumerate(ports(network).tolist()):
        assert {p for n, p in (*outputs, *inputs) if n == node} == set(range(count))


def test_servers_without_hosts_are_named_as_switches():
    one = topology("bcube", n=2, k=1, hosts=[1, 0, 0, 0, 0, 0, 0, 0])
    metric = make("metric", kind="cabling", switches_per_rack=8, hosts_per_rack=8)
    assert metric.measure(one)["to_hosts"] == 2 and metric.measure(one)["number"] == 8
    ends = Counter(row[5][0] for row in rows(one, metric.blueprint(one)[1]))
    assert ends == {"h": 2, "s": 6}
    assert metric.measure(topology("bcube", n=2, k=1, hosts_per_switch=0))["to_hosts"] == 0


def test_containers_of_a_complete_graph():
    """Six containers of four switches: each pair of containers has a bundle of 4 x 4 cables."""
    found = measure(topology("hyperx", dims=[24], hosts_per_switch=3), racks="mixed", switches_per_rack=4)
    assert (found["racks"], found["switch_racks"], found["bundles"], found["bundle_max"]) == (6, 6, comb(6, 2), 16)
    assert found["inside_racks"] == 24 * 3 + 6 * comb(4, 2)
    assert found["number"] == 24 * 3 + comb(24, 2)


def test_forty_containers_have_about_800_cable_assemblies():
    """SIN section 6.5.3: ~ 40 containers, ~ 800 assemblies: with high probability one between every pair."""
    found = measure(topology("rrg", n=800, degree=24, seed=1), racks="mixed", switches_per_rack=20)
    assert (found["racks"], found["bundles"]) == (40, comb(40, 2))


def test_switches_of_a_thousand_servers_are_within_reach_of_electric_cables():
    """SIN section 6.5.2: 3 to 5 racks hold the switches of a few thousand servers, cables are below 10 m."""
    jellyfish = topology("rrg", n=186, ports=14, hosts_total=686, seed=1)
    found = measure(jellyfish)
    assert 3 <= found["switch_racks"] <= 5 and found["max_between_switches"] < 10
    assert found["number"] == 686 + (186 * 14 - 686) // 2


@pytest.mark.parametrize("network", [dict(kind="rrg", n=12, degree=5), dict(kind="imase", n=10, degree=3)])
def test_a_blueprint_is_the_network(network, tmp_path, capsys):
    """Its cables are the links or channels, every port of a switch has one cable, and a bundle joins two racks."""
    spec = ",".join(f"{key}={value}" for key, value in network.items()) + ",hosts_per_switch=2"
    metrics = "{kind: cabling, switches_per_rack: 3, hosts_per_rack: 5}"
    file = tmp_path / "cables.csv"
    assert main(["topology", spec, "--metrics", metrics, "--blueprint", str(file), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    cables = list(csv.DictReader(file.open()))
    of = topology(**network, hosts_per_switch=2)
    between = [(int(row["from"][1:]), int(row["to"][1:])) for row in cables if row["to"].startswith("s")]
    hosts = [(int(row["from"][1:]), int(row["to"][1:])) for row in cables if row["to"].startswith("h")]
    assert hosts == list(zip(of.host_switch.tolist(), range(of.hosts), strict=True))
    graph = nx.DiGraph if of.directed else nx.Graph
    assert nx.utils.graphs_equal(graph(between), graph(zip(of.src.tolist(), of.dst.tolist(), strict=True)))
    outputs = Counter((row["from"], row["from_port"]) for row in cables)
    inputs = Counter((row["to"], row["to_port"]) for row in cables if row["to"].startswith("s"))
    both = outputs if of.directed else outputs + inputs
    assert set(both.values()) == {1} and set(inputs.values()) == {1}
    ports = {int(port) for _, port in (*outputs, *inputs)}
    assert ports == set(range(2 + int(of.out_degree.max())))
    bundles = {}
    for row in cables:
        racks = frozenset((row["from_rack"], row["to_rack"]))
        assert (row["bundle"] == "") == (len(racks) == 1)
        bundles.setdefault(row["bundle"], set()).add(racks)
    assert all(len(racks) == 1 for bundle, racks in bundles.items() if bundle)
    assert len(bundles) - ("" in bundles) == measured["cabling_bundles"]
    assert sum(float(row["length_m"]) for row in cables) == pytest.approx(measured["cabling_total"], abs=0.1)


def test_a_blueprint_of_another_format_is_refused(tmp_path, capsys):
    assert main(["topology", "kind=torus,dims=[3,3]", "--blueprint", str(tmp_path / "cables.xml")]) == 2
    assert "a blueprint is a .csv file" in capsys.readouterr().err
