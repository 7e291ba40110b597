# SPDX-License-Identifier: Apache-2.0
"""Input that cannot run is rejected before the run: by ``check`` and ``run`` alike, with place, key and choices."""

import pytest

from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read

MESH = "topology: {kind: mesh, dims: [2, 2]}\n"

JOBS = """\
experiment: application
topology: {kind: mesh, dims: [4, 4]}
switching: {mode: vct, flit_ns: 0.64, vcs: 6, buffer_flits: 256}
routing: {kind: dor}
placement: 6.4
application:
  - {name: a, kind: all_reduce, algorithm: ring, ranks: 4, size_bytes: 1000}
  - {name: b, kind: all_to_all, ranks: 4, size_bytes: 100}
"""

COLLECTIVE = """\
experiment: collective
topology: {kind: hypercube, dim: 3}
collective: {kind: all_to_all, ranks: switches, size_bytes: 64 MiB, algorithm: ALGORITHM}
routing: {kind: minimal}
switching: {mode: flow, flit_ns: 6.4}
"""

FLOWS = """\
topology: {kind: fat_tree, k: 4}
routing: {kind: ecmp, ways: 8}
switching: {mode: datagram, packet_bytes: 1000, nic_mbps: 64, link_us: 100, queue_packets: 100000}
traffic: {kind: permutation, seed: 1}
measure: {seconds: 0.1}
ceilings: []
"""

SPRAY = """\
topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
routing: {kind: ecmp, ways: 2}
switching: {mode: spray, nic_mbps: 100Gbps, link_us: 1}
traffic: {kind: shift, by: 2, sizes: {kind: fixed, bytes: 100000}, arrivals: together}
transport: {kind: nscc, paths: 4, spread: mixed}
measure: {seconds: 0.0001}
ceilings: []
"""

PROGRAM = """\
experiment: application
topology: {kind: mesh, dims: [2, 2]}
routing: {kind: minimal}
application: {kind: all_to_all, size_bytes: 64}
switching: {mode: flow, flit_ns: 1}
ceilings: []
"""

MATRIX = """\
experiment: ceilings
topology: {kind: mesh, dims: [2, 2]}
traffic: {kind: matrix, normalise: none, text: "TEXT"}
ceilings: [mcf, bounds, cuts, total]
loads: [0.5]
"""


def slowed(text, factor, when="", links=1):
    """A configuration with slow links, from the start or after an event."""
    return text + (f"timeline: [{{at_us: 10, slow: {{links: {links}}}, factor: {factor}}}]\n" if when else "") + (
        "" if when else f"capacity_of: {{links: 1, factor: {factor}}}\n"
    )  # fmt: skip


INFINITE = SPRAY.replace("hosts_per_leaf: 2}", "hosts_per_leaf: 2, host_capacity: .inf}")
NOT_FINITE = "c.yaml:1: topology.host_capacity = .inf: must be finite in a simulation"

