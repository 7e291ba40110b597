# SPDX-License-Identifier: Apache-2.0
"""Sweeps, cases, --set, quick variants, loads and times."""

import pytest

from flitlab.models.switching.timed import ticks_of
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.expand import expand
from flitlab.sim.config.overrides import apply_quick, apply_set
from flitlab.sim.config.schema import Config
from flitlab.sim.config.text import load_text


def variants(text, sets=(), quick=False):
    diagnostics = Diagnostics()
    root = load_text(text, "f", diagnostics)
    root = apply_quick(root, diagnostics) if quick else root
    for change in sets:
        root = apply_set(root, change, diagnostics)
    found = expand(root, "name", diagnostics)
    return found, [str(error) for error in diagnostics.errors]


def test_product_in_the_order_of_the_file():
    found, mistakes = variants(
        "topology: {kind: imase, degree: {sweep: [6, 8]}}\nrouting: {sweep: [{kind: minimal}, {kind: deflection}]}"
    )
    assert not mistakes
    assert [v.label for v in found] == [
        "degree=6, routing=minimal", "degree=6, routing=deflection",
        "degree=8, routing=minimal", "degree=8, routing=deflection",
    ]  # fmt: skip
    assert found[3].keys == {"topology.degree": 8, "routing": "deflection"}
    assert found[3].node.plain() == {"topology": {"kind": "imase", "degree": 8}, "routing": {"kind": "deflection"}}


def test_sweeps_inside_options_lists_and_cases():
    found, mistakes = variants(
        "topology: {kind: torus, dims: [4, {sweep: [2, 3]}]}\n"
        "cases: [{label: a, routing: {sweep: [{kind: x, k: {sweep: [1, 2]}}, {kind: y}]}}, {label: b}]"
    )
    assert not mistakes
    assert [v.label for v in found[:3]] == [
        "a, topology.dims[1]=2, routing=x, k=1", "a, topology.dims[1]=2, routing=x, k=2",
        "a, topology.dims[1]=2, routing=y",
    ]  # fmt: skip
    assert [v.label for v in found[6:]] == ["b, topology.dims[1]=2", "b, topology.dims[1]=3"]
    assert len({v.label for v in found}) == len(found) == 8


def test_equal_kinds_are_told_apart_by_what_differs():
    found, _ = variants("routing: {sweep: [{kind: minimal, select: hash}, {kind: minimal}, {kind: dor}]}")
    assert [v.keys["routing"] for v in found] == ["minimal select=hash", "minimal", "dor"]


def test_cases_alone_are_labelled_by_their_labels():
    found, _ = variants("topology: {kind: a, n: 1}\ncases: [{label: one}, {label: two, topology: {n: 2}}]")
    assert [(v.label, v.keys) for v in found] == [("one", {"case": "one"}), ("two", {"case": "two"})]
    assert found[1].node.plain()["topology"] == {"kind": "a", "n": 2}


def test_a_single_scenario_is_named_after_the_configuration():
    found, _ = variants("topology: {kind: a}")
    assert [(v.label, v.keys) for v in found] == [("name", {})]


def test_another_kind_replaces_the_mapping_but_for_what_belongs_to_no_kind():
    found, _ = variants(
        "topology: {kind: a, n: 1, hosts_per_switch: 4}\n"
        "traffic: {kind: uniform, include_self: true, packet_flits: 33}\n"
        "cases: [{label: x, topology: {kind: b, m: 2}, traffic: {kind: transpose}}]"
    )
    assert found[0].node.plain()["topology"] == {"hosts_per_switch": 4, "kind": "b", "m": 2}
    assert found[0].node.plain()["traffic"] == {"packet_flits": 33, "kind": "transpose"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "loads: {sweep: 3}",
            "f:1: loads.sweep = 3: must be a list of values, {from, to, step} or {from, to, per_decade}",
        ),
        (
            "topology:\n  n: {sweep: []}",
            "f:2: topology.n.sweep = []: must be a list of values, {from, to, step} or {from, to, per_decade}",
        ),
        ("topology: {n: {sweep: [1], to: 2}}", "f:1: topology.n.to: is not allowed beside sweep"),
        ("topology: {n: {sweep: [1, 1]}}", "f:1: topology.n.sweep = 1: is listed twice"),
        ("cases: 3", "f:1: cases = 3: must be a list of mappings"),
        ("cases: [{label: a}, {label: a}]", "f:1: cases[1].label = a: is the label of an earlier case"),
        ("cases: [{topology: {}}]", "f:1: cases[0].label: each case needs a label, a text on one line"),
    ],
)
def test_mistakes_in_sweeps_and_cases(text, expected):
    _, mistakes = variants(text)
    assert expected in mistakes


