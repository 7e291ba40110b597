# SPDX-License-Identifier: Apache-2.0
"""Programs as a user runs them: configuration, results, bounds, tables."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.fluid.makespan import makespan_bounds
from flitlab.models.application.builder import Builder
from flitlab.models.application.messages import Messages, flits_of, packets_of, total_flits
from flitlab.models.application.phases import phases, separators
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.base import Cause, Execution, ProgramStatus
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import run
from flitlab.sim.measure.application import ProgramMeasure, run_to_end
from flitlab.sim.measure.critical_path import critical_path, shares
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.spans import Spans, union_lengths, union_until
from flitlab.sim.measure.unfinished import UnfinishedError
from tests import long_after
from tests.programs import program

BASE = """\
experiment: application
topology: {kind: torus, dims: [4]}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4, switch_ns: 12.8}
application: {kind: ping_pong, size_bytes: 3200, ranks: 2}
"""

DATAGRAM = """\
experiment: application
topology: {kind: torus, dims: [4]}
routing: {kind: ecmp, ways: 2}
switching: {mode: datagram}
transport: {kind: tcp}
application: {kind: ping_pong, size_bytes: 3200, ranks: 2}
"""


def case_of(text: str, *sets: str):
    """The only scenario of a configuration."""
    (case,) = read("c.yaml", list(sets), text=text).cases
    return case


def mistakes(text: str, *sets: str) -> list[str]:
    """The lines that a configuration is refused with."""
    with pytest.raises(ConfigError) as caught:
        read("c.yaml", list(sets), text=text)
    return [str(mistake) for mistake in caught.value.errors]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("switching={mode: flow}", "switching.flit_ns: is missing: a program computes in nanoseconds"),
        ("application.ranks=5", "application.ranks = 5: "),
        ("application={kind: bt, ranks: 3}", "application.ranks = 3: "),
        ("application={kind: bts}", "application.kind = bts: unknown application; choices: "),
        ("placement={kind: random, sed: 1}", "placement.sed = 1: unknown key; choices: "),
        ("traffic={kind: uniform}", "traffic: is not for experiment: application: its program defines the traffic"),
        ("loads=[0.1]", "loads = [0.1]: is not for experiment: application"),
        ("transport={kind: tcp}", "transport: is not for mode flow, but for modes datagram and spray"),
        ("routing={kind: deflection}", "routing: deflection is adaptive: mode flow needs an oblivious routing"),
        ("routing={kind: minimal, select: adaptive}", "routing: minimal is adaptive: mode flow needs"),
        ("messages={packet_flits: 2, header_flits: 2}", "messages: header_flits must be fewer than packet_flits"),
        ("outputs.relative_to=nothing", "outputs.relative_to = nothing: names no scenario; choices: "),
        ("ceilings=[makespann]", "ceilings[0] = makespann: unknown ceiling"),
    ],
)
def test_refused(change, expected):
    found = mistakes(BASE, change)
    assert len(found) == 1 and expected in found[0], found


def test_misplaced_keys():
    sweep = "topology: {kind: torus, dims: [4]}\nrouting: {kind: minimal}\ntraffic: {kind: uniform}\nloads: [0.1]\n"
    found = mistakes(sweep + "application: {kind: bt}\nmessages: {flit_bytes: 8}\nswitching: {mode: flow}\n")
    assert len(found) == 3 and all("is for experiment: application" in line for line in found)
    assert "makespan is for experiment: application" in mistakes(sweep + "ceilings: [makespan]\n")[0]


def test_messages_in_ticks():
    workload = case_of(BASE, "messages={packet_flits: 8, header_flits: 1, overhead_ns: 7}").scenario.work
    messages = workload.messages
    assert (messages.packet_bytes, messages.overhead, messages.whole) == (7 * 32, 2, False)
    assert case_of(BASE, "routing={kind: deflection}", "switching.mode=deflection").scenario.work.messages.whole


def test_resolved_is_read_back():
    case = case_of(BASE, "application={kind: mg, class: S, ranks: 4}", "placement={kind: random, seed: 3}")
    text = json.dumps({"schema": 1, "experiment": "application", **case.resolved})
    again = case_of(text)
    assert again.scenario.content_hash == case.scenario.content_hash and again.resolved == case.resolved


@given(size=st.integers(0, 5000), packet=st.integers(1, 9), header=st.integers(0, 3), whole=st.booleans())
@settings(max_examples=60, deadline=None)
def test_total_flits_adds_up_packets(size, packet, header, whole):
    messages = Messages(packet * 16, 16, header, packet + header, whole, 0, 0, 1)
    count = packets_of(size, messages.packet_bytes)
    one_by_one = sum(
        flits_of(size, left, messages.packet_bytes, 16, header, messages.packet_flits, whole)
        for left in range(1, count + 1)
    )
    assert total_flits(np.array([size]), messages)[0] == one_by_one


def rounds(kind: str, ranks: int = 4, size: int = 6400) -> Builder:
    builder = Builder(ranks)
    everybody = np.arange(ranks)
    for number in range(3):
        builder.begin("work", size=number)
        builder.calculate(1000.0 * (1 + everybody))
        if kind != "none":
            builder.begin("ring", size=size)
            builder.exchange(everybody, (everybody + 1) % ranks, size)
        builder.begin("all", synchronising=True)
        source, target = np.nonzero(~np.eye(ranks, dtype=bool))
        builder.exchange(source, target, 64)
    return builder


def test_separators_and_phases():
    program = rounds("ring").build()
    order = separators(program)
    assert [program.steps[s].name for s in order] == ["all"] * 3
    found = phases(program)
    for o in range(program.operations):
        step = program.step[o]
        if step in order:
            assert found[o] == 2 * order.index(step) + 1
        else:
            assert found[o] == 2 * sum(other < step for other in order)


def test_a_step_that_lets_others_pass_separates_nothing():
    builder = rounds("ring")
    early = builder.declare([0], [1], 100)
    with builder.on(1):  # a thread of its own: nobody waits for it before the end
        builder.begin("aside")
        builder.send(early)
        builder.receive(early)
    assert separators(builder.build()) == []


def on_network(program, text: str = BASE, rendezvous: int = 1 << 40, overhead: int = 0):
    """The scenario of a configuration with another program, rank r on host r."""
    scenario = case_of(text).scenario
    messages = replace(scenario.work.messages, rendezvous=rendezvous, overhead=overhead)
    return replace(scenario, work=Workload(program, np.arange(program.ranks), messages))


def test_bounds_of_a_ping_pong():
    case = case_of(BASE, "application.repeats=1")
    found = makespan_bounds(case.scenario)
    model, flits = case.scenario.switching, 100
    one_way = model.injection + 2 * (model.header + model.switch) + model.link + model.ejection + flits - 1
    assert found.path == 2 * one_way and found.ticks == found.path and found.binding == "path"
    assert measure("compiled", case.scenario, 1.0, 1, ProgramMeasure()).row["makespan_ns"] == pytest.approx(
        2 * one_way * 6.4
    )


def test_a_bound_has_the_delay_of_the_quickest_of_parallel_channels():
    links = "topology: {kind: file, format: edgelist, text: '0 -- 1 1 9\n\n  0 -- 1 1 4'}"
    case = case_of(BASE.replace("topology: {kind: torus, dims: [4]}", links), "application.repeats=1")
    model, flits = case.scenario.switching, 100
    one_way = model.injection + 2 * (model.header + model.switch) + model.link + model.ejection + flits - 1
    assert makespan_bounds(case.scenario).path == 2 * (one_way + 4)


@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
def test_a_ping_pong_takes_the_delays_of_hosts(mode):
    """Node 0 is 6 cycles from its router, node 1 is 3, and there are two cycles between the routers."""
    lines = "router 0 node 0 6 router 1 2\n\n  router 1 node 1 3 router 0 2"
    links = f"topology: {{kind: file, format: anynet, text: '{lines}'}}"
    text = BASE.replace("topology: {kind: torus, dims: [4]}", links).replace("mode: flow", f"mode: {mode}")
    more = [] if mode == "flow" else ["switching.buffer_flits=256"]
    case = case_of(text, "application.repeats=1", *more)
    model, flits = case.scenario.switching, 100
    one_way = model.injection + 2 * (model.header + model.switch) + model.link + model.ejection + flits - 1
    assert makespan_bounds(case.scenario).path == 2 * (one_way + 5 + 2 + 1)
    found = measure("compiled", case.scenario, 1.0, 1, ProgramMeasure()).row["makespan_ns"]
    assert found == pytest.approx(2 * (one_way + 8) * 6.4)


@pytest.mark.parametrize(("rendezvous", "handshake"), [(1 << 40, 0), (999, 3)])
@pytest.mark.parametrize("how", [{}, {"buffered": True}, {"confirmed": True}])
def test_a_bound_knows_when_a_message_to_oneself_is_done(engine_name, rendezvous, handshake, how):
    """A calculation of 100 ns follows: at once, or after a tick each of RTS, CTS and the message."""
    calculation, to_oneself = (Op.CALC, 100, 0, 0, 0, [(0, 0)]), (Op.SEND, 1000, 0, 0, 0, [])
    own = program([[to_oneself, (Op.RECV, 1000, 0, 0, 1, []), calculation], []])
    scenario = on_network(own, BASE.replace("flit_ns: 6.4", "flit_ns: 1"), rendezvous=rendezvous)
    scenario = replace(scenario, work=Workload(own, np.arange(2), replace(scenario.work.messages, **how)))
    assert makespan_bounds(scenario).ticks == handshake + 100
    assert measure(engine_name, scenario, 1.0, 1, ProgramMeasure()).row["makespan_ns"] == handshake + 100


def test_bounds_of_phases():
    """Three phases of ring traffic, each of which fills the host channels, with separators between them."""
    found = makespan_bounds(on_network(rounds("ring").build()))
    flits = 6400 / 32
    assert found.phases >= 3 * flits
    assert found.volume >= 3 * (flits + 3 * 2)
    assert found.processor >= 3 * 4000 / 6.4 - 1e-9
    by_name = {step.kind.name: step for step in found.steps}
    assert by_name["ring"].ticks >= flits and by_name["ring"].occurrences == 3


PLANS = st.lists(
    st.tuples(
        st.sampled_from(["calculate", "exchange", "all"]), st.integers(0, 3000), st.integers(1, 3), st.booleans()
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@pytest.mark.long
@given(
    plan=PLANS, rendezvous=st.sampled_from([0, 500, 1 << 40]), overhead=st.sampled_from([0, 3]),
    mode=st.sampled_from(["flow", "vct"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_run_beats_the_bound(plan, rendezvous, overhead, mode):
    """Of random programs the bound holds, the critical path covers all of the time, and no time is lost."""
    ranks, everybody = 4, np.arange(4)
    builder = Builder(ranks)
    for what, amount, shift, skewed in plan:
        builder.begin(what, synchronising=what == "all")
        if what == "calculate":
            builder.calculate(float(amount) * (1 + skewed * everybody))
        elif what == "exchange":
            builder.exchange(everybody, (everybody + shift) % ranks, amount)
        else:
            source, target = np.nonzero(~np.eye(ranks, dtype=bool))
            builder.exchange(source, target, amount)
    text = BASE.replace("mode: flow", f"mode: {mode}")
    scenario = on_network(builder.build(), text, rendezvous=rendezvous, overhead=overhead)
    result = measure("compiled", scenario, 1.0, 1, ProgramMeasure())
    bounds = makespan_bounds(scenario)
    end = result.row["makespan_ns"]
    assert end >= float(bounds.ticks * bounds.tick_ns) * (1 - 1e-9)
    covered = sum(result.row[f"path_{kind}"] for kind in ("compute", "overhead", "message", "processor"))
    assert covered == pytest.approx(1.0 if end else 0.0)
    for row in result.detail["ranks"]:
        busy = row["compute_ns"] + row["overhead_ns"]
        assert busy + row["wait_ns"] == pytest.approx(end) and row["finish_ns"] <= end
    times = {row["label"]: row["time_ns"] for row in result.detail["steps"]}
    for step in bounds.steps:
        assert times[step.kind.label] >= float(step.ticks * bounds.tick_ns) * (1 - 1e-9)


def test_critical_path_by_hand():
    """Rank 0 computes for 10 and sends; rank 1's receive waits for the message, then for its own calculation's end."""
    builder = Builder(2)
    builder.begin("a")
    builder.calculate(10.0, np.array([0]))
    builder.exchange([0], [1], 100)
    builder.calculate(5.0, np.array([1]))
    program = builder.build()
    # 0: calculation, 1: send, 2: receive, 3: calculation; overhead 2
    execution = Execution(
        1, ready=np.array([0, 10, 0, 22]), start=np.array([0, 10, 20, 22]), finish=np.array([10, 12, 22, 27]),
        queued=np.array([-1, 12, -1, -1]), delivered=np.array([-1, 20, -1, -1]),
        cause=np.array([-1, 4 * 0 + Cause.FINISHED, 4 * 1 + Cause.MESSAGE, 4 * 2 + Cause.FINISHED]),
    )  # fmt: skip
    messages = Messages(1024, 32, 0, 32, False, 1 << 40, 2, 1)
    path = critical_path(program, messages, execution, 1)
    assert [(s.kind, s.operation, s.start, s.end) for s in path] == [
        ("compute", 0, 0, 10), ("overhead", 1, 10, 12), ("message", 1, 12, 20), ("overhead", 2, 20, 22),
        ("compute", 3, 22, 27),
    ]  # fmt: skip
    assert shares(path, 27)["compute"] == pytest.approx(15 / 27)
    execution.cause[3] = 4 * 2 + Cause.PROCESSOR
    assert critical_path(program, messages, execution, 1)[-2].kind == "processor"


def test_unions_of_spans():
    spans = Spans(*(np.array(part) for part in ([0, 0, 0, 1], [0, 2, 10, 5], [4, 6, 11, 9], [0, 1, 2, 3])))
    assert union_lengths(spans, 3).tolist() == [7, 4, 0]
    assert union_until(spans.only(spans.rank == 0), np.array([0, 3, 8, 10.5, 20])).tolist() == [0, 3, 6, 6.5, 7]
    assert union_until(spans.only(spans.rank == 2), np.array([1.0])).tolist() == [0]


class Stuck:
    """A run in which nothing happens any more. waiting, travelling: packets that are left in it."""

    latest = 1 << 20

    def __init__(self, operations: int, waiting: int = 0, travelling: int = 0, deadlock: bool = False):
        self.operations = operations
        self.left = ProgramStatus(7, waiting, travelling, False)
        self.deadlock = deadlock
        self.moves = 0  # at every look

    def program_status(self):
        self.left = self.left._replace(moved=self.left.moved + self.moves)
        return self.left

    def deadlocked(self):
        return self.deadlock

    def advance(self, until):
        pass

    def done(self):
        return False

    def carried(self):
        return np.zeros(4)

    def execution(self):
        never = np.full(self.operations, -1)
        return Execution(1, np.zeros(self.operations), never, never, never, never, never)


@pytest.mark.long
def test_a_program_without_an_end():
    scenario = case_of(BASE).scenario
    count = scenario.work.program.operations

    def why(run, scenario=scenario, max_ticks=None):
        with pytest.raises(UnfinishedError) as caught:
            run_to_end(run, scenario, max_ticks)
        reason, rest, waiting = str(caught.value).split("; ", 2)
        assert rest == f"{count} of {count} operations are incomplete"
        first = "waiting: operation 0 of rank 0 sends to rank 1 (3200 bytes, tag 0): the send has started; "
        assert waiting.startswith(first)
        return reason

    assert why(Stuck(count)).startswith("the program stalls: no message is in flight")
    assert why(Stuck(count, 1), max_ticks=10) == "the program takes longer than measure.max_ticks, 10 ticks"
    going_on, moving = Stuck(count), Stuck(count, 1)
    going_on.left = going_on.left._replace(event_pending=True)
    moving.moves = 1
    for busy in (going_on, moving):
        assert why(busy).startswith("the program takes longer than 1,048,576 ticks, the limit of mode flow")
    vct = case_of(BASE, "switching.mode=vct").scenario
    where = "(3 in the network, 2 at hosts)"
    deadlock = why(Stuck(count, 2, 3, True), vct)
    assert deadlock == f"the network is deadlocked: packets wait for each other in a cycle {where}"
    still = why(Stuck(count, 2, 3), vct)
    assert still.startswith("no packet has moved for ") and still.endswith(f"though some wait {where}")
    datagram = case_of(DATAGRAM).scenario
    stuck = Stuck(count, 2, 3)
    stuck.left = stuck.left._replace(retransmission_ticks=100_000)  # longer than without retransmission
    reason = why(stuck, datagram)
    assert reason.startswith("no packet has reached its receiver for ") and reason.endswith(f"though some wait {where}")
    assert int(reason.split()[7].replace(",", "")) > 100_000


@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct", "wormhole", "deflection"]))
def test_messages_within_a_switch_may_take_long(mode, engine_name):
    """Nothing passes a channel between switches while two hosts of one talk; a calculation is no standstill either."""
    size = 100_000 if engine_name == "compiled" else 40_000
    case = case_of(
        BASE, "topology.hosts_per_switch=2", f"switching.mode={mode}", f"application.size_bytes={size}",
        "routing.kind=deflection" if mode == "deflection" else "routing.select=hash", "messages.rendezvous_bytes=null",
    )  # fmt: skip
    row = measure(engine_name, case.scenario, 1.0, 1, ProgramMeasure()).row
    model, flits = case.scenario.switching, -(-size // 32)
    flits = -(-flits // 32) * 32 if mode == "deflection" else flits  # whose packets are all full
    one_way = model.injection + model.header + model.switch + model.ejection + flits - 1
    assert row["makespan_ns"] == pytest.approx(2 * one_way * 6.4) and row["utilisation_max"] == 0


@pytest.mark.long
def test_the_longest_time_that_is_allowed_is_enough():
    case = case_of(BASE, "switching.mode=vct")
    ticks = measure("compiled", case.scenario, 1.0, 1, ProgramMeasure()).row["ticks"]
    assert measure("both", case.scenario, 1.0, 1, ProgramMeasure(ticks)).row["ticks"] == ticks
    with pytest.raises(UnfinishedError, match=f"measure.max_ticks, {ticks - 1} ticks; 1 of 4 .* receives from rank 1"):
        measure("both", case.scenario, 1.0, 1, ProgramMeasure(ticks - 1))


@pytest.mark.long
def test_a_deadlock_is_told(tmp_path):
    """A ring of one-way channels with one VC, whose hosts send to those before them; the message has GOAL's labels."""
    ranks = 4
    lines = [f"num_ranks {ranks}"]
    for r in range(ranks):
        peer, other = (r + 3) % ranks, (r - 3) % ranks
        lines += [f"rank {r} {{", f"send 64000b to {peer}", f"in{r}: recv 64000b from {other}", "}"]
    (tmp_path / "ring.goal").write_text("\n".join(lines))
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 3\n3 0\n")
    case = case_of(
        BASE, "topology={kind: file, path: ring.txt, directed: true}", "routing={kind: minimal, vc_policy: any}",
        "switching={mode: vct, flit_ns: 6.4, vcs: 1, allow_deadlock: true}",
        "application={kind: goal, path: ring.goal}",
    )  # fmt: skip
    with pytest.raises(UnfinishedError) as caught:
        measure("both", case.scenario, 1.0, 1, ProgramMeasure())
    said = str(caught.value)
    assert said.startswith("the network is deadlocked: packets wait for each other in a cycle (")
    assert "operation 1 of rank 0, label in0, receives from rank 1 (64000 bytes, tag 0): in flight since tick 0" in said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two programs on two networks."""
    place = tmp_path_factory.mktemp("application")
    (place / "c.yaml").write_text(
        "experiment: application\n"
        "cases:\n"
        "  - {label: ring, topology: {kind: torus, dims: [4]}}\n"
        "  - {label: full, topology: {kind: hyperx, dims: [4]}}\n"
        "routing: {kind: minimal}\nswitching: {mode: flow, flit_ns: 6.4}\n"
        "application: {sweep: [{kind: mg, class: S}, {kind: ft, class: S, iterations: 2}]}\n"
        "outputs: {relative_to: {case: ring}, formats: [png]}\nceilings: [makespan, split]\n"
        "published: [{where: mean, scenario: {case: full}, over: mean, quantity: relative_performance, value: 1.0,"
        " compare: at_least}]\n"
    )
    report = run(read(place / "c.yaml"), place / "run")
    assert report.exit_code == 0, report.problems
    return place / "run"


def test_tables(folder):
    results = pd.read_csv(folder / "results.csv")
    assert (results.status == "ok").all() and len(results) == 4
    assert ((results.efficiency > 0) & (results.efficiency <= 1 + 1e-9)).all()
    assert (results.bound_ns <= results.makespan_ns * (1 + 1e-9)).all() and (results.split_ns > 0).all()
    ring, full = (results[results.case == name].set_index("application") for name in ("ring", "full"))
    assert (ring.relative_performance == 1).all()
    expected = (ring.total_ns / full.total_ns).to_numpy()
    assert full.relative_performance.to_numpy() == pytest.approx(expected) and (expected >= 1).all()
    assert pd.read_csv(folder / "published.csv").verdict.tolist() == ["order agrees"]
    ranks = pd.read_csv(folder / "ranks.csv")
    assert len(ranks) == 16
    for name in ("steps", "utilisation", "messages", "critical_path", "timeline"):
        assert len(pd.read_csv(folder / f"{name}.csv")), name
    counted = pd.read_csv(folder / "messages.csv").groupby("scenario").messages.sum()
    assert counted.to_dict() == results.set_index("scenario").messages.to_dict()
    path = pd.read_csv(folder / "critical_path.csv")
    for scenario, mine in path.groupby("scenario"):
        end = results[results.scenario == scenario].makespan_ns.item()
        assert mine.from_ns.iloc[0] == 0 and mine.to_ns.iloc[-1] == pytest.approx(end)
        assert np.allclose(mine.to_ns.to_numpy()[:-1], mine.from_ns.to_numpy()[1:])


def test_extrapolation(folder):
    results = pd.read_csv(folder / "results.csv")
    row = results[results.application.str.startswith("ft")].iloc[0]
    assert (row.iterations_simulated, row.extrapolated_from) == (2, "iterations 2..2")
    more = row.iterations_total - 2
    assert row.total_ns == pytest.approx(row.makespan_ns + more * row.iteration_ns)


def test_same_again(folder):
    """What is there is not run again, and the files are the same."""
    before = (folder / "results.csv").read_bytes()
    assert run(read(folder.parent / "c.yaml"), folder, RunOptions(2)).exit_code == 0
    assert (folder / "results.csv").read_bytes() == before


def test_figures(folder):
    from flitlab.sim.report.figures.draw import draw
    from flitlab.sim.report.html import write

    assert {path.stem for path in draw(folder, formats=("png",))} == {"performance", "steps", "utilisation", "timeline"}
    page = write(folder).read_text("utf-8")
    assert "Programs" in page and "Collectives and other steps" in page


def test_a_result_below_its_bound_is_a_mistake_of_ours(folder, tmp_path, monkeypatch, capsys):
    from flitlab.sim.experiment import points

    monkeypatch.setattr(points, "slack_of_bound", lambda row, found: {"makespan": -0.5})
    text = BASE + "outputs: {figures: [], html: false}\n"
    (tmp_path / "c.yaml").write_text(text)
    assert main([str(tmp_path / "c.yaml"), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 3
    assert "ended sooner than its lower bound" in capsys.readouterr().err


@pytest.mark.long
def test_commands(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(BASE + "outputs: {figures: [], html: false}\n")
    assert main(["check", str(tmp_path / "c.yaml")]) == 0
    said = capsys.readouterr().out
    assert "ping_pong: 2 ranks" in said and "ceilings     makespan" in said
    assert main(["list", "placement"]) == 0 and "linear" in capsys.readouterr().out
    assert main(["show", "application", "bt"]) == 0 and "class" in capsys.readouterr().out
    assert main(["ceilings", str(tmp_path / "c.yaml"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["ceiling"] == "makespan" and rows[0]["unit"] == "ns" and rows[0]["lower"] > 0
    assert main(["quick", str(tmp_path / "c.yaml"), "--jobs", "1"]) == 0


@pytest.mark.long
def test_modes_agree_on_what_nobody_shares():
    """One large message takes as long as its flits in every mode."""
    times = {}
    for mode in ("flow", "vct"):
        buffers = [] if mode == "flow" else ["switching.buffer_flits=256"]
        case = case_of(BASE, f"switching.mode={mode}", "application.size_bytes=320000", *buffers)
        result = measure("compiled", case.scenario, 1.0, 1, ProgramMeasure())
        times[mode] = result.row["makespan_ns"]
        bound = makespan_bounds(case.scenario)
        assert times[mode] >= float(bound.ticks * bound.tick_ns) * (1 - 1e-9)
        assert not math.isnan(result.row["utilisation_mean"])
    assert max(times.values()) <= 1.02 * min(times.values())


def test_a_network_of_one_switch_has_a_page(tmp_path, capsys, monkeypatch):
    """It has no channels, so that there is no utilisation to draw."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.ns3").write_text("3 1 2\n0\n1 0 100Gbps 1us 0\n2 0 100Gbps 1us 0\n")
    (tmp_path / "one.yaml").write_text(
        "experiment: application\ntopology: {kind: file, path: one.ns3}\n"
        "routing: minimal\nengine: reference\nswitching: {mode: flow, link_gbps: 100}\nmessages: {flit_bytes: 64}\n"
        "application: {kind: all_to_all, size_bytes: 4096}\noutputs: {html: true}\n"
    )
    assert main(["run", "one.yaml", "--out", "r", "--jobs", "1"]) == 0
    assert "KeyError" not in capsys.readouterr().err and (tmp_path / "r" / "report.html").exists()
