# SPDX-License-Identifier: Apache-2.0
"""Sprayed packets against the simulator of Ultra Ethernet: htsim_uec of uet-htsim 40ccb05, run with the same flows.

The network is its fat tree of 128 hosts, 100 Gb/s and 1 us a link. Completion times are in microseconds. Its hash and
its random numbers are others, so that single flows are equal only where no two packets meet by chance.
"""

from random import Random

import numpy as np
import pytest

from flitlab.models.registry import make
from flitlab.models.transport.fabric import Fabric, SpraySession, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.sim.engines.compiled.spray import CompiledSpray
from flitlab.sim.engines.reference.spray import ReferenceSpray
from flitlab.sim.engines.transport.spray import FlowCount

TREE = make("topology", kind="fat_tree", k=8).build()
ROUTES = make("routing", kind="ecmp", ways=64).build(TREE)


def session(flows: list[tuple[int, int, int, float]], transport: dict, seed: int = 1) -> SpraySession:
    """Flows (source, destination, bytes, start in us), in the order of their start."""
    source, destination, size, start = (np.array(column) for column in zip(*flows, strict=True))
    given = Flows(source, destination, size, np.rint(start * 12_500).astype(np.int64))
    return make_spray_session(TREE, ROUTES, make("transport", **transport).spraying(), Fabric(), given, seed)


def completion_times(of: SpraySession, engine: type = CompiledSpray) -> np.ndarray:
    """Completion times at senders, float64 [flows], microseconds."""
    run, until = engine(of), 0
    while not run.ended():
        until += of.ticks(1e-4)
        run.advance(until)
    return (run.counters().flow[:, FlowCount.FINISHED] - of.flows.start) * float(of.tick_s) * 1e6


def random_flows(flows: int, size: int, span: int, seed: int) -> list[tuple[int, int, int, float]]:
    """Flows between random hosts that start in whole microseconds within a span."""
    draw, found = Random(seed), []
    for _ in range(flows):
        source, other = draw.randrange(128), draw.randrange(127)
        found.append((source, other + (other >= source), size, float(draw.randrange(span))))
    return sorted(found, key=lambda flow: flow[3])


@pytest.mark.parametrize("engine", [CompiledSpray, ReferenceSpray])
@pytest.mark.parametrize(
    ("flows", "published"),
    [
        ([(0, 100, 0), (0, 64, 0)], [45.47, 46.19]),
        ([(0, 100, 0), (0, 64, 0), (0, 40, 0)], [61.06, 62.06, 62.36]),
        ([(0, 100, 0), (0, 64, 0), (50, 64, 0)], [43.81, 47.43, 37.25]),
        ([(0, 100, 0), (0, 64, 3), (50, 64, 6), (50, 100, 9)], [42.82, 46.22, 44.86, 49.53]),
    ],
)
def test_few_flows_under_credit_take_the_times_of_the_reference(flows, published, engine):
    """Pull targets, the order of pulls and those beyond the target, of hosts that have several flows."""
    of = session([(source, target, 200_000, float(us)) for source, target, us in flows], {"kind": "rccc"})
    assert completion_times(of, engine) == pytest.approx(published, abs=0.03)


@pytest.mark.parametrize("spread", ["mixed", "oblivious"])
def test_random_traffic_under_credit_has_the_mean_of_the_reference(spread):
    """Its five seeds have a mean of 49.05 us (standard error 0.10)."""
    flows = random_flows(512, 200_000, 200, 1)
    found = completion_times(session(flows, {"kind": "rccc", "spread": spread}))
    assert found.mean() == pytest.approx(49.05, rel=0.01)
