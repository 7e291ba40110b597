# SPDX-License-Identifier: Apache-2.0
"""Extreme values of every numeric key are rejected with their place, or run: ``check`` rejects what ``run`` would."""

import re

import numpy as np
import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from tests import long_after
from tests.sim.extremes import BASES, CLAIMS, described, mutant, numeric_keys, places, values

UNEXPECTED = re.compile(r"Traceback|could not be (built|checked)|Warning:|[a-z]Error\b")
"""What the message of an exception that was not expected looks like."""

OF_ENGINES = [base for base in BASES if "." not in base]
SHORT = ("ideal", "mix", "datagram", "spray", "collective", "jobs", "search", "topology.clos_expansion")
SAMPLE = 12


def pairs(base, further=False):
    return [(path, value) for path in places(base) for value in values(path, further)]


def errors(base, path, value):
    """The lines of what is wrong with a mutant; None where it is accepted."""
    try:
        read("c.yaml", text=mutant(base, path, value))
    except ConfigError as error:
        return [str(one) for one in error.errors]
    return None


def assert_understood(base, path, value):
    lines = errors(base, path, value)
    assert lines is None or (lines and not UNEXPECTED.search("\n".join(lines))), described(base, path, value)


def test_the_generator_finds_keys_that_are_there_and_others():
    found = set(places("spray"))
    assert {("switching", "link_us"), ("switching", "ecn", 0), ("traffic", "sizes", "bytes")} <= found  # there
    assert {("capacity_of", "factor"), ("transport", "target")} & found  # not there
    assert ("timeline", 0, "at_us") in places("timeline") and ("application", 0, "start_us") in places("jobs")
    assert list(numeric_keys({"kind": "torus"}, {"type": "object", "properties": {"n": {"type": "integer"}}})) == [
        ("n",)
    ]
    assert '"1e-320 s"' in values(("measure", "seconds")) and '"1e-320 s"' not in values(("loads",))


def test_bases_are_accepted():
    for base in ("ideal", "vct", "collective"):
        assert errors(base, ("seeds",), "[1]") is None, base


@pytest.mark.parametrize("base", SHORT)
def test_a_sample_is_rejected_with_its_place_or_accepted(base):
    every = pairs(base, further=True)
    for i in np.random.default_rng(37).choice(len(every), SAMPLE, replace=False):
        assert_understood(base, *every[i])


def assert_judged(base, path, value, file, capsys):
    file.write_text(mutant(base, path, value))
    code = main(["judge", str(file)])
    printed = capsys.readouterr()
    assert code in (0, 1, 2, 3) and not UNEXPECTED.search(printed.err), described(base, path, value) + printed.err
    assert not re.search(r"\b(nan|inf)\b", printed.out), described(base, path, value) + printed.out


@pytest.mark.parametrize("base", CLAIMS)
def test_claims_are_judged(base, tmp_path, capsys):
    (tmp_path / "claim.yaml").write_text(CLAIMS[base])
    assert main(["judge", str(tmp_path / "claim.yaml")]) in (0, 1), capsys.readouterr().err


@pytest.mark.parametrize("base", long_after(1, CLAIMS))
def test_a_sample_of_claims_is_rejected_or_judged(base, tmp_path, capsys):
    every = pairs(base, further=True)
    for i in np.random.default_rng(37).choice(len(every), SAMPLE, replace=False):
        assert_judged(base, *every[i], tmp_path / "claim.yaml", capsys)


@pytest.mark.long
@pytest.mark.parametrize("base", CLAIMS)
def test_all_claims_are_rejected_or_judged(base, tmp_path, capsys):
    for path, value in pairs(base, further=True):
        assert_judged(base, path, value, tmp_path / "claim.yaml", capsys)


@pytest.mark.long
@pytest.mark.parametrize("base", BASES)
def test_all_are_rejected_with_their_place_or_accepted(base):
    assert errors(base, ("seeds",), "[1]") is None
    for path, value in pairs(base, further=True):
        assert_understood(base, path, value)


@pytest.mark.long
@pytest.mark.parametrize("base", OF_ENGINES)
def test_what_check_accepts_runs(base, tmp_path, capsys):
    for i, (path, value) in enumerate(pairs(base)):
        if errors(base, path, value) is not None:
            continue
        (tmp_path / "c.yaml").write_text(mutant(base, path, value))
        for command in (["check", "c.yaml"], ["c.yaml", "--out", f"o{i}", "--jobs", "1"]):
            code = main(command)
            printed = capsys.readouterr().err
            assert code == 0 and not UNEXPECTED.search(printed), described(base, path, value) + printed
