# SPDX-License-Identifier: Apache-2.0
"""Links of another capacity from the beginning: which channels they are, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flitlab.models.registry import SpecError, make
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.links import CapacityOf

BASES = [
    {"kind": "torus", "dims": [4, 5]},
    {"kind": "kautz", "degree": 3, "diameter": 2},
    {"kind": "rrg", "n": 30, "degree": 7, "hosts_per_switch": 3},
    {"kind": "fat_tree", "k": 4, "capacity": 2.5},
]


def build(base, **keys):
    return make("topology", **base, **keys).build()


def at(topology, u, v):
    """The capacities of the channels from one switch to another."""
    return topology.capacity[(topology.src == u) & (topology.dst == v)].tolist()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BASES), st.booleans(), st.data())
def test_a_pair_means_its_channels_and_their_other_direction(base, directed, data):
    plain = build(base)
    some = data.draw(st.lists(st.integers(0, plain.channels - 1), min_size=1, max_size=5))
    pairs = [(int(plain.src[c]), int(plain.dst[c])) for c in some]
    slow = build(base, capacity_of={"links": pairs, "factor": 0.25, "directed": directed})
    for c in range(plain.channels):
        u, v, back = int(plain.src[c]), int(plain.dst[c]), int(plain.reverse[c])
        meant = (u, v) in pairs or (not directed and back >= 0 and (v, u) in pairs)
        assert slow.capacity[c] == plain.capacity[c] * (0.25 if meant else 1)
    assert (slow.src == plain.src).all() and (slow.reverse == plain.reverse).all()
    assert slow.notes["capacity_of"] == {"channels": int((slow.capacity != plain.capacity).sum()), "factor": 0.25}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BASES), st.floats(0, 0.9), st.integers(0, 99))
def test_a_share_is_of_links_and_more_include_fewer(base, share, seed):
    plain = build(base)
    links = int((plain.reverse < 0).sum() + (plain.reverse >= 0).sum() // 2)
    slow = {
        amount: build(base, capacity_of={"links": amount, "factor": 0.5, "seed": seed}).capacity < plain.capacity
        for amount in (share, round(share * links), links)
    }
    assert (slow[share] == slow[round(share * links)]).all()
    assert slow[links].all()
    back = plain.reverse >= 0
    assert (slow[share][back] == slow[share][plain.reverse[back]]).all()
    assert slow[share].sum() == round(share * links) * (2 if back.all() else 1)


def test_parallel_links_are_meant_together():
    topology = Topology.from_links("pair", 2, [(0, 1), (0, 1), (1, 0)])
    slow = CapacityOf(links=[(0, 1)], factor=0.1).apply_to(topology)
    assert slow.capacity == pytest.approx(0.1)


def test_switches_have_the_numbers_of_the_network_as_built():
    """Switch 0 fails, so that the ends of the slow link are numbered one lower afterwards."""
    base = {"kind": "torus", "dims": [5, 5]}
    seed = next(
        seed for seed in range(200)
        if build(base, failures={"switches": 1, "seed": seed}).notes["failed"]["switches"] == [0]
    )  # fmt: skip
    slow = build(base, capacity_of={"links": [[12, 13]], "factor": 0.1}, failures={"switches": 1, "seed": seed})
    assert at(slow, 11, 12) == at(slow, 12, 11) == [0.1]
    assert (slow.capacity != 1).sum() == 2


def test_a_grid_remains_one():
    slow = build(BASES[0], capacity_of={"links": 0.1, "factor": 0.1})
    assert slow.grid is not None
    assert slow.content_hash != build(BASES[0]).content_hash


@pytest.mark.parametrize(
    ("links", "key", "problem"),
    [
        ([[0, 1], [0, 12]], "capacity_of.links[1]", "switch 0 has none to switch 12; it has some to 1, 4, 5, 15"),
        ([[0, 99]], "capacity_of.links[0]", "switches are numbered 0 to 19"),
        ([[3, 3]], "capacity_of.links[0]", "switch 3 has none to switch 3"),
        (41, "capacity_of.links", "there are only 40"),
    ],
)
def test_links_that_are_not_there_are_refused(links, key, problem):
    with pytest.raises(SpecError) as error:
        build(BASES[0], capacity_of={"links": links, "factor": 0.1})
    assert error.value.key == key
    assert problem in str(error.value)


def test_the_wrong_direction_of_a_one_way_channel_is_refused():
    kautz = build(BASES[1])
    u, v = next((u, v) for u, v in zip(kautz.src.tolist(), kautz.dst.tolist(), strict=True) if not at(kautz, v, u))
    with pytest.raises(SpecError, match=f"switch {v} has none to switch {u}"):
        build(BASES[1], capacity_of={"links": [[v, u]], "factor": 0.1})


@pytest.mark.parametrize(
    "keys",
    [
        {"factor": 0.1}, {"links": 1}, {"links": 1, "factor": 0}, {"links": 1, "factor": -1},
        {"links": 1, "factor": np.inf}, {"links": 1.5, "factor": 0.1}, {"links": -0.5, "factor": 0.1},
        {"links": [[0]], "factor": 0.1}, {"links": [[0, 1, 2]], "factor": 0.1}, {"links": [0, 1], "factor": 0.1},
        {"links": "all", "factor": 0.1}, {"links": True, "factor": 0.1}, {"links": [[0, 1.0]], "factor": 0.1},
        {"links": 1, "factor": 0.1, "sed": 1},
    ],
)  # fmt: skip
def test_malformed_keys_are_refused(keys):
    with pytest.raises(ValidationError):
        CapacityOf.model_validate(keys)
