# SPDX-License-Identifier: Apache-2.0
"""Collectives take the time of the textbook where only hosts can be busy: latencies of their rounds, and the bytes.

alpha: ticks of a message besides its flits. n: flits of what a rank has to give. p: ranks. Thakur, Rabenseifner and
Gropp 2005, section 4, has the formulas; a network of ranks each next to all others, or on one switch, has no channel
that two messages of a round share.
"""

from dataclasses import replace
from functools import cache
from math import lcm

import numpy as np
import pytest

from flitlab.fluid.makespan import makespan_bounds
from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import COLLECTIVES, collective, group_of
from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.sim.config.pipeline import read
from flitlab.sim.engines.start import start
from tests import long_after
from tests.models.test_collectives import rounds
from tests.programs import program
from tests.scenarios import build
from tests.sim.test_flow import flows, latency

FLIT = 32
RANKS = range(2, 18)


def log_up(p: int) -> int:
    return (p - 1).bit_length()


def blocks(p: int) -> int:
    """How many blocks of an all-to-all by Bruck's algorithm a rank sends in all rounds."""
    return sum(j >> k & 1 for j in range(p) for k in range(log_up(p)))


def levels(p: int) -> tuple[int, int, int]:
    """Ranks of a group where nobody says how many, rounds of a tree in it, and how many groups there are."""
    return group_of(p), log_up(group_of(p)), p // group_of(p)


def hierarchical_all_gather(p: int, a: int, n: int) -> int:
    group, log, count = levels(p)
    return (log * a + (group - 1) * n) + (count - 1) * (a + group * n) + log * (a + p * n)


