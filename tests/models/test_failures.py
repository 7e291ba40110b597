# SPDX-License-Identifier: Apache-2.0
"""Failed links and switches, on every kind of channel and against networkx."""

import re
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.failures import Failures
from flitlab.models.topology.graph import Topology


def build(kind, **parameters):
    return make("topology", kind=kind, **parameters).build()


def channels_of(topology, number=None):
    """Multiset of (src, dst, capacity, delay, whether it has a reverse), with other switch numbers if given."""
    number = np.arange(topology.switches) if number is None else number
    ends = number[topology.src], number[topology.dst], topology.capacity, topology.delay, topology.reverse >= 0
    return Counter(zip(*(values.tolist() for values in ends), strict=True))


def links_of(topology):
    return int((topology.reverse < 0).sum() + (topology.reverse >= 0).sum() // 2)


BASES = [
    {"kind": "torus", "dims": [4, 5]},
    {"kind": "kautz", "degree": 4, "diameter": 2},
    {"kind": "rrg", "n": 30, "degree": 7, "hosts_per_switch": 3},
    {"kind": "two_cluster", "large": {"count": 5, "ports": 20, "servers": 8, "fast_ports": 2},
     "small": {"count": 10, "ports": 12, "servers": 4}},
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BASES), st.floats(0, 0.2), st.integers(0, 3), st.integers(0, 999))
def test_what_is_left_is_the_network_without_what_failed(base, fraction, switches, seed):
    before = build(**base)
    try:
        after = build(**base, failures={"links": fraction, "switches": switches, "seed": seed})
    except SpecError as error:
        assert error.key == "failures"
        assume(False)
    failed = after.notes["failed"]
    gone = failed["switches"]
    assert len(gone) == before.switches - after.switches == switches
    kept = np.setdiff1d(np.arange(before.switches), gone)
    works = np.isin(np.arange(before.switches), kept)
    between = works[before.src] & works[before.dst]
    one_way = before.reverse < 0
    candidates = int((between & one_way).sum() + (between & ~one_way).sum() // 2)
    assert failed["links"] == round(fraction * candidates) == candidates - links_of(after)
    assert not channels_of(after, kept) - channels_of(before)
    assert after.host_count.tolist() == before.host_count[kept].tolist()
    paired = np.flatnonzero(after.reverse >= 0)
    other = after.reverse[paired]
    assert (after.reverse[other] == paired).all()
    assert (after.src[other] == after.dst[paired]).all()
    assert (after.capacity[other] == after.capacity[paired]).all()
    assert nx.is_strongly_connected(nx.DiGraph(after.to_networkx()))
    assert after.directed == before.directed


@pytest.mark.long
def test_every_link_fails_as_often():
    torus = build("torus", dims=[3, 3])
    counts = Counter()
    for seed in range(1800):
        left = channels_of(Failures(links=1, seed=seed).apply_to(torus))
        (lost,) = {(min(u, v), max(u, v)) for u, v, *_ in channels_of(torus) - left}
        counts[lost] += 1
    assert len(counts) == 18
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 40.8  # chi-square, 17 degrees: p = 0.001


def test_more_failures_include_fewer():
    torus = build("torus", dims=[6, 6])
    left = [channels_of(Failures(links=links, seed=4).apply_to(torus)) for links in (0.05, 0.1, 0.2)]
    assert not left[1] - left[0]
    assert not left[2] - left[1]


def test_parallel_links_fail_each_on_its_own():
    double = Topology.from_links("x", 2, [[0, 1]] * 4, capacity=[1, 2, 3, 4]).with_hosts(1)
    kept = {tuple(Failures(links=2, seed=seed).apply_to(double).capacity.tolist()) for seed in range(60)}
    assert all(len(capacities) == 4 for capacities in kept)
    assert len({tuple(sorted(set(capacities))) for capacities in kept}) == 6


def test_only_the_seed_of_the_failures_decides():
    first, second = (build("rrg", n=20, degree=6, seed=5, failures={"switches": 2, "seed": s}) for s in (1, 2))
    again = build("rrg", n=20, degree=6, seed=5, failures={"switches": 2, "seed": 1})
    assert first.content_hash == again.content_hash != second.content_hash
    other = build("rrg", n=20, degree=6, seed=6, failures={"switches": 2, "seed": 1})
    assert other.notes["failed"]["switches"] == first.notes["failed"]["switches"]


def test_no_failures_change_nothing():
    torus = build("torus", dims=[4, 4], failures={"links": 0.001})
    assert torus.content_hash == build("torus", dims=[4, 4]).content_hash
    assert torus.grid is not None
    assert torus.notes["failed"] == {"links": 0, "switches": []}


def test_a_damaged_grid_is_none():
    damaged = build("torus", dims=[4, 4], failures={"links": 1})
    assert damaged.grid is None
    with pytest.raises(SpecError, match="needs the coordinates"):
        make("routing", kind="dor").build(damaged)


def test_tiers_follow_the_switches():
    before = build("clos_expansion")
    after = build("clos_expansion", failures={"switches": 9, "seed": 4})
    gone = after.notes["failed"]["switches"]
    start = 0
    for (name, first, count), (name_before, first_before, count_before) in zip(
        after.notes["tiers"], before.notes["tiers"], strict=True
    ):
        assert (name, first) == (name_before, start)
        assert count == count_before - sum(first_before <= v < first_before + count_before for v in gone)
        start += count
    assert start == after.switches
    edge = after.notes["tiers"][0][2]
    assert (after.host_count[:edge] == 24).all()
    assert after.hosts == 24 * edge


def test_labels_follow_the_switches(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("".join(f"s{i} s{j}\n" for i in range(5) for j in range(5) if i != j))
    topology = build("file", path=str(path), failures={"switches": 2, "seed": 3})
    gone = topology.notes["failed"]["switches"]
    labels = make("topology", kind="file", path=str(path)).build().notes["labels"]
    assert len(gone) == 2 and topology.notes["labels"] == [label for label in labels if label not in gone]


def test_a_network_in_parts_is_refused_and_says_which():
    found = set()
    for seed in range(20):
        with pytest.raises(SpecError) as error:
            build("mesh", dims=[6], failures={"links": 1, "seed": seed})
        assert error.value.key == "failures"
        cut = re.match(r"cut (\d) of 6 switches off: no path from switch 0 to switch (\d) ", str(error.value))
        size, second_part = map(int, cut.groups())
        assert size == min(second_part, 6 - second_part)
        found.add(second_part)
    assert found == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("failures", "key"),
    [({"links": 33}, "failures.links"), ({"switches": 17}, "failures.switches"), ({"switches": 16}, "failures")],
)
def test_more_than_there_is_cannot_fail(failures, key):
    with pytest.raises(SpecError) as error:
        build("torus", dims=[4, 4], failures=failures)
    assert error.value.key == key
    with pytest.raises(SpecError) as error:
        build("subdivided", p=2, base={"kind": "torus", "dims": [4, 4], "failures": failures})
    assert error.value.key == f"base.{key}"


@pytest.mark.parametrize(
    "failures",
    [
        {"links": 1.5},
        {"links": 1.0},
        {"switches": 3.0},
        {"links": -0.1},
        {"switches": float("nan")},
        {"link": 1},
        {"seed": -1},
    ],
)
def test_malformed_failures_are_refused(failures):
    with pytest.raises(ValidationError):
        make("topology", kind="torus", dims=[4, 4], failures=failures)


def test_a_base_that_failed_is_noted_of_the_subdivided_one():
    damaged = {"kind": "torus", "dims": [4, 4], "failures": {"links": 1}}
    assert build("subdivided", p=2, base=damaged).notes["failed"] == {"links": 1, "switches": []}


def test_counts_stay_whole_numbers_when_they_are_written_again():
    failures = Failures(links=1, switches=0.5)
    assert Failures.model_validate_json(failures.model_dump_json()) == failures
    assert isinstance(failures.links, int)
