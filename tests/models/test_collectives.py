# SPDX-License-Identifier: Apache-2.0
"""Programs made of rounds, and collectives: what arrives where, in how many rounds, with how many bytes."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    reduce_scatter,
    tree,
)
from flitlab.models.application.collectives.choose import COLLECTIVES, all_to_all_v, collective, dissemination
from flitlab.models.application.collectives.communicator import fold, shares
from flitlab.models.application.matching import check
from flitlab.models.application.program import Op
from flitlab.models.registry import SpecError
from tests.program_time import finished

SIZES = range(1, 18)


@dataclass
class Recorder:
    """Stands for a communicator of one group: writes down its rounds as lists of (source, target, bytes)."""

    size: int
    rounds: list = field(default_factory=list)
    reduced: float = 0

    @property
    def members(self):
        return np.arange(self.size)

    def expect(self, messages):
        pass

    def exchange(self, source, target, size):
        source, target, size = np.broadcast_arrays(source, target, size)
        messages = list(zip(source.tolist(), target.tolist(), size.tolist(), strict=True))
        if messages:
            self.rounds.append(messages)

    def reduce(self, member, size):
        self.reduced += np.broadcast_to(size, np.shape(member)).sum()


def rounds(algorithm, ranks, size):
    """The rounds of an algorithm."""
    recorder = Recorder(ranks)
    algorithm(recorder, size)
    return recorder.rounds


def backwards(steps):
    return [[(target, source, size) for source, target, size in messages] for messages in reversed(steps)]


def heard(steps, ranks):
    """Per rank, all those of whom it has heard, be it through others."""
    know = [{rank} for rank in range(ranks)]
    for messages in steps:
        before = [set(known) for known in know]
        for source, target, _ in messages:
            know[target] |= before[source]
    return know


def gathered(steps, ranks, block, tight=True):
    """Per rank, the blocks it has if every message brings all that its source has and its target lacks.

    No message may be too short for that; ``tight``: none longer either.
    """
    have = [{rank} for rank in range(ranks)]
    for messages in steps:
        before = [set(blocks) for blocks in have]
        for source, target, size in messages:
            new = before[source] - before[target]
            assert len(new) * block == size if tight else len(new) * block <= size
            have[target] |= new
    return have


def volume(steps, ranks):
    """Bytes that each rank sends."""
    sent = [0] * ranks
    for messages in steps:
        for source, _, size in messages:
            sent[source] += size
    return sent


def log2_up(ranks):
    return (ranks - 1).bit_length()


@pytest.mark.parametrize("ranks", SIZES)
def test_barrier(ranks):
    steps = rounds(dissemination, ranks, 0)
    assert len(steps) == log2_up(ranks)
    assert heard(steps, ranks) == [set(range(ranks))] * ranks


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("name", ["ring", "bruck", "recursive_doubling"])
def test_all_gather_brings_every_block_once(name, ranks):
    steps = rounds(COLLECTIVES["all_gather"].algorithms[name], ranks, 10)
    assert gathered(steps, ranks, 10) == [set(range(ranks))] * ranks
    extra = ranks - (1 << ranks.bit_length() - 1)
    doubling = ranks.bit_length() - 1 + 2 * (extra > 0)
    assert len(steps) == {"ring": ranks - 1, "bruck": log2_up(ranks), "recursive_doubling": doubling}[name]


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("name", ["ring", "recursive_halving"])
def test_reduce_scatter_is_an_all_gather_backwards(name, ranks):
    """What is reduced on its way to one rank goes, the other way round, from there to all."""
    steps = rounds(COLLECTIVES["reduce_scatter"].algorithms[name], ranks, 10 * ranks)
    power = ranks & (ranks - 1) == 0
    assert gathered(backwards(steps), ranks, 10, tight=name == "ring" or power) == [set(range(ranks))] * ranks
    if power or name == "ring":
        assert volume(steps, ranks) == [10 * (ranks - 1)] * ranks


@pytest.mark.parametrize("ranks", SIZES)
def test_pairwise_reduce_scatter_gives_everybody_its_part_from_all(ranks):
    steps = rounds(reduce_scatter.pairwise, ranks, 10 * ranks)
    everything = sorted((i, j, 10) for i in range(ranks) for j in range(ranks) if i != j)
    assert sorted(message for messages in steps for message in messages) == everything


@pytest.mark.parametrize("ranks", SIZES)
def test_ring_all_reduce(ranks):
    size = 10 * ranks
    steps = rounds(all_reduce.ring, ranks, size)
    assert steps == rounds(reduce_scatter.ring, ranks, size) + rounds(all_gather.ring, ranks, 10)
    assert volume(steps, ranks) == [2 * (ranks - 1) * size // ranks] * ranks
    assert len(steps) == 2 * (ranks - 1)


@pytest.mark.parametrize("ranks", SIZES)
def test_recursive_doubling_all_reduce(ranks):
    steps = rounds(all_reduce.recursive_doubling, ranks, 10)
    assert heard(steps, ranks) == [set(range(ranks))] * ranks
    power = 1 << ranks.bit_length() - 1
    assert len(steps) == ranks.bit_length() - 1 + 2 * (power < ranks)
    assert sum(volume(steps, ranks)) == 10 * (power * (power.bit_length() - 1) + 2 * (ranks - power))


@pytest.mark.parametrize("ranks", SIZES)
def test_rabenseifner_all_reduce(ranks):
    power = 1 << ranks.bit_length() - 1
    log, extra = power.bit_length() - 1, ranks - power
    size = 10 * power
    steps = rounds(all_reduce.rabenseifner, ranks, size)
    assert heard(steps, ranks) == [set(range(ranks))] * ranks
    if extra:
        pairs = {(2 * k, 2 * k + 1, size) for k in range(extra)}
        assert set(steps[0]) == pairs
        assert set(steps[-1]) == {(target, source, size) for source, target, _ in pairs}
        steps = steps[1:-1]
    number = {int(actor): j for j, actor in enumerate(fold(ranks).actor)}
    inner = [[(number[s], number[t], size) for s, t, size in messages] for messages in steps]
    assert gathered(backwards(inner[:log]), power, 10) == [set(range(power))] * power
    assert gathered(inner[log:], power, 10) == [set(range(power))] * power
    assert volume(inner, power) == [2 * 10 * (power - 1)] * power


@pytest.mark.parametrize("ranks", SIZES)
def test_trees(ranks):
    everybody = set(range(ranks))
    down = rounds(tree.broadcast, ranks, 10)
    assert len(down) == log2_up(ranks)
    assert all(0 in known for known in heard(down, ranks))
    assert sum(volume(down, ranks)) == 10 * (ranks - 1)
    assert rounds(tree.reduce, ranks, 10) == backwards(down)
    up = rounds(tree.gather, ranks, 10)
    assert gathered(up, ranks, 10)[0] == everybody
    assert rounds(tree.scatter, ranks, 10 * ranks) == backwards(up)


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("name", ["van_de_geijn", "scatter_doubling"])
def test_long_broadcast_is_scatter_and_all_gather(name, ranks):
    gather = {"van_de_geijn": all_gather.ring, "scatter_doubling": all_gather.recursive_doubling}[name]
    steps = rounds(getattr(tree, name), ranks, 10 * ranks)
    assert steps == rounds(tree.scatter, ranks, 10 * ranks) + rounds(gather, ranks, 10)


@pytest.mark.parametrize("ranks", SIZES)
@pytest.mark.parametrize("name", ["linear", "pairwise"])
def test_all_to_all_goes_from_each_to_each(name, ranks):
    steps = rounds(COLLECTIVES["all_to_all"].algorithms[name], ranks, 10)
    everything = sorted((i, j, 10) for i in range(ranks) for j in range(ranks) if i != j)
    assert sorted(message for messages in steps for message in messages) == everything
    assert len(steps) == min(ranks - 1, 1 if name == "linear" else ranks)
    for messages in steps * (name == "pairwise"):
        assert len({source for source, _, _ in messages}) == len({target for _, target, _ in messages}) == ranks


def test_scattered_all_to_all_has_32_messages_under_way():
    steps = rounds(all_to_all.scattered, 70, 10)
    assert [len(messages) for messages in steps] == [70 * 32, 70 * 32, 70 * 5]
    everything = sorted((i, j, 10) for i in range(70) for j in range(70) if i != j)
    assert sorted(message for messages in steps for message in messages) == everything


@pytest.mark.parametrize("ranks", SIZES)
def test_bruck_all_to_all_brings_every_block_home(ranks):
    steps = rounds(all_to_all.bruck, ranks, 10)
    assert len(steps) == log2_up(ranks)
    at = [{(rank, target) for target in range(ranks)} for rank in range(ranks)]
    for k, messages in enumerate(steps):
        moved = {}
        for source, target, size in messages:
            assert (target - source) % ranks == 1 << k
            blocks = {(i, j) for i, j in at[source] if (j - i) % ranks >> k & 1}
            assert size == 10 * len(blocks)
            at[source] -= blocks
            moved[target] = blocks
        for target, blocks in moved.items():
            at[target] |= blocks
    assert at == [{(i, j) for i in range(ranks)} for j in range(ranks)]


def test_all_to_all_v_sends_what_the_matrix_says():
    sizes = np.arange(36).reshape(6, 6)
    for algorithm in ("linear", "pairwise"):
        builder = Builder(6)
        all_to_all_v(builder, np.array([[5, 4, 3, 2, 1, 0]]), sizes, algorithm)
        program = builder.build()
        sends = np.flatnonzero(program.kind == Op.SEND)
        got = {(5 - program.rank[o], 5 - program.peer[o]): program.amount[o] for o in sends}
        assert got == {(i, j): sizes[i, j] for i in range(6) for j in range(6) if i != j}


@given(st.integers(0, 1000), st.integers(1, 40))
def test_shares_are_equal_as_far_as_bytes_allow(size, parts):
    lengths = np.diff(shares(size, parts))
    assert lengths.sum() == size
    assert lengths.max() - lengths.min() <= 1


@pytest.mark.parametrize(
    ("name", "ranks", "size", "algorithm"),
    [
        ("all_reduce", 16, 2048, "recursive_doubling"),
        ("all_reduce", 16, 2049, "rabenseifner"),
        ("all_gather", 16, 32767, "recursive_doubling"),
        ("all_gather", 16, 32768, "ring"),
        ("all_gather", 10, 8191, "bruck"),
        ("all_gather", 10, 8192, "ring"),
        ("all_to_all", 16, 256, "bruck"),
        ("all_to_all", 7, 256, "scattered"),
        ("all_to_all", 16, 32768, "scattered"),
        ("all_to_all", 16, 32769, "pairwise"),
        ("broadcast", 16, 12287, "binomial"),
        ("broadcast", 7, 10**6, "binomial"),
        ("broadcast", 16, 12288, "scatter_doubling"),
        ("broadcast", 17, 12288, "van_de_geijn"),
        ("broadcast", 16, 524288, "van_de_geijn"),
        ("reduce_scatter", 16, 524287, "recursive_halving"),
        ("reduce_scatter", 16, 524288, "pairwise"),
    ],
)
def test_choice(name, ranks, size, algorithm):
    builder = Builder(ranks)
    collective(builder, name, np.arange(ranks)[None], size)
    (step,) = builder.build().steps
    assert (step.name, step.algorithm, step.size, step.ranks) == (name, algorithm, size, ranks)


def test_wrong_algorithm():
    with pytest.raises(SpecError, match="no algorithm of all_reduce") as caught:
        collective(Builder(4), "all_reduce", np.arange(4)[None], 8, "rings")
    assert (caught.value.key, caught.value.choices) == (
        "algorithm",
        ["recursive_doubling", "rabenseifner", "ring", "bucket", "hierarchical", "best"],
    )


@pytest.mark.parametrize("name", COLLECTIVES)
def test_synchronising_means_that_nobody_is_through_before_all_have_begun(name):
    """One rank after the other begins last; a synchronising collective then lets nobody through before it."""
    ranks, late, seen = 6, 1000, []
    for last in range(ranks):
        builder = Builder(ranks)
        builder.begin("late")
        builder.calculate(late, [last])
        collective(builder, name, np.arange(ranks)[None], 600)
        program = builder.build()
        step = program.steps[1]
        done = np.array(finished(program))
        through = [done[(program.rank == rank) & (program.step == 1)].max() for rank in range(ranks)]
        seen.append(min(through) >= late)
    assert all(seen) == step.synchronising == COLLECTIVES[name].synchronising
    builder = Builder(ranks + 1)
    collective(builder, name, np.arange(ranks)[None], 600)
    assert not builder.build().steps[0].synchronising


ALPHA, BETA, SIZE = 1000, 3, 8 * 240
TIMES = {
    ("all_reduce", "ring"): lambda p, log: 2 * (p - 1) * (ALPHA + BETA * SIZE // p) + (p - 1) * SIZE // p,
    ("all_reduce", "recursive_doubling"): lambda p, log: log * (ALPHA + (BETA + 1) * SIZE),
    ("all_reduce", "rabenseifner"): lambda p, log: (
        2 * log * ALPHA + 2 * BETA * (p - 1) * SIZE // p + (p - 1) * SIZE // p
    ),
    ("reduce_scatter", "pairwise"): lambda p, log: (p - 1) * (ALPHA + (BETA + 1) * SIZE // p),
    ("reduce_scatter", "recursive_halving"): lambda p, log: log * ALPHA + (BETA + 1) * (p - 1) * SIZE // p,
    ("all_gather", "ring"): lambda p, log: (p - 1) * (ALPHA + BETA * SIZE),
    ("all_gather", "bruck"): lambda p, log: log * ALPHA + (p - 1) * BETA * SIZE,
    ("all_gather", "recursive_doubling"): lambda p, log: log * ALPHA + (p - 1) * BETA * SIZE,
    ("all_to_all", "pairwise"): lambda p, log: (p - 1) * (ALPHA + BETA * SIZE),
    ("all_to_all", "bruck"): lambda p, log: log * (ALPHA + BETA * SIZE * p // 2),
    ("all_to_all", "linear"): lambda p, log: ALPHA + BETA * SIZE,
    ("all_to_all", "scattered"): lambda p, log: ALPHA + BETA * SIZE,
    ("broadcast", "binomial"): lambda p, log: log * (ALPHA + BETA * SIZE),
    ("reduce", "binomial"): lambda p, log: log * (ALPHA + (BETA + 1) * SIZE),
    ("gather", "binomial"): lambda p, log: log * ALPHA + (p - 1) * BETA * SIZE,
    ("scatter", "binomial"): lambda p, log: log * ALPHA + BETA * (p - 1) * SIZE // p,
    ("barrier", "dissemination"): lambda p, log: log * ALPHA,
}


@pytest.mark.parametrize(("name", "algorithm"), TIMES)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("rendezvous", [False, True])
def test_times_are_the_textbook_s(name, algorithm, ranks, rendezvous):
    """alpha + n beta for a message, 1 ns to reduce a byte; two groups at once take no longer than one."""
    builder = Builder(2 * ranks)
    collective(builder, name, np.arange(2 * ranks).reshape(2, ranks), SIZE, algorithm, ns_per_byte=1)
    program = builder.build()
    check(program)
    end = max(finished(program, ALPHA, BETA, rendezvous), default=0)
    assert end == (TIMES[name, algorithm](ranks, ranks.bit_length() - 1) if ranks > 1 else 0)


ROUNDS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)), max_size=8
)


@given(ROUNDS)
def test_a_round_waits_for_the_one_before_and_for_nothing_else(plan):
    """Lanes of random exchanges, calculations between them; the second lane waits for the first at the end."""
    builder = Builder(5)
    for number, (lane, pairs) in enumerate(plan):
        with builder.on(lane):
            builder.begin(str(number))
            builder.calculate(1, [0, 2])
            builder.exchange([a for a, _ in pairs], [b for _, b in pairs], 10)
    with builder.on(1):
        last = builder.moment()
    builder.begin("join")
    builder.wait(last)
    program = builder.build()
    check(program)
    before = _ancestors(program)
    number = [len(plan) if name == "join" else int(name) for name in (program.steps[k].name for k in program.step)]
    for o in range(program.operations):
        for other in range(program.operations):
            if number[other] == number[o]:  # only what a round begins with goes before the rest of it
                assert not before[o, other] or program.kind[other] == Op.CALC
                continue
            same = program.rank[o] == program.rank[other] and number[other] < number[o]
            waits = number[o] == len(plan) or program.cpu[o] == program.cpu[other]
            assert before[o, other] == (same and waits)
    assert min(finished(program), default=0) >= 0


def _ancestors(program):
    """bool [operations, operations]: whether the first needs the second."""
    before = np.zeros((program.operations, program.operations), bool)
    for o in range(program.operations):  # within a rank, what is needed has a lower number
        for waiting in program.successor[program.after[o] : program.after[o + 1]] >> 1:
            assert waiting > o
            before[waiting] |= before[o]
            before[waiting, o] = True
    return before


def test_dependencies_stay_few():
    """Two all-to-alls: every operation of the second needs all of the first, which a head keeps linear."""
    builder = Builder(16)
    for _ in range(2):
        collective(builder, "all_to_all", np.arange(16)[None], 1000, "linear")
    program = builder.build()
    per_rank = 2 * 15
    assert program.operations == 16 * (2 * per_rank + 1)
    assert len(program.successor) == 16 * 2 * per_rank
    head = program.start[3] + per_rank
    assert (program.kind[head], program.amount[head]) == (Op.CALC, 0)
    assert program.steps[program.step[head]] == program.steps[1]


def test_sends_come_before_receives_and_tags_are_lanes():
    builder = Builder(2)
    builder.begin("both")
    with builder.on(3):
        builder.exchange([0, 1], [1, 0], [5, 6])
    program = builder.build()
    assert program.kind.tolist() == [Op.SEND, Op.RECV, Op.SEND, Op.RECV]
    assert program.amount.tolist() == [5, 6, 6, 5]
    assert program.tag.tolist() == [3] * 4 == program.cpu.tolist()


def test_nothing_to_do_is_a_program():
    builder = Builder(3)
    builder.begin("nothing")
    builder.exchange([0, 1], [0, 1], 100)
    builder.calculate(0)
    program = builder.build()
    check(program)
    assert (program.ranks, program.operations, program.steps) == (3, 0, ())


def test_messages_are_sent_and_received_once():
    builder = Builder(2)
    builder.begin("one way")
    message = builder.declare([0], [1], 10)
    builder.send(message)
    with pytest.raises(ValueError, match="exactly once"):
        builder.build()
    builder.send(message)
    builder.receive(message)
    with pytest.raises(ValueError, match="exactly once"):
        builder.build()


def test_a_calculation_beyond_all_measure():
    builder = Builder(2)
    builder.begin("long")
    with pytest.raises(SpecError, match="more than") as caught:
        builder.calculate(1e300)
    assert caught.value.key == "gflops"
