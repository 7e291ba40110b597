# SPDX-License-Identifier: Apache-2.0
"""Bucket and hierarchical collectives: everything arrives, and how many bytes go where."""

from collections import Counter
from math import prod

import numpy as np
import pytest

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives import bucket, hierarchical
from flitlab.models.application.collectives.choose import COLLECTIVES, collective, divisors, group_of
from flitlab.models.application.collectives.communicator import Communicator, shares
from flitlab.models.application.matching import check
from flitlab.models.application.program import Op
from flitlab.models.registry import SpecError, make
from tests.models.test_collectives import backwards, gathered, heard

TORI = [(1,), (2,), (3,), (7,), (8,), (2, 2), (3, 5), (4, 4), (8, 2), (6, 3), (2, 3, 4), (3, 3, 3), (2, 2, 2, 2)]


class Writer:
    """Stands for a builder: writes down the rounds of all groups as lists of (source, target, bytes)."""

    def __init__(self):
        self.rounds, self.reduced = [], Counter()

    def exchange(self, source, target, size):
        arrays = np.broadcast_arrays(source, target, size)
        self.rounds.append(list(zip(*(array.ravel().tolist() for array in arrays), strict=True)))

    def calculate(self, ns, ranks):
        for rank, time in zip(ranks.tolist(), ns.tolist(), strict=True):
            self.reduced[rank] += time


def written(algorithm, ranks, size, **shape):
    writer = Writer()
    algorithm(Communicator(writer, np.arange(ranks)[None], 1.0, **shape), size)
    return writer


def part_messages(dims, part):
    """The rounds of one part of a bucket all-gather as lists of (source, target, bytes)."""
    place = np.arange(prod(dims)).reshape(dims)
    for axis, size in bucket.part_rounds(dims, part):
        target = np.roll(place, -part.direction, axis).ravel()
        yield list(zip(place.ravel().tolist(), target.tolist(), size.tolist(), strict=True))


def distance(dims, a, b):
    """Steps between two members of a torus."""
    apart = np.abs(np.subtract(np.unravel_index(a, dims), np.unravel_index(b, dims)))
    return int(np.minimum(apart, np.array(dims) - apart).sum())


@pytest.mark.parametrize("dims", TORI)
def test_each_part_of_a_bucket_brings_every_block_once(dims):
    """A message has all that its source has and its target lacks, and that is what the target gets."""
    ranks = prod(dims)
    parts = bucket.parts(dims, np.full(ranks, 840))
    assert (sum(part.size for part in parts) == 840).all()
    for part in parts:
        rounds = list(part_messages(dims, part))
        assert len(rounds) == sum(dims) - len(dims)
        assert all(distance(dims, source, target) == 1 for some in rounds for source, target, _ in some)
        assert gathered(rounds, ranks, int(part.size[0])) == [set(range(ranks))] * ranks


@pytest.mark.parametrize("dims", TORI)
def test_rounds_of_a_bucket_are_those_of_its_parts(dims):
    """One message to each neighbour, with the bytes of all parts that are in a round of theirs."""
    ranks, size = prod(dims), 1001
    together = {}
    for part in bucket.parts(dims, np.full(ranks, size)):
        for t, messages in enumerate(part_messages(dims, part), part.start):
            for source, target, count in messages:
                load = together.setdefault(t, Counter())
                load[source, target] += count
    made = written(bucket.all_gather, ranks, size, dims=dims).rounds
    for messages, t in zip(made, sorted(together), strict=True):
        assert {(source, target): count for source, target, count in messages} == together[t]
        assert len(messages) == len(together[t])


