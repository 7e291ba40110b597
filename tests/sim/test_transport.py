# SPDX-License-Identifier: Apache-2.0
"""Transports in configurations: what is understood, what is refused, and the files that a run writes."""

import csv
import re

import numpy as np
import pytest
import yaml

from flitlab.models.registry import SpecError, make, names, spec_class
from flitlab.models.transport.dctcp import by_share
from flitlab.models.transport.rdma import RdmaSpec
from flitlab.models.transport.several import Several
from flitlab.models.transport.sizes import SizesSpec, read_table
from flitlab.models.transport.sprayed import SprayedSpec
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.report.folder.run import Run

GOOD = """\
topology: {kind: rrg, n: 6, degree: 3, hosts_per_switch: 2, seed: 4}
routing: {kind: ecmp}
traffic: {kind: permutation}
switching: {mode: datagram}
transport: {kind: tcp, start_ms: 5}
measure: {seconds: 0.1}
"""


def study(tmp_path, text=GOOD, sets=()):
    file = tmp_path / "c.yaml"
    file.write_text(text)
    return read(file, sets)


@pytest.mark.parametrize("kind", names("transport"))
def test_documented_examples_build(kind):
    documented = spec_class("transport", kind).__doc__
    lines = re.findall(r"Example: ``(.+?)``", documented)
    assert lines and "Source: " in documented
    for line in lines:
        spec = make("transport", **yaml.safe_load(line)["transport"])
        if isinstance(spec, RdmaSpec):
            assert spec.spraying().rdma is spec
            continue
        if isinstance(spec, SprayedSpec | Several):
            assert all(spraying.paths >= 1 for spraying in spec.sprayings().values())
            continue
        assert spec.build().law is None or kind != "none"


def test_equal_cost_paths_are_drawn_at_the_source(tmp_path):
    (case,) = study(tmp_path).cases
    assert case.scenario.routes.paths is not None
    assert case.loads == [1.0]
    assert case.resolved["routing"]["path_draw"] == "distinct"
    assert case.resolved["measure"] == {"seconds": 0.1, "window": [0.05, 0.1]}


def test_the_resolved_configuration_says_the_same(tmp_path):
    given = study(tmp_path)
    again = study(tmp_path, yaml.safe_dump(given.resolved()))
    assert again.cases[0].scenario.content_hash == given.cases[0].scenario.content_hash


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "transport.kind=tpc",
            "transport.kind = tpc: unknown transport; choices: constant, dcqcn, dctcp, hpcc, mptcp, .*, timely; did",
        ),
        ("transport.subflow=2", "transport.subflow = 2: unknown key; choices: .*did you mean 'subflows'"),
        ("transport.subflows=64", "transport.subflows = 64: 64 subflows of a pair of hosts, but no pair has more"),
        ("transport.min_rto_ms=0.00001", "transport.min_rto_ms = 1e-05: is below the tick"),
        ("transport.ack_path=fast", "transport.ack_path = fast: is not one of the choices; choices: instant, pure"),
        ("switching.queue_packets=0", "switching.queue_packets = 0: must be greater than or equal to 1"),
        ("switching.queue_bytes=500", "switching.packet_bytes: a packet does not fit into a queue of 500 bytes"),
        ("measure.window=[0.05, 0.2]", "measure.window = .*: must be two times in seconds, ascending, within the 0.1"),
        ("measure.seconds=1e5", "measure.seconds = 100000.0: at a tick of 125 ns a run may take at most 68719.5 s"),
        ("transport.ack_bytes=0", "transport.ack_bytes = 0: must be greater than or equal to 1"),
        ("traffic.arrivals=together", "traffic.arrivals = together: needs traffic.sizes"),
        ("traffic.sizes={kind: fixed}", "traffic.sizes.bytes: missing: kind fixed needs it"),
        ("switching.link_failures={links: 200, at_ms: 1}", "switching.link_failures.links = 200: there are only 9"),
        ("switching.mode=vct", "transport: is not for mode vct, but for modes datagram and spray"),
        ("routing.path_draw=random", "routing.path_draw = random: is not one of the choices; choices: distinct, with"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, expected):
    with pytest.raises(ConfigError) as caught:
        study(tmp_path, sets=[change])
    assert re.search(expected, str(caught.value)), str(caught.value)


