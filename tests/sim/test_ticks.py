# SPDX-License-Identifier: Apache-2.0
"""Runs of more than 2**32 ticks: what is kept as the low 32 bits of a tick, and both engines beyond them."""

import ast
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flitlab.models.jit import njit
from flitlab.models.rules.draw import below, below_wide
from flitlab.sim.engines.compiled.ticks import elapsed, low_bits, whole_tick
from tests import ROOT, long_after
from tests.scenarios import line
from tests.sim import datagram_cases, spray_cases
from tests.sim.late_cases import WRAP, check_program, late_session, late_spray
from tests.sim.test_datagram import session, transport
from tests.sim.test_spray_engines import check as check_spray

FOLDER = ROOT / "sim" / "engines" / "compiled"
FIELDS = {"datagram": {"left", "followed", "stamp"}, "spray": {"ENDED"}}
"""What records keep as the low 32 bits of a tick."""


@njit
def _all(now, then, kept_now, kept_then):
    return elapsed(now, then), elapsed(kept_now, kept_then), elapsed(now, kept_then), whole_tick(kept_then, now)


@given(st.integers(0, 2**39), st.integers(0, 2**32 - 1))
def test_times_are_exact_as_long_as_their_bounds_hold(then, since):
    now = then + since
    ticks = _all(now, then, np.uint32(now % WRAP), np.uint32(then % WRAP))
    assert ticks[:3] == (since, since, since)
    if since <= 2**31:
        assert ticks[3] == then


@njit
def _kept(tick):
    return np.uint32(low_bits(tick))


def test_the_low_bits_are_those():
    assert [_kept(tick) for tick in (0, WRAP - 1, WRAP, 3 * WRAP + 5)] == [0, WRAP - 1, 0, 5]


@given(st.integers(0, 2**63 - 1), st.integers(1, 2**61))
def test_a_wide_draw_is_word_times_n_over_2_to_the_63(word, n):
    exact = word * n >> 63
    assert max(exact - 1, 0) <= below_wide(word, n) <= exact < n
    if n <= 2**31:
        assert below_wide(word, n) == below(word, n)


def bare_uses(tree: ast.Module, fields: set[str]) -> list[str]:
    """Sums and comparisons of fields that are the low 32 bits of a tick, but for those with NOBODY."""

    def is_kept(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr in fields
        if isinstance(node, ast.Subscript):
            index = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
            return isinstance(index, ast.Name) and index.id in fields
        return isinstance(node, ast.Name) and node.id in fields

    def operands(node: ast.AST) -> list[ast.AST]:
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.AugAssign):
            return [node.target, node.value]
        return [node.left, *node.comparators] if isinstance(node, ast.Compare) else []

    def narrowest(node: ast.AST) -> ast.AST:
        """What np.int64() and the like are called with."""
        while isinstance(node, ast.Call) and ast.unparse(node.func).startswith("np."):
            node = node.args[0]
        return node

    compiled = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(isinstance(one, ast.Name) for one in node.decorator_list)
    ]  # fmt: skip
    return [
        f"{node.lineno}: {ast.unparse(node)}"
        for function in compiled for node in ast.walk(function)
        if any(is_kept(narrowest(operand)) for operand in operands(node))
    ]  # fmt: skip


@pytest.mark.parametrize("mode", FIELDS)
def test_kept_ticks_are_subtracted_and_compared_by_elapsed_alone(mode):
    files = sorted((FOLDER / mode).rglob("*.py"))
    trees = [ast.parse(file.read_text("utf-8")) for file in files]
    assert any("elapsed(" in ast.unparse(tree) for tree in trees)
    assert not [use for tree in trees for use in bare_uses(tree, FIELDS[mode])]


@pytest.mark.parametrize(
    "text", ["now - np.int64(record.stamp)", "line.left < now", "np.uint32(a - record.followed)", "line.left += 1"]
)
def test_a_bare_use_would_be_found(text):
    assert bare_uses(ast.parse(f"@inline\ndef f():\n    {text}\n"), FIELDS["datagram"])


@pytest.mark.parametrize("number", long_after(12, range(60)))
def test_datagrams_are_the_same_in_both_engines_beyond_32_bits(number):
    window = ((0.0, 0.025), (0.015, 0.025))[number % 2]
    datagram_cases.check(*late_session(datagram_cases.session_of_number(number), window, number))


@pytest.mark.parametrize("number", long_after(12, range(60)))
def test_sprayed_packets_are_the_same_in_both_engines_beyond_32_bits(number):
    case, first = late_spray(spray_cases.session_of_number(number), number, 200_000)
    check_spray(case, (first + 1000, first + 200_000))


@pytest.mark.long  # it needs kernels of its own
@pytest.mark.parametrize("mode", ["datagram", "spray"])
@pytest.mark.parametrize("number", range(30))
def test_programs_are_the_same_in_both_engines_beyond_32_bits(mode, number):
    check_program(mode, number)


def test_the_mean_round_trip_is_that_of_littles_law_beyond_32_bits():
    """Two flows between two hosts of a switch, each by two queues: what is in these takes so long to leave them.

    A tick is a nanosecond, so that 2**32 of them pass after 4.3 s.
    """
    case = session(
        line(1, hosts=2), [(0, 1), (1, 0)], transport(init_window=10, ssthresh=10, start_ms=1.0), packet_bytes=65_000,
        nic_mbps=8000.0, link_us=1.0, queue_bytes=6_500_000,
    )  # fmt: skip
    row = datagram_cases.run_session("compiled", case, (4.2, 4.4)).row
    assert 4.2e9 < WRAP < 4.4e9 and case.tick_s == Fraction(1, 10**9)
    in_queues, seconds_each = row["queue_mean"] * 4, row["seconds"] / row["packets"]
    expected_ms = 1e3 * in_queues * seconds_each + 2e-3
    assert row["rtt_ms_mean"] == pytest.approx(expected_ms, rel=0.02)
    assert 0.13 < row["rtt_ms_mean"] < 2 * 6.5, "no less than without queues, and no more than with full ones"


def test_starts_are_spread_over_more_than_32_bits():
    """A second at 100 Gb/s is 1.25 * 2**33 ticks."""
    control = transport(start_ms=1000.0)
    case = session(line(1, hosts=40), [(h, (h + 1) % 40) for h in range(40)], control, nic_mbps=1e5, link_us=1.0)
    seconds = np.sort(case.start) * float(case.tick_s)
    assert seconds[0] >= 0 and seconds[-1] < 1
    assert np.abs(seconds - (np.arange(40) + 0.5) / 40).max() < 0.25, "Kolmogorov-Smirnov, 1 % : 0.25"


def test_sessions_of_tests_are_as_long_as_they_say():
    case = session(line(2), [(0, 1)], transport())
    late, window = late_session(case, (0.0, 0.025), 3)
    begin, end = (late.ticks(seconds) for seconds in window)
    assert begin // WRAP < end // WRAP and late.start[0] > begin - 2
