# SPDX-License-Identifier: Apache-2.0
"""Networks with more than 64 channels out of a switch in engines and ceilings."""

import numpy as np
import pytest

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.verify import provable, saved_of, verify
from flitlab.models.instance import Instance
from flitlab.models.registry import SpecError, make
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.models.test_wide import fan
from tests.scenarios import TIMES, carrying, ideal, scenario
from tests.sim.test_flow import flows, message_flows

MODES = ["ideal", "vct", "wormhole"]


def leaf_spine(leaves: int) -> Topology:
    """Leaves of 96 uplinks and 96 hosts each."""
    return make("topology", kind="leaf_spine", leaves=leaves, spines=96, hosts_per_leaf=96).build()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["minimal", "ecmp", "updown"])
def test_ceilings_of_a_leaf_spine_are_full_rate(kind):
    """Every host sends to the next leaf: a unit on each uplink and downlink under equal splits."""
    topology = leaf_spine(3)
    keys = {"ways": 96} if kind == "ecmp" else {}
    routes = make("routing", kind=kind, **keys).build(topology)
    traffic = make("traffic", kind="shift", by=96).build(topology)
    instance = Instance(topology, traffic, routes)
    for row in ceilings(instance, [ceiling_spec(one) for one in ("mcf", "mcf_paths", "split")], keep_flow=True):
        assert row.lower == pytest.approx(1.0, rel=1e-6) and row.upper == pytest.approx(1.0, rel=1e-6)
        if provable(row.ceiling) and row.certificate is not None:
            saved = saved_of(instance, row)
            assert verify(instance, saved).confirms(saved)


@pytest.mark.long
def test_half_of_the_next_hops_have_half_of_the_rate():
    """48 of 96 uplinks, drawn for each leaf and destination, carry two units each."""
    topology = leaf_spine(3)
    routes = make("routing", kind="ecmp", ways=48).build(topology)
    traffic = make("traffic", kind="shift", by=96).build(topology)
    (row,) = ceilings(Instance(topology, traffic, routes), [ceiling_spec("split")])
    assert row.upper == pytest.approx(0.5)


def case_of(topology: Topology, mode: str, **keys) -> Scenario:
    """A scenario of a mode."""
    case = scenario(topology, mode="vct" if mode == "ideal" else mode, **keys)
    return ideal(case) if mode == "ideal" else case


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_packets_of_a_leaf_spine_take_the_closed_form(mode):
    """Those of one sender pass three switches and two channels."""
    topology, flits = leaf_spine(2), 4
    case = case_of(topology, mode, traffic={"kind": "shift", "by": 96}, source=Source(flits=(flits,)))
    rate = np.zeros(topology.hosts)
    rate[7] = 1.0
    case = carrying(case, rate=rate)
    t = TIMES if mode != "ideal" else {**TIMES, "header": case.switching.header}
    expected = t["injection"] + 3 * (t["header"] + t["switch"]) + 2 * t["link"] + t["ejection"] + flits - 1
    assert case.zero_load_latency == expected
    run = start("reference", case, 0.02, 3)
    run.advance(4000)
    scalars = run.scalars()
    assert scalars[Scalar.DELIVERED_PACKETS] > 10
    assert scalars[Scalar.LATENCY] == expected * scalars[Scalar.DELIVERED_PACKETS]


PAIRS = [(host, (host + 7) % 12) for host in range(12)]


@pytest.mark.long
@pytest.mark.parametrize("routing", [{"kind": "minimal"}, {"kind": "minimal", "select": "hash"}])
def test_engines_of_flows_agree(routing):
    sends = [(a, b, 4_000) for a, b in PAIRS]
    run = start("both", flows(fan([70, 20], hosts=4), message_flows(12, sends), routing=routing), 1.0, 1)
    run.advance(1 << 40)
    run.execution()
    assert run.done()


def test_layered_vcs_reject_wide_switches():
    routing = {"kind": "minimal", "vc_policy": "layered"}
    with pytest.raises(SpecError, match="layered serves at most 64 channels out of a switch"):
        scenario(fan([70, 20]), routing=routing)
