# SPDX-License-Identifier: Apache-2.0
"""Which host runs which rank."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
