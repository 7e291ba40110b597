# SPDX-License-Identifier: Apache-2.0
"""The worst demand of a fixed split: against brute force, closed forms, its own witness, and with a proof."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.problem import Problem
from flitlab.fluid.saved import BadCertificate
from flitlab.fluid.split import split_use
from flitlab.fluid.transport import max_value_shipment
from flitlab.fluid.verify import saved_of, verify
from flitlab.fluid.worst import worst_case
from flitlab.models.registry import make
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, scenario, table
from tests.models.test_routing import routes_of
from tests.scenarios import build


def network(kind: str, hosts=1, **parameters) -> Topology:
    return build(kind, **parameters).with_hosts(hosts, INF)


def row_of(topology: Topology, routes):
    instance = scenario(topology, all_to_all(topology), routes)
    row = ceilings(instance, [ceiling_spec("worst_case")], keep_flow=True)[0]
    return instance, row


def load_of(topology: Topology, routes, demand) -> float:
    """The largest load over capacity of a demand between hosts, by what ``split`` makes of it."""
    traffic = table(topology, demand)
    return float(split_use(Problem.of(topology, traffic, routes), topology, traffic).max())


def by_brute_force(topology: Topology, routes) -> float:
    hosts = np.arange(topology.hosts)
    worst = 0.0
    for order in permutations(hosts.tolist()):
        demand = np.zeros((topology.hosts, topology.hosts))
        demand[hosts, order] = 1
        np.fill_diagonal(demand, 0)
        if demand.any():
            worst = max(worst, load_of(topology, routes, demand))
    return 1 / worst


SMALL = [
    (network("rrg", n=6, degree=3, seed=1), "minimal", {}),
    (network("rrg", n=6, degree=3, seed=2), "ksp", {"k": 3}),
    (network("random_digraph", n=6, degree=2, seed=1), "minimal", {"select": "hash"}),
    (network("gdbg", n=6, degree=2), "imase", {}),
    (network("torus", dims=[6]), "dor", {}),
    (network("torus", dims=[5]), "valiant", {}),
    (network("random_digraph", n=6, degree=2, seed=3), "valiant", {}),
    (network("rrg", hosts=[3, 0, 1, 2], n=4, degree=3), "minimal", {}),
    (network("torus", hosts=[2, 1, 3, 0], dims=[4]), "updown", {}),
    (network("torus", hosts=[2, 0, 3, 1], dims=[4]), "valiant", {}),
    # most hosts are on one switch
    (network("random_digraph", hosts=[4, 1, 1], n=3, degree=1), "valiant", {}),
    (network("rrg", hosts=[1, 2, 1, 0, 2], n=5, degree=2, seed=3), "ksp", {"k": 2}),
]


@pytest.mark.parametrize(("topology", "routing", "keys"), SMALL)
def test_no_permutation_of_hosts_is_worse_and_one_is_as_bad(topology, routing, keys):
    routes = routes_of(topology, routing, **keys)
    instance, row = row_of(topology, routes)
    assert row.lower == pytest.approx(row.upper, rel=1e-12)
    assert row.lower == pytest.approx(by_brute_force(topology, routes), rel=1e-9)
    check_witness(topology, routes, row)
    check_proof(instance, row)


@pytest.mark.parametrize(("kind", "keys"), [("minimal", {}), ("valiant", {}), ("ksp", {"k": 3})])
def test_weights_count(kind, keys):
    """The same of next hops, legs and paths that are drawn by weights, 1 / 4 and 3 / 4 where there are two."""
    topology = network("rrg", n=6, degree=3, seed=2)
    routes = routes_of(topology, kind, **keys)
    if routes.paths is None:
        first = np.full((*routes.ports.shape, int(topology.out_degree.max())), 64, np.uint8)
        last = np.array([[int(mask).bit_length() - 1 for mask in row] for row in routes.ports.tolist()])
        t, v = np.nonzero(last >= 0)
        first[t, v, last[t, v]] = 255
        weighed = replace(routes, port_threshold=first)
    else:
        count = np.diff(routes.paths.pair_start)
        place = np.arange(count.sum()) - np.repeat(routes.paths.pair_start[:-1], count)
        threshold = np.where(place == 0, 1 << 30, 3 << 30).astype(np.uint32)
        threshold[routes.paths.pair_start[1:][count > 0] - 1] = 2**32 - 1
        weighed = replace(routes, paths=routes.paths._replace(threshold=threshold))
    instance, row = row_of(topology, weighed)
    assert row.lower == pytest.approx(by_brute_force(topology, weighed), rel=1e-9)
    assert row.lower != pytest.approx(row_of(topology, routes)[1].lower, rel=1e-3)
    check_witness(topology, weighed, row)
    check_proof(instance, row)


def check_witness(topology: Topology, routes, row) -> None:
    """The demand that is kept is one of the hose model, and ``split`` gives it the theta of the row."""
    between = np.zeros((topology.switches, topology.switches))
    between[row.flow.source, row.flow.target] = row.flow.amount
    place, hosts = topology.host_switch, topology.host_count
    demand = between[np.ix_(place, place)] / np.outer(hosts[place], hosts[place])
    assert demand.sum(axis=0).max() <= 1 + 1e-12 and demand.sum(axis=1).max() <= 1 + 1e-12
    assert max(demand.sum(axis=0).max(), demand.sum(axis=1).max()) == pytest.approx(1)
    assert 1 / load_of(topology, routes, demand) == pytest.approx(row.upper, rel=1e-9)


def check_proof(instance, row) -> None:
    saved = saved_of(instance, row)
    proven = verify(instance, saved)
    assert saved.claims and proven.confirms(saved)
    higher = replace(saved, lower=saved.lower * (1 + 1e-6), upper=saved.upper * (1 + 1e-6))
    assert "lower end" in verify(instance, higher).unproven(higher)
    less = replace(saved, lower=saved.lower * (1 - 1e-6), upper=saved.upper * (1 - 1e-6))
    assert "upper end" in verify(instance, less).unproven(less)


LARGER = [
    # half of what it carries under uniform traffic, which fills a channel of a k-ary n-cube at 8 / k
    ("torus", {"dims": [8, 8]}, "valiant", 0.5),
    ("torus", {"dims": [8]}, "valiant", 0.5),
    ("hypercube", {"dim": 5}, "valiant", 1.0),
    # on a ring of k, three full senders and a fourth half of whose traffic goes this way
    ("torus", {"dims": [8, 8]}, "dor", 1 / 3.5),
    # 2**(d/2 - 1) pairs agree in all that is corrected before and after
    ("hypercube", {"dim": 6}, "dor", 0.25),
    ("rrg", {"n": 16, "degree": 4, "seed": 1}, "minimal", 0.30),
    ("rrg", {"n": 16, "degree": 4, "seed": 1}, "valiant", 0.6906474820143885),
]


@pytest.mark.parametrize(("kind", "parameters", "routing", "theta"), LARGER)
def test_known_values(kind, parameters, routing, theta):
    topology = network(kind, **parameters)
    routes = routes_of(topology, routing)
    instance, row = row_of(topology, routes)
    assert row.lower == pytest.approx(theta, rel=1e-9) and row.upper == pytest.approx(theta, rel=1e-9)
    check_witness(topology, routes, row)
    check_proof(instance, row)


def test_translations_change_nothing():
    """A torus whose switches are renumbered is none for the solver: every channel is then solved by itself."""
    topology = network("torus", dims=[4, 3])
    order = np.random.default_rng(1).permutation(topology.switches)
    renumbered = Topology.from_arcs(
        "renumbered", topology.switches, np.column_stack([order[topology.src], order[topology.dst]])
    ).with_hosts(1, INF)
    by_group, one_by_one = (worst_case(each, routes_of(each, "minimal")) for each in (topology, renumbered))
    assert by_group.lower == pytest.approx(one_by_one.lower, rel=1e-12)
    assert len(by_group.priced) == topology.channels


def test_unequal_capacities_and_host_channels():
    """The thin channel is full first; with fast channels those of the hosts are."""
    arcs = [(v, w) for v in range(4) for w in range(4) if v != w]
    topology = Topology.from_arcs("thin", 4, arcs, capacity=[0.25, *[9.0] * 11]).with_hosts(2, 1.0)
    assert row_of(topology, routes_of(topology, "minimal"))[1].upper == pytest.approx(0.125)
    fast = replace(topology, capacity=np.full(12, 9.0))
    instance, row = row_of(fast, routes_of(fast, "minimal"))
    assert (row.lower, row.upper, row.note) == (1.0, 1.0, "host channels bind")
    assert verify(instance, saved_of(instance, row)).confirms(saved_of(instance, row))


def test_what_decides_on_the_way_has_no_fixed_split():
    topology = network("rrg", n=6, degree=3, seed=1)
    for routing, keys in (("minimal", {"select": "adaptive"}), ("deflection", {}), ("ugal", {})):
        routes = make("routing", kind=routing, **keys).build(topology)
        (row,) = ceilings(scenario(topology, all_to_all(topology), routes), [ceiling_spec("worst_case")])
        assert row.method == "omitted" and "does not fix the paths" in row.note


def test_tampered_proofs_prove_nothing():
    topology = network("rrg", n=6, degree=3, seed=1)
    instance, row = row_of(topology, routes_of(topology, "minimal"))
    saved = saved_of(instance, row)
    free = replace(saved, price=np.zeros_like(saved.price))
    assert "lower end" in verify(instance, free).unproven(free)
    for part, message in (
        ({"amount": 2 * saved.amount}, "more than a unit"), ({"price": -saved.price}, "not negative"),
        ({"amount": -saved.amount}, "not negative"),
    ):  # fmt: skip
        with pytest.raises(BadCertificate, match=message):
            verify(instance, replace(saved, **part))
    with pytest.raises(BadCertificate, match="do not fit"):
        replace(saved, amount=saved.amount[1:])


@pytest.mark.parametrize("routing", ["minimal", "valiant"])
def test_no_change_of_a_proof_confirms_what_is_not_so(routing):
    topology = network("rrg", n=6, degree=3, seed=1)
    instance, row = row_of(topology, routes_of(topology, routing))
    saved = saved_of(instance, row)
    assert verify(instance, saved).confirms(saved)
    draw, understood = np.random.default_rng(1), 0
    for _ in range(100):
        claim = {"lower": 1.01 * saved.lower, "upper": 1.02 * saved.upper}
        if draw.random() < 0.5:
            claim = {"lower": 0.5 * saved.lower, "upper": 0.99 * saved.upper}
        for name in draw.choice(["amount", "price", "source", "target", "channel"], 2, replace=False):
            part = getattr(saved, name).copy()
            if len(part):
                some = draw.integers(len(part), size=draw.integers(1, len(part) + 1))
                part[some] = (
                    draw.permutation(part[some]) if part.dtype.kind == "i" else part[some] * draw.choice([0, 0.5, 1.5])
                )
            claim[name] = part
        changed = replace(saved, **claim)
        try:
            assert not verify(instance, changed).confirms(changed)
            understood += 1
        except BadCertificate:
            continue
    assert understood > 20


def test_transportation_is_optimal():
    draw = np.random.default_rng(5)
    for case in range(60):
        sources, targets = draw.integers(1, 9, 2)
        value = np.round(draw.random((sources, targets)) * draw.integers(0, 2, (sources, targets)), case % 3)
        supply, room = (draw.integers(1, 5 if case % 2 else 2, size) for size in (sources, targets))
        shipped, price = max_value_shipment(value, supply, room)
        assert (shipped >= 0).all() and (price >= 0).all()
        assert (shipped.sum(axis=1) <= supply).all() and (shipped.sum(axis=0) <= room).all()
        worth = float((value * shipped).sum())
        left = np.maximum(value - price[:, None], 0).max(axis=0)
        assert worth == pytest.approx(float(supply @ price + room @ left), abs=1e-12)
        if case % 2 == 0:
            rows, columns = linear_sum_assignment(-value)
            assert worth == pytest.approx(float(value[rows, columns].sum()), abs=1e-12)
        elif case < 20:
            sums = np.vstack([np.kron(np.eye(sources), np.ones(targets)), np.kron(np.ones(sources), np.eye(targets))])
            best = linprog(-value.ravel(), A_ub=sums, b_ub=np.concatenate([supply, room]))
            assert worth == pytest.approx(-best.fun, abs=1e-9)