def test_no_subflow_has_more_packets_than_numbers_of_32_bits(tmp_path):
    """Ten bytes of 125 ns each, 2**32 times."""
    with pytest.raises(
        ConfigError, match=r"measure.seconds = .*: at a tick of 125 ns a run may take at most 5368.71 s"
    ):
        study(tmp_path, sets=["switching.packet_bytes=10", "measure.seconds=5369"])
    study(tmp_path, sets=["switching.packet_bytes=10", "measure.seconds=5368"])


def test_finite_flows_that_arrive_need_loads(tmp_path):
    sizes = "traffic.sizes={kind: fixed, bytes: 5000}"
    with pytest.raises(ConfigError, match="loads: is missing"):
        study(tmp_path, sets=[sizes])
    assert study(tmp_path, sets=[sizes, "traffic.arrivals=together"]).cases[0].loads == [1.0]


def test_finite_flows_are_measured_from_the_beginning(tmp_path):
    sizes = ["traffic.sizes={kind: fixed, bytes: 5000}", "traffic.arrivals=together"]
    (case,) = study(tmp_path, sets=sizes).cases
    assert case.resolved["measure"] == {"seconds": 0.1, "window": [0.0, 0.1]}
    (case,) = study(tmp_path, sets=[*sizes, "measure.window=[0.02, 0.05]"]).cases
    assert case.resolved["measure"] == {"seconds": 0.1, "window": [0.02, 0.05]}


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_writes_flows(tmp_path):
    file, out = tmp_path / "c.yaml", tmp_path / "out"
    text = GOOD.replace("{kind: ecmp}", "{kind: ksp, k: 3}").replace("{kind: tcp,", "{kind: mptcp, subflows: 2,")
    file.write_text(text + "ceilings: [mcf]\nengine: both\n")
    assert main([str(file), "--out", str(out), "--jobs", "1"]) == 0
    (point,) = rows_of(out / "results.csv")
    flows = rows_of(out / "flows.csv")
    assert len(flows) == 12 * 3
    whole = [row for row in flows if not row["subflow"]]
    mean = np.mean([float(row["throughput"]) for row in whole])
    assert float(point["throughput_mean"]) == pytest.approx(mean)
    assert min(float(row["throughput"]) for row in whole) == pytest.approx(float(point["throughput_min"]))
    assert {"jain", "drops", "retransmissions", "timeouts", "rtt_ms_mean", "queue_mean", "queue_max"} <= set(point)
    assert "latency_mean" not in point
    parts = [row for row in flows if row["subflow"]]
    assert all(re.fullmatch(r"\d+(-\d+)*", row["path"]) for row in parts)
    assert (out / "ceilings.csv").exists()


def test_a_run_of_finite_flows_gives_completion_times(tmp_path):
    file, out = tmp_path / "c.yaml", tmp_path / "out"
    finite = "{kind: uniform, sizes: {kind: fixed, bytes: 5000}}"
    file.write_text(GOOD.replace("{kind: permutation}", finite) + "loads: [0.2]\nceilings: []\n")
    assert main([str(file), "--out", str(out), "--jobs", "1"]) == 0
    (point,) = rows_of(out / "results.csv")
    flows = rows_of(out / "flows.csv")
    assert 0 < int(point["flows_complete"]) <= int(point["flows"]) == len(flows)
    assert float(point["slowdown_mean"]) > 1
    complete = [flow for flow in flows if flow["fct_ms"]]
    assert len(complete) == int(point["flows_complete"])
    assert all(flow["received_bytes"] == flow["size_bytes"] == "5000" for flow in complete)
    assert point["flows_small"] == point["flows"] and not point["fct_ms_mean_large"]


@pytest.mark.parametrize(("kind", "megabytes"), [("web_search", 1.66), ("data_mining", 7.4)])
def test_tables_have_the_means_of_the_literature(kind, megabytes):
    sizes = SizesSpec(kind=kind).build()
    assert sizes.mean / 1e6 == pytest.approx(megabytes, rel=0.03)
    shares = (np.arange(10**6) + 0.5) / 10**6
    assert sizes.of(shares).mean() == pytest.approx(sizes.mean, rel=0.01)