@pytest.mark.parametrize("dims", TORI)
@pytest.mark.parametrize("size", [0, 5, 997])
def test_reducing_with_buckets(dims, size):
    """All blocks come from, or go to, all ranks, however they are cut; every byte that comes is reduced."""
    ranks = prod(dims)
    scatter = written(bucket.reduce_scatter, ranks, size, dims=dims)
    length = np.diff(shares(size, ranks))
    parts = bucket.parts(dims, length)
    assert np.array_equal(sum(part.size for part in parts), length) and all((part.size >= 0).all() for part in parts)
    got = Counter()
    for source, target, count in (message for some in scatter.rounds for message in some):
        assert source != target
        got[target] += count
    assert +got == +scatter.reduced
    assert sum(got.values()) == size * (ranks - 1)
    both = written(bucket.all_reduce, ranks, size, dims=dims)
    assert both.rounds[: len(scatter.rounds)] == scatter.rounds
    mirrored = [sorted(some) for some in backwards(both.rounds)]
    assert mirrored == [sorted(some) for some in both.rounds]
    assert heard(both.rounds, ranks) == [set(range(ranks))] * ranks


@pytest.mark.parametrize(("dims", "channels"), [((8, 8), 4), ((4, 4, 4), 6), ((2,) * 6, 6), ((9,), 2)])
def test_equal_sides_load_all_channels_alike_in_every_round(dims, channels):
    """So the all-gather takes (N - 1) / d units, as any algorithm at least."""
    size, ranks, time = 12 * 2**6, prod(dims), 0
    for messages in written(bucket.all_gather, ranks, size, dims=dims).rounds:
        load = Counter()
        for source, target, count in messages:
            load[source, target] += count
        assert len(load) == ranks * channels and len(set(load.values())) == 1
        time += max(load.values())
    assert time == size * (ranks - 1) / channels


@pytest.mark.parametrize(
    ("dims", "efficiency"),
    [
        ((3, 5), 0.975),
        ((3, 4), 0.98),
        ((5, 4, 3), 0.985),
        ((2, 4), 0.99),
        ((8, 4), 0.97),
        ((16, 4), 0.955),
        ((2, 40), 0.9),
    ],
)
def test_unequal_sides_come_near_to_the_bound(dims, efficiency):
    """(N - 1) over the channels of a switch, if a round takes as long as its busiest channel."""
    size, ranks, time = 10**7, prod(dims), 0
    rounds = written(bucket.all_gather, ranks, size, dims=dims).rounds
    for messages in rounds:
        time += max(count for _, _, count in messages)
    bound = size * (ranks - 1) / sum(2 if side > 2 else 1 for side in dims)
    assert efficiency < bound / time <= 1 + 1e-6
    assert len(rounds) <= 2 * (sum(dims) - len(dims))


GROUPS = [(1, 1), (5, 1), (5, 5), (6, 2), (6, 3), (9, 3), (12, 4), (16, 4), (15, 5), (14, 7), (17, 17)]


