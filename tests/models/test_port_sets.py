# SPDX-License-Identifier: Apache-2.0
"""Sets of ports come out as they were packed, whatever the degree."""

import numpy as np
import pytest

from flitlab.models.rules.bits import (
    contains,
    empty_set,
    is_empty,
    lowest,
    popcount,
    port_list,
    port_set,
    select,
    with_port,
    without_lowest,
)  # fmt: skip
from flitlab.models.rules.port_sets import (
    allow,
    allows,
    pack_ports,
    ports_at,
    ports_towards,
    set_ports,
    table_shape,
)  # fmt: skip

DEGREES = [0, 1, 8, 9, 24, 25, 63, 64, 65, 72, 73, 127, 128]


def drawn_table(degree: int) -> tuple[np.ndarray, list[list[list[int]]]]:
    """A table of sets of up to ``degree`` ports, one with all of them, and its sets as lists."""
    member = np.random.default_rng(degree).random((5, 5, degree)) < 0.3
    member[4, 4] = True
    ports = np.zeros(table_shape(5, degree), np.uint64)
    allow(ports, *np.nonzero(member))
    t, v, p = np.indices(member.shape)
    assert np.array_equal(allows(ports, t, v, p), member)
    return ports, [[np.flatnonzero(bits).tolist() for bits in row] for row in member]


@pytest.mark.parametrize("degree", DEGREES)
def test_sets_are_those_that_were_packed(degree):
    ports, lists = drawn_table(degree)
    sets = pack_ports(ports)
    assert sets.width == max(1, -(-degree // 8)) and len(sets.bytes) == 25 * sets.width + (7 if degree <= 64 else 15)
    assert [[port_list(ports_towards(sets, target, here)) for here in range(5)] for target in range(5)] == lists


@pytest.mark.parametrize("degree", [1, 63, 64, 65, 128])
def test_operations_are_those_of_sets(degree):
    ports, lists = drawn_table(degree)
    for t, v in np.ndindex(5, 5):
        members, word = lists[t][v], ports[t, v]
        here = word if ports.ndim == 2 else tuple(word)
        assert port_list(here) == port_list(ports_at(ports[t], v)) == members
        assert popcount(here) == len(members) and is_empty(here) == (not members)
        assert port_list(empty_set(here)) == []
        assert port_list(without_lowest(here)) == members[1:]
        assert [select(here, k) for k in range(len(members))] == members
        assert lowest(here) == (members[0] if members else 64 if degree <= 64 else 128)
        for port in {0, degree // 2, degree - 1}:
            assert contains(here, port) == (port in members)
            assert port_list(with_port(here, port)) == sorted({*members, port})
        assert port_list(port_set(members)) == members
        set_ports(ports[0], 0, here)
        assert port_list(ports_at(ports[0], 0)) == members


def test_forms_without_sets_have_none():
    assert len(pack_ports(np.zeros((0, 0), np.uint64)).bytes) == 7
