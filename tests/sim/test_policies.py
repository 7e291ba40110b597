# SPDX-License-Identifier: Apache-2.0
"""VC policies that use all VCs and the allocators: both engines alike, and what they are for."""

import numpy as np
import pytest

from flitlab.models.traffic.source import Source
from flitlab.sim.engines.start import start
from tests import long_after
from tests.scenarios import build, line, one_way_ring, scenario
from tests.sim.policy_cases import case_of_number, check


@pytest.mark.parametrize("number", long_after(5, range(24)))
def test_engines_agree(number):
    case, load = case_of_number(number)
    check(case, load, number, 240)


def test_rising_computed_from_numbers_is_that_of_the_table(engine_name):
    topology = build("imase", hosts=2, n=20, degree=3)
    logs = []
    for kind in ("imase", "minimal"):
        case = scenario(topology, routing={"kind": kind, "vc_policy": "rising"}, vcs=5)
        run = start(engine_name, case, 0.8, 3, log=True)
        run.advance(400)
        logs.append(run.log())
    for one, two in zip(*logs, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shared_input", [False, True])
def test_oldest_first_is_fair_to_those_far_away(engine_name, shared_input):
    """Five switches in a row and all hosts send to the last, as much as it can take: a parking lot."""
    shares = []
    for oldest_first in (False, True):
        case = scenario(
            line(5), routing={"kind": "minimal"}, traffic={"kind": "hotspot", "hosts": [4], "fraction": 1.0},
            source=Source(flits=(2,)), shared_input=shared_input, oldest_first=oldest_first, vcs=2,
        )  # fmt: skip
        run = start(engine_name, case, 1.0, 5)
        run.advance(2500)
        delivered = run.snapshot().delivered.sources
        shares.append(delivered[0] / delivered[3])
    assert shares[0] < 0.5
    assert shares[1] == pytest.approx(1, abs=0.15)


def test_reserve_moves_on_where_any_vc_stands_still(engine_name):
    for policy in ("any", "reserve"):
        case = scenario(
            one_way_ring(5, hosts=2), routing={"kind": "minimal", "vc_policy": policy}, vcs=5, allow_deadlock=True
        )
        run = start(engine_name, case, 1.0, 3)
        run.advance(3000)
        assert run.deadlocked() == (policy == "any")


def test_rising_uses_vcs_that_hop_leaves_idle():
    """A random digraph, one VC for each channel of the longest route: most routes are shorter, and use any of them."""
    topology = build("random_digraph", hosts=3, n=48, degree=4, seed=1)
    carried = []
    for policy in ("hop", "rising"):
        case = scenario(topology, routing={"kind": "minimal", "vc_policy": policy}, vcs=5)
        run = start("compiled", case, 0.33, 1)
        run.advance(6000)
        carried.append(int(run.backlog().sum()))
    assert carried[1] < 0.7 * carried[0]
