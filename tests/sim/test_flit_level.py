# SPDX-License-Identifier: Apache-2.0
"""The whole flit level at once: speeds, classes, replies, subnets, allocators, buffers and bursts, in both engines."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.rules.allocate import AllocatorKind
from flitlab.models.scenario import Scenario
from flitlab.models.switching.buffers import ChannelBuffers
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.source import Source
from tests.scenarios import scenario, topologies
from tests.sim.test_classes import LOADS, MANY, agree
from tests.sim.test_subnets import with_subnets

PROFILES = {
    "speeds": {"mode": "wormhole"},
    "crossbar": {"mode": "wormhole", "matching": AllocatorKind.WAVEFRONT, "speedup": Fraction(3, 2)},
    "vct": {"mode": "vct"},
}
"""Variants of the kernels, of which each takes a minute to compile; all else is drawn."""


def with_speeds(draw, topology: Topology) -> Topology:
    """The topology with flits of 1 to 3 ticks on channels, and of 2 on those of hosts."""
    ticks = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=topology.channels, max_size=topology.channels))
    return replace(topology, capacity=1 / np.array([1, *ticks[1:]], float), host_capacity=0.5)


@st.composite
def networks(draw, profile: str) -> Scenario:
    """A network with unequal buffers; of one speed where the crossbar is faster."""
    keys = dict(PROFILES[profile])
    topology = draw(topologies().filter(lambda topology: topology.channels > 0 and not topology.has_delays))
    topology = topology if "speedup" in keys else with_speeds(draw, topology)
    least = 4 if keys["mode"] == "vct" else 1
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    flits = rng.integers(least, 3 * least + 5, topology.channels + topology.hosts).tolist()
    flits[0] = max(flits) + 1  # not all alike
    if keys["mode"] == "wormhole":
        keys |= {"header": draw(st.integers(1, 3)), "output_flits": draw(st.sampled_from([None, 2]))}
    return scenario(
        topology, routing={"kind": "minimal"}, allow_deadlock=True, vcs=draw(st.integers(1, 5)),
        source=Source(draw(st.sampled_from(["bernoulli", "onoff"])), (1, 4)), buffer_flits=max(flits),
        channel_buffers=ChannelBuffers(tuple(flits), {}), shared_input=draw(st.booleans()),
        own_credit_path=draw(st.booleans()), **keys,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES)
def test_engines_agree_on_everything_at_once(profile):
    @given(with_subnets(networks(profile)), st.sampled_from(["class", "age"]), LOADS, st.integers(0, 2**40))
    @settings(MANY, max_examples=60)
    def check(case, priority, load, seed):
        if case.switching.mode == "wormhole":
            case = replace(case, switching=replace(case.switching, priority=priority))
        agree(case, load, seed)

    check()
