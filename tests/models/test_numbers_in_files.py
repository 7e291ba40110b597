# SPDX-License-Identifier: Apache-2.0
"""Numbers in files beyond what is counted are rejected with their place, before anything is computed of them."""

import pytest

from flitlab.models.arrays import is_in_range
from flitlab.models.registry import SpecError, make
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

MESH = make("topology", kind="mesh", dims=[2, 2]).build()


@pytest.mark.parametrize(
    ("header", "line", "problem"),
    [
        ("tick,src,dst,bytes", "9223372036854775808,0,1,1", "does not fit into 64 bits"),
        ("tick,src,dst,bytes", "0,0,1,9223372036854775808", "does not fit into 64 bits"),
        ("tick,src,dst,bytes", f"{'9' * 5000},0,1,1", "does not fit into 64 bits"),
        ("start_us,src,dst,bytes", "1e999999999,0,1,1", "must be 0 or have a magnitude"),
        ("start_us,src,dst,bytes", "1e-320,0,1,1", "must be 0 or have a magnitude"),
        ("start_us,src,dst,bytes", "nan,0,1,1", "is not a number, 0 or more"),
        ("start_us,src,dst,bytes", "-1,0,1,1", "is not a number, 0 or more"),
        ("start_us,src,dst,bytes", "1/0,0,1,1", "is not a number, 0 or more"),
    ],
)
def test_traces(tmp_path, header, line, problem):
    (tmp_path / "t.csv").write_text(f"{header}\n{line}\n")
    with pytest.raises(SpecError, match=f":2: .*{problem}") as caught:
        make("traffic", kind="trace", path=str(tmp_path / "t.csv")).build(MESH)
    assert caught.value.key == "path"


FLOWS = (
    "topology: {kind: mesh, dims: [2, 2]}\nrouting: {kind: dor}\nmeasure: {seconds: 0.001}\nceilings: []\n"
    "traffic: TRAFFIC\nswitching: {mode: spray, ecn: ECN}\n"
)
FIXED = "{kind: shift, by: 1, sizes: {kind: fixed, bytes: 3000}, arrivals: together}"


def errors(text):
    with pytest.raises(ConfigError) as caught:
        read("c.yaml", text=text)
    return str(caught.value)


def test_a_trace_that_lasts_longer_than_ticks_are_counted(tmp_path):
    (tmp_path / "t.csv").write_text("start_us,src,dst,bytes\n0,0,1,1000\n1e90,0,1,1000\n")
    text = FLOWS.replace("TRAFFIC", f"{{kind: trace, path: '{tmp_path}/t.csv'}}").replace("ECN", "null")
    assert "c.yaml: traffic: the trace lasts 1" in errors(text) and "ticks; at most" in errors(text)


def test_marks_beyond_64_bits():
    text = FLOWS.replace("TRAFFIC", FIXED)
    found = errors(text.replace("ECN", "[2, 1e18]"))
    assert "c.yaml: switching.ecn = [2, 1e+18]: ecn must hold whole numbers below 2**63 in magnitude" in found
    assert read("c.yaml", text=text.replace("ECN", "[2, 1e9]")).cases


def test_reductions_beyond_what_is_counted():
    text = (
        "experiment: collective\ntopology: {kind: mesh, dims: [2, 2]}\nrouting: {kind: dor}\n"
        "collective: {kind: all_reduce, algorithm: ring, gflops: 1e-90}\nswitching: {mode: flow, flit_ns: 1}\n"
    )
    assert "a calculation would take more than 1,000,000,000,000,000 ns" in errors(text)


def test_zero_may_have_any_exponent():
    assert is_in_range("0e999999999") and is_in_range("-0.0") and not is_in_range("1e-101") and is_in_range("1e100")
