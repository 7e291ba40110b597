# SPDX-License-Identifier: Apache-2.0
"""Certificates of collectives: what is saved is proven again in whole numbers, and nothing that was changed is."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.collective.collective import ROOTED, Collective
from flitlab.fluid.saved import BadCertificate
from flitlab.fluid.verify import read_saved, saved_of, verify
from flitlab.fluid.verify_collective import lower_bound
from flitlab.models.collective.schedule import KINDS
from flitlab.models.collective.tree import Tree
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, scenario
from tests.fluid.test_collective_parts import pods
from tests.scenarios import build


def drawn(seed: int) -> Topology:
    """A random digraph with unequal capacities, which have no short binary form, and hosts on some switches."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 7))
    arcs = np.concatenate([np.stack([np.arange(n), np.roll(np.arange(n), -1)], axis=1), draw.integers(0, n, (n, 2))])
    topology = Topology.from_arcs("drawn", n, arcs, capacity=draw.choice([1 / 3, 0.1, 1, 2.5], len(arcs)))
    return topology.with_hosts(draw.permutation([1, 2, *[0, 1, 3, 1, 0][: n - 2]]), float(draw.choice([0.3, 2, INF])))


def proofs_of(topology: Topology, **keys) -> dict[str, tuple]:
    """Rows and their certificates by kind of collective."""
    instance = scenario(topology, all_to_all(topology))
    rows = ceilings(instance, [ceiling_spec("collective", of=list(KINDS), **keys)], keep_flow=True)
    return {row.ceiling.partition(":")[2]: (instance, row, saved_of(instance, row)) for row in rows[1:]}


@pytest.mark.parametrize("ranks", ["switches", "hosts"])
def test_what_is_saved_is_proven(ranks, tmp_path):
    for seed in range(8):
        for kind, (instance, row, saved) in proofs_of(drawn(seed), ranks=ranks, root=1).items():
            if not saved.claims:
                assert row.lower == 0
                continue
            saved.write(tmp_path / "c.npz")
            again = read_saved(tmp_path / "c.npz")
            proven = verify(instance, again, [row.flow.collective])
            assert proven.confirms(again), (seed, kind)
            if kind != "all_to_all":
                assert lower_bound(instance.topology, again) == Fraction(again.bound)
                assert float(Fraction(again.bound)) == row.lower == again.lower
            else:
                assert proven.upper == pytest.approx(row.upper, rel=1e-9)


VECTOR = ("all_reduce", "broadcast", "reduce")
"""Collectives of one vector, which have no amounts."""


def test_parts_and_unequal_amounts_are_proven():
    topology = build("mesh", dims=[2, 3]).with_hosts(1)
    for kind, (instance, row, saved) in proofs_of(topology, amounts=[3, 0, 1, 1, 4, 2], root=2).items():
        assert verify(instance, saved, [row.flow.collective]).confirms(saved), kind
        assert ("with amounts 3, 0, 1, 1, 4, 2" in saved.statement()) == (kind not in VECTOR), kind
        assert (" rank 2 between" in saved.statement()) == (kind in ROOTED), kind
    assert proofs_of(topology)["all_reduce"][1].method == "parts"
    instance, row, saved = proofs_of(pods(4), ranks="hosts")["all_reduce"]
    assert saved.part[-1] == -1
    assert verify(instance, saved, [row.flow.collective]).confirms(saved)
    assert saved.statement() == "3 ticks/flit <= all-reduce between hosts, by any algorithm"


def test_parts_count_what_switches_that_copy_or_combine_leave():
    star = Topology.from_arcs("star", 4, [(0, 3), (1, 3), (2, 3), (3, 0), (3, 1), (3, 2)], capacity=[1] * 3 + [2] * 3)
    star = star.with_hosts([1, 1, 1, 0])
    for able, bound in (({"reduce": True}, "4/3"), ({"multicast": True}, "1"), ({}, "4/3")):
        instance, row, saved = proofs_of(star, switches=able)["all_reduce"]
        assert saved.bound == bound
        assert verify(instance, saved, [row.flow.collective]).confirms(saved)


