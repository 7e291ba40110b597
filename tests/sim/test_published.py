# SPDX-License-Identifier: Apache-2.0
"""Published numbers over one scenario or several, on made-up measurements."""

from types import SimpleNamespace

import pytest

from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.reporting import PublishedConfig
from flitlab.sim.experiment.published import Verdict, compare

ROWS = [
    {"topology.kind": "rrg", "topology.n": 10, "aspl": 2.2, "bound": 2.0, "ok": True, "diameter": 3},
    {"topology.kind": "rrg", "topology.n": 20, "aspl": 3.0, "bound": 2.5, "ok": False, "diameter": 4},
    {"topology.kind": "gdbg", "topology.n": 10, "aspl": 2.0, "bound": 2.0, "ok": True, "diameter": 2},
    {"topology.kind": "gdbg", "topology.n": 20, "aspl": 2.5, "bound": 2.5, "ok": True, "diameter": 3},
]


def measured(rows=ROWS, full_size=None, **entry):
    """The row of published.csv of one entry."""
    cases = [
        SimpleNamespace(label=f"{i}", compared=True, keys={key: row[key] for key in ("topology.kind", "topology.n")})
        for i, row in enumerate(ROWS)
    ]
    rows = [{"scenario": f"{i}", **row} for i, row in enumerate(rows)]
    entry = PublishedConfig(where="x", **{"value": 1, **entry})
    (found,) = compare(SimpleNamespace(published=[entry], cases=cases), rows, [], {"x": full_size})
    return found


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"scenario": {"kind": "rrg"}, "quantity": "aspl", "over": "mean"}, 2.6),
        ({"scenario": {"kind": "rrg"}, "quantity": "aspl", "over": "min"}, 2.2),
        ({"scenario": {"kind": "rrg"}, "quantity": "diameter", "over": "sum"}, 7),
        ({"scenario": {"n": 20}, "quantity": "aspl / bound", "over": "max"}, 1.2),
        ({"scenario": {"n": 20, "kind": "gdbg"}, "quantity": "aspl / bound", "over": "max"}, 1),
        ({"scenario": "1", "quantity": "aspl / bound", "over": "max"}, 1.2),
        ({"scenario": "1", "quantity": "aspl / bound"}, 1.2),
        ({"quantity": "ok", "over": "mean"}, 0.75),
        ({"quantity": "diameter", "over": "sum", "scenario": {"n": [10, 20, 30], "kind": "rrg"}}, 7),
        ({"quantity": "ok == 0", "over": "sum"}, 1),
        ({"quantity": "diameter - 2", "over": "max"}, 2),
        ({"quantity": "diameter < 3", "over": "sum"}, 1),
        ({"quantity": "diameter <= 3", "over": "sum"}, 3),
        ({"quantity": "diameter > 3", "over": "sum"}, 1),
        ({"quantity": "3 >= diameter", "over": "mean"}, 0.75),
        ({"quantity": "aspl", "over": "mean", "scenario": {"n": 20}, "relative_to": {"n": 10}}, 2.75 / 2.1),
        (
            {"quantity": "aspl", "over": "max", "scenario": {"n": 20}, "relative_to": {"n": 10}, "per": "kind"},
            3.0 / 2.2,
        ),
        (
            {"quantity": "aspl", "over": "min", "scenario": {"n": 20}, "relative_to": {"n": 10}, "per": "kind"},
            2.5 / 2.0,
        ),
        (
            {"quantity": "aspl", "over": "mean", "scenario": {"kind": "rrg"}, "relative_to": {}, "per": "n"},
            (2.2 / 2.1 + 3 / 2.75) / 2,
        ),
        ({"quantity": "aspl / bound", "over": "mean", "among": "aspl > bound"}, 1.15),
        ({"quantity": "aspl", "over": "min", "scenario": {"n": 20}, "among": "diameter > 3"}, 3.0),
        ({"quantity": "aspl", "over": "min", "among": "diameter > 4"}, None),
    ],
)
def test_what_is_measured(entry, value):
    found = measured(**entry)["measured"]
    assert found == (None if value is None else pytest.approx(value, rel=1e-12))


@pytest.mark.parametrize("wrong", [{"aspl": None}, {"status": "failed"}, {"bound": 0}])
def test_one_value_that_is_missing_leaves_all_unmeasured(wrong):
    rows = [ROWS[0], {**ROWS[1], **wrong}, *ROWS[2:]]
    found = measured(rows, quantity="aspl / bound", over="mean")
    assert found["measured"] is None and found["verdict"] == "not measured"
    assert measured(rows, quantity="aspl / bound", over="mean", scenario={"n": 10})["measured"] == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"value": 2.6}, "agrees"),
        ({"value": 2.6, "claim": "order"}, "order agrees"),
        ({"value": 2.6, "compare": "at_least"}, "order agrees"),
        ({"value": 2.7, "compare": "less_than"}, "order agrees"),
        ({"value": 2.0, "compare": "less_than"}, "differs: unexplained"),
        ({"value": 2.0}, "differs: unexplained"),
        ({"value": 2.0, "claim": "order"}, "differs: unexplained"),
        ({"value": 2.0, "cause": "slip", "why": "a digit"}, "differs: the paper slips"),
        ({"value": 2.0, "cause": "setting", "why": "the size"}, "differs: unpublished setting"),
        ({"value": 2.6, "cause": "setting", "why": "the size"}, "agrees"),
        ({"value": 2.6, "comparable": False, "why": "other networks"}, "not comparable"),
        ({"value": 2.0, "comparable": False, "why": "other networks"}, "not comparable"),
        ({"value": 2.6, "quantity": "median"}, "not measured"),
        ({"value": 1, "quantity": "aspl > 2"}, "order agrees"),
        ({"value": 0, "quantity": "aspl < 2"}, "order agrees"),
        ({"value": 0.5, "quantity": "aspl > 2.5"}, "agrees"),
        ({"value": 1, "quantity": "aspl > 2.5", "over": "sum"}, "agrees"),
        ({"value": 1, "quantity": "aspl > 2", "claim": "number"}, "agrees"),
    ],
)
def test_the_verdict_follows_from_the_entry(entry, expected):
    scenario = {"quantity": "aspl", "over": "mean", "scenario": {"kind": "rrg"}, "tolerance": 0.05}
    assert measured(**{**scenario, **entry})["verdict"] == expected