@pytest.mark.parametrize(("ranks", "group"), GROUPS)
def test_hierarchical_all_gather(ranks, group):
    """No message is shorter than what its source has and its target lacks; between groups all blocks pass once."""
    rounds = written(hierarchical.all_gather, ranks, 10, group=group).rounds
    assert gathered(rounds, ranks, 10, tight=False) == [set(range(ranks))] * ranks
    across = sum(size for some in rounds for s, t, size in some if s // group != t // group)
    assert across == 10 * ranks * (ranks // group - 1)


@pytest.mark.parametrize(("ranks", "group"), GROUPS)
@pytest.mark.parametrize("size", [0, 7, 1000])
def test_hierarchical_reduce_scatter(ranks, group, size):
    """Reductions end with who speaks for a group, which then has the parts of all its members."""
    made = written(hierarchical.reduce_scatter, ranks, size, group=group)
    bounds, count = shares(size, ranks), ranks // group
    scatter = [some for some in made.rounds if some and all(s // group == t // group and s < t for s, t, _ in some)]
    before = made.rounds[: len(made.rounds) - len(scatter)]
    known = heard(before, ranks)
    assert all(known[first] == set(range(ranks)) for first in range(0, ranks, group))
    across = [message for some in before for message in some if message[0] // group != message[1] // group]
    assert sum(size for _, _, size in across) == size * (count - 1)
    got = np.zeros(ranks, int)
    for source, target, length in (message for some in scatter for message in some):
        got[target] += length
        got[source] -= length * (source % group > 0)
    speaks = np.arange(ranks) % group == 0
    assert np.array_equal(got[~speaks], np.diff(bounds)[~speaks])
    assert sum(made.reduced.values()) == size * (group - 1) * count + size * (count - 1)


@pytest.mark.parametrize(("ranks", "group"), GROUPS)
def test_hierarchical_all_reduce(ranks, group):
    made = written(hierarchical.all_reduce, ranks, 100 * ranks, group=group)
    assert heard(made.rounds, ranks) == [set(range(ranks))] * ranks
    inside = [[m for m in some if m[0] // group == m[1] // group] for some in made.rounds]
    inside = [some for some in inside if some]
    assert inside == backwards(inside)


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize("algorithm", ["bucket", "hierarchical"])
def test_groups_of_ranks_do_the_same_side_by_side(name, algorithm):
    """Two groups in any order: programs in which sends match receives, and each group as if it were alone."""
    shape = {"dims": [2, 3]} if algorithm == "bucket" else {"group": 3}
    groups = np.array([[5, 3, 1, 0, 2, 4], [6, 7, 8, 9, 10, 11]])
    programs = []
    for some in (groups, np.arange(6)[None]):
        builder = Builder(some.size)
        collective(builder, name, some, 601, algorithm, ns_per_byte=1.0, **shape)
        programs.append(builder.build())
        check(programs[-1])
    both, alone = programs
    sends = [np.flatnonzero(program.kind == Op.SEND) for program in programs]
    assert len(sends[0]) == 2 * len(sends[1])
    for ranks in groups:
        number = {int(rank): i for i, rank in enumerate(ranks)}
        mine = [o for o in sends[0] if both.rank[o] in number]
        got = sorted((number[both.rank[o]], number[both.peer[o]], both.amount[o]) for o in mine)
        assert got == sorted((alone.rank[o], alone.peer[o], alone.amount[o]) for o in sends[1])


def test_groups_by_default():
    assert [group_of(ranks) for ranks in (1, 2, 7, 12, 16, 64, 80)] == [1, 1, 1, 3, 4, 8, 8]
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize(
    ("keys", "key", "says"),
    [
        ({"algorithm": "ring", "dims": [4, 4]}, "dims", "is for algorithm: bucket"),
        ({"group": 4}, "group", "is for algorithm: hierarchical"),
        ({"algorithm": "bucket", "dims": [4, 3], "ranks": 16}, "ranks", "must be 12, the product of dims"),
        ({"algorithm": "hierarchical", "group": 5, "ranks": 16}, "ranks", "must be a multiple of group = 5"),
    ],
)
@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "reduce_scatter"])
def test_refused(kind, keys, key, says):
    with pytest.raises(SpecError, match=says) as caught:
        make("application", kind=kind, **keys).build(16)
    assert caught.value.key == key


def test_shapes_that_do_not_fit_a_group_of_ranks():
    for shape, key in (({"dims": [4, 3]}, "dims"), ({"group": 5}, "group")):
        with pytest.raises(SpecError) as caught:
            collective(Builder(16), "all_gather", np.arange(16)[None], 8, "bucket", **shape)
        assert caught.value.key == key


def test_ranks_follow_from_dims_and_groups():
    made = make("application", kind="all_gather", algorithm="bucket", dims=[3, 4]).build(16)
    assert made.ranks == 12
    made = make("application", kind="all_reduce", algorithm="hierarchical", group=5).build(16)
    assert made.ranks == 15 and made.steps[0].algorithm == "hierarchical"
    assert {"bucket", "hierarchical"} <= COLLECTIVES["reduce_scatter"].algorithms.keys()
