# SPDX-License-Identifier: Apache-2.0
"""The same program in SimGrid: what it is given, what is said where it is missing, and the times where it is not."""

import json
import stat
from fractions import Fraction

import numpy as np
import pytest

from flitlab.models.application.messages import Messages
from flitlab.models.application.workload import Workload
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.flow import Flow
from flitlab.sim.cli import main
from flitlab.sim.config.programs import traffic_of
from flitlab.sim.simgrid.compare import SimGridMissing, by_flow, by_simgrid, plan_of, python_with_simgrid
from tests.scenarios import build, one_way_ring
from tests.sim.test_application_datagram import calc, program, receive, send
from tests.sim.test_application_engines import DONE

TICK_NS, FLIT = 6.4, 32


def scenario(topology, work, *, rendezvous=1 << 40, overhead=0, routing=None, **done) -> Scenario:
    """Mode ``flow``: 16 ticks a switch, 1 a link; packets of 32 flits of 32 bytes without headers."""
    messages = Messages(32 * FLIT, FLIT, 0, 32, False, rendezvous, overhead, Fraction(repr(TICK_NS)), **done)
    routes = make("routing", **(routing or {"kind": "minimal", "select": "hash"})).build(topology)
    host = np.arange(work.ranks)
    workload, switching = Workload(work, host, messages), Flow(header=16)
    return Scenario(Instance(topology, traffic_of(work, host, topology), routes), switching, workload)


def test_plan_has_links_routes_and_operations():
    """A ring of three one-way channels: two links between switches for host 0 to 2, and one back for the consent."""
    work = program([[send(2, 6400), calc(50, 0)], [], [receive(0, 6400)]])
    plan = plan_of(scenario(one_way_ring(3), work, rendezvous=1000, overhead=10), by_latency=True)
    tick = TICK_NS * 1e-9
    bandwidths, latencies = zip(*plan["links"], strict=True)
    assert bandwidths == pytest.approx([FLIT / tick] * 9)
    assert latencies == pytest.approx([18 * tick] * 3 + [18 * tick] * 3 + [0.0] * 3)
    routes = {(a, b): sorted(links) for a, b, links in plan["routes"]}
    assert routes == {(0, 2): [0, 1, 3, 8], (2, 0): [2, 5, 6]}
    assert (plan["size"][0], plan["empty"], plan["waits"]) == (6400, 32, [True, False, False])
    assert plan["hold"] == pytest.approx([10 * tick, 50e-9, 10 * tick])
    json.dumps(plan)


def test_plan_leaves_latency_to_the_end_unless_it_is_to_weigh():
    work = program([[send(2, 6400)], [], [receive(0, 6400)]])
    plan = plan_of(scenario(one_way_ring(3), work))
    assert {latency for _, latency in plan["links"]} == {0.0}
    assert plan["later"] == pytest.approx([3 * 18 * TICK_NS * 1e-9])


def test_plan_needs_one_path_for_a_pair():
    work = program([[send(5, 100)], *([] for _ in range(4)), [receive(0, 100)]])
    with pytest.raises(SpecError, match="minimal routing sends packets from host 0 to host 5 over several paths"):
        plan_of(scenario(build("torus", dims=[4, 4]), work, routing={"kind": "minimal"}))


CONFIG = """
experiment: application
topology: {{kind: torus, dims: [4, 4]}}
routing: {{kind: minimal, select: hash}}
switching: {{mode: {mode}, flit_ns: 6.4, header_ticks: 5}}
application: {{kind: ping_pong, size_bytes: 1000}}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(CONFIG.format(mode="flow"))
    return str(path)


def fake_python(folder, does: str) -> str:
    """A Python that says it has SimGrid and, given a script, does something else."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\n{does}\n')
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


def test_missing_simgrid_is_said(config, capsys, monkeypatch):
    assert main(["simgrid", config, "--python", "/nonexistent/python"]) == 2
    assert "--python /nonexistent/python: has no module 'simgrid'" in capsys.readouterr().err

    def missing(given=None):
        raise SimGridMissing("install it")

    monkeypatch.setattr("flitlab.sim.cli.simgrid.python_with_simgrid", missing)
    assert main(["simgrid", config]) == 2
    assert "simrun simgrid: install it" in capsys.readouterr().err


