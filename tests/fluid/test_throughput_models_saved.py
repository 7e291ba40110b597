# SPDX-License-Identifier: Apache-2.0
"""Decomposition, utilisation, and certificates that are saved and verified without a solver."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.decomposition import link_classes
from flitlab.fluid.saved import BadCertificate, Saved
from flitlab.fluid.verify import read_saved, saved_of, verify
from flitlab.fluid.verify_flow import RoutedFlowProof
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from tests.fluid.fluid_cases import INF, all_to_all, cycle, hypercube, minimal, scenario, small_scenarios, table, torus
from tests.scenarios import asked_as_far_as_known


def rows(case: Scenario, *specs, loads=()):
    return {row.ceiling: row for row in ceilings(case, specs, loads, keep_flow=True)}


def saved(case: Scenario, row, folder) -> Saved:
    path = folder / "certificate.npz"
    saved_of(case, row).write(path)
    return read_saved(path)


@settings(max_examples=25, deadline=None)
@given(small_scenarios())
def test_throughput_is_the_product_of_its_factors(case):
    every = rows(case, ceiling_spec("mcf", method="exact"), ceiling_spec("decomposition", method="exact"))
    part = {name: every[f"decomposition:{name}"].lower for name in ("capacity", "utilisation", "distance", "stretch")}
    product = part["capacity"] * part["utilisation"] / (part["distance"] * part["stretch"])
    assert every["decomposition"].lower == pytest.approx(product, rel=1e-9)
    demand = case.traffic.switch_demand.sum() - np.trace(case.traffic.switch_demand)
    assert product == pytest.approx(every["mcf"].lower * demand, rel=1e-9)
    assert part["utilisation"] <= 1 + 1e-9 and part["stretch"] >= 1 - 1e-9


def test_all_channels_of_a_hypercube_are_full():
    case = scenario(hypercube(3), all_to_all(hypercube(3)))
    every = rows(case, *(ceiling_spec(kind, method="exact") for kind in ("decomposition", "utilisation")))
    assert every["utilisation"].lower == pytest.approx(1, rel=1e-6)
    assert every["decomposition:stretch"].lower == pytest.approx(1, rel=1e-6)
    assert every["decomposition:distance"].lower == pytest.approx(12 / 7)


def test_utilisation_by_class_where_hosts_bind():
    """k = 4 fat tree, permutation: theta is 1 at the hosts, whose traffic the edge layer carries in full."""
    topology = make("topology", kind="fat_tree", k=4).build().with_hosts([2] * 8 + [0] * 12, 1.0)
    first = {name: count for name, _, count in topology.notes["tiers"]}
    assert sum(first.values()) == 20
    traffic = make("traffic", kind="shift", by=4).build(topology)
    every = rows(scenario(topology, traffic), *(ceiling_spec(kind) for kind in ("mcf", "utilisation")))
    assert every["mcf"].note == "host channels bind"
    classes = {name.partition(":")[2]: row.lower for name, row in every.items() if name.startswith("utilisation:")}
    assert set(classes) == set(link_classes(topology)) and len(classes) == 2
    use = every["mcf"].channel_load / topology.capacity
    assert every["utilisation"].lower == pytest.approx(use.mean())
    assert use.max() <= 1 + 1e-9


def test_classes_tell_speeds_apart():
    topology = replace(cycle(4), capacity=np.array([1, 10, 1, 1, 10, 1, 1, 1.0]))
    classes = link_classes(topology)
    assert {name: int(members.sum()) for name, members in classes.items()} == {"@1": 6, "@10": 2}
    assert link_classes(cycle(4)) == {}


ROUTINGS = [None, {"kind": "minimal"}, {"kind": "allpath", "hops": 5}, {"kind": "imase"}]


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize(("method", "capacity"), [("exact", INF), ("approx", INF), ("auto", 1.0)])
def test_what_is_saved_proves_what_was_claimed(routing, method, capacity, tmp_path):
    topology = make("topology", kind="imase", n=12, degree=2).build().with_hosts(1, capacity)
    traffic = make("traffic", kind="permutation", seed=3).build(topology)
    routes = None if routing is None else make("routing", **routing).build(topology)
    case = scenario(topology, traffic, routes)
    kinds = ["mcf", "bounds", "cuts", "total"] if routing is None else ["mcf_paths"]
    for row in ceilings(
        case, [asked_as_far_as_known(kind, method=method) for kind in kinds], [0.5, 0.9], keep_flow=True
    ):
        claim = saved(case, row, tmp_path)
        if not claim.claims:  # bounds by other than lengths, or of another demand, or the offer itself
            unproved = ("bounds:moore", "bounds:tub", "bounds:equipment")
            assert row.ceiling in unproved or np.isinf(row.upper) or row.method == "offer"
            continue
        found = verify(case, claim)
        assert found.confirms(claim)
        if row.ceiling in ("mcf", "mcf_paths"):
            assert found.lower == pytest.approx(row.lower, rel=1e-9)
            assert found.upper == pytest.approx(row.upper, rel=1e-9)
        elif row.certificate is not None:  # the lengths of a cut may prove more than its sparsity
            assert found.upper <= row.upper * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(small_scenarios(host_capacity=1.0))
def test_verification_agrees_on_uneven_networks(case):
    for row in ceilings(case, [ceiling_spec("mcf", method="exact"), ceiling_spec("cuts")], keep_flow=True):
        claim = saved_of(case, row)
        found = verify(case, claim)
        assert found.confirms(claim)
        if row.ceiling == "mcf":  # the lengths of a cut may prove more than its sparsity
            assert found.upper == pytest.approx(row.upper, rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "approx"])
def test_a_saved_total_proves_both_ends(method, tmp_path):
    topology = make("topology", kind="gdbg", n=9, degree=2).build().with_hosts(2, INF)
    for traffic in (all_to_all(topology), make("traffic", kind="shift", by=5).build(topology)):
        spec = ceiling_spec("total", method=method)
        for row in ceilings(scenario(topology, traffic), [spec], [0.9, 2.5], keep_flow=True):
            claim = saved(scenario(topology, traffic), row, tmp_path)
            found = verify(scenario(topology, traffic), claim)
            assert found.lower == pytest.approx(row.lower, rel=1e-9)
            assert found.upper == pytest.approx(row.upper, rel=1e-9)
            assert not verify(scenario(topology, traffic), claim).confirms(replace(claim, lower=row.lower * 1.001))
            halved = replace(claim, flow=np.where(np.arange(len(claim.flow)) % 2, claim.flow, 0.0))
            assert not verify(scenario(topology, traffic), halved).confirms(claim)


def test_a_total_that_hosts_limit_is_verified_from_above_alone():
    topology = torus(4).with_hosts(1, 1.0)
    case = scenario(topology, all_to_all(topology))
    (row,) = ceilings(case, [ceiling_spec("total")], [2.5], keep_flow=True)
    found = verify(case, saved_of(case, row))
    assert np.isnan(found.lower) and found.upper == pytest.approx(row.upper, rel=1e-9)


def permutation_case() -> Scenario:
    topology = make("topology", kind="torus", dims=[4, 4]).build().with_hosts(1, INF)
    traffic = make("traffic", kind="permutation", seed=1).build(topology)
    return scenario(topology, traffic, make("routing", kind="ksp", k=3).build(topology))


def test_a_claim_that_is_too_good_is_not_confirmed():
    case = permutation_case()
    claim = saved_of(case, rows(case, ceiling_spec("mcf", method="approx", gap=0.1))["mcf"])
    assert claim.upper > claim.lower * 1.01
    for end, factor in (("lower", 1.005), ("upper", 0.995)):
        wrong = replace(claim, **{end: getattr(claim, end) * factor})
        assert verify(case, wrong).unproven(wrong).startswith(f"not proven: {end} end ")
    less = replace(claim, flow=np.where(np.arange(len(claim.flow)) == claim.flow.argmax(), 0, claim.flow))
    assert not verify(case, less).confirms(less)


@pytest.mark.parametrize("kind", ["mcf", "mcf_paths"])
def test_broken_certificates_are_refused(kind, tmp_path):
    case = permutation_case()
    claim = saved_of(case, rows(case, ceiling_spec(kind, method="approx"))[kind])
    moved = claim.channel.copy()
    moved[0] = (moved[0] + 1) % case.topology.channels
    broken = [
        ({"network": -claim.network - 1}, "none negative"), ({"flow": -claim.flow}, "not negative"),
        ({"network": claim.network[1:]}, "prices must be"), ({"channel": claim.channel + 1000}, "network lacks"),
        ({"channel": moved}, "does not lead"),
    ]  # fmt: skip
    for change, message in broken:
        with pytest.raises(BadCertificate, match=message):
            verify(case, replace(claim, **change))
    other = permutation_case().topology
    traffic = make("traffic", kind="permutation", seed=2).build(other)
    with pytest.raises(BadCertificate, match="another traffic"):
        verify(scenario(other, traffic, case.routes), claim)
    (tmp_path / "no.npz").write_bytes(b"nothing")
    with pytest.raises(BadCertificate, match="is not a valid certificate"):
        read_saved(tmp_path / "no.npz")


def test_flow_beside_the_routing_is_refused():
    case = permutation_case()
    free = rows(case, ceiling_spec("mcf", method="approx", gap=0.001))["mcf"]
    claim = RoutedFlowProof(**vars(saved_of(case, free)) | {"ceiling": "mcf_paths"})
    for routing, message in (
        ({"kind": "ksp", "k": 1}, "a path that the routing does not have"),
        ({"kind": "dor"}, "does not allow"),
    ):
        routes = make("routing", **routing).build(case.topology)
        with pytest.raises(BadCertificate, match="is of other routes"):
            verify(scenario(case.topology, case.traffic, routes), claim)
        with pytest.raises(BadCertificate, match=message):
            verify(scenario(case.topology, case.traffic, routes), replace(claim, routes=routes.content_hash))


def test_the_exact_flow_of_a_table_routing_is_checked_by_next_hop():
    topology = torus(4)
    case = scenario(topology, table(topology, np.ones((16, 16)) / 16), minimal(topology))
    row = rows(case, ceiling_spec("mcf_paths", method="exact"))["mcf_paths"]
    claim = saved_of(case, row)
    assert verify(case, claim).confirms(claim)
