# SPDX-License-Identifier: Apache-2.0
"""Numbers with units, in every key that has one."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.config.units import QUANTITIES, SHARE

BASE = {
    "topology": {"kind": "torus", "dims": [3, 3]}, "routing": {"kind": "minimal"}, "switching": {"vcs": 4},
    "traffic": {"kind": "uniform"}, "loads": [0.1], "ceilings": [],
}  # fmt: skip


def understood(*sets):
    return read("base", sets, text=yaml.safe_dump(BASE)).resolved()


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("size_bytes", "64MB", 64_000_000), ("size_bytes", "1KiB", 1024), ("size_bytes", "1.5 kB", 1500),
        ("link_ns", "5us", 5000), ("link_ns", "0.5 ns", 0.5), ("at_us", "5ms", 5000), ("link_us", "250ns", 0.25),
        ("start_ms", "1s", 1000), ("seconds", "20ms", 0.02), ("nic_mbps", "100Gbps", 100_000), ("gbps", "5GB/s", 40),
        ("nic_mbps", "1.25 MB/s", 10), ("nic_mbps", "10 Gbit/s", 10_000), ("percent", "10%", 10),
    ],
)  # fmt: skip
def test_a_unit_is_that_of_the_key(key, text, number):
    assert QUANTITIES[key.rpartition("_")[2]].number(text) == number


@given(st.sampled_from(sorted(QUANTITIES)), st.integers(0, 10**6), st.data())
def test_units_of_a_quantity_agree(word, count, data):
    quantity = QUANTITIES[word]
    one, other = (data.draw(st.sampled_from(list(quantity.units))) for _ in range(2))
    left, right = quantity.number(f"{count} {one}"), quantity.number(f"{count} {other}")
    assert left * float(quantity.units[other]) == pytest.approx(right * float(quantity.units[one]))
    assert quantity.number(f"{count}{quantity.base}") == count


def test_keys_are_converted_before_anything_looks_at_them():
    found = understood("switching.flit_ns=0.001us", "switching.link_ns=10 ns", "loads=[10%, 20 %]", "measure.ci=5%")
    assert found["loads"] == [0.1, 0.2] and found["measure"]["ci"] == 0.05
    assert found["switching"]["flit_ns"] == 1 and found["switching"]["link_ticks"] == 10


def test_a_sweep_over_units_is_one_over_numbers():
    study = read("base", ["switching.flit_ns=1", "switching.link_ns={sweep: [5ns, 0.01us]}"], text=yaml.safe_dump(BASE))
    assert [list(case.keys.values()) for case in study.cases] == [[5], [10]]


def test_all_of_the_links_are_a_share_and_not_one_link():
    assert SHARE.number("100%") == 1
    with pytest.raises(ConfigError, match="topology"):
        understood("topology.failures={links: 100%, seed: 1}")
    understood("topology.failures={links: 1, seed: 1}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("switching.link_ns=5 parsec", "is no time: must be a number, of ns if it has no unit; choices: ns, us"),
        ("switching.link_ns=5 Ms", "did you mean 'ms'"),
        ("switching.link_ns=fast", "is no time"),
        ("collective={kind: all_reduce, size_bytes: 1 MIB}", "size_bytes = 1 MIB: is no size.*choices: B, kB, MB"),
        ("measure.window=[1s, 2 years]", "is no time: must be a number, of s if"),
        ("switching.vcs=50%", "switching.vcs = 0.5: must be a valid integer"),
        ("measure.ci=200%", "measure.ci"),
        ("switching.buffer_flits=1KiB", "buffer_flits = 1KiB: must be a valid integer"),
    ],
)  # fmt: skip
def test_wrong_units_are_refused_with_the_choices(change, said):
    with pytest.raises(ConfigError, match=said) as found:
        understood(change)
    assert len([one for one in found.value.errors if one.key.startswith("switching.link_ns")]) <= 1


def test_texts_stay_texts():
    name = understood("name=50%")["name"]
    assert name == "50%"
