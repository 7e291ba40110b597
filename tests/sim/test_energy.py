# SPDX-License-Identifier: Apache-2.0
"""Power and energy of runs, against sums done by hand and the power of the equipment at full load."""

import csv
import json
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from flitlab.models.layout.design_prices import ALL_KEYS, design_prices, profiles
from flitlab.models.layout.energy import EnergyBasis, power
from flitlab.models.registry import make
from flitlab.models.subnets import topology_in_subnets
from flitlab.models.topology.flit_times import in_flits_per_tick
from flitlab.sim.cli import main
from flitlab.sim.config.reporting import EnergyConfig
from flitlab.sim.measure.columns.registry import derived_columns
from flitlab.sim.measure.rows import MeasuredPoint

ROUND = design_prices("800g", {
    "gbps": 100, "switch_port_watts": 10, "switch_bit_pj": 20, "optic_watts": 5, "optic_bit_pj": 10,
    "nic_watts": 8, "nic_bit_pj": 30,
})  # fmt: skip
"""Of a port of 100 Gbit/s: 8 + 2 W, a transceiver 4 + 1 W, a NIC 5 + 3 W; idle, and at full load."""


def pair(capacity=1.0, host_capacity=1.0):
    """Two switches, a link, and a host at each."""
    return make("topology", kind="hypercube", dim=1, host_capacity=host_capacity, capacity=capacity).build()


def test_a_pair_of_switches_by_hand():
    # four ports, two transceivers, two NICs; half load one way: a bit is sent by two ports, a transceiver, a NIC
    found = power(pair(), np.array([0.5, 0.0]), 0.5, ROUND, 100.0)
    assert found["switches"] == pytest.approx((4 * 8, 2 * 0.5 * 2))
    assert found["links"] == pytest.approx((2 * 4, 0.5 * 1))
    assert found["nics"] == pytest.approx((2 * 5, 0.5 * 3))


def test_a_slow_link_is_a_part_of_a_port():
    slow = power(pair(0.25), np.zeros(2), 0.0, ROUND, 100.0)
    assert slow["switches"].idle == pytest.approx(8 * (2 + 2 / 4)) and slow["links"].idle == pytest.approx(4 * 2 / 4)
    assert power(pair(), np.zeros(2), 0.0, ROUND, 25.0)["nics"].idle == pytest.approx(2 * 5 / 4)