def test_pareto_sizes_have_the_mean_asked_for():
    sizes = SizesSpec(kind="pareto", mean_bytes=50_000, shape=1.5, max_bytes=1e8).build()
    drawn = sizes.of((np.arange(10**6) + 0.5) / 10**6)
    assert drawn.mean() == pytest.approx(50_000, rel=0.02)
    tail = [(drawn > size).mean() for size in (1e5, 2e5)]
    assert tail[0] / tail[1] == pytest.approx(2**1.5, rel=0.02)


def test_flows_have_whole_packets():
    """In the last packet of flows of many sizes half of the bytes are missing on average."""
    fixed = SizesSpec(kind="fixed", bytes=1100).build()
    assert (fixed.mean_packets(1000), fixed.mean_packets(1100), fixed.mean_packets(5000)) == (2, 1, 1)
    many = SizesSpec(kind="pareto", mean_bytes=50_000, shape=1.5, max_bytes=1e8).build()
    assert many.mean_packets(1000) == pytest.approx(50.5, rel=0.01)


@pytest.mark.parametrize(("mode", "wire"), [("datagram, packet_bytes: 1000", 1000), ("spray, mtu_bytes: 1064", 564)])
def test_load_is_what_is_sent(mode, wire):
    """Flows of 500 bytes take a whole packet in mode datagram, and a header of 64 in mode spray."""
    text = GOOD.replace("{kind: permutation}", "{kind: uniform, sizes: {kind: fixed, bytes: 500}}")
    text = text.replace("mode: datagram", f"mode: {mode}, nic_mbps: 1000").replace("{kind: tcp, start_ms: 5}", "none")
    (case,) = read("c.yaml", [], text=text + "loads: [0.3]\nceilings: []\n").cases
    session = case.scenario.switching.session(case.scenario.instance, case.scenario.work, 0.3, 1)
    flows, expected = len(session.flows.source), 0.3 * 12 * 0.1 * 1e9 / 8 / wire
    assert abs(flows - expected) < 4 * expected**0.5


@pytest.mark.parametrize(("mode", "keys"), [("datagram", ""), ("spray", "transport: nscc\n")])
def test_a_ceiling_over_the_rate_of_hosts_is_a_load(tmp_path, mode, keys):
    """Of 4 hosts of twice the rate of the link 4 / 7 of the flits cross it: 2 * 4 * 4 / 7 * load is 1."""
    text = (
        "topology: {kind: mesh, dims: [2], hosts_per_switch: 4, host_capacity: 2}\nrouting: ecmp\nceilings: [mcf]\n"
        f"switching: {{mode: {mode}, nic_mbps: 1000}}\n{keys}measure: {{seconds: 0.002}}\nengine: reference\n"
        "traffic: {kind: uniform, sizes: {kind: fixed, bytes: 10000}}\nloads: [0.15]\n"
    )
    (tmp_path / "c.yaml").write_text(text)
    assert main([str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    (row,) = rows_of(tmp_path / "out" / "ceilings.csv")
    assert (float(row["upper"]), row["unit"]) == (pytest.approx(2 * 7 / 32), "flits/tick/host")
    (label,) = (run := Run.read(tmp_path / "out")).scenarios
    assert run.ceiling_columns(label)["mcf"] == pytest.approx(7 / 32)


def test_dctcp_halves_its_window_at_the_first_marks():
    """alpha is 1 at first (RFC 8257), and decays by 1/16 in each round trip without marks."""
    memory = np.zeros(4)
    assert by_share(100.0, 1.0, 1.0, memory) == pytest.approx(50)
    assert [by_share(100.0, 0.0, 1.0, memory) for _ in range(2)] == [100, 100]
    assert by_share(100.0, 0.5, 1.0, memory) == pytest.approx(100 * (1 - ((15 / 16) ** 3 + 0.5 / 16) / 2))


def test_a_table_of_ones_own(tmp_path):
    file = tmp_path / "sizes.csv"
    file.write_text("bytes,cumulative\n1000,0.5\n3000,1\n")
    sizes = read_table(file)
    assert sizes.mean == pytest.approx(0.5 * 1000 + 0.5 * 2000)
    file.write_text("bytes,cumulative\n1000,0.5\n500,1\n")
    with pytest.raises(SpecError, match="must rise"):
        read_table(file)
    with pytest.raises(SpecError, match="cannot be read"):
        read_table(tmp_path / "none.csv")
