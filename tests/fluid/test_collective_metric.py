# SPDX-License-Identifier: Apache-2.0
"""The metric ``collectives``: what `simrun topology` says of collectives, without a simulation."""

import json

import pytest

from flitlab.models.registry import make, names
from flitlab.sim.cli import main
from tests.scenarios import build


def measured(topology, **keys):
    return make("metric", kind="collectives", **keys).columns(topology)


def test_as_a_user_asks_for_it(capsys):
    assert main(["topology", "kind=kautz,degree=3,diameter=2", "--metrics", "collectives", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ranks"], found["all_gather_lambda"], found["useful_bandwidth"]) == (12, "11/3", 3.0)
    assert found["all_reduce_lower"] == found["all_reduce_upper"] == pytest.approx(11 / 18)
    assert found["all_to_all"] == pytest.approx([6.6, 6.6], rel=1e-4)
    assert found["broadcast"] == pytest.approx(1 / 3)
    assert found["cut"] == "what leaves S: 11 units through 3"
    assert found["cut_outside"] == [0]


def test_hosts_are_told_why_the_network_does_not_matter():
    torus = build("torus", dims=[3, 3]).with_hosts(2)
    found = measured(torus, ranks="hosts")
    assert (found["all_gather_lambda"], found["all_reduce_upper"]) == ("17", pytest.approx(17 / 9))
    assert "does not depend on the network" in found["collectives_note"]
    fast = measured(torus.with_hosts(2, 8), ranks="hosts")
    assert (fast["all_gather_lambda"], fast["collectives_note"]) == ("4", None)
    assert measured(torus)["collectives_note"] is None


def test_ends_that_differ_are_an_interval():
    links = [(0, 4), (1, 4), (2, 4), (3, 4)]
    slow = build("mesh", dims=[2, 2]).from_links("star", 5, links, capacity=[1, 4, 4, 4]).with_hosts([1] * 4 + [0])
    found = measured(slow)
    assert (found["all_reduce_lower"], found["all_reduce_by"], found["all_reduce_upper"]) == (1, "cut", 1.5)
    assert found["cut"] == "what leaves S: 3 units through 1"


def test_a_label_stands_before_its_columns():
    found = measured(build("mesh", dims=[2, 2]), label="direct", root=3)
    assert found["direct_all_gather_lambda"] == "3/2"


def test_metrics_come_from_models_and_from_flows():
    assert {"bisection", "collectives"} <= set(names("metric"))


def test_fewer_than_two_hosts_are_no_ranks():
    with pytest.raises(ValueError, match="two hosts"):
        measured(build("mesh", dims=[2, 2]).with_hosts([1, 0, 0, 0]), ranks="hosts")