def hierarchical_reduce_scatter(p: int, a: int, n: int) -> int:
    group, log, count = levels(p)
    return log * (a + n) + (count - 1) * (a + n // count) + log * a + (group - 1) * n // p


def hierarchical_all_reduce(p: int, a: int, n: int) -> int:
    _, log, count = levels(p)
    return 2 * log * (a + n) + 2 * (count - 1) * (a + n // count)


TEXTBOOK = {
    ("all_gather", "bucket"): lambda p, a, n: (p - 1) * (a + n),
    ("all_reduce", "bucket"): lambda p, a, n: 2 * (p - 1) * (a + n // p),
    ("reduce_scatter", "bucket"): lambda p, a, n: (p - 1) * (a + n // p),
    ("all_gather", "hierarchical"): hierarchical_all_gather,
    ("all_reduce", "hierarchical"): hierarchical_all_reduce,
    ("reduce_scatter", "hierarchical"): hierarchical_reduce_scatter,
    ("all_gather", "ring"): lambda p, a, n: (p - 1) * (a + n),
    ("all_gather", "bruck"): lambda p, a, n: log_up(p) * a + (p - 1) * n,
    ("all_gather", "recursive_doubling"): lambda p, a, n: log_up(p) * a + (p - 1) * n,
    ("all_reduce", "ring"): lambda p, a, n: 2 * (p - 1) * (a + n // p),
    ("all_reduce", "recursive_doubling"): lambda p, a, n: log_up(p) * (a + n),
    ("all_reduce", "rabenseifner"): lambda p, a, n: 2 * log_up(p) * a + 2 * (p - 1) * n // p,
    ("all_to_all", "linear"): lambda p, a, n: a + (p - 1) * n,
    ("all_to_all", "scattered"): lambda p, a, n: a + (p - 1) * n,
    ("all_to_all", "pairwise"): lambda p, a, n: (p - 1) * (a + n),
    ("all_to_all", "bruck"): lambda p, a, n: log_up(p) * a + blocks(p) * n,
    ("barrier", "dissemination"): lambda p, a, n: log_up(p) * (a + 1),
    ("broadcast", "binomial"): lambda p, a, n: log_up(p) * (a + n),
    ("broadcast", "van_de_geijn"): lambda p, a, n: (log_up(p) + p - 1) * a + 2 * (p - 1) * n // p,
    ("broadcast", "scatter_doubling"): lambda p, a, n: 2 * log_up(p) * a + 2 * (p - 1) * n // p,
    ("gather", "binomial"): lambda p, a, n: log_up(p) * a + (p - 1) * n,
    ("scatter", "binomial"): lambda p, a, n: log_up(p) * a + (p - 1) * n // p,
    ("reduce", "binomial"): lambda p, a, n: log_up(p) * (a + n),
    ("reduce_scatter", "ring"): lambda p, a, n: (p - 1) * (a + n // p),
    ("reduce_scatter", "pairwise"): lambda p, a, n: (p - 1) * (a + n // p),
    ("reduce_scatter", "recursive_halving"): lambda p, a, n: log_up(p) * a + (p - 1) * n // p,
}

FOLDED = {
    ("all_gather", "recursive_doubling"), ("all_reduce", "recursive_doubling"), ("all_reduce", "rabenseifner"),
    ("reduce_scatter", "recursive_halving"), ("broadcast", "scatter_doubling"),
}  # fmt: skip
"""Where p is no power of two, some of their members act for two; see below."""

CONFIG = """
experiment: application
topology: {topology}
routing: {{kind: minimal}}
switching: {{mode: {mode}, flit_ns: 6.4}}
application: {{kind: barrier}}
"""


@cache
def network(mode: str, p: int, apart: bool) -> tuple[Scenario, int]:
    """Ranks with a switch each, or all on one, with all settings but these as they are by default; and alpha."""
    topology = f"{{kind: hyperx, dims: [{p}]}}" if apart else f"{{kind: hyperx, dims: [1], hosts_per_switch: {p}}}"
    (case,) = read("c.yaml", text=CONFIG.format(topology=topology, mode=mode)).cases
    assert case.scenario is not None
    model, hops = case.scenario.switching, int(apart)
    ends = model.injection + model.ejection - 1
    return case.scenario, ends + (hops + 1) * (model.header + model.switch) + hops * model.link


def ticks(scenario: Scenario, what: Program, engine: str = "compiled", **messages) -> float:
    """What a program takes, to its end."""
    workload = scenario.work
    workload = Workload(what, np.arange(what.ranks), replace(workload.messages, **messages))
    scenario = replace(scenario, work=workload)
    run = start(engine, scenario, 1.0, 1)
    run.advance(1 << 24)
    assert run.done()
    execution = run.execution()
    return float(execution.finish.max() / execution.resolution)


def made(name: str, algorithm: str | None, p: int, size: int) -> Program:
    builder = Builder(p)
    collective(builder, name, np.arange(p)[None], size, algorithm)
    return builder.build()


@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
@pytest.mark.parametrize(("name", "algorithm"), TEXTBOOK)
def test_times_are_those_of_the_textbook(mode, name, algorithm):
    """To the tick, of eager messages, whose sends are done when they have left.

    Trees whose branches end early save latencies: a member's next message leaves without waiting for the last one's.
    """
    assert {(n, a) for n, found in COLLECTIVES.items() for a in found.algorithms} == set(TEXTBOOK)
    for p in RANKS:
        power = p & (p - 1) == 0
        if (name, algorithm) in FOLDED and not power:
            continue
        n = 2 * lcm(p, 1 << log_up(p)) if name in ("all_reduce", "reduce_scatter", "broadcast", "scatter") else 48
        apart = p % 3 > 0
        scenario, alpha = network(mode, p, apart)
        took = ticks(scenario, made(name, algorithm, p, n * FLIT), rendezvous=1 << 40)
        book, saved = TEXTBOOK[name, algorithm](p, alpha, n), 0
        if not power and name in ("broadcast", "scatter", "gather", "reduce"):
            saved = log_up(p) * alpha
        if algorithm == "hierarchical" and group_of(p) == 3:
            saved = 2 * alpha
        assert book - saved <= took <= book + 0.01, (p, apart)


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
@pytest.mark.parametrize("name", COLLECTIVES)
def test_as_a_user_runs_it(mode, name):
    """64 KiB by the algorithm that is chosen: a rendezvous takes two messages more, a part of the bytes a flit."""
    for p in RANKS:
        program = made(name, None, p, 65536)
        algorithm = program.steps[0].algorithm
        if (name, algorithm) in FOLDED and p & (p - 1):
            continue
        scenario, alpha = network(mode, p, True)
        flits, rounds = TEXTBOOK[name, algorithm](p, 0, 65536 // FLIT), TEXTBOOK[name, algorithm](p, 1, 0)
        took = ticks(scenario, program)
        assert flits <= took <= flits + rounds * (3 * (alpha + 1) + 1), p
        if p in (5, 8):
            workload = replace(scenario.work, program=program, host=np.arange(p))
            assert took >= makespan_bounds(replace(scenario, work=workload)).ticks * (1 - 1e-12)


@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
@pytest.mark.parametrize(("name", "algorithm"), sorted(FOLDED))
def test_members_that_act_for_two_are_waited_for(mode, name, algorithm):
    """With a handshake for each message nobody is in the way of those who come late: as if rounds began together.

    A handshake takes two messages of a flit more, in the way of which other messages may be.
    """
    for p in sorted(set(RANKS) - {2, 4, 8, 16}):
        scenario, alpha = network(mode, p, True)
        n = 8 * lcm(p, 1 << (p.bit_length() - 1))
        steps = rounds(COLLECTIVES[name].algorithms[algorithm], p, n * FLIT)
        together = sum(max(size for _, _, size in messages) // FLIT for messages in steps)
        took = ticks(scenario, made(name, algorithm, p, n * FLIT), rendezvous=0)
        assert took <= together + len(steps) * 3 * (alpha + 3), p


def test_early_messages_share_the_way_into_a_late_member():
    """Three ranks, recursive doubling of n flits: rank 2 sends to 1 at once, while 0 gives 1 what it has.

    Both are there after 2 n. Then 1 answers, and gives 0 the result: n each. A round of its own for each would be 3 n.
    """
    scenario, alpha = network("flow", 3, True)
    n = 480
    program = made("all_reduce", "recursive_doubling", 3, n * FLIT)
    assert ticks(scenario, program) == 4 * n + 2 * alpha
    assert ticks(scenario, program, rendezvous=0) <= 3 * (n + 3 * (alpha + 1))


@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
def test_buffered_sends_are_done_at_once_and_their_messages_take_turns(mode):
    """The root of eight posts three messages of n flits, which are all through after 3 n; its child then two, one."""
    scenario, alpha = network(mode, 8, True)
    program = made("broadcast", "binomial", 8, 65536)
    n = 65536 // FLIT
    assert ticks(scenario, program) == 3 * (alpha + n)
    assert ticks(scenario, program, buffered=True) == pytest.approx(6 * n, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize("mode", long_after(1, ["flow", "vct"]))
def test_a_ring_of_neighbours_takes_what_hosts_need(mode):
    """All-gather round Kautz(4, 3): p - 1 messages, one after another, of a latency and 1,024 flits each."""
    text = CONFIG.format(topology="{kind: kautz, degree: 4, diameter: 3}", mode=mode)
    program = ["application={kind: all_gather, algorithm: ring, size_bytes: 32768}"]
    (case,) = read("c.yaml", [*program, "placement={kind: ring}"], text=text).cases
    run = start("compiled", case.scenario, 1.0, 1)
    run.advance(1 << 24)
    execution = run.execution()
    model = case.scenario.switching
    alpha = model.injection + model.ejection - 1 + 2 * (model.header + model.switch) + model.link
    assert execution.finish.max() / execution.resolution == 79 * (alpha + 1024)
    (linear,) = read("c.yaml", program, text=text).cases
    assert makespan_bounds(linear.scenario).ticks < 1.01 * 79 * (alpha + 1024)
    slow = start("compiled", linear.scenario, 1.0, 1)
    slow.advance(1 << 24)
    execution = slow.execution()
    assert execution.finish.max() / execution.resolution > 1.9 * 79 * (alpha + 1024)


@pytest.mark.long
def test_broadcasts_of_matrices_reach_their_bound():
    """SUMMA: nothing but rounds of broadcasts, so the longest chain of messages is what it takes."""
    text = CONFIG.format(topology="{kind: hyperx, dims: [16]}", mode="flow")
    (case,) = read("c.yaml", ["application={kind: summa, order: 256, gflops: 1e9}"], text=text).cases
    bound = float(makespan_bounds(case.scenario).ticks)
    workload = case.scenario.work
    took = ticks(case.scenario, workload.program)
    assert took == pytest.approx(bound, rel=1e-9)
    assert ticks(case.scenario, workload.program, buffered=True) > 1.4 * bound


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_sends_of_a_round_take_turns_and_those_of_the_next_wait(engine_name, order):
    """Two messages posted together share the host; one that waits for them begins when both have left."""
    sizes = [320, 640]  # 40 and 80 flits
    sends = [(Op.SEND, sizes[k], 1 + k, 0, 0, []) for k in order]
    rows = [[*sends, (Op.SEND, 80, 3, 0, 0, [(0, False), (1, False)])]]
    rows += [[(Op.RECV, size, 0, 0, 0, [])] for size in (*sizes, 80)]
    run = start(engine_name, flows(build("hyperx", dims=[4]), program(rows)), 1.0, 1)
    run.advance(1 << 20)
    execution = run.execution()
    times = (execution.finish, execution.queued, execution.delivered)
    finish, queued, delivered = (part / execution.resolution for part in times)
    assert sorted(finish[:2]) == [80, 120]
    assert (queued[2], finish[2], delivered[2]) == (120, 130, 120 + latency(1) + 10 - 1)
