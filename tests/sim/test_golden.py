# SPDX-License-Identifier: Apache-2.0
"""Counters that change only with the model: whoever changes them on purpose raises SEMANTICS_VERSION and says why."""

import pytest

from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.models.traffic.source import Source
from flitlab.sim.engines.base import Scalar
from flitlab.sim.engines.start import start
from tests.scenarios import build, ideal, scenario

CASES = {
    "vct": lambda: scenario(
        build("kautz", hosts=2, degree=2, diameter=3),
        routing={"kind": "minimal", "vc_policy": "hop"},
        source=Source(flits=(2, 5), shares=(1, 1)),
    ),
    "rising": lambda: scenario(
        build("kautz", hosts=2, degree=2, diameter=3),
        source=Source(flits=(2, 5), shares=(1, 1)),
        oldest_first=True,
    ),
    "adaptive": lambda: scenario(
        build("torus", hosts=1, dims=[4, 4]),
        routing={"kind": "minimal", "select": "adaptive", "vc_policy": "hop"},
        shared_input=True,
    ),
    "wormhole": lambda: scenario(
        build("torus", hosts=1, dims=[4, 4]),
        routing={"kind": "dor", "vc_policy": "dateline"},
        mode="wormhole",
        source=Source(flits=(2, 5), shares=(1, 1)),
        buffer_flits=3,
        shared_input=True,
    ),
    "ideal": lambda: ideal(CASES["vct"]()),
    "deflection": lambda: scenario(build("imase", hosts=2, n=12, degree=3), routing={"kind": "deflection"}),
}
# created packets and flits, sent, delivered packets and flits, latencies, hops, longest, deflections, grants, occupancy
GOLDEN = {
    "vct": [3518, 12328, 2488, 2099, 7342, 452718, 298409, 4576, 3, 0, 6903, 0],
    "rising": [3518, 12328, 2724, 2355, 8220, 422379, 294768, 5115, 3, 0, 7694, 0],
    "adaptive": [2055, 8220, 2051, 1966, 7864, 75305, 72278, 4102, 4, 0, 6202, 0],
    "wormhole": [2338, 8198, 1948, 1861, 6518, 235715, 73687, 3886, 4, 0, 5890, 0],
    "ideal": [3518, 12328, 3512, 2491, 8696, 388597, 384853, 5174, 3, 0, 9389, 0],
    "deflection": [3086, 12344, 3071, 2912, 11648, 127743, 122686, 5452, 4, 114, 8561, 15],
}


@pytest.mark.parametrize("name", CASES)
def test_counters_are_those_of_this_version(name, engine_name):
    assert SEMANTICS_VERSION == 13
    run = start(engine_name, CASES[name](), 0.5, 7)
    run.advance(1000)
    assert run.scalars()[: Scalar.EVENTS].tolist() == GOLDEN[name]