def test_comparisons_forgive_rounding():
    rows = [{**row, "aspl": 0.1 + 0.2, "bound": 0.3} for row in ROWS]
    counts = {op: measured(rows, quantity=f"aspl {op} bound", over="sum")["measured"] for op in ("==", "<=", "<", ">")}
    assert counts == {"==": 4, "<=": 4, "<": 0, ">": 0}


def test_what_is_said_of_the_scenarios():
    assert measured(quantity="aspl", over="mean")["scenario"] == "mean of 4"
    assert measured(quantity="aspl", over="max", scenario={"kind": "rrg"})["scenario"] == "max of 2, kind=rrg"
    assert (
        measured(quantity="aspl", over="max", scenario={"n": [10, 15, 20]})["scenario"] == "max of 4, n=[10, ..., 20]"
    )
    assert measured(quantity="aspl", scenario={"kind": "rrg", "n": 20})["scenario"] == "1"
    apart = {"relative_to": {"n": 10}, "per": "kind", "among": "ok == 1"}
    assert measured(quantity="aspl", over="max", **apart)["scenario"] == "max of 4, where ok == 1, per kind"


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ("over: mean, quantity: aspl, scenario: {n: 17}", ".scenario: names no scenario; choices: n=16, n=32"),
        ("quantity: aspl, scenario: {d: 3}", ".scenario: does not name one scenario; choices: n=16, n=32"),
        (
            "quantity: aspl, scenario: {}",
            ".scenario: does not name one scenario but 2: say over: mean, min, max or sum",
        ),
        ("over: mean", ": over needs a quantity"),
        ("quantity: aspl, over: mean, per: n", ": per needs over and relative_to"),
        ("quantity: aspl, scenario: n=16, among: aspl > 2", ": among needs over"),
        ("quantity: aspl, over: mean, relative_to: n=16, per: d", ".per = d: is no swept key; choices: topology.n"),
        ("cause: slip, quantity: aspl, scenario: n=16", ": cause needs a why"),
        ("comparable: false, quantity: aspl, scenario: n=16", ": comparable: false needs a why"),
        ("cause: bug, why: x, quantity: aspl, scenario: n=16", ".cause = bug: is not one of the choices"),
        ("tried: [{what: x}], quantity: aspl, scenario: n=16", ".tried[0].gives: is missing"),
        ("over: share, quantity: aspl", ".over = share: is not one of the choices"),
        ("quantity: aspl / n / 2", ".quantity = aspl / n / 2: must have at most one operator"),
        ("quantity: aspl /", ".quantity = aspl /: must be a quantity, or two with / or - or =="),
        ("quantity: aspl, over: mean, among: aspl = 2", ".among = aspl = 2: must be a quantity, or two with"),
        ("quantity: aspl, over: mean, among: aspl / 2", ".among = aspl / 2: must be two quantities with == or <="),
        ("quantity: aspl, over: mean, comparable: maybe", ".comparable = maybe: must be true or false"),
        ("quantity: aspl, over: mean, tried: [{what: '', gives: x}]", ".tried[0].what = '': must not be empty"),
    ],
)
def test_mistakes(entry, mistake, tmp_path):
    (tmp_path / "c.yaml").write_text(
        "schema: 1\nexperiment: metrics\ntopology: {kind: imase, n: {sweep: [16, 32]}, degree: 3}\n"
        f"published: [{{where: x, value: 1, {entry}}}]\n"
    )
    with pytest.raises(ConfigError) as caught:
        read(tmp_path / "c.yaml")
    assert f"published[0]{mistake}" in str(caught.value.errors[0])


@pytest.mark.parametrize("full_size", [None, *Verdict])
@pytest.mark.parametrize("entry", [{"value": 2.6}, {"value": 3}, {"value": 2, "compare": "at_least"}])
def test_a_quick_version_does_not_contradict_the_verdict_at_full_size(full_size, entry):
    """Mean 2.6 against 2.6, 3 and at least 2: verdicts of opposite outcome are not comparable, all others stay."""
    entry = {"scenario": {"kind": "rrg"}, "quantity": "aspl", "over": "mean", **entry}
    alone, beside = measured(**entry)["verdict"], measured(full_size=full_size, **entry)["verdict"]
    opposite = full_size is not None and (alone.agrees, alone.differs) == (full_size.differs, full_size.agrees)
    assert beside == (Verdict.NOT_COMPARABLE if opposite else alone)
    assert alone.agrees != alone.differs
