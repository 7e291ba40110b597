# SPDX-License-Identifier: Apache-2.0
"""Short forms, other names, packaged configurations, and the rate of links: the same study in fewer words."""

import json

import pytest
import yaml

import flitlab
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.packaged import packaged
from flitlab.sim.config.pipeline import read

LONG = {
    "topology": {"kind": "rrg", "n": 8, "degree": 3, "seed": 1},
    "routing": {"sweep": [{"kind": "minimal"}, {"kind": "ksp", "k": 2}]},
    "switching": {"mode": "vct"}, "traffic": {"kind": "uniform"}, "loads": [0.1],
}  # fmt: skip
SHORT = {
    "topology": {"kind": "Jellyfish", "n": 8, "degree": 3, "seed": 1},
    "routing": {"sweep": ["min", {"kind": "k-shortest-paths", "k": 2}]},
    "switching": "virtual_cut_through", "traffic": "uniform-random", "loads": [0.1],
}  # fmt: skip


def study(tmp_path, mapping, *sets):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(mapping))
    return read(tmp_path / "a.yaml", sets)


def test_short_forms_and_other_names_are_the_same_study(tmp_path):
    long, short = study(tmp_path, LONG), study(tmp_path, SHORT)
    assert short.resolved() == long.resolved()
    assert [case.label for case in short.cases] == [case.label for case in long.cases]


def test_short_forms_in_cases_quick_and_set(tmp_path):
    case = {"label": "a", "routing": "min"}
    mapping = {**LONG, "cases": [case], "quick": {"topology.n": 6, "routing": "ecmp"}}
    del mapping["routing"]
    assert study(tmp_path, mapping).resolved()["cases"][0]["routing"]["kind"] == "minimal"
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({**LONG, "quick": {"topology.n": 6, "routing": "ecmp"}}))
    assert read(tmp_path / "a.yaml", quick=True).resolved()["cases"][0]["routing"]["kind"] == "ecmp"
    assert study(tmp_path, LONG, "routing=min", "routing.select=hash").resolved()["routing"]["select"] == "hash"


def test_an_error_names_other_names(tmp_path):
    with pytest.raises(ConfigError, match=r"choices: .*rrg \(jellyfish, random_regular\).*did you mean 'rrg'"):
        study(tmp_path, {**LONG, "topology": {"kind": "jellyfsh", "n": 8, "degree": 3}})


@pytest.mark.parametrize(
    ("switching", "key", "value"),
    [
        ({"mode": "vct", "link_gbps": 400, "flit_bytes": 64}, "flit_ns", 1.28),
        ({"mode": "wormhole", "link_gbps": "100Gbps", "flit_bytes": 32}, "flit_ns", 2.56),
        ({"mode": "datagram", "link_gbps": 0.064}, "nic_mbps", 64),
    ],
)
def test_one_key_is_the_rate_of_a_link_in_all_modes(tmp_path, switching, key, value):
    mapping = {**LONG, "switching": switching, "routing": "ecmp"}
    if switching["mode"] == "datagram":
        del mapping["loads"]
    assert study(tmp_path, mapping).resolved()["switching"][key] == value


@pytest.mark.parametrize(
    ("switching", "problem"),
    [
        ({"mode": "vct", "nic_mbps": 100}, "nic_mbps = 100: is not for mode vct.* of a link is flit_ns or link_gbps"),
        ({"mode": "datagram", "flit_ns": 1}, "flit_ns = 1: is not for mode datagram.*is nic_mbps or link_gbps"),
        ({"mode": "vct", "link_gbps": 400}, "link_gbps = 400: needs switching.flit_bytes"),
        ({"mode": "vct", "link_gbps": 400, "flit_bytes": 64, "flit_ns": 1}, "give either link_gbps or flit_ns"),
    ],
)  # fmt: skip
def test_errors_name_the_key_of_the_rate(tmp_path, switching, problem):
    with pytest.raises(ConfigError, match=problem):
        study(tmp_path, {**LONG, "switching": switching})


def test_categories_have_plurals(capsys):
    assert main(["list", "topology"]) == 0
    singular = capsys.readouterr().out
    assert main(["list", "topologies"]) == 0 and capsys.readouterr().out == singular
    assert main(["show", "topologies", "mddp"]) == 0 and capsys.readouterr().out.startswith("topology: {kind: mddp}")


def test_packaged_configurations_are_found_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert {"quick", "uniform_mddp", "routing/ksp", "paper/uni-f05"} <= set(packaged())
    assert main(["new", "--from", "quick", "mine.yaml"]) == 0
    text = (tmp_path / "mine.yaml").read_text()
    assert text.count("$schema") == 1 and "../sim" not in text
    assert read("mine.yaml").resolved()["cases"] == read("configs/quick.yaml").resolved()["cases"]
    assert main(["new", "lossless_victim"]) == 0 and (tmp_path / "lossless_victim.csv").exists()
    assert main(["new", "quik"]) == 2 and "did you mean 'quick'" in capsys.readouterr().err
    assert main(["list", "examples"]) == 0 and "A first run that ends in seconds" in capsys.readouterr().out
    assert main(["list", "examples", "--json"]) == 0
    assert "quick" in json.loads(capsys.readouterr().out)["examples"]


def test_the_interface_is_what_dir_shows():
    assert set(dir(flitlab)) == {*flitlab.__all__, "__version__"}


def test_keys_of_priority_flow_control_may_stand_below_queue(tmp_path):
    switching = {
        "mode": "spray",
        "queue": "lossless",
        "pfc": {"xoff": 5, "xon": 4, "watchdog_us": 9.0},
        "mark_own": True,
    }
    flows = {**LONG, "routing": {"kind": "ecmp"}, "loads": None, "transport": "roce", "switching": switching}
    flows["topology"] = {"kind": "fat_tree", "k": 4}
    flows["traffic"] = {"kind": "permutation", "arrivals": "together", "sizes": {"kind": "fixed", "bytes": 10**5}}
    below = {"kind": "lossless", "xoff_packets": 5, "xon_packets": 4, "watchdog_us": 9.0, "mark_own": True}
    short = {**flows, "switching": {"mode": "spray", "queue": below}}
    assert study(tmp_path, short).resolved() == study(tmp_path, flows).resolved()
    below["xof"] = 3
    with pytest.raises(ConfigError, match=r"switching\.pfc\.xof = 3: unknown key"):
        study(tmp_path, short)