def moved(label: np.ndarray, place: int, to: int) -> np.ndarray:
    changed = label.copy()
    changed[place] = to
    return changed


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("all_gather", {"bound": "16"}, "where 16 is claimed"),
        ("all_gather", {"bound": ""}, "nothing is claimed"),
        ("all_gather", {"collective": "gather", "root": np.array([3])}, "wrong side"),
        ("all_gather", {"collective": "all_reduce"}, "the sets prove"),
        ("all_gather", {"collective": "scan"}, "no certificate proves a bound"),
        ("all_gather", {"ranks": "racks"}, "ranks must be"),
        ("all_gather", {"units": np.zeros(12, np.int64)}, "must be units"),
        ("all_gather", {"units": np.ones(11, np.int64)}, "must be units"),
        ("all_gather", {"part": np.full(12, -1)}, "infinite channel"),
        ("all_gather", {"part": np.zeros(13, np.int64)}, "part must be 12 numbers"),
        ("all_gather", {"of_rank": np.full(12, -1)}, "some rank in it"),
        ("all_gather", {"topology": "0"}, "another topology"),
        ("broadcast", {"root": np.array([7])}, "wrong side"),
        ("broadcast", {"root": np.array([12])}, "one of 12 ranks"),
        ("all_reduce", {"collective": "all_gather"}, "of an all-reduce"),
        ("all_reduce", {"able": "multicast reduce"}, "no proof"),
        ("all_reduce", {"of_rank": np.arange(12) + (np.arange(12) > 5)}, "must be 12 numbers"),
        ("all_reduce", {"part": moved(np.arange(12), 3, -1)}, "infinite channel"),
    ],
)  # fmt: skip
def test_what_was_changed_proves_nothing(kind, change, message):
    """Whatever it says of its collective is what the configuration bounds: the sets themselves prove nothing."""
    instance, _, saved = proofs_of(build("mesh", dims=[3, 4]).with_hosts(1), root=0)[kind]
    changed = replace(saved, ceiling="collective", **change)
    same = Collective(changed.collective, changed.ranks, int(changed.root[0]), tuple(changed.units.tolist()))
    same = replace(same, multicast="multicast" in changed.able, reduce="reduce" in changed.able)
    object.__setattr__(same, "kind", changed.collective)
    with pytest.raises(BadCertificate, match=message):
        verify(instance, changed, [same])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": np.full(12, 100)}, "other amounts of its 12 ranks"),
        ({"units": np.arange(12)}, "other amounts of its 12 ranks"),
        ({"root": np.array([5])}, "root 3, the certificate says"),
        ({"root": np.array([3, 3])}, "root 3, the certificate says"),
        ({"able": "multicast"}, "switches that do 'nothing else', the certificate says 'multicast'"),
        ({"able": "magic"}, "switches that do 'nothing else', the certificate says 'magic'"),
        ({"ranks": "hosts"}, "ranks switches, the certificate says 'hosts'"),
        ({"collective": "scan"}, "is of the collective 'scan'"),
        ({"ceiling": "collective:scan"}, "is of the collective"),
        ({"ceiling": "collective", "collective": "scan"}, "the certificate says 'scan'"),
    ],
)
def test_a_certificate_is_of_the_collective_of_the_configuration(kind, change, message):
    """A time that is 100 times as long is confirmed of amounts that are, unless those come from the configuration."""
    instance, row, saved = mesh_with_hosts()[kind]
    assert verify(instance, saved, [row.flow.collective]).confirms(saved)
    with pytest.raises(BadCertificate, match=message):
        verify(instance, replace(saved, **change), [row.flow.collective])
    with pytest.raises(BadCertificate, match="bounds no such collective"):
        verify(instance, saved)


@cache
def mesh_with_hosts():
    return proofs_of(build("mesh", dims=[3, 4]).with_hosts(1), root=3)


