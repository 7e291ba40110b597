# SPDX-License-Identifier: Apache-2.0
"""Several transports side by side: both engines alike, the same as one where they are the same, shares, wrong keys."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.spray.layout import Credit
from flitlab.models.transport.fabric import Fabric, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.paths import PathDraw
from flitlab.models.transport.session import Queues, make_session
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.compiled.datagram import CompiledDatagrams
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.datagram import ReferenceDatagrams
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.run import compare_counters, compare_traces
from flitlab.sim.engines.transport.spray import FlowCount
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.datagram import measure_flows
from flitlab.sim.measure.transport import Window
from flitlab.sim.report.figures.registry import figures
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.html import tables
from tests.scenarios import build, line
from tests.sim.spray_cases import session_of_number

CONFIG = """\
topology: {kind: mesh, dims: [2], hosts_per_switch: 4}
routing: {kind: ecmp}
switching: {mode: spray}
transport: {kind: several, of: [{kind: nscc, paths: 1}, {kind: dctcp, paths: 1}]}
traffic: {kind: shift, by: 4, arrivals: together, sizes: {kind: fixed, bytes: 500000}}
engine: reference
"""


DATAGRAM = {"switching": "{mode: datagram, queue_packets: 50}", "routing": "{kind: ecmp, path_draw: with_replacement}"}


def study(folder: Path, **sets: str):
    (folder / "c.yaml").write_text(CONFIG)
    return read(folder / "c.yaml", [f"{key.replace('__', '.')}={value}" for key, value in sets.items()])


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open() as lines:
        return list(csv.DictReader(lines))


def session_of(case):
    scenario = case.scenario
    return scenario.switching.session(scenario.instance, scenario.work, 0.2, 1)


def test_each_pair_has_flows_of_each_and_tables_name_them(tmp_path):
    report = run(study(tmp_path), tmp_path / "run")
    assert report.exit_code == 0, report.problems
    flows, transports = rows(tmp_path / "run", "flows.csv"), rows(tmp_path / "run", "transports.csv")
    assert [row["transport"] for row in flows] == ["nscc", "dctcp"] * 8
    assert [(row["transport"], row["flows"], row["flows_complete"]) for row in transports] == [
        ("nscc", "8", "8"),
        ("dctcp", "8", "8"),
    ]
    assert sum(float(row["share"]) for row in transports) == pytest.approx(1)
    assert len(tables.transports(Run.read(tmp_path / "run"))) == len(transports)
    figure = figures()["transports"].draw(Run.read(tmp_path / "run"), (3.5, 2.6))
    (ax,) = figure.axes
    assert [bar.get_width() for bar in ax.patches] == [pytest.approx(float(row["share"])) for row in transports]
    (ticks,) = [line for line in ax.lines if line.get_gid() == "fair"]
    assert ticks.get_xdata()[0] == 0.5, "as many flows of each"
    for row in transports:
        mine = [float(flow["fct_sender_us"]) for flow in flows if flow["transport"] == row["transport"]]
        assert float(row["fct_ms_mean"]) == pytest.approx(np.mean(mine) / 1e3)
        assert float(row["fct_ms_max"]) == pytest.approx(max(mine) / 1e3)


def test_in_a_window_shares_are_those_of_the_bottleneck(tmp_path):
    """A constant rate of 0.1 beside a window: what it sends arrives, and the other has most of the rest."""
    of = "[{kind: none, rate: 0.1}, {kind: nscc}]"
    window = study(
        tmp_path, transport__of=of, traffic__sizes__bytes="5000000", topology__hosts_per_switch="1", traffic__by="1",
        measure="{seconds: 0.001, window: [0.0001, 0.0004]}",
    )  # fmt: skip
    report = run(window, tmp_path / "run")
    assert report.exit_code == 0, report.problems
    slow, fast = rows(tmp_path / "run", "transports.csv")
    assert float(slow["throughput_mean"]) == pytest.approx(0.1, rel=0.01)
    assert 0.8 < float(fast["throughput_mean"]) < 0.9
    assert float(slow["share"]) == pytest.approx(0.1 / (0.1 + float(fast["throughput_mean"])), rel=0.01)


def bottleneck(seed: int, **keys):
    """Long-lived flows of each transport from three hosts over one channel, in mode datagram."""
    topology = build("mesh", dims=[2], hosts=3)
    transports = make("transport", kind="several", **keys).transports()
    source, nothing = np.repeat(np.arange(3), len(transports)), np.zeros(3 * len(transports), np.int64)
    return make_session(
        topology, make("routing", kind="ecmp").build(topology), transports, Queues(queue_bytes=50_000),
        Flows(source, source + 3, nothing, nothing, np.arange(len(source)) % len(transports)),
        path_draw=PathDraw.WITH_REPLACEMENT, seed=seed,
    )  # fmt: skip


@pytest.mark.long
def test_tcp_beside_mptcp_beside_dctcp_on_one_bottleneck():
    """Both engines agree. MPTCP does not take more than TCP (RFC 6356, goal 2); DCTCP backs off from full queues.

    TCP fills the queue far above the threshold, so every packet is marked: DCTCP halves its window in every round trip,
    down to a packet or two.
    """
    session = bottleneck(1, of=[{"kind": "tcp"}, {"kind": "mptcp", "subflows": 2}, {"kind": "dctcp"}])
    assert session.names == ("tcp", "mptcp", "dctcp")
    assert np.diff(session.first).tolist() == [1, 2, 1] * 3
    compiled, reference = CompiledDatagrams(session, trace=True), ReferenceDatagrams(session, trace=True)
    for run_ in (compiled, reference):
        run_.advance(session.ticks(1.0))
    compare_traces(compiled.trace(), reference.trace())
    compare_counters(compiled.counters(), reference.counters())
    result = measure_flows(compiled, None, 1.0, Window((5.0, 40.0)))
    tcp, mptcp, dctcp = (row["share"] for row in result.detail["transports"])
    assert tcp + mptcp + dctcp == pytest.approx(1)
    assert 0.35 * (1 - dctcp) < mptcp < 0.5 * (1 - dctcp)
    assert dctcp < 0.05
    assert (compiled.counters().cwnd[session.subflow_kind == 2] <= 3 * session.queues.packet_bytes).all()
    assert [row["transport"] for row in result.detail["flows"]][:5] == ["tcp", "mptcp", "mptcp", "mptcp", "dctcp"]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_two_connections_get_twice_as_much_as_one(seed):
    """TCP shares a bottleneck by connections: a third and two thirds."""
    session = bottleneck(seed, of=[{"kind": "tcp"}, {"kind": "tcp", "subflows": 2}])
    result = measure_flows(CompiledDatagrams(session), None, 1.0, Window((5.0, 40.0)))
    assert [row["transport"] for row in result.detail["transports"]] == ["tcp 1", "tcp 2"]
    assert result.detail["transports"][0]["share"] == pytest.approx(1 / 3, abs=0.03)


def test_datagrams_of_several_transports_have_a_table(tmp_path):
    of = "[{kind: tcp}, {kind: mptcp, subflows: 2}, {kind: dctcp}]"
    finite = study(tmp_path, **DATAGRAM, transport__of=of, measure="{seconds: 5}")
    report = run(finite, tmp_path / "run")
    assert report.exit_code == 0, report.problems
    flows, transports = rows(tmp_path / "run", "flows.csv"), rows(tmp_path / "run", "transports.csv")
    assert [row["transport"] for row in transports] == ["tcp", "mptcp", "dctcp"]
    assert [row["transport"] for row in flows if row["subflow"] == ""] == ["tcp", "mptcp", "dctcp"] * 8
    assert {row["flows_complete"] for row in transports} == {"8"}
    assert all(float(row["slowdown"]) >= 1 for row in flows if row["subflow"] == "")


def test_flows_that_arrive_have_each_transport_in_proportion(tmp_path):
    of = "[{kind: nscc, flows: 3}, {kind: dctcp}]"
    arriving = study(
        tmp_path, traffic__arrivals="poisson", transport__of=of, traffic__sizes__bytes="1000", loads="[0.2]",
        measure="{seconds: 0.001}",
    )  # fmt: skip
    session = session_of(arriving.cases[0])
    assert len(session.flows.kinds) > 1000 and np.mean(session.flows.kinds == 0) == pytest.approx(0.75, abs=0.03)
    again = session_of(arriving.cases[0])
    np.testing.assert_array_equal(session.flows.kinds, again.flows.kinds)


def test_two_of_a_kind_have_numbers(tmp_path):
    session = session_of(study(tmp_path, transport__of="[{kind: nscc, paths: 1}, {kind: nscc, flows: 2}]").cases[0])
    assert session.names == ("nscc 1", "nscc 2")
    assert session.flows.kinds.tolist() == [0, 1, 1] * 8
    assert [rules.paths for rules in session.transports] == [1, 64]


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"transport__of": "[{kind: nscc}]"}, r"transport\.of: must have at least 2 items"),
        ({"transport__of": "[{kind: nscc}, {kind: tcp}]"}, r"transport\.of.*1.*tcp does not spray; choices: nscc"),
        ({"transport__of": "[{kind: nscc}, {kind: nsc}]"}, r"transport\.of.*1.*unknown transport"),
        ({"transport__of": "[{kind: nscc}, {paths: 3}]"}, r"transport\.of.*1.*is missing: the kind"),
        ({"transport__of": "[{kind: nscc, path: 3}, {kind: dctcp}]"}, r"transport\.of.*0.*path.*unknown key"),
        ({"transport__of": "[{kind: nscc, paths: 3}, {kind: dctcp}]"}, r"transport\.of.*0.*must be a power of two"),
        ({"transport__of": "[{kind: rccc}, {kind: ndp}]"}, r"transport\.of.*grants credit by one rule"),
        ({"transport__of": "[{kind: several, of: []}, {kind: ndp}]"}, r"transport\.of.*0.*may not be several again"),
        ({"transport__of": "[{kind: nscc}, {kind: dctcp, mark_packets: 3}]"}, r"transport.*1.*mark_packets: not for"),
        ({"switching": "{mode: datagram}"}, r"transport\.of.*0.*kind nscc needs switching\.mode: spray"),
        ({**DATAGRAM, "transport__of": "[{kind: tcp}, {kind: none}]"}, r"transport\.of.*1.*has no congestion control"),
        ({**DATAGRAM, "transport__of": "[{kind: tcp}, {kind: mptcp, ack_path: pure_delay}]"}, "the same ack_path"),
        ({**DATAGRAM, "transport__of": "[{kind: dctcp}, {kind: dctcp, mark_packets: 9}]"}, "mark_packets must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path, sets, says):
    with pytest.raises(ConfigError, match=says):
        study(tmp_path, **sets)


def test_receivers_act_by_the_rules_of_the_transport_with_credit():
    """Whatever its place is; and queues to hosts mark unless all have credit."""
    flows = Flows(*(np.array(column, np.int64) for column in ([0, 1], [2, 2], [10, 10], [0, 0])))
    routes = make("routing", kind="ecmp").build(line(1, hosts=3))

    def session(*kinds: str):
        several = [make("transport", kind=kind).spraying() for kind in kinds]
        return make_spray_session(
            line(1, hosts=3), routes, several, Fabric(), flows._replace(kind=np.arange(2) % len(kinds)), 1, names=kinds
        )

    assert session("nscc", "rccc").rules.credit == session("rccc", "nscc").rules.credit == Credit.RCCC
    assert session("ndp", "nscc").rules.credit == Credit.NDP
    assert session("nscc", "rccc").low[-1] == session("nscc").low[-1] < session("rccc", "rccc").low[-1]
    assert session("ndp", "nscc").queue_bytes[-1] == session("nscc").queue_bytes[-1] > session("ndp").queue_bytes[-1]


@pytest.mark.parametrize("kinds", [("ndp", "rccc"), ("rccc", "nscc_rccc", "nscc")])
def test_two_ways_to_grant_credit_are_refused(kinds):
    spec = make("transport", kind="several", of=[{"kind": kind} for kind in kinds])
    case = session_of_number(3)
    with pytest.raises(SpecError, match="grants credit by one rule"):
        make_spray_session(
            case.topology, make("routing", kind="ecmp").build(case.topology), list(spec.sprayings().values()), Fabric(),
            Flows(case.flows.source, case.flows.destination, case.flows.bytes, case.flows.start), 1,
        )  # fmt: skip


def mixed_session(number: int):
    """A drawn session whose flows have several transports in turn: its own and others."""
    case = session_of_number(number)
    others = [
        make("transport", kind="dctcp", paths=1), make("transport", kind="none", paths=4, rate=0.2),
        make("transport", kind="constant", paths=16, spread="reps"), make("transport", kind="nscc", spread="bitmap"),
    ]  # fmt: skip
    credit = [make("transport", kind=kind) for kind in ("rccc", "ndp", "nscc_rccc")][number % 3]
    several = [(*others, credit), (credit, others[3], others[0])][number % 2]
    ksp = case.topology.kind in ("rrg", "torus") and number % 3
    routes = make("routing", **({"kind": "ksp", "k": 3} if ksp else {"kind": "ecmp"})).build(case.topology)
    kind = np.arange(len(case.flows.source)) % len(several)
    flows = Flows(case.flows.source, case.flows.destination, case.flows.bytes, case.flows.start, kind)
    return make_spray_session(
        case.topology, routes, [spec.spraying() for spec in several], replace(case.fabric, at_switch="ecmp"), flows,
        number, names=tuple(spec.kind for spec in several),
    )  # fmt: skip


@pytest.mark.long  # they need a kernel of their own
@pytest.mark.parametrize("number", range(20))
def test_engines_agree_on_every_packet_and_counter(number):
    session = mixed_session(number)
    compiled, reference = CompiledSpray(session, trace=True), ReferenceSpray(session, trace=True)
    for tick in (30_000, 400_000):
        compiled.advance(tick)
        reference.advance(tick)
        compare_traces(compiled.trace(), reference.trace())
        compare_counters(compiled.counters(), reference.counters())
        assert compiled.ended() == reference.ended()


@pytest.mark.long  # it needs a kernel of its own
@pytest.mark.parametrize("kind", ["nscc", "rccc", "ndp"])
def test_several_that_are_the_same_are_as_one(kind):
    tree = build("fat_tree", k=4)
    order = np.random.default_rng(1).permutation(tree.hosts)
    flows = Flows(order, np.roll(order, 1), np.full(len(order), 300_000), np.zeros(len(order), np.int64))
    routes = make("routing", kind="ecmp").build(tree)
    spraying = make("transport", kind=kind).spraying()
    one = make_spray_session(tree, routes, spraying, Fabric(), flows, 5)
    several = make_spray_session(
        tree, routes, [spraying] * 3, Fabric(), flows._replace(kind=order % 3), 5, names=("a", "b", "c")
    )
    runs = [CompiledSpray(session, trace=True) for session in (one, several)]
    for run_ in runs:
        run_.advance(3_000_000)
    compare_traces(*(run_.trace() for run_ in runs))
    compare_counters(*(run_.counters() for run_ in runs))
    assert (runs[0].counters().flow[:, FlowCount.FINISHED] > 0).all()