REJECTED = {
    "spraying over host channels of any rate": (INFINITE, NOT_FINITE),
    "the same with an event": (slowed(INFINITE, 0.5, "event"), NOT_FINITE),
    "placement that is no mapping": (
        JOBS, "c.yaml:5: placement = 6.4: must be the name of a kind, or a mapping with the key kind; choices: file, ",
    ),
    "topology that is no mapping": (
        "topology: 5\n", "c.yaml:1: topology = 5: must be the name of a kind, or a mapping with the key kind; ",
    ),
    "sweep of whole configurations": (
        "sweep: [1]\n", "c.yaml:1: sweep: a whole configuration cannot be swept: sweep one of its keys",
    ),
    "only optional algorithms": (
        COLLECTIVE.replace("ALGORITHM", "{sweep: [{kind: trees, optional: true}]}"),
        "c.yaml:3: collective.algorithm.sweep[0].kind = trees: no scenario is left: trees is left out: trees is not an "
        "algorithm of all_to_all; choices: bruck, ",
    ),
    "only one optional algorithm": (
        COLLECTIVE.replace("ALGORITHM", "{kind: hamiltonian_ring, optional: true}"),
        "c.yaml:3: collective.algorithm.kind = hamiltonian_ring: no scenario is left: ",
    ),
    "size beyond doubles": (
        JOBS.replace("1000", '"1e99999999 B"'),
        "c.yaml:7: application[0].size_bytes = 1e99999999 B: must be 0 or have a magnitude from 1e-100 "
        "to 1e+100; choices: B, kB, ",
    ),
    "percentage beyond doubles": (
        MESH + "loads: [1e999999%]\n",
        "c.yaml:2: loads[0] = 1e999999%: must be 0 or have a magnitude from 1e-100 to 1e+100; choices: %",
    ),
    "queues that empty too slowly after an event": (
        slowed(FLOWS, 0.04, "event", links=32),  # all: whichever paths are drawn, they cross one
        "c.yaml:7: timeline[0].factor = 0.04: a packet may be in flight for 10200004800 ticks, ",
    ),
    "queues that empty too slowly": (
        slowed(FLOWS, 0.04), "switching.queue_packets = 100000: a packet may be in flight for ",
    ),
    "packet that takes too long": (
        slowed(SPRAY, 1e-6),
        "c.yaml:8: topology.capacity_of.factor = 1e-06: a packet takes 4150012500 ticks on the slowest link; at most ",
    ),
    "packet that takes too long after an event": (
        slowed(SPRAY, 1e-6, "event"), "c.yaml:8: timeline[0].factor = 1e-06: a packet takes ",
    ),
    "window that no float can tell from nothing": (
        SPRAY.replace("seconds: 0.0001", "seconds: 0.1, window: [0, 1e-320]"),
        "measure.window[1] = 1e-320: must be 0 or have a magnitude from 1e-100 to 1e+100",
    ),
    "window shorter than a packet": (
        SPRAY.replace("seconds: 0.0001", "seconds: 0.1, window: [0.05, 0.0500001]"),
        "measure.window = [0.05, 0.0500001]: 1e-07 s are measured; a packet takes at least 2.01e-06 s to its host",
    ),
    "run shorter than a packet": (
        FLOWS.replace("seconds: 0.1", "seconds: 1e-90"),
        "measure.seconds = 1e-90: 5e-91 s are measured; a packet takes",
    ),
    "time with a unit that no float can tell from nothing": (
        SPRAY.replace("link_us: 1", "link_us: 1e-999999999 s"),
        "switching.link_us = 1e-999999999 s: must be 0 or have a magnitude from 1e-100 to 1e+100; choices: ns, ",
    ),
    "number that YAML rounds to nothing": (
        SPRAY.replace("link_us: 1", "link_us: 1e-999"),
        "switching.link_us = 1e-999: must be 0 or have a magnitude from ",
    ),
    "number that YAML rounds to infinity": (
        MESH.replace("dims: [2, 2]", "dims: [2, 2], host_capacity: 1e999"),
        "topology.host_capacity = 1e999: must be 0 or have a magnitude from ",
    ),
    "seed beyond 64 bits": (
        FLOWS.replace("ways: 8", "ways: 8, seed: 9223372036854775808"),
        "routing.seed = 9223372036854775808: must fit into 64 bits",
    ),
    "shares that overflow": (
        MESH + "traffic: {kind: uniform, packet_flits: [{flits: 1, share: 1e308}]}\n",
        "traffic.packet_flits[0].share = 1e308: must be 0 or have a magnitude from ",
    ),
    "link without a rate": (
        slowed(SPRAY, 1e-90), "topology.capacity_of.factor = 1e-90: a byte takes 1e+90 ticks on the slowest link",
    ),
    "link without a rate, datagrams": (
        slowed(FLOWS, 1e-90), "topology.capacity_of.factor = 1e-90: a byte takes 1e+90 ticks on the slowest link",
    ),
    "hosts without a rate": (
        SPRAY.replace("spines: 2", "spines: 2, host_capacity: 1e-90"), "topology.host_capacity = 1e-90: a byte takes",
    ),
    "link that is too long": (
        SPRAY.replace("link_us: 1}", "link_us: 1e6}"),
        "switching.link_us = 1000000.0: a packet takes 12500004150 ticks",
    ),
    "interface without a rate": (
        FLOWS.replace("nic_mbps: 64", "nic_mbps: 1e-90"),
        "switching.nic_mbps = 1e-90: must be greater than or equal to 0.000001",
    ),
    "fluid over a link without a rate": (
        slowed(PROGRAM, 1e-90), "topology.capacity_of.factor = 1e-90: all messages take ",
    ),
    "fluid over a link that loses its rate": (
        PROGRAM + "timeline: [{at_tick: 10, slow: {links: 1}, factor: 1e-90}]\n",
        "timeline[0].factor = 1e-90: all messages take ",
    ),
    "demands next to nothing": (
        MATRIX.replace("TEXT", "0,1,1e-320\\n2,1,1e-320"),
        "c.yaml:3: traffic.normalise = none: the busiest host sends or receives 1.99998e-320 flits per tick at load 1: "
        "must be from 1e-100 to 1e+100, or scaled to 1; choices: hose",
    ),
    "demands too far apart for a certificate": (
        MATRIX.replace("TEXT", "0,1,1e-14\\n2,1,1"), "c.yaml:3: traffic: hosts have demands from 1e-14 to 1, more than",
    ),
    "capacities too far apart for a certificate": (
        slowed(MESH + "experiment: ceilings\ntraffic: {kind: uniform}\nceilings: [mcf]\n", 1e-13),
        "c.yaml:1: topology: channels have capacities from 1e-13 to 1, more than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_it_is_rejected_with_its_place(tmp_path, monkeypatch, name):
    text, line = REJECTED[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read("c.yaml")
    assert any(line in str(mistake) for mistake in caught.value.errors), str(caught.value)


@pytest.mark.parametrize("name", ["only optional algorithms", "demands next to nothing"])
def test_check_and_run_end_alike(tmp_path, monkeypatch, capsys, name):
    text, line = REJECTED[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(text)
    for command in ("check", "run"):
        assert main([command, "c.yaml"]) == 2
        assert line in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "text",
    [
        slowed(FLOWS, 0.1), slowed(SPRAY, 1e-3), slowed(FLOWS, 0.1, "event"), slowed(SPRAY, 1e-3, "event"),
        slowed(PROGRAM, 1e-6), MATRIX.replace("TEXT", "0,1,1e-12\\n2,1,1"),
        COLLECTIVE.replace("ALGORITHM", "{sweep: [{kind: trees, optional: true}, pairwise]}"),
    ],
)  # fmt: skip
def test_what_can_run_is_accepted(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(text)
    assert read("c.yaml").cases