def test_any_of_the_collectives_of_the_configuration_will_do():
    instance, row, saved = mesh_with_hosts()["broadcast"]
    others = [replace(row.flow.collective, root=2), replace(row.flow.collective, ranks="hosts")]
    assert verify(instance, saved, [*others, row.flow.collective]).confirms(saved)
    with pytest.raises(BadCertificate, match="root 2"):
        verify(instance, saved, others)


def test_capacities_that_are_no_fractions_prove_nothing():
    """Read as 0, a channel of a millionth of a millionth would make its cut twice as tight."""
    instance, row, saved = proofs_of(build("mesh", dims=[3, 4]).with_hosts(1))["all_gather"]
    topology = replace(instance.topology, capacity=instance.topology.capacity - 1e-12)
    other = replace(saved, topology=topology.content_hash)
    with pytest.raises(BadCertificate, match="not a fraction with a denominator up to"):
        verify(replace(instance, topology=topology), other, [row.flow.collective])


def test_another_claim_is_not_confirmed():
    found = proofs_of(build("mesh", dims=[3, 4]).with_hosts(1))
    for kind, change in (("all_gather", {"lower": 6.0}), ("all_to_all", {"lower": 13.0, "upper": 13.0}),
                         ("all_to_all", {"upper": 11.9, "lower": 11.9})):  # fmt: skip
        instance, row, saved = found[kind]
        proven = verify(instance, saved, [row.flow.collective])
        assert "not proven" in proven.unproven(replace(saved, **change))


@pytest.mark.parametrize(("part", "is_read"), [("all_gather", False), (np.zeros(1), False), ("", True), ((), True)])
def test_other_ceilings_have_no_parts_of_a_collective(tmp_path, part, is_read):
    """Files of earlier versions had the arrays of all proofs, empty ones."""
    instance = scenario(build("mesh", dims=[2, 2]).with_hosts(1), all_to_all(build("mesh", dims=[2, 2]).with_hosts(1)))
    (row,) = ceilings(instance, [ceiling_spec("mcf")], keep_flow=True)
    saved = saved_of(instance, row)
    np.savez(tmp_path / "c.npz", **vars(saved), collective=part)
    if is_read:
        assert verify(instance, read_saved(tmp_path / "c.npz")).confirms(saved)
    else:
        with pytest.raises(BadCertificate, match="it has unknown arrays"):
            read_saved(tmp_path / "c.npz")


def chain(vertices, count=1, through=()) -> Tree:
    """A tree that is a path, each step of which leads through some other vertices."""
    return Tree(vertices[0], count, tuple((x, *through, y) for x, y in pairwise(vertices)))


def round_trips(n: int, count=1, first=0, through=()) -> tuple[Tree, ...]:
    """For each of n vertices the path from it through all others, in the order of their numbers."""
    return tuple(chain([first + (v + i) % n for i in range(n)], count, through) for v in range(n))


def one_way(n: int) -> Topology:
    return Topology.from_arcs("ring", n, [(v, (v + 1) % n) for v in range(n)])


LINE = Topology.from_links("line", 3, [(0, 1), (1, 2)], capacity=[2, 2])
ONE = build("hyperx", dims=[1]).with_hosts(3, 2)
BACK = tuple(chain([(v - i) % 4 for i in range(4)], 5) for v in range(4))