def test_nothing_found_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("flitlab.sim.simgrid.compare.WORKS", "import a_module_that_is_nowhere")
    python_with_simgrid.cache_clear()
    with pytest.raises(SimGridMissing, match="apt-get install python3-simgrid"):
        python_with_simgrid()
    python_with_simgrid.cache_clear()


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo first; echo no such zone >&2; exit 3", "SimGrid ended with code 3: no such zone"),
        ("""echo '{"finish": [0.0, null, 1.0, null]}' > "$3" """, "SimGrid did not come to the end of operation 1"),
    ],
)
def test_what_goes_wrong_in_simgrid_is_said(config, capsys, tmp_path, does, says):
    assert main(["simgrid", config, "--python", fake_python(tmp_path, does)]) == 1
    assert says in capsys.readouterr().err


def test_only_flows_are_compared(tmp_path, capsys):
    path = tmp_path / "x.yaml"
    path.write_text(CONFIG.format(mode="vct"))
    assert main(["simgrid", str(path), "--python", fake_python(tmp_path, "exit 1")]) == 2
    assert "SimGrid simulates flows; use --set switching.mode=flow" in capsys.readouterr().err


def test_times_are_printed_side_by_side(config, capsys, tmp_path):
    """A stand-in gives the times of mode flow itself: a ping-pong of 1000 bytes between neighbours."""
    trip = (1 + 2 * (5 + 1) + 1 + 1 + 31) * TICK_NS
    times = json.dumps({"finish": [0.0, 2e-9 * trip, 1e-9 * trip, 1e-9 * trip]})
    python = fake_python(tmp_path, f"echo '{times}' > \"$3\"")
    assert main(["simgrid", config, "--python", python, "--json", "--out", str(tmp_path / "kept")]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert row["simgrid_ns"] == pytest.approx(2 * trip)
    assert row["difference_percent"] == pytest.approx(0, abs=1e-6)
    assert (tmp_path / "kept" / "0" / "plan.json").exists()


def ring_all_reduce(ranks: int, size: int):
    """Every rank passes on a part as soon as it has the one before."""
    rows = []
    for rank in range(ranks):
        row = []
        for k in range(2 * (ranks - 1)):
            needs = [] if k == 0 else [2 * k - 2, 2 * k - 1]
            row += [send((rank + 1) % ranks, size // ranks, *needs), receive((rank - 1) % ranks, size // ranks, *needs)]
        rows.append(row)
    return program(rows)


CASES = {
    "ping-pong": (
        one_way_ring(6),
        program([[send(1, 10_000), receive(1, 10_000)], [receive(0, 10_000), send(0, 10_000, 0)]]),
    ),
    "shared link": (
        one_way_ring(3),
        program([[send(2, 64_000)], [send(2, 64_000)], [receive(0, 64_000), receive(1, 64_000)]]),
    ),
    "ring all-reduce": (one_way_ring(8), ring_all_reduce(8, 80_000)),
    "one after another": (
        one_way_ring(4),
        program(
            [
                [send(1, 20_000), send(2, 10_000, 0), send(3, 30_000, 1)],
                *([receive(0, size)] for size in (20_000, 10_000, 30_000)),
            ]
        ),
    ),
    "all at once": (
        build("torus", dims=[3, 3]),
        program(
            [
                [op for k in range(1, 9) for op in (send((r + k) % 9, 5000), receive((r - k) % 9, 5000))]
                for r in range(9)
            ]
        ),
    ),
}


@pytest.mark.parametrize(("rendezvous", "done"), [(0, {}), *((1 << 40, done) for done in DONE[1:])])
@pytest.mark.parametrize("name", CASES)
def test_simgrid_gives_the_same_times(name, rendezvous, done):
    try:
        python = python_with_simgrid()
    except SimGridMissing as error:
        pytest.skip(str(error))
    case = scenario(*CASES[name], rendezvous=rendezvous, overhead=5, **done)
    ours, theirs = by_flow(case, 1), by_simgrid(case, 1, python)
    assert ours.makespan == pytest.approx(theirs.makespan, rel=1e-3)
    np.testing.assert_allclose(ours.ranks, theirs.ranks, rtol=1e-2)
