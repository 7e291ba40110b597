# SPDX-License-Identifier: Apache-2.0
"""Which host runs which rank, and several programs as one, with hosts of their own for each."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.application.jobs import ARRIVAL, arrivals, arriving, together
from flitlab.models.application.matching import DTYPES, check
from flitlab.models.application.phases import separators
from flitlab.models.application.placements.optimised import bytes_between
from flitlab.models.application.program import Op, Program
from flitlab.models.registry import SpecError, make
from flitlab.models.topology.distances import distances
from flitlab.models.topology.graph import Topology
from tests.programs import program, programs
from tests.scenarios import build, one_way_ring

TORUS = {"kind": "torus", "dims": [4, 4]}


def idle(ranks: int) -> Program:
    return program([[(Op.CALC, 1, -1, 0, 0, [])] for _ in range(ranks)])


def exchange(matrix: np.ndarray) -> Program:
    """Every rank sends the others what a matrix [ranks, ranks] says, in bytes."""
    ranks = []
    for here in range(len(matrix)):
        sends = [(Op.SEND, int(matrix[here, k]), k, 0, 0, []) for k in np.flatnonzero(matrix[here])]
        receives = [(Op.RECV, int(matrix[k, here]), k, 0, 0, []) for k in np.flatnonzero(matrix[:, here])]
        ranks.append(sends + receives)
    return program(ranks)


def byte_hops(topology: Topology, matrix: np.ndarray, host: np.ndarray) -> int:
    place = topology.host_switch[host]
    return int((matrix * distances(topology).astype(np.int64)[np.ix_(place, place)]).sum())


@pytest.mark.parametrize("kind", ["linear", "round_robin", "random", "optimised", "ring"])
@pytest.mark.parametrize("ranks", [1, 7, 32])
def test_hosts_are_different_and_more_ranks_are_refused(kind, ranks):
    topology = build(**TORUS, hosts=2)
    host = make("placement", kind=kind).build(topology, idle(ranks))
    assert len(host) == ranks == len(set(host.tolist())) and host.min() >= 0 and host.max() < 32
    assert host.dtype == np.int64
    with pytest.raises(SpecError, match="33 ranks need 33 hosts; the network has 32"):
        make("placement", kind=kind).build(topology, idle(33))


def test_linear_and_round_robin():
    topology = Topology.from_links("line", 3, [(0, 1), (1, 2)]).with_hosts([2, 0, 3])
    assert make("placement", kind="linear").build(topology, idle(4)).tolist() == [0, 1, 2, 3]
    assert make("placement", kind="round_robin").build(topology, idle(5)).tolist() == [0, 2, 1, 3, 4]


def test_random_is_of_its_seed():
    topology = build(**TORUS, hosts=2)
    drawn = [make("placement", kind="random", seed=seed).build(topology, idle(32)).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    firsts = [make("placement", kind="random", seed=seed).build(topology, idle(1))[0] for seed in range(400)]
    assert len(set(firsts)) == 32


@pytest.mark.parametrize("text", ["3\n0\n1\n", "host\n3\n# comment\n\n 0\n1", "rank,host\n2,1\n0,3\n1,0\n"])
def test_file(text):
    Path("hosts.csv").write_text(text)
    made = make("placement", kind="file", path="hosts.csv").build(one_way_ring(4), idle(3))
    assert made.tolist() == [3, 0, 1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3\nx\n1\n", "hosts.csv:2: x: 'x' is no host: hosts are numbered 0 to 3"),
        ("3\n4\n1\n", "hosts.csv:2: 4: '4' is no host: hosts are numbered 0 to 3"),
        ("3\n-1\n1\n", "hosts.csv:2: -1: '-1' is no host"),
        ("3\n0\n3\n", "hosts.csv:3: 3: host 3 has rank 0 already"),
        ("3\n0\n", "rank 2 has no host; the program has 3 ranks"),
        ("3\n0\n1\n2\n", "hosts.csv:4: 2: the program has 3 ranks, so these are too many lines"),
        ("0,1\n2\n", "hosts.csv:2: 2: expected rank,host"),
        ("0,1,2\n", "hosts.csv:1: 0,1,2: expected rank,host"),
        ("0,1\n0,2\n", "hosts.csv:2: 0,2: rank 0 has a host already, in line 1"),
        ("0,1\n3,2\n", "hosts.csv:2: 3,2: rank must be a whole number in 0..2"),
        ("0,1\n2,2\n", "rank 1 has no host"),
    ],
)
def test_bad_files(text, says):
    Path("hosts.csv").write_text(text)
    with pytest.raises(SpecError, match=re.escape(says)):
        make("placement", kind="file", path="hosts.csv").build(one_way_ring(4), idle(3))


def test_missing_file():
    with pytest.raises(SpecError, match="no such file"):
        make("placement", kind="file", path="hosts.csv").build(one_way_ring(4), idle(3))


@settings(deadline=None)
@given(programs(most_operations=20))
def test_bytes_between_ranks(made):
    total = np.zeros((made.ranks, made.ranks))
    for o in np.flatnonzero(made.kind == Op.SEND):
        if made.rank[o] != made.peer[o]:
            total[made.rank[o], made.peer[o]] += made.amount[o]
    assert np.array_equal(bytes_between(made).toarray(), total)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_optimised_is_never_worse_than_linear_nor_than_any_exchange(data):
    hosts = data.draw(st.integers(2, 9))
    ranks = data.draw(st.integers(1, hosts))
    row = st.lists(st.integers(0, 50), min_size=ranks, max_size=ranks)
    matrix = np.array(data.draw(st.lists(row, min_size=ranks, max_size=ranks)))
    topology = data.draw(st.sampled_from([one_way_ring(hosts), build("mesh", dims=[hosts, 2]), one_way_ring(5, 2)]))
    host = make("placement", kind="optimised", sweeps=3, seed=data.draw(st.integers(0, 9))).build(
        topology, exchange(matrix)
    )
    cost = byte_hops(topology, matrix, host)
    assert cost <= byte_hops(topology, matrix, np.arange(ranks))
    for rank in range(ranks):
        for to in range(topology.hosts):
            other = host.copy()
            other[host == to] = host[rank]
            other[rank] = to
            assert cost <= byte_hops(topology, matrix, other)


def test_optimised_finds_the_grid_in_a_shuffled_stencil():
    """Sixteen ranks that talk to four neighbours each, in random order, on the torus where all can be neighbours."""
    topology = build(**TORUS)
    matrix = (distances(topology) == 1).astype(np.int64) * 100
    shuffle = np.random.default_rng(3).permutation(16)
    matrix = matrix[np.ix_(shuffle, shuffle)]
    costs = [
        byte_hops(topology, matrix, make("placement", kind="optimised", seed=seed).build(topology, exchange(matrix)))
        for seed in range(5)
    ]
    assert byte_hops(topology, matrix, np.arange(16)) > 1.5 * matrix.sum()
    assert min(costs) == matrix.sum()


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