def test_set_changes_adds_and_indexes():
    found, mistakes = variants(
        "topology: {n: 1}\nseeds: [1, 2]\nmeasure:\n",
        ["topology.n=64", "measure.ticks=1e3", "seeds[1]=5", "seeds.0=4", "routing={kind: minimal}"],
    )
    assert not mistakes
    assert found[0].node.plain() == {
        "topology": {"n": 64}, "seeds": [4, 5], "measure": {"ticks": 1000.0}, "routing": {"kind": "minimal"},
    }  # fmt: skip


def test_set_reaches_all_options_of_a_sweep():
    found, _ = variants("routing: {sweep: [{kind: a}, {kind: b}]}", ["routing.vc_policy=hop"])
    assert [v.node.plain()["routing"]["vc_policy"] for v in found] == ["hop", "hop"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("topology", "--set: topology: must have the form key.path=value"),
        ("seeds[9]=1", "--set: seeds[9] = 1: 9 is no index of a list of 1"),
        ("name.x=1", "--set: name.x = 1: there is nothing under the value 'n'"),
        ("name=[1", "--set: name = [1: YAML syntax"),
    ],
)
def test_mistakes_in_set(change, expected):
    _, mistakes = variants("name: n\nseeds: [1]", [change])
    assert len(mistakes) == 1 and mistakes[0].startswith(expected)


def test_quick_is_merged_and_may_use_paths():
    text = "topology: {kind: a, n: 9}\nloads: [0.1, 0.2]\nquick: {topology: {n: 3}, loads: [0.1], measure.ticks: 5}"
    found, mistakes = variants(text, quick=True)
    assert not mistakes
    plain = found[0].node.plain()
    assert (plain["topology"], plain["loads"], plain["measure"]) == ({"kind": "a", "n": 3}, [0.1], {"ticks": 5})
    assert variants(text)[0][0].node.plain()["loads"] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ({"from": 0.1, "to": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"from": 0.05, "to": 0.12, "step": 0.05}, [0.05, 0.1]),
        ({"from": 1, "to": 1, "step": 0.1}, [1.0]),
        ([0.3, 0.1], [0.1, 0.3]),
        (0.3, [0.3]),
    ],
)
def test_loads_without_drift(loads, expected):
    assert Config.model_validate({"loads": loads}).load_list == expected


@pytest.mark.parametrize(
    ("ns", "flit_ns", "expected"),
    [
        (90, 2.667, 34),
        (10, 2.667, 4),
        (18, 2.667, 7),
        (20, 2.667, 8),
        (0.3, 0.1, 3),
        (8.001, 2.667, 3),
        (1e-9, 1, 1),
        (0, 1, 0),
    ],
)
def test_nanoseconds_become_ticks_by_decimal_division_rounded_up(ns, flit_ns, expected):
    assert ticks_of(ns, flit_ns) == expected


@pytest.mark.parametrize(
    ("sweep", "values"),
    [
        ("{from: 2, to: 5, step: 1}", [2, 3, 4, 5]),
        ("{from: 10, to: 35, step: 10}", [10, 20, 30]),
        ("{from: 0.1, to: 0.3, step: 0.1}", [0.1, 0.2, 0.3]),
    ],
)
def test_a_sweep_over_a_range(sweep, values):
    diagnostics = Diagnostics()
    root = load_text(f"topology: {{n: {{sweep: {sweep}}}}}", "f", diagnostics)
    found = expand(root, "f", diagnostics)
    assert not diagnostics.errors
    assert [variant.node.get("topology", "n").value for variant in found] == values


@pytest.mark.parametrize(
    ("sweep", "problem"),
    [
        ("{from: 5, to: 2, step: 1}", "from is above to"),
        ("{from: 1, to: 2, step: 0}", "step must be above 0"),
        ("{from: 1, to: x, step: 1}", "from, to and step must be numbers"),
        ("{from: 1, step: 1}", "must be a list of values, {from, to, step} or {from, to, per_decade}"),
    ],
)
def test_a_range_that_is_none(sweep, problem):
    diagnostics = Diagnostics()
    expand(load_text(f"topology: {{n: {{sweep: {sweep}}}}}", "f", diagnostics), "f", diagnostics)
    assert [error.problem for error in diagnostics.errors] == [problem]
