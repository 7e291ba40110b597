# SPDX-License-Identifier: Apache-2.0
"""Routing by weights in a run: BookSim2 28f4329 on networks whose channels have latencies, and configurations."""

import json

import pytest

from flitlab.models.readable import Text
from flitlab.models.topology.formats.anynet import read_anynet
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from tests import long_after
from tests.models.test_weighted_routing import TRIANGLE, WG10
from tests.scenarios import scenario

ROUTER = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2, "shared_input": True}

WMESH16 = """
router 0 node 0 router 1 13 router 4 14
router 1 node 1 router 0 13 router 2 2 router 5 9
router 2 node 2 router 1 2 router 3 17 router 6 16
router 3 node 3 router 2 17 router 7 13
router 4 node 4 router 0 14 router 5 10 router 8 16
router 5 node 5 router 1 9 router 4 10 router 6 12 router 9 19
router 6 node 6 router 2 16 router 5 12 router 7 7 router 10 17
router 7 node 7 router 3 13 router 6 7 router 11 5
router 8 node 8 router 4 16 router 9 10 router 12 5
router 9 node 9 router 5 19 router 8 10 router 10 4 router 13 20
router 10 node 10 router 6 17 router 9 4 router 11 9 router 14 18
router 11 node 11 router 7 5 router 10 9 router 15 23
router 12 node 12 router 8 5 router 13 20
router 13 node 13 router 9 20 router 12 20 router 14 5
router 14 node 14 router 10 18 router 13 5 router 15 10
router 15 node 15 router 11 23 router 14 10
"""


def measured(engine_name, network, load, ticks=40_000, **routing):
    """The row of a point: 4 VCs of 64 flits, single flits to all nodes, the sender among them."""
    case = scenario(
        read_anynet(Text(network)), routing={"kind": "minimal", **routing}, mode="wormhole", vcs=4, buffer_flits=64,
        traffic={"kind": "uniform", "include_self": True}, source=Source(flits=(1,)), allow_deadlock=True, **ROUTER,
    )  # fmt: skip
    return measure(engine_name, case, load, 1, Measure(3000, ticks, None)).row


# BookSim2: anynet, min, num_vcs = 4, vc_buf_size = 64, packet_size = 1, traffic = uniform
@pytest.mark.parametrize("ties", long_after(1, ["all", "first"]))
@pytest.mark.parametrize(
    ("network", "load", "latency"),
    [
        (WG10, 0.02, 27.69),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in ((WG10, 0.2, 27.99), (WMESH16, 0.02, 39.86), (WMESH16, 0.1, 39.95), (WMESH16, 0.3, 40.54))
        ),
    ],
)
def test_mean_latency_is_that_of_booksim2(engine_name, network, load, latency, ties):
    assert measured(engine_name, network, load, ties=ties)["latency_mean"] == pytest.approx(latency, rel=0.02)


@pytest.mark.long
def test_wg10_accepts_what_booksim2_accepts():
    row = measured("compiled", WG10, 1.0)
    assert row["accepted"] == pytest.approx(0.3748, rel=0.03)


CONFIG = """
topology:  {kind: file, path: triangle.anynet}
routing:   {kind: minimal}
switching:
  {mode: wormhole, vcs: 2, buffer_flits: 64, header_ticks: 1, link_ticks: 2, injection_ticks: 2, ejection_ticks: 2}
traffic:   {kind: uniform, packet_flits: 1}
loads:     [0.02]
measure:   {warmup: 500, ticks: 30000, ci: null}
ceilings:  []
outputs:   {figures: [], html: false}
"""


def run(tmp_path, capsys, old="", new="", engine="reference"):
    """What a run of the configuration, with one text in place of another, gives as JSON, and all that it says."""
    (tmp_path / "triangle.anynet").write_text(TRIANGLE)
    (tmp_path / "c.yaml").write_text(f"{CONFIG.replace(old, new) if old else CONFIG}engine: {engine}\n")
    code = main(["run", str(tmp_path / "c.yaml"), "--json", "--out", str(tmp_path / "out"), "--jobs", "1"])
    out, err = capsys.readouterr()
    return json.loads(out)["results"] if code == 0 else code, err


