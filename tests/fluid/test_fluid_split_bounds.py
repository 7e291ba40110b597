# SPDX-License-Identifier: Apache-2.0
"""The fixed split of a routing, simple bounds, and which ceilings are left out."""

import math

import numpy as np
import pytest

from flitlab.fluid.bounds import all_bounds, moore_distances
from flitlab.fluid.ceilings import ceiling_spec, ceilings
from flitlab.fluid.certificate import verify_upper
from flitlab.fluid.problem import FluidError
from flitlab.models.routing.routes import Routes
from flitlab.models.rules.tables import Selection
from flitlab.models.topology.graph import Topology
from tests.fluid.fluid_cases import INF, all_to_all, complete, cycle, hypercube, minimal, scenario, table, torus


def rows(case, *kinds, loads=()):
    return ceilings(case, [ceiling_spec(kind) for kind in kinds], loads)


def test_equal_split_on_symmetric_graphs_is_optimal():
    for topology, value in ((hypercube(4), 2.0), (complete(7), 7.0), (cycle(9), 0.9)):
        (row,) = rows(scenario(topology, all_to_all(topology), minimal(topology)), "split")
        assert row.lower == row.upper == pytest.approx(value)
        assert row.certificate is None and row.method == "equal split"


def test_equal_split_by_hand():
    """0 -> {1, 2} -> 3 -> 4 and 2 -> 5 -> 4: of a demand 0 to 4, 3 -> 4 carries 3/4."""
    arcs = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 5), (3, 4), (5, 4), (4, 0)]
    topology = Topology.from_arcs("hand", 6, arcs).with_hosts(1, INF)
    demand = np.zeros((6, 6))
    demand[0, 4] = 1
    case = scenario(topology, table(topology, demand), minimal(topology))
    split, paths = rows(case, "split", "mcf_paths")
    assert split.lower == pytest.approx(4 / 3)
    assert paths.lower == pytest.approx(2)


def test_split_is_capped_by_host_channels():
    topology = complete(7).with_hosts(1, 1.0)
    (row,) = rows(scenario(topology, all_to_all(topology), minimal(topology)), "split")
    assert row.lower == 1.0 and row.note == "host channels bind" and row.unit == "load"


def test_path_ceilings_are_omitted_with_the_reason():
    topology = cycle(5)
    ports = minimal(topology).ports
    cases = {
        None: "no routing",
        Routes("deflection", ports, Selection.RANDOM, 2, deflection=True): "deflection",
        Routes("minimal", ports, Selection.ADAPTIVE, 2): "does not fix",
    }
    for routes, reason in cases.items():
        found = rows(scenario(topology, all_to_all(topology), routes), "mcf_paths", "split", "mcf")
        for row in found[:2]:
            assert math.isnan(row.lower) and math.isnan(row.upper) and reason in row.note
            assert row.method == "omitted"
        assert found[2].lower > 0


def test_routes_that_loop_or_end_are_refused():
    topology = cycle(4)
    ports = minimal(topology).ports.copy()
    ports[0, 1], ports[0, 2] = 2, 1  # 1 -> 2 -> 1
    with pytest.raises(FluidError, match="cycle"):
        rows(scenario(topology, all_to_all(topology), Routes("looping", ports, Selection.RANDOM, 3)), "split")
    ports = minimal(topology).ports.copy()
    ports[0, 2] = 0
    with pytest.raises(FluidError, match="no route"):
        rows(scenario(topology, all_to_all(topology), Routes("ending", ports, Selection.RANDOM, 3)), "mcf_paths")


def test_bounds_name_the_one_that_binds():
    topology = torus(4)
    found = {row.ceiling: row for row in rows(scenario(topology, all_to_all(topology)), "bounds")}
    names = ("", ":volumetric", ":moore", ":cuts", ":hosts", ":tub", ":equipment")
    assert set(found) == {f"bounds{one}" for one in names}
    assert found["bounds"].note.startswith("volumetric")
    assert found["bounds"].upper == found["bounds:volumetric"].upper == pytest.approx(2.0)
    assert found["bounds:moore"].upper >= found["bounds:volumetric"].upper
    assert found["bounds:cuts"].upper == pytest.approx(4 / (15 / 16))
    assert found["bounds:hosts"].upper == INF
    assert math.isnan(found["bounds"].lower)


def test_a_single_switch_cut_binds_where_a_switch_is_poorly_attached():
    topology = Topology.from_arcs("drain", 3, [(0, 1), (1, 0), (0, 1), (0, 1), (1, 2), (2, 0)])
    topology = topology.with_hosts(1, INF)
    traffic = table(topology, [[0, 0.5, 0.5], [0.5, 0, 0.0], [0, 0, 0]])
    bounds = {bound.name: bound for bound in all_bounds(topology, traffic)}
    assert bounds["cuts"].upper == pytest.approx(2)
    for bound in bounds.values():
        if bound.certificate is not None:
            assert verify_upper(topology, traffic, bound.certificate) == pytest.approx(bound.upper)


def test_moore_distances():
    assert moore_distances(8, 3, directed=False).tolist() == [1, 1, 1, 2, 2, 2, 2]
    assert moore_distances(8, 2, directed=True).tolist() == [1, 1, 2, 2, 2, 2, 3]
    assert moore_distances(4, 1, directed=True).tolist() == [1, 2, 3]