@pytest.mark.parametrize(
    ("topology", "kind", "keys", "trees", "reached"),
    [
        (one_way(4), "all_gather", {}, {"out": round_trips(4, 2)}, 3),
        (one_way(4), "reduce_scatter", {}, {"into": BACK}, 3),
        (one_way(4), "broadcast", {"root": 1}, {"out": round_trips(4)[1:2]}, 1),
        (one_way(4), "reduce", {"root": 1}, {"into": BACK[1:2]}, 1),
        (LINE, "all_reduce", {}, {"into": (chain([0, 1, 2]),), "out": (chain([0, 1, 2]),)}, Fraction(1, 2)),
        (LINE, "all_gather", {"amounts": [2, 0, 1]},
         {"out": (chain([0, 1, 2], 4), chain([2, 1, 0], 2))}, 1),
        (ONE, "all_gather", {"ranks": "hosts"}, {"out": round_trips(3, 1, 1, (0,))}, 1),
    ],
)  # fmt: skip
def test_trees_prove_what_is_possible(topology, kind, keys, trees, reached, tmp_path):
    instance, row, _ = proofs_of(topology.with_hosts(1) if not topology.hosts else topology, **keys)[kind]
    whole = replace(row, upper=float(reached), flow=replace(row.flow, **trees, reached=Fraction(reached)))
    saved_of(instance, whole).write(tmp_path / "c.npz")
    saved = read_saved(tmp_path / "c.npz")
    proven = verify(instance, saved, [row.flow.collective])
    assert (proven.lower, proven.upper) == (row.lower, float(reached))
    assert proven.confirms(saved)
    assert saved.statement().endswith("ticks/flit, by any algorithm")


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ({"out": round_trips(4)[1:]}, "roots of the trees are not"),
        ({"out": (chain([0, 1, 2, 3], 2), *round_trips(4)[1:])}, "roots of the trees are not"),
        ({"out": round_trips(4), "into": BACK[:1]}, "roots of the trees are not"),
        ({"out": (chain([0, 1, 2]), *round_trips(4)[1:])}, "does not reach the rank at 3"),
        ({"out": (chain([0, 1, 2, 1]), *round_trips(4)[1:])}, "adds no vertex"),
        ({"out": (chain([0, 2, 1, 3]), *round_trips(4)[1:])}, "the channel .* which the network lacks"),
        ({"out": (chain([0, 1, 2, 3], -1), *round_trips(4)[1:])}, "has direction 1 and -1 parts"),
        ({"out": round_trips(4), "reached": Fraction(2)}, "where 2 is claimed"),
    ],
)  # fmt: skip
def test_other_trees_prove_nothing(trees, message):
    instance, row, _ = proofs_of(one_way(4).with_hosts(1))["all_gather"]
    row = replace(row, upper=3.0, flow=replace(row.flow, **{"reached": Fraction(3), **trees}))
    with pytest.raises(BadCertificate, match=message):
        verify(instance, saved_of(instance, row), [row.flow.collective])


def test_a_tree_branches_at_ranks_unless_switches_copy_or_combine():
    """One channel leads out of a star's root: a vector leaves it twice unless the switch in the middle copies."""
    arcs = [(0, 3), (3, 1), (3, 2), (1, 3), (2, 3), (3, 0)]
    capacity = [1, 1, 1, 0.125, 0.125, 1]
    topology = Topology.from_arcs("star", 4, arcs, capacity=capacity).with_hosts([1, 1, 1, 0])
    tree = Tree(0, 1, ((0, 3), (3, 1), (3, 2)))
    turned = Topology.from_arcs("star", 4, [(v, u) for u, v in arcs], capacity=capacity).with_hosts([1, 1, 1, 0])
    cases = [("multicast", "broadcast", "out", topology), ("reduce", "reduce", "into", turned)]
    for able, kind, part, network in cases:
        for switches in ({}, {able: True}):
            instance, row, _ = proofs_of(network, switches=switches)[kind]
            proof = replace(row.flow, **{part: (tree,)}, reached=Fraction(1))
            saved = saved_of(instance, replace(row, upper=1.0, flow=proof))
            if switches:
                assert verify(instance, saved, [row.flow.collective]).confirms(saved)
            else:
                with pytest.raises(BadCertificate, match="branches at 3, where no rank is"):
                    verify(instance, saved, [row.flow.collective])


def test_arrays_of_trees_fit_each_other():
    instance, row, _ = proofs_of(one_way(4).with_hosts(1))["all_gather"]
    saved = saved_of(instance, replace(row, flow=replace(row.flow, out=round_trips(4), reached=Fraction(3))))
    for change in ({"vertex": saved.vertex[:-1]}, {"tree": saved.tree[:-1]}, {"first": saved.first[:-1]}):
        with pytest.raises(BadCertificate, match="parts of trees"):
            replace(saved, **change)