@pytest.mark.parametrize("engine", long_after(1, ["reference", "both"]))
@pytest.mark.parametrize(
    ("old", "new", "latency"),
    [
        ("kind: minimal", "kind: minimal, weight: hops", (2 * 29 + 4 * 11) / 6),
        # 0 and 1 are 4 cycles apart over switch 2; with self-traffic, a third of the packets stay at their switch
        ("", "", (2 * 16 + 4 * 11) / 6),
        pytest.param("uniform", "uniform, include_self: true", (3 * 6 + 2 * 16 + 4 * 11) / 9, marks=pytest.mark.long),
        pytest.param("kind: minimal", "kind: ecmp", (2 * 16 + 4 * 11) / 6, marks=pytest.mark.long),
        pytest.param("kind: minimal", "kind: minimal, weight: latency", (2 * 16 + 4 * 11) / 6, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_triangle_is_crossed_the_quicker_way(tmp_path, capsys, old, new, latency, engine):
    (row,), _ = run(tmp_path, capsys, old, new, engine)
    assert row["latency_mean"] == pytest.approx(latency, rel=0.02)


@pytest.mark.long
def test_latency_and_delay_may_choose_differently(tmp_path, capsys):
    """A detour of 2 + 2 cycles is quicker than 6 by the file's latencies, and slower where each hop takes 4 more."""
    (tmp_path / "c.yaml").write_text(
        CONFIG.replace("{kind: minimal}", "{sweep: [{kind: minimal}, {kind: minimal, weight: latency}]}")
    )
    (tmp_path / "triangle.anynet").write_text(TRIANGLE.replace("20", "6"))
    assert main(["check", str(tmp_path / "c.yaml"), "--json"]) == 0
    by_delay, by_latency = json.loads(capsys.readouterr().out)["scenarios"]
    assert by_delay["routing"] == {
        "kind": "minimal", "vc_policy": "any", "hops_max": 2, "layers": None,
        "weight": "delay (latencies of the file, as BookSim2 routes)",
    }  # fmt: skip
    assert by_delay["zero_load_ticks"] == [11, 16]
    assert (by_latency["routing"]["weight"], by_latency["routing"]["hops_max"]) == ("latency", 1)
    assert by_latency["config"]["routing"]["hop_ticks"] == 4
    assert by_latency["zero_load_ticks"] == [11, 15]


def test_a_weight_that_is_no_column_is_refused_where_it_stands(tmp_path, capsys):
    code, said = run(tmp_path, capsys, "kind: minimal", "kind: minimal, weight: cost")
    assert code == 2
    assert "c.yaml:3: routing.weight = cost: 'cost' is no column of the topology's file" in said
    assert "choices: hops, delay, latency" in said


EDGES = [(0, 1, 5), (0, 2, 2), (1, 2, 2)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("net.txt", "# directed: false\n" + "\n".join(f"{u} {v} {{'cost': {cost}}}" for u, v, cost in EDGES)),
        ("net.csv", "# directed: false\nsource,target,cost\n" + "\n".join(f"{u},{v},{cost}" for u, v, cost in EDGES)),
        (
            "net.gml",
            "graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ] "
            + " ".join(f"edge [ source {u} target {v} cost {cost} ]" for u, v, cost in EDGES)
            + " ]",
        ),
    ],
)
def test_columns_of_a_file_are_weights(tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text + "\n")
    old, new = (
        "path: triangle.anynet}\nrouting:   {kind: minimal",
        f"path: {name}}}\nrouting:   {{kind: minimal, weight: cost",
    )
    (row,), _ = run(tmp_path, capsys, old, new)
    assert row["hops_mean"] == pytest.approx(4 / 3, rel=0.02)


@pytest.mark.long
def test_ceilings_follow_the_weighted_next_hops(tmp_path, capsys):
    """Four hosts a switch, 16/11 flits a tick for each pair of switches: from 0 to 2 also goes what is for 1."""
    (tmp_path / "triangle.anynet").write_text(TRIANGLE)
    text = CONFIG.replace("triangle.anynet", "triangle.anynet, hosts_per_switch: 4")
    text = text.replace("ceilings:  []", "ceilings:  [split, mcf_paths, mcf]")
    text = text.replace("{kind: minimal}", "{sweep: [{kind: minimal}, {kind: minimal, weight: hops}]}")
    (tmp_path / "c.yaml").write_text(text)
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--json"]) == 0
    found = {(row["scenario"], row["ceiling"]): row["upper"] for row in json.loads(capsys.readouterr().out)}
    by_delay, by_hops = sorted({scenario for scenario, _ in found}, key=lambda name: "hops" in name)
    for ceiling in ("split", "mcf_paths"):
        assert found[by_delay, ceiling] == pytest.approx(11 / 32, rel=1e-3)
        assert found[by_hops, ceiling] == pytest.approx(11 / 16, rel=1e-3)
    assert found[by_delay, "mcf"] == pytest.approx(found[by_hops, "mcf"], rel=1e-3)


def test_a_link_that_fails_is_gone_round_by_weight(tmp_path, capsys):
    """0 - 2 fails: from 0 to 1 there is the link of 20 cycles alone, and from 0 to 2 another hop."""
    event = "timeline: [{at_tick: 100, fail: {links: [[0, 2]]}, reroute_after: 10}]\nceilings:"
    (row,), _ = run(tmp_path, capsys, "ceilings:", event)
    assert row["latency_mean"] == pytest.approx((2 * 29 + 2 * 34 + 2 * 11) / 6, rel=0.02)
