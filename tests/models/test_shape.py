# SPDX-License-Identifier: Apache-2.0
"""Which torus and which groups hosts form, as far as their network says it."""

import numpy as np
import pytest

from flitlab.models.application.builder import Builder
from flitlab.models.application.collectives.choose import collective
from flitlab.models.application.program import Op
from flitlab.models.collective.shape import group_sizes, torus_dims
from flitlab.models.topology.graph import Topology
from tests.scenarios import build


@pytest.mark.parametrize(
    ("keys", "dims"),
    [
        ({"kind": "torus", "dims": [3, 4, 5]}, (3, 4, 5)),
        ({"kind": "torus", "dims": [4, 3], "hosts": 2}, (4, 3, 2)),
        ({"kind": "hypercube", "dim": 4}, (2, 2, 2, 2)),
        ({"kind": "hyperx", "dims": [3, 4]}, (3, 4)),
        ({"kind": "mesh", "dims": [3, 3]}, None),
        ({"kind": "kautz", "degree": 2, "diameter": 2}, None),
    ],
)
def test_torus(keys, dims):
    """Where there is one, every message of the bucket algorithm goes to a neighbour."""
    topology = build(**keys)
    assert torus_dims(topology) == dims
    if dims is not None:
        builder = Builder(topology.hosts)
        collective(builder, "all_gather", np.arange(topology.hosts)[None], 720, "bucket", dims=dims)
        program = builder.build()
        sends = np.flatnonzero(program.kind == Op.SEND)
        ends = topology.host_switch[np.stack([program.rank[sends], program.peer[sends]], axis=1)]
        channels = set(zip(topology.src.tolist(), topology.dst.tolist(), strict=True))
        assert all(u == v or (u, v) in channels for u, v in ends.tolist())


def test_no_torus_where_switches_have_different_numbers_of_hosts():
    topology = build("torus", dims=[2, 2])
    assert torus_dims(topology.with_hosts([1, 2, 1, 1])) is None
    assert torus_dims(topology.with_hosts(0)) is None


@pytest.mark.parametrize(
    ("keys", "sizes"),
    [
        ({"kind": "fat_tree", "k": 4, "hosts": 2}, {"switch": 2, "pod": 4}),
        ({"kind": "torus", "dims": [3, 3], "hosts": 3}, {"switch": 3}),
        ({"kind": "torus", "dims": [3, 3]}, {}),
    ],
)
def test_groups(keys, sizes):
    assert group_sizes(build(**keys)) == sizes


def test_groups_of_a_dragonfly():
    topology = build("dragonfly", a=4, p=2, h=2, hosts=2)
    assert group_sizes(topology) == {"switch": 2, "pod": 8}


def test_groups_must_be_of_one_size():
    line = Topology.from_links("line", 3, [(0, 1), (1, 2)])
    assert group_sizes(line.with_hosts([2, 1, 2])) == {}
    assert group_sizes(line.with_hosts([2, 0, 2])) == {"switch": 2}
    assert group_sizes(line.with_hosts([3, 0, 0])) == {}