def test_cards_of_planes_are_nics_and_no_switches():
    one = make("topology", kind="leaf_spine", leaves=4, spines=2, hosts_per_leaf=4).build()
    planes = make(
        "topology",
        kind="planes",
        count=2,
        capacity=0.5,
        of={"kind": "leaf_spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4},
    ).build()
    whole = power(one, np.full(one.channels, 0.3), 5.0, ROUND, 100.0)
    ports = planes.src < 16, planes.dst < 16  # of cards: each plane carries half of what a host sends
    sent = np.where(ports[0] | ports[1], 5 / 32, 0.15)
    halves = power(planes, sent, 5.0, ROUND, 100.0)
    assert halves["nics"] == whole["nics"] and halves["links"] == pytest.approx(whole["links"])
    assert halves["switches"] == pytest.approx(whole["switches"])


@pytest.mark.parametrize("profile", profiles())
def test_full_load_is_the_power_of_the_equipment(profile):
    network = make("topology", kind="torus", dims=[4, 4], hosts_per_switch=2).build()
    prices = design_prices(profile)
    full = power(network, np.ones(network.channels), float(network.hosts), prices, prices.gbps)
    equipment = make("metric", kind="power", constants=profile).measure(network)["total"]
    assert full["switches"].total + full["links"].total == pytest.approx(equipment)
    assert full["nics"].total == pytest.approx(network.hosts * prices.nic_watts)


@pytest.mark.parametrize("profile", profiles())
def test_prices_of_a_generation_are_those_of_designs(profile):
    # a leaf-spine network with all ports in use: 4 + 4 switches of 8 ports, 16 links, 16 hosts on copper of 1 m
    network = make("topology", kind="leaf_spine", leaves=4, spines=4, hosts_per_leaf=4).build()
    prices = design_prices(profile)
    cost = make("metric", kind="cost", constants={"profile": profile, "floor": {"pitch": [10, 10]}}, hosts=True)
    found, hosts = cost.measure(network), 16 * prices.copper
    assert found["switches"] == pytest.approx(4 * prices.of_switch(8) + 4 * prices.of_switch(4))
    if profile not in ("slimfly2014", "perseus2011"):  # whose cables have a price for each metre
        assert found["cables"] == pytest.approx(16 * (2 * prices.optic + prices.fibre) + hosts)


def of(counted, row, use, topology=None, gbps=100.0, flit_ns=None):
    topology = topology or pair()
    scenario = SimpleNamespace(counted=counted, topology=topology, timeline=None, switching=None, traffic=None)
    detail = {"channel_use": use}
    found = derived_columns(MeasuredPoint(scenario, row, detail, {}, flit_ns=flit_ns, energy=EnergyBasis(ROUND, gbps)))
    return {name: value for name, value in found.items() if name.endswith(("_w", "_bit", "_j"))}


WATTS = {
    "power_w": 50 + 4, "idle_w": 50, "switches_w": 34, "switches_idle_w": 32, "links_w": 8.5, "links_idle_w": 8,
    "nics_w": 11.5, "nics_idle_w": 10, "pj_per_bit": 54 / 50e9 * 1e12,
}  # fmt: skip


def test_columns_of_packets_flows_and_programs_are_alike():
    # host 0 sends half of the time to host 1: each host receives a quarter, on average
    packets = {"accepted": 0.25, "ticks": 1000}
    assert of("packets", packets, [0.5, 0.0]) == pytest.approx(WATTS)
    assert of("packets", packets, [0.5, 0.0], flit_ns=2.0) == pytest.approx({**WATTS, "energy_j": 54 * 2e-6})
    flows = {"host_throughput": 0.25, "seconds": 0.01}
    assert of("flows", flows, [0.5, 0.0]) == pytest.approx({**WATTS, "energy_j": 0.54})
    programs = {"bytes": 50e9 / 8 * 1e-3, "makespan_ns": 1e6}
    assert of("programs", programs, [0.5, 0.0]) == pytest.approx({**WATTS, "energy_j": 54e-3})


def test_slow_channels_count_in_their_own_capacity():
    # the link has a quarter of the rate: 0.25 flits/tick of hosts fill it; both forms of the topology are the same
    slow, packets = pair(0.25), {"accepted": 0.125, "ticks": 100}
    wanted = power(slow, np.array([0.25, 0.0]), 0.25, ROUND, 100.0)
    for topology in (slow, in_flits_per_tick(slow)):
        found = of("packets", packets, [0.25, 0.0], topology)
        assert found["switches_w"] == pytest.approx(wanted["switches"].total)
        assert found["nics_w"] == pytest.approx(wanted["nics"].total)
    # a network of capacities 4 and 1 only, written in flits per tick of the fast ones, is four times as fast
    fast = of("packets", packets, [0.25, 0.0], in_flits_per_tick(pair(4.0, 4.0)))
    assert fast["nics_w"] == pytest.approx(4 * power(pair(), np.array([0.25, 0.0]), 0.25, ROUND, 100.0)["nics"].total)


def test_hosts_of_subnets_count_once():
    # two copies of the pair: four switches, two links, four NICs; each of two hosts receives a quarter in all
    copies = topology_in_subnets(pair(), 2)
    found = of("packets", {"accepted": 0.25, "ticks": 1000}, [0.5, 0.0, 0.0, 0.0], copies)
    assert found["power_w"] == pytest.approx(2 * 50 + 4) and found["nics_w"] == pytest.approx(2 * 10 + 0.5 * 3)
    assert found["pj_per_bit"] == pytest.approx(104 / 50e9 * 1e12)


def test_nothing_is_derived_where_nothing_is_known():
    assert of("packets", {"ticks": 5}, [0.5, 0.0]) == {} and of("flows", {"host_throughput": 0.1}, []) == {}
    assert "pj_per_bit" not in of("packets", {"accepted": 0.0, "ticks": 5}, [0.0, 0.0])


RUN = """topology: {kind: hypercube, dim: 1}
routing: minimal
engine: reference
switching: {mode: ideal, link_gbps: 400, flit_bytes: 250}
traffic: uniform
loads: [0.5]
ceilings: []
measure: {ticks: 400, ci: null, warmup: 100}
outputs: {energy: {profile: 400g, nic_watts: 20}, figures: [], html: false}
"""


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("link_gbps: 400, flit_bytes: 250", ""),
        ("link_gbps: 100, flit_bytes: 250", ""),
        ("flit_ns: 20, flit_bytes: 250", ""),
        ("flit_ns: 20", "no rate of a link in switching (link_gbps, flit_bytes): 400 Gbit/s of the profile is taken"),
    ],
)
def test_power_is_that_of_the_rate_of_links(rate, said, tmp_path, capsys, monkeypatch):
    """Two NICs and two switches of two ports each, whose powers are those of a port of 400 Gbit/s."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text(RUN.replace("link_gbps: 400, flit_bytes: 250", rate))
    gbps, flit_ns = (100, 20) if "250" in rate and "400" not in rate else (400, 20 if "20" in rate else 5)
    for file, out in (("e.yaml", "r"), ("r/config.resolved.yaml", "again")):
        assert main(["run", file, "--json", "--out", out]) == 0
        printed = capsys.readouterr()
        (row,) = json.loads(printed.out)["results"]
        bits = row["accepted"] * 2 * gbps
        assert row["nics_w"] == pytest.approx(2 * (20 - 4) * gbps / 400 + bits * 10e-3)
        assert row["switches_idle_w"] == pytest.approx(4 * (15 - 4.3 * 0.4) * gbps / 400)
        assert row["links_w"] == pytest.approx(2 * 9 * gbps / 400)
        assert row["pj_per_bit"] == pytest.approx(1e3 * row["power_w"] / bits)
        assert row["energy_j"] == pytest.approx(row["power_w"] * row["ticks"] * flit_ns * 1e-9)
        assert said in printed.err and ("no rate of a link" in printed.err) == bool(said)


def test_power_of_little_traffic_is_that_of_its_flits(tmp_path, capsys, monkeypatch):
    """Switches without idle power, a few flits in 70,000 ticks: 37.5 pJ a bit for each that a port sends."""
    monkeypatch.chdir(tmp_path)
    quiet = RUN.replace("[0.5]", "[0.0003]").replace("ticks: 400", "ticks: 70000")
    (tmp_path / "e.yaml").write_text(quiet.replace("nic_watts: 20}", "switch_bit_pj: 37.5}, channels: true"))
    assert main(["run", "e.yaml", "--json", "--out", "r"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    channels = csv.DictReader((tmp_path / "r" / "channels.csv").open())
    sent = sum(int(channel["flits"]) for channel in channels if channel["kind"] != "injection")
    assert row["switches_idle_w"] == pytest.approx(0) and row["power_w"] > row["switches_w"]
    assert row["switches_w"] == pytest.approx(sent / 70000 * 400 * 37.5e-3, rel=1e-3)


@pytest.mark.parametrize("mode", ["ideal", "flow"])
def test_power_of_a_program_is_that_of_its_channels_where_some_are_faster(mode, tmp_path, capsys, monkeypatch):
    """Links of 400 and 200 Gbit/s, two hosts of 100: of four transceivers and two NICs of the profile 400g."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.csv").write_text("# directed: false\nsource,target,capacity\na,b,4\nb,c,2\n")
    (tmp_path / "e.yaml").write_text(
        "experiment: application\ntopology: {kind: file, path: net.csv, hosts: {a: 1, c: 1}}\n"
        "routing: minimal\nengine: reference\nmessages: {flit_bytes: 64}\n"
        f"switching: {{mode: {mode}, link_gbps: 100}}\napplication: {{kind: all_to_all, size_bytes: 4096}}\n"
        "outputs: {energy: 400g, figures: [], html: false}\n"
    )
    assert main(["run", "e.yaml", "--json", "--out", "r", "--jobs", "1"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["links_idle_w"] == pytest.approx(2 * (4 + 2) * 9 / 4)
    assert row["nics_idle_w"] == pytest.approx(2 * 21 / 4)


def test_a_run_says_what_it_assumes_on_power(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text(RUN.replace(", html: false", ""))
    assert main(["run", "e.yaml", "--out", "r"]) == 0
    said = capsys.readouterr().out
    assert "nic_watts 20: given" in said and "nic_bit_pj 10: assumed" in said and "IMC 2025" in said
    assert "Assumptions on power" in (tmp_path / "r" / "report.html").read_text("utf-8")


def test_every_value_has_a_source_and_every_key_is_a_key():
    for profile in profiles():
        assert all(source for _, _, source in design_prices(profile).assumptions(ALL_KEYS))
    assert set(get_args(EnergyConfig.model_fields["profile"].annotation)) == set(profiles())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1600g", "outputs.energy = 1600g: is not one of the choices"),
        ("{profile: 400g, nic_wats: 3}", "outputs.energy.nic_wats"),
        ("{nic_watts: 1}", "nic_watts = 1 is less than the 8 W that its bits take at 800 Gbit/s"),
        ("{nic_watts: -1}", "outputs.energy.nic_watts = -1"),
    ],
)
def test_bad_values_are_rejected(value, said, tmp_path, capsys):
    file = tmp_path / "e.yaml"
    keys = "topology: {kind: mesh, dims: [2]}\nrouting: minimal\ntraffic: uniform\nloads: [0.1]\n"
    file.write_text(f"{keys}outputs: {{energy: {value}}}\n")
    assert main(["check", str(file)]) == 2
    assert said in capsys.readouterr().err
