# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.application.matching import check as check_program
from flitlab.models.application.order import check_order
from flitlab.models.application.program import Op
from flitlab.models.collective.pipeline import (
    all_gather_streams,
    all_reduce_streams,
    build_schedule,
    reduce_scatter_streams,
)
from flitlab.models.collective.program import build_program, chunk_bytes
from flitlab.models.collective.schedule import ALL, ScheduleError, check, complete_sends
from flitlab.models.collective.tree import Tree


def ring_tree(ranks: int, root: int, count: int = 1) -> Tree:
    return Tree(root, count, tuple(((root + i) % ranks, (root + i + 1) % ranks) for i in range(ranks - 1)))


def random_tree(rng: np.random.Generator, ranks: int, root: int, count: int) -> Tree:
    """Every vertex joins one that is in the tree already."""
    rest = [v for v in rng.permutation(ranks).tolist() if v != root]
    inside, paths = [root], []
    for v in rest:
        paths.append((int(rng.choice(inside)), v))
        inside.append(v)
    return Tree(root, count, tuple(paths))


def streams_of(kind: str, ranks: int, out, into):
    """The streams of a collective along trees out of roots, or against those into them, or along both."""
    rank = {v: v for v in range(ranks)}
    if kind == "all_gather":
        return all_gather_streams(out, rank)
    if kind == "reduce_scatter":
        return reduce_scatter_streams(into, rank)
    return all_reduce_streams(list(zip(into, out, strict=True)), rank)


def schedule(kind: str, ranks: int, chunks: int, trees, backs=None):
    streams = streams_of(kind, ranks, trees, backs or trees)
    parts = sum(tree.count for tree in trees if kind == "all_reduce" or tree.root == 0)
    rate = {arc: 1.0 for stream in streams for arc in stream.arcs}
    return build_schedule(kind, ranks, parts, streams, chunks, rate)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(["all_gather", "reduce_scatter", "all_reduce"]), st.integers(2, 9), st.integers(1, 3), st.data())
def test_schedules_of_random_trees_deliver_everything(kind, ranks, chunks, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = rng.integers(1, 3, 2).tolist()
    roots = range(ranks) if kind != "all_reduce" else rng.integers(ranks, size=2).tolist()
    pairs = [(root, count) for root in roots for count in counts]
    trees, backs = ([random_tree(rng, ranks, root, count) for root, count in pairs] for _ in range(2))
    made = schedule(kind, ranks, chunks, trees, backs)
    check(made)

    piece, window = int(rng.integers(5000)), int(rng.integers(1, 5))
    program = build_program(made, piece, window, ns_per_byte=float(rng.choice([0.0, 1.0])))
    check_program(program)
    check_order(program, 1 << 40)
    sizes = chunk_bytes(made, piece)
    assert sizes.sum() == piece * (1 if kind == "all_reduce" else ranks)
    assert program.amount[program.kind == Op.SEND].sum() == sizes[made.chunk].sum()
    if kind == "all_gather":  # copies need no time
        assert not (program.kind == Op.CALC).any()


def test_a_chunk_that_nobody_has_is_told():
    made = schedule("all_gather", 4, 1, [ring_tree(4, root) for root in range(4)])
    order = np.argsort(made.step[0] + made.step[-1] - made.step, kind="stable")
    parts = {name: getattr(made, name)[order] for name in ("chunk", "source", "target")}
    with pytest.raises(ScheduleError, match="has nothing of it then"):
        check(replace(made, **parts))


def test_a_chunk_that_is_left_out_is_told():
    made = schedule("all_gather", 4, 1, [ring_tree(4, root) for root in range(4)])
    names = ("chunk", "source", "target", "step")
    rest = {name: getattr(made, name)[:-1] for name in names}
    with pytest.raises(ScheduleError, match=r"does not reach rank . complete"):
        check(replace(made, **rest))


def test_a_contribution_that_is_added_twice_is_told():
    made = schedule("reduce_scatter", 3, 1, [ring_tree(3, root) for root in range(3)])
    names = ("chunk", "source", "target", "step")
    more = {name: np.append(getattr(made, name), getattr(made, name)[0]) for name in names}
    more["step"][-1] = made.step.max() + 1
    with pytest.raises(ScheduleError, match="has a part of it already"):
        check(replace(made, **more))


def test_data_that_is_not_there_is_told():
    made = schedule("all_gather", 3, 1, [ring_tree(3, root) for root in range(3)])
    with pytest.raises(ScheduleError, match="are not all of it"):
        check(replace(made, parts=2))
    with pytest.raises(ScheduleError, match="is no piece of a collective broadcast"):
        check(replace(made, kind="broadcast", root=1))


def test_what_is_complete_is_only_kept():
    """Of an all-reduce along a line 0 - 1 - 2 with root 1, the way back is no reduction."""
    into, out = Tree(1, 1, ((1, 0), (1, 2))), Tree(1, 1, ((1, 0), (1, 2)))
    made = schedule("all_reduce", 3, 1, [out], [into])
    np.testing.assert_array_equal(complete_sends(made), made.source == 1)
    assert (made.start == ALL).all()
    assert (made.goal == ALL).all()


def test_a_window_holds_sends_back():
    """With three chunks along 0 - 1 and a window of one, every send waits for the one before it."""
    made = schedule("all_gather", 2, 3, [Tree(0, 1, ((0, 1),)), Tree(1, 1, ((1, 0),))])
    program = build_program(made, 30, 1)
    sends, receives = np.flatnonzero(program.kind == Op.SEND), np.flatnonzero(program.kind == Op.RECV)
    assert program.need[receives].tolist() == [0] * 6
    assert sorted(program.need[sends].tolist()) == [0, 0, 2, 2, 2, 2]  # the end of the one before, and its begin
