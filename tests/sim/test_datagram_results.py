# SPDX-License-Identifier: Apache-2.0
"""What a run of the datagram discipline says beside its throughput: ceilings on its paths, efficiency, figures."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flitlab.fluid.ceilings import drawn_ceilings
from flitlab.fluid.crosscheck import slack
from flitlab.fluid.hosts import host_certificate
from flitlab.models.registry import make
from flitlab.models.switching.datagram import Datagram
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.fixed import fixed_traffic
from flitlab.models.transport.flows import long_lived
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, make_session
from flitlab.sim.cli import main
from flitlab.sim.measure.columns.registry import derived_columns
from flitlab.sim.measure.rows import MeasuredPoint
from flitlab.sim.report.figures.draw import figure_of
from flitlab.sim.report.figures.flows import points_of
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html.answer import sentence
from tests.scenarios import line
from tests.sim.datagram_cases import ECMP, run_session

SOURCE = {"kind": "ecmp", "ways": 8, "routed": "source"}
KINDS = ("mcf_paths", "mmf")


def session_on(topology: Topology, target: list[int], routing=SOURCE, **transport):
    traffic = fixed_traffic("fixed", topology, np.array(target))
    routes = make("routing", **routing).build(topology)
    control = make("transport", kind="tcp", start_ms=5.0, **transport).build()
    flows = long_lived(traffic, control.flows)
    return traffic, make_session(topology, routes, control, Queues(), flows, path_draw=PathDraw.WITH_REPLACEMENT)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def parking_lot():
    """Hosts 0 and 2, at the first two switches of a line, both send over its last channel."""
    topology = line(3, hosts=np.array([2, 1, 3]))
    return session_on(topology, [3, -1, 4, -1, -1, -1])


def test_max_min_fair_rates_of_a_parking_lot(parking_lot):
    traffic, session = parking_lot
    found = drawn_ceilings(session, traffic, KINDS)
    assert found["mcf_paths_drawn"] == pytest.approx(0.5)
    assert found["mmf_drawn_min"] == pytest.approx(0.5)
    assert found["mmf_drawn"] == pytest.approx(1 / session.topology.hosts)
    assert found["mmf_drawn_jain"] == pytest.approx(1.0)


def test_flows_of_a_pair_share_its_demand(parking_lot):
    topology = parking_lot[0].topology
    traffic, session = session_on(topology, [3, -1, 4, -1, -1, -1], flows=3)
    found = drawn_ceilings(session, traffic, KINDS)
    assert found["mcf_paths_drawn"] == pytest.approx(0.5)
    assert found["mmf_drawn_min"] == pytest.approx(1 / 6)


def test_rates_are_fractions_of_a_faster_interface():
    topology = replace(line(3, hosts=np.array([2, 1, 3])), host_capacity=4.0)
    traffic, session = session_on(topology, [3, -1, 4, -1, -1, -1])
    found = drawn_ceilings(session, traffic, KINDS)
    assert found["mcf_paths_drawn"] == pytest.approx(0.5)
    assert found["mmf_drawn_min"] == pytest.approx(0.125)
    result = run_session("compiled", session, (0.3, 0.6))
    assert result.throughput.sum() <= 0.25 * (1 + 1e-9)
    assert result.throughput.sum() >= 0.22


def test_delivered_bytes_keep_within_certified_lengths(parking_lot):
    traffic, session = parking_lot
    topology, certificate = session.topology, host_certificate(session.topology, traffic)
    result = run_session("compiled", session, (0.3, 0.6))
    assert 0 <= slack(topology, certificate, result.window, result.delivered, result.present) < 1
    count = result.delivered
    tripled = count._replace(sources=3 * count.sources, destinations=3 * count.destinations)
    assert slack(topology, certificate, result.window, tripled, result.present) < 0


STUDY = """
schema: 1
name: few
topology: {kind: fat_tree, k: 4}
routing: {kind: ecmp, ways: 4}
switching: {mode: datagram}
traffic: {kind: permutation, seed: 1, %s}
transport: {sweep: [{kind: tcp, start_ms: 5}, {kind: mptcp, subflows: 4, start_ms: 5}]}
measure: {seconds: 0.2}
outputs: {html: false}
"""


def run(folder: Path, traffic: str = "", more: str = "") -> Path:
    file = folder / "few.yaml"
    file.write_text(STUDY.replace("%s", traffic) + more)
    assert main([str(file), "--out", str(folder / "out"), "--jobs", "1"]) == 0
    return folder / "out"


def test_endless_flows_have_efficiency_ceilings_and_one_figure(tmp_path):
    out = run(tmp_path, more="ceilings: [mcf, mcf_paths, mmf]\n")
    rows = rows_of(out / "results.csv")
    assert len(rows) == 2
    for row in rows:
        assert float(row["host_throughput_mcf"]) == 1
        assert float(row["efficiency"]) == pytest.approx(float(row["throughput_min"]))  # of the one flow of each pair
        assert 0 < float(row["mcf_paths_drawn"]) <= float(row["mmf_drawn"]) + 1e-9 <= 1 + 1e-8
        assert float(row["throughput_min"]) <= 1.0
    assert sorted(file.name for file in (out / "figures").iterdir()) == ["throughput.png", "throughput.svg"]


def stored(folder: Path, cases: list[dict[str, str]], **manifest) -> Run:
    """A run of endless flows: swept keys, and a mean throughput for each of them in turn."""
    columns = list(dict.fromkeys(key for case in cases for key in case))
    rows = [
        case | {"scenario": str(case), "load": "1.0", "status": "ok"}
        | dict.fromkeys(("host_throughput", "throughput_mean"), f"{0.5 + i / 10}")
        | {"throughput_min": "0.2", "throughput_max": "1.0"}
        for i, case in enumerate(cases)
    ]  # fmt: skip
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), restval="")
        writer.writeheader()
        writer.writerows(rows)
    (folder / "manifest.json").write_text(json.dumps({"columns": columns} | manifest))
    return Run.read(folder)


def test_seeds_are_in_no_label_and_their_draws_are_one_point(tmp_path):
    run = stored(tmp_path, [
        {"case": "fat tree", "traffic.seed": "1", "transport": "tcp"},
        {"case": "Jellyfish", "topology.seed": "1", "transport": "tcp"},
        {"case": "Jellyfish", "topology.seed": "2", "transport": "tcp"},
        {"case": "Jellyfish", "topology.seed": "1", "transport": "mptcp"},
    ])  # fmt: skip
    found = [(point.group, point.series, point.values("host_throughput")) for point in points_of(run)]
    assert found == [
        ("fat tree", "tcp", [0.5]), ("Jellyfish", "tcp", [0.6, 0.7]), ("Jellyfish", "mptcp", [0.8])
    ]  # fmt: skip


def test_what_is_swept_alone_makes_groups_which_have_their_names_on_the_axis(tmp_path):
    cases = ["fat tree", "Jellyfish of 496 servers", "Jellyfish of 562 servers"]
    figure = figure_of(stored(tmp_path, [{"case": case} for case in cases]), "throughput")
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == cases
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["whiskers: range of flows"]


def test_no_line_crosses_the_number_of_a_mean(tmp_path):
    run = stored(tmp_path, [{"case": "a", "mmf_drawn": "0.5"}])  # the mean, whose number is beside it
    figure = figure_of(run, "throughput")
    (number,) = figure.axes[0].texts
    number.set_color("white")
    figure.canvas.draw()
    x0, y0, x1, y1 = np.rint(number.get_window_extent().extents).astype(int)
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1]
    assert (pixels[y0:y1, x0:x1] == 255).all()


def test_a_label_that_does_not_fit_into_the_figure_is_broken(tmp_path):
    run = stored(tmp_path, [{"case": case} for case in ("a", "b")])
    assert "\n" not in figure_of(run, "throughput", size="column").axes[0].get_ylabel()
    low = figure_of(stored(tmp_path, [{"case": f"{i} in the fat tree"} for i in range(432, 439)]), "throughput").axes[0]
    assert low.get_ylabel() == "host throughput\n(fraction of NIC rate)"


def test_a_mean_is_no_part_of_the_maximum_concurrent_flow_and_the_least_pair_is():
    # six hosts, three at either end of a link: 9 of 15 pairs cross it, the others have their switch to themselves
    topology = line(2, hosts=3)
    traffic = make("traffic", kind="all_to_all").build(topology)
    given = Datagram(make("transport", kind="tcp"), Queues(), make("routing", **ECMP))
    scenario = SimpleNamespace(switching=given, topology=topology, traffic=traffic, timeline=None, counted="flows")
    source, target, demand = (part.tolist() for part in traffic.pairs())
    got = [0.3 if s // 3 == t // 3 else 1 / 9 / 2 for s, t in zip(source, target, strict=True)]
    flows = [
        {"flow": i, "subflow": part, "source": s, "target": t, "throughput": rate / 2}
        for i, (s, t, rate) in enumerate(zip(source * 2, target * 2, got * 2, strict=True))
        for part in ("", 0)
    ]
    row = {"host_throughput": sum(got) / 6}
    found = derived_columns(MeasuredPoint(scenario, row, {"flows": flows}, {"mcf": 0.5, "mcf.upper": 5 / 9}))
    assert found["efficiency"] == pytest.approx(1 / 9 / 2 / demand[0] / (5 / 9)) and found["efficiency"] < 1
    assert found["host_throughput_mcf"] == pytest.approx(5 / 9) and row["host_throughput"] > 1.3 * 5 / 9
    rows = [{"scenario": "x", **{name: str(value) for name, value in (row | found).items()}}]
    text = sentence(Run(rows, [], [], {}), [])
    assert "50\xa0% of its maximum concurrent flow to the worst-served pair" in text
    assert f"x delivers {100 * row['host_throughput']:.0f}\xa0% of the NIC rate to hosts on average" in text
    rows[0]["mmf_drawn"] = "0.8"
    text = sentence(Run(rows, [], [], {}), [])
    assert "(max-min fair over the same paths: 80\xa0%)" in text
    assert derived_columns(MeasuredPoint(scenario, row, {}, {})) == {}


@pytest.mark.long
def test_finite_flows_draw_their_slowdown(tmp_path):
    sizes = "arrivals: poisson, sizes: {kind: fixed, bytes: 5000}"
    out = run(tmp_path, sizes, "loads: [0.1, 0.3]\nceilings: [mcf, mmf]\n")
    rows = rows_of(out / "results.csv")
    assert not {"efficiency", "mmf_drawn"} & set(rows[0])
    assert float(rows[0]["slowdown_mean"]) >= 1
    assert sorted(file.name for file in (out / "figures").iterdir()) == ["slowdown.png", "slowdown.svg"]
