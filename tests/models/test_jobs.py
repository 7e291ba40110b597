# SPDX-License-Identifier: Apache-2.0
"""Several programs as one, and hosts of their own for each."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.application.jobs import ARRIVAL, arrivals, arriving, together
from flitlab.models.application.matching import DTYPES, check
from flitlab.models.application.phases import separators
from flitlab.models.application.program import Op, Program
from flitlab.models.registry import SpecError, make
from tests.programs import program, programs
from tests.scenarios import build


def described(one: Program, rank: int, without: int = 0) -> list[tuple]:
    """What the operations of a rank are and wait for, but for its first ones; numbers count from the first left."""
    begin, end = int(one.start[rank]) + without, int(one.start[rank + 1])
    waits: list[set] = [set() for _ in range(end - begin)]
    for o in range(begin, end):
        for k in range(one.after[o], one.after[o + 1]):
            waits[(int(one.successor[k]) >> 1) - begin].add((o - begin, int(one.successor[k]) & 1))
    rows = zip(
        *(getattr(one, name)[begin:end].tolist() for name in ("kind", "amount", "peer", "tag", "cpu")), strict=True
    )
    return [(*row, wait) for row, wait in zip(rows, waits, strict=True)]


@given(programs(), st.integers(1, 10**6))
@settings(max_examples=60, deadline=None)
def test_arrival_comes_first_and_changes_nothing_else(one, ns):
    late = arriving(one, ns)
    check(late)
    assert arrivals(late).tolist() == late.start[:-1].tolist() and not len(arrivals(one))
    for rank in range(one.ranks):
        first = int(late.start[rank])
        assert (late.kind[first], late.amount[first], late.need[first]) == (Op.CALC, ns, 0)
        assert late.steps[late.step[first]].name == ARRIVAL
        assert described(late, rank, 1) == described(one, rank)
        begin, end = one.start[rank], one.start[rank + 1]
        waiting = late.successor[late.after[first] : late.after[first + 1]]
        free = np.flatnonzero(one.need[begin:end] == 0)
        assert sorted((waiting >> 1) - first - 1) == free.tolist() and not (waiting & 1).any()
    assert arriving(one, 0) is one


@given(st.lists(programs(), min_size=2, max_size=3))
@settings(max_examples=60, deadline=None)
def test_together_has_every_program(parts):
    whole = together({f"job {k}": part for k, part in enumerate(parts)})
    check(whole)
    assert whole.operations == sum(part.operations for part in parts)
    assert all(getattr(whole, name).dtype == dtype for name, dtype in DTYPES.items())
    first = 0
    for k, part in enumerate(parts):
        for rank in range(part.ranks):
            mine = described(whole, first + rank)
            moved = [(kind, amount, peer - first * (kind != Op.CALC), *rest) for kind, amount, peer, *rest in mine]
            assert moved == described(part, rank)
            names = {whole.steps[s].name for s in whole.step[whole.start[first + rank] : whole.start[first + rank + 1]]}
            assert all(name.startswith(f"job {k}: ") for name in names)
        first += part.ranks


def test_a_step_of_one_job_separates_nothing_of_all():
    barrier = make("application", kind="barrier", ranks=4).build(4)
    assert separators(barrier) and not separators(together({"a": barrier, "b": barrier}))
    late = arriving(barrier, 1000)
    assert [late.steps[step].name for step in separators(late)] == [ARRIVAL, "barrier"]
    assert together({"a": late}) is late


def idle(ranks: int) -> Program:
    return program([[(Op.CALC, 1, -1, 0, 0, [])] for _ in range(ranks)])


KINDS = ["linear", "round_robin", "random", "optimised", "ring", "groups"]


@given(st.permutations(range(32)), st.integers(1, 20), st.sampled_from(KINDS))
@settings(max_examples=40, deadline=None)
def test_ranks_are_on_free_hosts(order, ranks, kind):
    topology = build(kind="torus", dims=[4, 4], hosts=2)
    free = np.sort(order[:20])
    more = {"switches": 4} if kind == "groups" else {}
    host = make("placement", kind=kind, **more).among(topology, idle(ranks), free)
    assert len(set(host.tolist())) == ranks and set(host.tolist()) <= set(free.tolist())


def test_hosts_of_a_file_are_not_chosen_from_those_that_are_free(tmp_path):
    topology = build(kind="torus", dims=[4], hosts=1)
    (tmp_path / "hosts.csv").write_text("3\n1\n")
    named = make("placement", kind="file", path=tmp_path / "hosts.csv")
    assert named.among(topology, idle(2), np.array([0, 2])).tolist() == [3, 1]


def test_groups_fill_those_first_that_are_free():
    dragonfly = build(kind="dragonfly", a=4, h=2, groups=4, hosts=2)  # 4 groups of 8 hosts
    linear = make("placement", kind="groups")
    assert linear.build(dragonfly, idle(12)).tolist() == list(range(12))
    free = np.array([*range(3, 8), *range(8, 16), *range(20, 32)])
    assert linear.among(dragonfly, idle(18), free).tolist() == [*range(8, 16), *range(24, 32), 3, 4]
    drawn = {
        tuple(make("placement", kind="groups", order="random", seed=seed).build(dragonfly, idle(8)).tolist())
        for seed in range(12)
    }
    assert drawn == {tuple(range(8 * g, 8 * g + 8)) for g in range(4)}
    with pytest.raises(SpecError, match="does not say how many switches are a group"):
        linear.build(build(kind="torus", dims=[4], hosts=1), idle(2))
    with pytest.raises(SpecError, match="more than the 4 switches"):
        make("placement", kind="groups", switches=5).build(build(kind="torus", dims=[4], hosts=1), idle(2))


@pytest.mark.parametrize("to", ["random", "permutation"])
def test_background_sends_at_its_rate(to):
    one = make("application", kind="background", gbps=8, size_bytes=1000, for_us=400, to=to, ranks=9).build(9)
    check(one)
    send = np.flatnonzero(one.kind == Op.SEND)
    # 400 us of 1 GB/s are 400 messages a rank; 6 standard deviations of a Poisson number
    assert abs(len(send) - 9 * 400) < 6 * np.sqrt(9 * 400)
    assert (one.rank[send] != one.peer[send]).all() and (one.amount[send] == 1000).all()
    receivers = {int(r): set(one.peer[send[one.rank[send] == r]].tolist()) for r in range(9)}
    if to == "random":
        assert all(len(peers) == 8 for peers in receivers.values())
    else:
        assert sorted(peer for peers in receivers.values() for peer in peers) == list(range(9))
    # a processor of its own waits for the times, so they add up to less than what was asked for
    clock = np.bincount(one.rank, np.where(one.cpu == 1, one.amount, 0), 9)
    assert (clock < 400_000).all() and (clock > 300_000).all()
    assert not one.need[one.kind == Op.RECV].any()
    assert one.content_hash == make(
        "application", kind="background", gbps=8, size_bytes=1000, for_us=400, to=to, ranks=9
    ).build(9).content_hash  # fmt: skip
