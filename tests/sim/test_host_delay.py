# SPDX-License-Identifier: Apache-2.0
"""Channels of hosts with delays of their own, in all modes of flits, and in files."""

import json
from itertools import islice

import numpy as np
import pytest

from flitlab.models.readable import Text
from flitlab.models.registry import FaultyError, SpecWarning, make
from flitlab.models.topology.formats import read, write
from flitlab.models.topology.formats.anynet import read_anynet
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.validation import validate_topology
from flitlab.models.traffic.source import Source
from flitlab.sim.cli import main
from flitlab.sim.engines.start import start
from tests.scenarios import TIMES, carrying, ideal, reference, scenario

DELAYS = [3, 0, 40, 7]
LINKS = [5, 1]


def network():
    """Two switches with two hosts each, all of whose channels have other delays."""
    topology = Topology.from_channels("two", 2, [(0, 1), (1, 0)], [1, 0], delay=LINKS)
    return topology.with_hosts(2, host_delay=DELAYS)


@pytest.mark.parametrize("flits", [1, 6])
@pytest.mark.parametrize("mode", ["vct", "wormhole", "deflection", "ideal"])
def test_a_packet_alone_takes_the_delays_of_both_hosts(engine_name, mode, flits):
    routing = {"kind": "deflection"} if mode == "deflection" else {"kind": "minimal"}
    plain = "vct" if mode == "ideal" else mode
    case = scenario(network(), routing=routing, source=Source(flits=(flits,)), mode=plain)
    case = ideal(case) if mode == "ideal" else case
    through, load, apart = TIMES["header"] + TIMES["switch"], 0.002 * flits, 300
    for host in range(4):
        lone = carrying(case, rate=np.eye(4)[host])
        run = start(engine_name, lone, load, 7, log=True)
        run.advance(20_000)
        log = run.log()
        packets = islice(reference(lone, load, 7).draw_packets(host), len(log.identity))
        alone, before = 0, -apart
        for delivered, (created, to, _) in zip(log.delivered, packets, strict=True):
            if created - before >= apart:
                links = through + TIMES["link"] + LINKS[host // 2] if to // 2 != host // 2 else 0
                ends = TIMES["injection"] + through + TIMES["ejection"] + DELAYS[host] + DELAYS[to]
                assert delivered - created == ends + links + flits - 1
                alone += 1
            before = created
        assert alone > 10


def test_zero_load_latency_is_told_from_and_to():
    topology = network()
    case = scenario(topology, source=Source(flits=(4,)))
    ends = TIMES["injection"] + TIMES["header"] + TIMES["switch"] + TIMES["ejection"]
    hop = TIMES["header"] + TIMES["switch"] + TIMES["link"]
    assert case.zero_load_range == (ends + 3, ends + hop + 5 + 43)  # hosts 0 and 1; 0 to 2, over the slower channel
    assert case.zero_load_latency == ends + hop + 48 + 3


STAR = "router 0 node 0 node 1 5 node 2 5\nrouter 0 router 1\nrouter 1 node 3\n"


def test_anynet_gives_hosts_the_latencies_of_their_nodes():
    topology = read_anynet(Text(STAR))
    assert topology.host_delay.tolist() == [0, 4, 4, 0]
    assert topology.delay.tolist() == [0, 0]
    mixed = read_anynet(Text("router 7 node 1 9 router 3\nrouter 3\nnode 0 router 3 2\n"))
    assert mixed.notes["nodes"] == [1, 0]
    assert mixed.access_delay.tolist() == [8, 1]
    assert read_anynet(Text("router 0 node 0 router 1\nrouter 1 node 1\n")).host_delay is None


@pytest.mark.parametrize("format", ["json", "anynet"])
def test_files_give_delays_of_hosts_back(tmp_path, format):
    topology = network()
    assert write(topology, tmp_path / "x", format) == ([] if format == "json" else ["routing by hops"])
    back = read(tmp_path / "x", format)
    assert back.host_delay.tolist() == DELAYS
    assert back.delay.tolist() == LINKS


def test_files_that_cannot_hold_delays_of_hosts_say_so(tmp_path):
    for format in ("edgelist", "graphml", "gml", "topobench_servers"):
        assert "delays of hosts' channels" in write(network(), tmp_path / "x", format)
    assert "delays of hosts' channels" not in write(network(), tmp_path / "x", "simgrid")
    assert 'id="h2-s1" bandwidth="40Gbps" latency="126.68ns"' in (tmp_path / "x").read_text()  # 20 + 40 x 2.667
    write(network(), tmp_path / "x", "dot")
    assert "h3 -> 1 [dir=none, color=gray, delay=7];" in (tmp_path / "x").read_text()


def test_networkx_graphs_give_delays_of_hosts_back():
    topology = network()
    assert Topology.from_networkx(topology.to_networkx()).host_delay.tolist() == DELAYS
    graph = topology.to_networkx()
    graph.nodes[0]["host_delay"] = [1]
    with pytest.raises(ValueError, match=r"node 0: host_delay = \[1\] must list the delays of its 2 hosts"):
        Topology.from_networkx(graph)


def test_delays_of_hosts_stay_with_them(tmp_path):
    path = tmp_path / "x.anynet"
    path.write_text("router 0 node 0 3 router 1 router 2\nrouter 1 router 2 node 1 4\nrouter 2 node 2 5\n")
    given = {"kind": "file", "path": str(path)}
    whole = make("topology", **given).build()
    assert whole.host_delay.tolist() == [2, 3, 4]
    failed = make("topology", **given, failures={"switches": 1}).build()
    assert failed.host_delay.tolist() == np.delete([2, 3, 4], failed.notes["failed"]["switches"]).tolist()
    assert make("topology", **given, hosts_per_switch=1).build().host_delay.tolist() == [2, 3, 4]
    with pytest.warns(SpecWarning, match="the delays of 3 hosts' channels are dropped"):
        other = make("topology", **given, hosts=[2, 0, 1]).build()
    assert other.host_delay is None
    planes = make("topology", kind="planes", count=2, of=given).build()
    assert sorted(planes.delay[planes.src < 3].tolist()) == [2, 2, 3, 3, 4, 4]


def test_delays_of_hosts_must_be_one_for_each_and_not_negative():
    topology = network()
    for wrong, match in (
        ([1, 2], r"host_delay must be whole numbers of shape \(4,\)"),
        ([0, 1, -2, 3], "delay of host 2"),
    ):
        with pytest.raises(FaultyError, match=match):
            validate_topology(Topology(**{**vars(topology), "host_delay": np.array(wrong)}))


CONFIG = """
topology:  {kind: file, path: star.anynet}
routing:   {kind: minimal}
switching:
  {mode: wormhole, vcs: 1, buffer_flits: 8, header_ticks: 1, link_ticks: 2, injection_ticks: 2, ejection_ticks: 2}
traffic:   {kind: uniform, packet_flits: 1}
loads:     [0.02]
measure:   {warmup: 500, ticks: 60000, ci: null}
ceilings:  []
"""


@pytest.mark.long
def test_the_mean_of_a_star_has_the_latency_of_its_nodes(tmp_path, capsys):
    """4 H + 6 with H = 1/2, and 4 cycles more at each end of two of four hosts: 12."""
    (tmp_path / "star.anynet").write_text(STAR)
    (tmp_path / "c.yaml").write_text(CONFIG)
    assert main(["run", str(tmp_path / "c.yaml"), "--json", "--out", str(tmp_path / "out")]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["latency_mean"] == pytest.approx(12.0, rel=0.02)
    assert main(["check", str(tmp_path / "c.yaml")]) == 0
    printed = capsys.readouterr().out
    assert "4 H + 6 + D + (L - 1) ticks" in printed
    assert "D: each of a host's channels adds 0 to 4 ticks" in printed
    assert "from 10 to 14 ticks between hosts" in printed


def test_hosts_that_replace_those_with_delays_are_warned_of(tmp_path, capsys):
    (tmp_path / "star.anynet").write_text(STAR)
    (tmp_path / "c.yaml").write_text(CONFIG.replace("star.anynet", "star.anynet, hosts_per_switch: 3"))
    assert main(["check", str(tmp_path / "c.yaml"), "--set", "engine=reference"]) == 0
    said = capsys.readouterr().err
    assert "c.yaml:2: topology.hosts_per_switch = 3: warning: replaces the hosts; the delays of 2 hosts'" in said
