# SPDX-License-Identifier: Apache-2.0
"""``simrun judge`` says *impossible* of what is, with a proof that others can check, and of nothing else."""

import csv
import json
import os
import re

import networkx as nx
import numpy as np
import pytest
import yaml

from flitlab import Experiment
from flitlab.fluid.verify import read_saved, verify
from flitlab.sim.cli import main
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.judge.claim import read_claim
from flitlab.sim.judge.quantity import Scale, Unit, UnitError, at_least, at_most, quantity
from flitlab.sim.judge.verdict import judge
from flitlab.sim.report.figures.claim import figure_of
from tests import ROOT

MESH = "topology: {kind: mesh, dims: [8, 8]}\ntraffic: {kind: uniform}\n"
RING = "topology: {kind: torus, dims: [8]}\ntraffic: {kind: uniform}\n"
ACROSS = "topology: {kind: torus, dims: [8]}\ntraffic: {kind: shift, by: 4}\n"
CROWDED = "topology: {kind: flattened_butterfly, k: 4, n: 2, hosts_per_switch: 16}\ntraffic: {kind: uniform}\n"
CUBE = "topology: {kind: hypercube, dim: 4}\ntraffic: {kind: uniform, packet_flits: 5}\n"

THETA = {MESH: 63 / 128, RING: 7 / 8, ACROSS: 1 / 2, CROWDED: 63 / 256, CUBE: 1.0}
"""Closed forms. Mesh: of 32 hosts 32 / 63 of their flits cross a bisection of 8 channels. Ring: 16 channels, 8 hosts,
and 16 / 7 hops on average; across, 4. Four switches, all joined, 16 x 16 / 63 for each channel. Cube: its hosts."""


@pytest.fixture
def judged(tmp_path):
    """The verdict on a claim of a network and lines of ``reported``."""

    def of(text, *reported):
        path = tmp_path / "claim.yaml"
        path.write_text(text + "reported:\n" + "".join(f"  - {line}\n" for line in reported))
        return judge(read_claim(path))

    return of


RIGHT = [(network, f"{{load: {0.97 * theta:.4g}}}") for network, theta in THETA.items()]
RIGHT += [(network, f"{{throughput: {0.99 * theta:.4g}}}") for network, theta in THETA.items()]
RIGHT += [
    (MESH, "{load: 0.492}"),
    (MESH, "{throughput: 0.55}"),  # past the ceiling, where some get less than others
    (MESH, "{load: 0.9, throughput: 0.6}"),
    (MESH, "{load: 0.1, throughput: 0.1007}"),  # of a run that happened to draw more
    (RING, "{load: 0.6, unit: fraction of capacity}"),
    (CROWDED, "{load: 3.9, unit: flits/cycle/switch}"),
    (CROWDED, "{throughput: 15.5, unit: flits/cycle/network}"),
    (CUBE, "{load: 0.19, unit: packets/cycle}"),
    (CUBE, "{load: 0.2, latency: 30}"),
]  # fmt: skip
WRONG = [(network, f"{{load: {share * theta:.4g}}}") for network, theta in THETA.items() for share in (1.05, 8)]
WRONG += [
    (MESH, "{throughput: 0.98}"),  # a link counted in both directions
    (MESH, "{load: 0.3, throughput: 0.6}"),  # more than hosts create
    (MESH, "{throughput: 3.9}"),  # bits for bytes
    (CROWDED, "{throughput: 3.9}"),  # a mean per switch for one per host
    (CROWDED, "{throughput: 15.5}"),  # all hosts together for one
    (CUBE, "{load: 0.9, unit: packets/cycle}"),  # flits for packets
    (RING, "{load: 1.2, unit: fraction of capacity}"),
    (MESH, "{load: 0.2, latency: 10}"),  # of 16 / 3 hops on average
    (CUBE, "{latency: 8}"),  # of the head instead of the tail
    (MESH + "cycle_ns: 2\n", "{latency: 0.02, unit: us}"),
]  # fmt: skip


@pytest.mark.parametrize(("network", "reported"), RIGHT)
def test_what_is_possible_is_never_called_impossible(judged, network, reported):
    assert judged(network, reported).verdict == "possible"


@pytest.mark.parametrize(("network", "reported"), WRONG)
def test_what_is_impossible_is_found(judged, network, reported):
    found = judged(network, reported)
    assert found.verdict == "impossible"
    assert found.witness is not None and found.witness.statement in found.sentence


@pytest.mark.parametrize("network", THETA)
def test_the_efficiency_is_the_share_of_the_ceiling(judged, network):
    found = judged(network, f"{{load: {THETA[network] / 2:.6g}}}")
    assert found.efficiency == pytest.approx(0.5, rel=2e-3)
    assert found.ceiling.lower <= THETA[network] * (1 + 1e-9) and found.ceiling.upper >= THETA[network] * (1 - 1e-9)


def test_one_impossible_number_makes_a_claim_impossible(judged):
    found = judged(MESH, "{load: 0.2}", "{load: 0.8}", "{latency: 40}")
    assert [check.verdict for check in found.checks] == ["possible", "impossible", "possible"]
    assert found.verdict == "impossible"


@pytest.mark.long
def test_a_claim_near_the_ceiling_is_decided_by_an_exact_solution(judged):
    assert judged(MESH, "{load: 0.49215}").verdict == "possible"
    assert judged(MESH, "{load: 0.49230}").verdict == "impossible"


def test_a_throughput_that_needs_unfairness_says_so(judged):
    found = judged(MESH, "{throughput: 0.55}")
    assert found.efficiency > 1 and "some demands get less" in found.sentence


@pytest.mark.parametrize(
    ("network", "reported", "slip"),
    [
        (MESH, "{throughput: 0.9}", "factor 2"), (MESH, "{load: 3.2}", "bits for bytes"),
        (CROWDED, "{throughput: 3.5}", "per switch"), (CUBE, "{load: 4.5}", "packets"),
        (CROWDED, "{throughput: 15}", "whole network"),
    ],
)  # fmt: skip
def test_slips_that_would_explain_a_number_are_named(judged, network, reported, slip):
    assert any(slip in hint for hint in judged(network, reported).checks[0].hints)


# What proves it


def graph_of(topology):
    """A multi-graph of networkx with the channels, so that nothing of ours finds the distances."""
    graph = nx.MultiDiGraph()
    for c, (u, v) in enumerate(zip(topology.src.tolist(), topology.dst.tolist(), strict=True)):
        graph.add_edge(u, v, channel=c)
    return graph


def test_the_prices_of_a_total_add_up_to_the_limit(judged):
    fabric = "topology: {kind: leaf_spine, leaves: 8, spines: 4, hosts_per_leaf: 8}\ntraffic: uniform\nlink_gbps: 400\n"
    statement = judged(fabric, "{throughput: 350, unit: Gbps}").witness.statement
    within, beyond = 400 * 7 / 63, 400 * 4 / 8  # of a host, to its leaf and over its share of the uplinks
    numbers = re.findall(r"([\d.]+) Gbps", statement)
    assert float(numbers[0]) == pytest.approx(64 * (within + beyond), rel=1e-3)
    assert float(numbers[1]) == pytest.approx(within + beyond, rel=1e-3)
    assert float(numbers[2]) + float(numbers[3]) == pytest.approx(64 * (within + beyond), rel=1e-3)


def test_a_cut_is_one(judged):
    found = judged(MESH, "{load: 0.8}")
    witness, instance = found.witness, found.claim.instance
    inside = set(witness.facts["side"])
    topology, demand = instance.topology, instance.traffic.switch_demand
    crossing = sum(u in inside and v not in inside for u, v in zip(topology.src, topology.dst, strict=True))
    wanted = sum(demand[u, v] for u in inside for v in range(64) if v not in inside)
    assert witness.kind == "cut" and witness.bound == pytest.approx(crossing / wanted)
    assert witness.bound < 0.8 and len(witness.facts["channels"]) == crossing


@pytest.mark.parametrize("what", ["load", "throughput"])
def test_lengths_bound_what_networkx_finds(judged, what):
    """A graph of which no cut is as tight as the optimum."""
    network = "topology: {kind: imase, n: 20, degree: 3, hosts_per_switch: 4}\ntraffic: {kind: uniform}\n"
    limit = judged(network, f"{{{what}: 0.9}}").checks[0].limit
    found = judged(network, f"{{{what}: {1.003 * limit:.6g}, error: 0}}")
    row = found.checks[0].witness.proof
    assert found.checks[0].witness.kind == "lengths"
    instance, z = found.claim.instance, row.certificate
    graph, topology = graph_of(instance.topology), instance.topology

    def far(u, v, channels):
        return min(z.network[channel["channel"]] for channel in channels.values())

    length = dict(nx.all_pairs_dijkstra_path_length(graph, weight=far))
    demand = instance.traffic.switch_demand
    pairs = [(demand[s, t], length[s][t]) for s in range(20) for t in range(20)]
    offered = float(topology.capacity @ z.network)
    if row.load is None:
        assert offered / sum(amount * away for amount, away in pairs) == pytest.approx(row.upper, rel=1e-9)
    else:
        most = offered + sum(row.load * amount * max(0, 1 - away) for amount, away in pairs)
        assert most / topology.hosts == pytest.approx(row.upper, rel=1e-9)
    assert row.upper < found.checks[0].reported.low


def test_saved_certificates_are_verified(tmp_path, judged):
    found = judged(RING, "{load: 1.0}", "{throughput: 0.98}")
    main(["judge", str(tmp_path / "claim.yaml"), "--out", str(tmp_path / "out")])
    file = tmp_path / "out" / "witness-1.npz"
    saved = read_saved(file)
    assert verify(found.claim.instance, saved).confirms(saved)


@pytest.mark.parametrize("hosts", [1, 3])
def test_the_least_latency_is_the_mean_over_all_pairs(judged, hosts):
    network = f"topology: {{kind: mesh, dims: [3, 4], hosts_per_switch: {hosts}}}\ntraffic: {{kind: uniform}}\n"
    network += "delays: {hop: 3, ends: 5}\n"
    found = judged(network, "{latency: 100}").checks[0]
    graph = nx.grid_2d_graph(3, 4)
    total = sum(sum(row.values()) for _, row in nx.all_pairs_shortest_path_length(graph)) * hosts**2
    pairs = (12 * hosts) * (12 * hosts - 1)
    assert found.limit == pytest.approx(5 + 3 * total / pairs)


def test_the_tail_follows_at_the_rate_of_the_slowest_channel_of_the_quickest_path(judged):
    """Two hops of capacity 1, or one of .1: 100 flits take the two; the host's channel takes 99 cycles for the tail."""
    slow = "topology: {kind: file, text: '0 -- 1 0.1', hosts_per_switch: 1}\n"
    around = 'topology: {kind: file, text: "0 -- 1 0.1\\n0 -- 2\\n2 -- 1", hosts: [1, 1, 0]}\n'
    traffic = "traffic: {kind: shift, by: 1, packet_flits: 100}\n"
    assert judged(slow + traffic, "{latency: 2000}").checks[0].limit == pytest.approx(2 + 3 + 99 / 0.1)
    assert judged(around + traffic, "{latency: 2000}").checks[0].limit == pytest.approx(2 * 2 + 3 + 99)


def row(links, hosts, flits=32):
    """A network of links ``u v capacity``, with hosts at each switch: of all hosts, each sends to the one opposite."""
    half = sum(hosts) // 2
    graph = "\\n".join(["# directed: false", *links])
    return (
        f'topology: {{kind: file, text: "{graph}", hosts: {hosts}}}\n'
        f"traffic: {{kind: shift, by: {half}, packet_flits: {flits}}}\n"
    )


def two(capacity):
    """Two switches with two hosts each."""
    return row([f"0 1 {capacity}"], [2, 2])


@pytest.mark.parametrize(
    ("network", "keys", "least"),
    [
        # one header, then 31 flits at 4 cycles each, and the delays of all but the head alone; a run of vct takes 172
        (two(0.25), "switching: {header_ticks: 40}", 1 + (40 + 1 + 1) + 1 + 1 + 31 * 4),
        # both headers, and 31 flits at the rate of hosts
        (two(1), "switching: {header_ticks: 40}", 1 + 2 * (40 + 1) + 1 + 1 + 31),
        # a tick is a quarter of a cycle
        (two(4), "switching: {header_ticks: 40}", (1 + 2 * (40 + 1) + 1 + 1 + 31 * 4) / 4),
        # a hop of a claim may delay the head alone
        (two(0.25), "delays: {hop: 10, ends: 5}", 5 + 31 * 4),
        (two(1), "delays: {hop: 10, ends: 5}", 5 + 10 + 31),
        # the slow channel is the first of two or, the other way, the last: after one header, or two
        *[
            (row(["0 1 0.25", "1 2 1"], [1, 0, 1]), f"switching: {{header_ticks: {header}}}", 7 + 31 * 4 + 1.5 * header)
            for header in (0, 10, 40)
        ],
        # the same with three channels
        (row(["0 1 1", "1 2 1", "2 3 0.25"], [1, 0, 0, 1]), "switching: {header_ticks: 10}", 9 + 31 * 4 + 2 * 10),
    ],
)
def test_the_tail_catches_up_while_only_the_head_waits(judged, network, keys, least):
    assert judged(network + keys + "\n", "{latency: 2000}").checks[0].limit == pytest.approx(least)


@pytest.mark.parametrize("mode", ["vct", "wormhole", "ideal"])
def test_no_run_is_faster_than_the_least_latency(judged, mode, engine_name):
    """A channel of a quarter of the rate, then a fast one; by the closed form a packet takes 214 ticks in ``vct``."""
    text = row(["0 1 0.25", "1 2 1"], [1, 0, 1])
    text += "routing: {kind: minimal, vc_policy: any}\n"
    keys = {"mode": mode, "header_ticks": 40} | ({} if mode == "ideal" else {"buffer_flits": 64})
    given = yaml.safe_load(text) | {"switching": keys, "loads": [0.01], "engine": engine_name}
    given["measure"] = {"warmup": 500, "ticks": 20000}
    (latency,) = Experiment.load(given).run(jobs=1).results["latency_mean"]
    least = judged(text + f"switching: {json.dumps(keys)}\n", "{latency: 2000}").checks[0].limit
    assert 0.75 * latency < least <= latency


def nearest_hops(share):
    """Mean hops of the nearest part of uniform traffic in a ring of eight: 2/7 of it each at distance 1, 2 and 3, 1/7
    at 4.
    """
    parts = [min(max(share - before / 7, 0), of / 7) for before, of in ((0, 2), (2, 2), (4, 2), (6, 1))]
    return sum(part * hops for part, hops in zip(parts, (1, 2, 3, 4), strict=True)) / share


@pytest.mark.parametrize(
    ("reported", "share"),
    [
        # numbers count as rounded to three digits, and are off by 2 % each
        ("{load: 1.0, throughput: 0.8, latency: 19.3}", 0.7995 * 0.98 / (1.005 * 1.02)),
        ("{load: 1.0, throughput: 0.8, latency: 19.3, error: 0}", 0.7995 / 1.005),
        ("{load: 1.00, throughput: 0.920, latency: 21.40, error: 0}", 0.9195 / 1.005),
        ("{load: 0.5, throughput: 0.5, latency: 30, error: 0}", 0.4995 / 0.5005),
        ("{load: 0.5, throughput: 0.49, latency: 22}", 0.4895 * 0.98 / (0.5005 * 1.02)),
        ("{load: 0.5, throughput: 0.51, latency: 30, error: 0}", 1),
        # without a load hosts create as much as their channels take, 1
        ("{throughput: 0.92, latency: 21.4, error: 0}", 0.9195),
        ("{throughput: 0.5, latency: 30, error: 0}", 0.4995),
        ("{load: 0.5, latency: 30}", 1),
        ("{latency: 30}", 1),
    ],
)
def test_a_latency_is_that_of_the_least_part_that_may_be_served(judged, reported, share):
    check = judged(RING + "delays: {hop: 10}\n", reported).checks[-1]
    assert check.what == "latency" and check.possible
    assert check.limit == pytest.approx(10 * nearest_hops(share))


def test_delays_of_switching_count_in_ticks_of_the_network(judged):
    """Hosts of 1 and links of 4: a tick is a quarter of the time of a flit at capacity 1, 4 ns."""
    network = "topology: {kind: mesh, dims: [3, 3], hosts_per_switch: 1, capacity: 4, host_capacity: 1}\n"
    network += "traffic: {kind: uniform, packet_flits: 2}\n"
    ns = "switching: {flit_ns: 4, header_ns: 1, switch_ns: 1, link_ns: 1, injection_ns: 1, ejection_ns: 1}\n"
    assert judged(network + ns, "{latency: 30, unit: ns}").checks[0].limit == pytest.approx((4 + 2 * 3 + 4) / 4)
    ticks = "switching: {flit_ns: 4, header_ticks: 100, link_ticks: 50}\n"
    found = judged(network + ticks, "{latency: 500, unit: ns}")
    assert found.checks[0].limit == pytest.approx((103 + 2 * 151 + 4) / 4)  # cycles
    assert any("0.25 cycles" in line for line in found.claim.assumed)


@pytest.mark.parametrize(("keys", "message"), [
    ("traffic: {classes: [{name: a, kind: uniform, share: 0.5}, {name: b, kind: uniform, share: 0.5}]}",
     "traffic.classes: are not judged"),
    ("traffic: {kind: uniform}\nswitching: {vcs: 2, subnets: 2}", "switching.subnets = 2: are not judged"),
])  # fmt: skip
def test_what_is_not_judged_is_rejected(judged, keys, message):
    with pytest.raises(ConfigError, match=message):
        judged(f"topology: {{kind: mesh, dims: [3, 3]}}\nrouting: {{kind: dor}}\n{keys}\n", "{load: 0.1}")


def test_a_routing_that_goes_round_has_a_longer_least_latency(judged):
    """In a ring of eight no way of up*/down* leads over the link that its tree leaves out."""
    short = judged(RING + "routing: minimal\n", "{latency: 100}").checks[0].limit
    long = judged(RING + "routing: updown\n", "{latency: 100}").checks[0].limit
    assert short == pytest.approx(3 + 2 * 16 / 7) and long > 1.05 * short


def test_a_routing_has_a_ceiling_of_its_own(judged):
    mesh = "topology: {kind: mesh, dims: [4, 4]}\ntraffic: {kind: transpose}\n"
    free, dor = (judged(mesh + more, "{load: 0.2}") for more in ("", "routing: dor\n"))
    assert dor.ceiling.ceiling == "mcf_paths" and dor.ceiling.upper == pytest.approx(1 / 3, rel=1e-3)
    assert free.ceiling.ceiling == "mcf" and free.ceiling.lower > 1 / 3


@pytest.mark.parametrize(
    ("routing", "said"),
    [("valiant", "Of the routing valiant only its paths are used"), ("ugal", "Nothing of the routing ugal is used")],
)
def test_what_is_used_of_a_routing_is_told(judged, routing, said):
    """Valiant's own split carries 1/2 of a load in a ring of eight: twice the 2 hops to any switch, over 2 channels."""
    found = judged(RING + f"routing: {routing}\n", "{load: 0.8}")
    assert found.verdict == "possible" and found.ceiling.ceiling == "mcf"
    assert [line for line in found.claim.assumed if line.startswith(said)]
    assert not [line for line in judged(RING, "{load: 0.8}").claim.assumed if "routing" in line]


# What other simulators say


def curves():
    """Points of BookSim2 on three networks, below saturation and past it."""
    return json.loads((ROOT / "benchmarks" / "booksim2_curves.json").read_text())["configs"]


KINDS = {
    "mesh8x8_dor_uniform_1flit": "{kind: mesh, dims: [8, 8]}",
    "torus8x8_dimorder_uniform_1flit": "{kind: torus, dims: [8, 8]}",
    "hypercube64_dor_uniform_1flit": "{kind: hypercube, dim: 6}",
}


@pytest.mark.parametrize("name", KINDS)
def test_all_that_booksim2_measured_is_possible_and_twice_it_is_not(tmp_path, judged, name):
    points = curves()[name]["points"]
    with (tmp_path / "curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["offered", "accepted", "packet_latency"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(points)
    network = f"topology: {KINDS[name]}\ntraffic: {{kind: uniform, include_self: true}}\nrouting: dor\nvcs: 4\n"
    network += "delays: {hop: 4, ends: 6}\n"
    entry = "{{csv: curve.csv, load: offered, throughput: {}, latency: packet_latency}}"
    found = judged(network, entry.format("accepted"))
    assert found.verdict == "possible" and not found.deadlock.prone
    assert len([check for check in found.checks if check.what == "throughput"]) == len(points)
    assert 0.5 < found.efficiency < 1.02
    assert judged(network, f"{{throughput: {2 * max(point['accepted'] for point in points)}}}").verdict == "impossible"


BOOKSIM = """\
Class 0:
Packet latency average = 19.5
Accepted flit rate average= 0.21
====== Overall Traffic Statistics ======
====== Traffic class 0 ======
Packet latency average = 23.5 (1 samples)
\tminimum = 9 (1 samples)
Network latency average = 22.5 (1 samples)
Injected packet rate average = 0.04 (1 samples)
Accepted packet rate average = 0.04 (1 samples)
Injected flit rate average = 0.2002 (1 samples)
Accepted flit rate average = 0.1998 (1 samples)
Hops average = 5.2 (1 samples)
Total run time 0.5
"""


def test_the_output_of_booksim2_is_read(tmp_path, judged):
    (tmp_path / "run.log").write_text(BOOKSIM)
    found = judged(MESH, "{booksim2: run.log}")
    assert [(check.what, check.reported.value) for check in found.checks] == [("throughput", 0.1998), ("latency", 23.5)]
    assert found.checks[0].where == "run.log:4" and found.verdict == "possible"
    (tmp_path / "run.log").write_text(BOOKSIM.replace("23.5", "-nan"))  # the mean of no packets
    assert [check.what for check in judged(MESH, "{booksim2: run.log}").checks] == ["throughput"]


FLOWS = ((0, "{}", 1, 490, 0), (1, "100.5", 1, 490, 0), (2, "101.5", 2, 492, 2), (3, "99.5", 1, 1, 0))
"""Source, time in us, messages, packets and requests of them."""

HTSIM = "Starting simulation\nFlow Uec_0_1 flowId 1 uecSrc 0 starting at 0\n" + "".join(
    f"Flow Uec_{u}_{(u + 1) % 4} flowId {u + 1} uecSrc {u} finished at {us} total messages {messages} "
    f"total packets {packets} RTS {rts} total bytes {4086 * (packets - rts)} in_flight now 0 fair_inc 0\n"
    for u, us, messages, packets, rts in FLOWS
)


def test_the_output_of_htsim_is_read(tmp_path, judged):
    """Three flows of 490 packets and one of a single packet; the last packet of each message may be short."""
    shift = "topology: {kind: torus, dims: [4]}\ntraffic: {kind: shift, by: 1}\nlink_gbps: 200\n"
    (tmp_path / "run.log").write_text(HTSIM.format(176.2))
    found = judged(shift, "{htsim: run.log}")
    (check,) = found.checks
    assert (check.what, check.where, found.verdict) == ("throughput", "run.log:3", "possible")
    carried = (489 + 489 + 488) * 4086 * 8 / 176.2e-6 / 1e9  # Gbit/s of four hosts
    assert found.efficiency == pytest.approx(carried / 4 / 200, rel=1e-6)
    (tmp_path / "run.log").write_text(HTSIM.format(120))
    assert judged(shift.replace("200", "60"), "{htsim: run.log}").verdict == "impossible"


# Deadlocks


@pytest.mark.parametrize(
    ("routing", "vcs", "prone"),
    [("dor", 1, True), ("dor", 2, False), ("minimal", 1, True), ("minimal", 4, False), ("updown", 1, False)],
)
def test_routes_that_may_deadlock_are_found(judged, routing, vcs, prone):
    torus = "topology: {kind: torus, dims: [4, 4]}\ntraffic: {kind: uniform}\n"
    found = judged(torus + f"routing: {routing}\nvcs: {vcs}\n", "{load: 0.1}").deadlock
    assert found.prone == prone
    if prone:
        steps = found.note.partition("may deadlock: ")[2].split(" waits for ")
        assert len(steps) > 2 and steps[0] == steps[-1]


def test_nothing_is_said_of_deadlocks_without_vcs(judged):
    assert judged(RING + "routing: minimal\n", "{load: 0.1}").deadlock is None


# Numbers and units


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("flits/cycle/node", 1), ("flits per tick per host", 1), ("packets/cycle", 4), ("packets/cycle/router", 1),
        ("flits/cycle/network", 1 / 64), ("Gbps per host", 0.01), ("GB/s per host", 0.08), ("Mbps", 1e-5),
        ("fraction of line rate", 1), ("fraction of capacity", 0.5), ("Tbps/network", 10 / 64),
    ],
)  # fmt: skip
def test_units_of_rates(unit, factor):
    scale = Scale(64, 16, 4.0, 1.0, 0.5, 100.0, 2.0)
    assert scale.rate(unit) == scale.unit(unit).factor == pytest.approx(factor)


@pytest.mark.parametrize(("unit", "factor"), [("cycles", 1), ("tick", 1), ("ns", 0.5), ("us", 500), ("ms", 5e5)])
def test_units_of_times(unit, factor):
    assert Scale(64, 16, 4.0, 1.0, cycle_ns=2.0).time(unit) == pytest.approx(factor)


@pytest.mark.parametrize("unit", ["flits", "flits/cycle/rack", "gbps", "parsecs", "Gbps per rack"])
def test_unknown_units_of_rates_are_refused(unit):
    with pytest.raises(UnitError):
        Scale(64, 16, 4.0, 1.0).rate(unit)


CYCLES = Unit("cycles", 1.0)


@pytest.mark.parametrize(
    ("text", "slack"), [("0.5", 0.0005), ("0.12345", 5e-6), ("12", 0.05), ("7e-3", 5e-6), ("0.500000", 5e-7)]
)
def test_a_number_may_be_off_by_half_its_last_digit(text, slack):
    found = quantity(text, CYCLES, 0.0)
    assert found.high - found.value == pytest.approx(slack) and found.value - found.low == pytest.approx(slack)


# In the unit of the claim

PACKETS = "topology: {kind: mesh, dims: [4, 4]}\ntraffic: {kind: uniform, include_self: true, packet_flits: 5}\n"
"""By hand: of 8 hosts half of the flits cross 4 channels, so theta is 1: a flit, a fifth of a packet, for each host."""

UNITS = {
    "flits/cycle/node": 1.0, "packets/cycle/node": 0.2, "packets/cycle": 0.2, "flits/cycle/switch": 1.0,
    "packets/cycle/network": 3.2, "Gbps per host": 100.0, "GB/s per host": 12.5, "Gbps per network": 1600.0,
    "Tbps per switch": 0.1, "fraction of line rate": 1.0, "fraction of capacity": 16 / 15,
}  # fmt: skip
"""Unit -> the ceiling in it; of uniform traffic that leaves the host itself out, the capacity is 15 / 16."""


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("what", ["load", "throughput"])
def test_limits_are_in_the_unit_of_the_claim(judged, what, unit):
    network = PACKETS + "link_gbps: 100\n"
    limit, shown = UNITS[unit], at_most(UNITS[unit])
    for share, possible in ((0.5, True), (1.5, False)):
        found = judged(network, f"{{{what}: {share * limit:.6g}, unit: {unit}}}")
        (check,) = found.checks
        plain = found.plain()["reported"][0]
        assert check.possible is possible and check.share == pytest.approx(share, rel=1e-3)
        assert plain["limit"] == pytest.approx(limit, rel=1e-3) and plain["unit"] == unit
        assert plain["value"] / plain["limit"] == pytest.approx(plain["share"])
        assert check.shown_limit == f"{shown} {unit}"
        assert f"{shown} {unit}" in found.sentence
        (ceiling,) = found.plain()["ceilings"]
        assert ceiling["unit"] == unit and ceiling["upper"] == pytest.approx(limit, rel=1e-3)
        assert all(f" {unit}, " in hint and hint.endswith(f"{shown} {unit}") for hint in check.hints)
        assert bool(check.hints) is not possible


def test_figure_table_and_json_have_one_denominator(judged):
    """Also where a throughput is above the ceiling, 63 / 128, and limited by what an unfair network delivers."""
    found = judged(MESH, "{throughput: 0.55}", "{throughput: 0.9}", "{load: 0.9}", "{load: 0.3, throughput: 0.6}")
    bars = [patch.get_width() for patch in figure_of(found).axes[0].patches]
    assert bars == [check.share for check in found.checks]
    for check, one in zip(found.checks, found.plain()["reported"], strict=True):
        assert one["share"] == pytest.approx(one["value"] / one["limit"]) == check.reported.value / check.limit
        assert (one["share"] <= 1) is (one["verdict"] == "possible")
    assert found.checks[0].efficiency == pytest.approx(0.55 * 128 / 63, rel=2e-3)


def test_times_are_in_the_unit_of_the_claim(judged):
    network = "topology: {kind: torus, dims: [8]}\ntraffic: {kind: uniform, packet_flits: 8}\ncycle_ns: 2\n"
    network += "delays: {hop: 100, ends: 200, unit: ns}\n"
    least = 200 + 100 * 16 / 7 + 7 * 2  # ns
    for value, possible in ((1, True), (0.2, False)):
        found = judged(network, f"{{latency: {value}, unit: us}}")
        (check,) = found.checks
        assert check.possible is possible and check.shown_limit == "0.4425 us"
        assert found.plain()["reported"][0]["limit"] == pytest.approx(least / 1000)
    assert "228.6 us" not in found.sentence and "0.2286 us" in found.sentence and "0.4425 us" in found.sentence
    assert any("0.4 us" in hint for hint in judged(network, "{latency: 0.4, unit: us}").checks[0].hints) is False


def test_a_load_of_a_network_is_what_all_hosts_create(judged):
    """Fifteen hosts send to one: at load 1 all of them together create what its channel takes."""
    network = "topology: {kind: mesh, dims: [4, 4]}\ntraffic: {kind: incast, senders: 15}\n"
    (check,) = judged(network, "{load: 0.9, unit: flits/cycle/network}").checks
    assert check.efficiency == pytest.approx(0.9, rel=1e-3) and check.shown_limit == "1 flits/cycle/network"
    (check,) = judged(network, "{load: 0.9, throughput: 0.9, unit: flits/cycle/network}").checks
    assert check.delivery.share == pytest.approx(1) and check.delivery.carried


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (0.71408, "0.7141", "0.714"), (1 / 3, "0.3334", "0.3333"), (63 / 128, "0.4922", "0.4921"), (0.2, "0.2", "0.2"),
        (0.1 + 0.2, "0.3", "0.3"), (123456, "123500", "123400"), (9.99999, "10", "9.999"),
    ],
)  # fmt: skip
def test_printed_limits_are_bounds_still(value, up, down):
    assert (at_most(value), at_least(value)) == (up, down)


def test_what_a_solver_leaves_does_not_change_what_is_printed():
    for exact in (0.5, 63 / 128, 0.2, 1.0):
        assert len({at_most(exact * (1 + slip)) for slip in (-1e-12, 0, 1e-12)}) == 1


# A load that does not arrive

RUNS = """\
injection_rate,injected,per_node_cycle,latency
0.02,800,0.05,29.2925
0.04,620,0.03875,29.479032
0.12,397,0.0248125,29.609572
0.8,473,0.0295625,30.188161
"""
"""Packets of five flits that 16 nodes injected in 1,000 cycles."""

CLAIM = PACKETS + "routing: dor\nvcs: 4\ndelays: {hop: 5, ends: 6}\n"
CSV = "{csv: runs.csv, load: injection_rate, throughput: per_node_cycle, latency: latency, unit: packets/cycle/node}"


def test_loads_that_do_not_arrive_are_told(tmp_path, judged):
    (tmp_path / "runs.csv").write_text(RUNS)
    found = judged(CLAIM, CSV)
    rates = [check for check in found.checks if check.what == "throughput"]
    assert [check.verdict_text for check in rates] == ["impossible", "possible", *2 * ["possible, not carried"]]
    assert [check.delivery.share for check in rates] == pytest.approx([2.5, 0.96875, 0.20677, 0.03695], rel=1e-3)
    assert [check.shown_limit.split()[0] for check in rates] == ["0.02046", "0.2", "0.2", "0.2"]
    plain = found.plain()
    assert plain["verdict"] == "impossible" and plain["carried"] is False
    assert plain["delivered"] == pytest.approx(0.0295625 / 0.8)
    assert "Of a load of 0.12 packets/cycle/node 20.7 % arrives" in found.sentence
    assert "No slip of a unit makes the two agree at all loads" in found.sentence


def test_what_a_created_load_means_is_told(tmp_path, judged):
    """Had they queued, packets that arrive in a run of 1,000 cycles would have waited for 481 on average."""
    (tmp_path / "runs.csv").write_text("".join(RUNS.splitlines(keepends=True)[i] for i in (0, 4)))
    found = judged(CLAIM, CSV)
    assert (
        found.verdict == "possible" and found.carried is False and found.efficiency == pytest.approx(0.1478, rel=1e-3)
    )
    assert "3.7 % arrives: no routing carries more than 0.2 packets/cycle/node" in found.sentence
    assert "of a run of 63.95 cycles at most" in found.sentence


@pytest.mark.parametrize(
    ("network", "reported", "read"),
    [
        (CUBE, "{load: 0.5, throughput: 0.1}", "Divided by 5 (flits for packets) the load would be 0.1 flits"),
        (CUBE, "{load: 0.8, throughput: 0.1}", "Divided by 8 (bits for bytes) the load would be 0.1 flits"),
        (CUBE, "{load: 0.8, throughput: 0.05}", "Divided by 16 (the whole network for one host)"),
        (CROWDED, "{load: 0.16, throughput: 0.01}", "Divided by 16 (a mean per switch for one per host)"),
        (CUBE, "{load: 0.9, throughput: 0.3}", "No slip of a unit makes the two agree: "),
    ],
)  # fmt: skip
def test_a_reading_that_makes_both_agree_is_told(judged, network, reported, read):
    found = judged(network, reported)
    assert found.verdict == "possible" and found.carried is False and read in found.sentence


def test_a_reading_has_to_serve_all_loads(tmp_path, judged):
    (tmp_path / "t.csv").write_text("load,thr\n0.1,0.02\n0.5,0.1\n0.9,0.18\n")
    assert (
        "Divided by 5 (flits for packets) every load would arrive"
        in judged(CUBE, "{csv: t.csv, load: load, throughput: thr}").sentence
    )
    (tmp_path / "t.csv").write_text("load,thr\n0.1,0.02\n0.5,0.1\n0.9,0.9\n")
    assert "No slip of a unit" in judged(CUBE, "{csv: t.csv, load: load, throughput: thr}").sentence


@pytest.mark.parametrize(
    "reported", ["{load: 0.3, throughput: 0.3}", "{load: 0.3, throughput: 0.29}", "{load: 0.3}", "{throughput: 0.3}"]
)
def test_a_load_that_arrives_is_carried(judged, reported):
    found = judged(MESH, reported)
    assert found.carried is (True if "load" in reported and "throughput" in reported else None)
    assert "carried" not in found.sentence and found.checks[0].verdict_text == "possible"


# The command


def test_the_command_writes_a_page_and_ends_with_code_3(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    claim = tmp_path / "c.yaml"
    claim.write_text(MESH + "reported: [{throughput: 0.9}]\n")
    assert main(["judge", str(claim), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "impossible" and found["witness"]["kind"] == "cut"
    assert found["ceiling_upper"] == pytest.approx(63 / 128, rel=2e-3) and found["efficiency"] > 1.8
    page = (tmp_path / "runs" / "c-judge" / "judge.html").read_text()
    assert "Impossible" in page and 'src="http' not in page and 'href="http' not in page
    assert (tmp_path / "runs" / "c-judge" / "figures" / "judge.png").exists()
    assert main(["judge", str(claim), "--set", "reported=[{throughput: 0.4}]"]) == 0
    assert not list((tmp_path / "runs" / "c-judge").glob("witness*"))
    assert "81.2 %" in capsys.readouterr().out


def test_a_graph_in_a_file_is_judged(tmp_path, capsys):
    (tmp_path / "net.txt").write_text("# directed: false\n0 1\n1 2\n2 3\n3 0\n")
    (tmp_path / "c.yaml").write_text("topology: net.txt\ntraffic: uniform\nreported: [{load: 1.2}]\n")
    assert main(["judge", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "o"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["witness"]["kind"] == "hosts"


def test_keys_of_a_claim_take_units(judged):
    network = MESH + "link_gbps: 0.1Tbps\ncycle_ns: 0.002us\n"
    found = judged(network, "{load: 25, latency: 0.06, unit: {load: Gbps per host, latency: us}}").checks
    assert [check.reported.value for check in found] == pytest.approx([0.25, 30])


def test_a_folder_of_others_is_left_alone(tmp_path, capsys):
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "thesis.tex").write_text("")
    (tmp_path / "c.yaml").write_text(RING + "reported: [{load: 0.2}]\n")
    assert main(["judge", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "o")]) == 2
    assert "not a folder of this command" in capsys.readouterr().err


ASK = "reported: [{load: 0.1}]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MESH, "c.yaml:1: reported: is missing"),
        ("traffic: {kind: uniform}\n" + ASK, "c.yaml:1: topology: is missing"),
        (RING + "reported: []\n", "c.yaml:3: reported = []: must have at least 1 item"),
        (RING + "reported: [{}]\n", "c.yaml:3: reported[0]: needs load, throughput or latency"),
        (RING + "reported: [{load: -1}]\n", "c.yaml:3: reported[0].load = -1: must be more than 0"),
        (RING + "reported: [{load: much}]\n", "c.yaml:3: reported[0].load = much: is no number"),
        (RING + "reported: [{load: ''}]\n", "c.yaml:3: reported[0].load = '': is no number"),
        (
            RING + "reported: [{load: 1e999999999}]\n",
            "reported[0].load = 1e999999999: must be 0 or have a magnitude from 1e-100 to 1e+100",
        ),
        (RING + "reported: [{throughput: '1e-999999999'}]\n", "must be between 1e-100 and 1e+100"),
        (RING + "reported: [{csv: i.csv, load: a}]\n", "reported[0].load = a: i.csv:3: 'inf' must be a finite number"),
        (RING + "reported: [{csv: q.csv, load: a}]\n", "reported[0].load = a: q.csv:3: '0.1\\n0.2' is no number"),
        (RING + "reported: [{csv: e.csv, load: a}]\n", "e.csv:2: '1e99999999' must be between 1e-100 and 1e+100"),
        (RING + "reported: [{csv: fifo, load: a}]\n", "reported[0].csv = fifo: is no regular file"),
        (RING + "reported: [{htsim: h.log}]\n", "has no line 'Flow"),
        (RING + "reported: [{load: true}]\n", "c.yaml:3: reported[0].load = true: must be a number"),
        (RING + "reported: [{lod: 1}]\n", "c.yaml:3: reported[0].lod = 1: unknown key"),
        (RING + "reported: [{load: 1, unit: flits}]\n", "c.yaml:3: reported[0].unit = flits: is no unit of a rate"),
        (RING + "reported: [{load: 1, unit: us}]\n", "is a unit of a time, and load is none"),
        (RING + "reported: [{latency: 1, unit: us}]\n", "c.yaml:3: reported[0].unit = us: needs cycle_ns"),
        (RING + "reported: [{load: 1, unit: Gbps per host}]\n", "reported[0].unit = Gbps per host: needs link_gbps"),
        (RING + "reported: [{load: 1, unit: {latency: us}}]\n", "reported[0].unit.latency = us: is not reported here"),
        (RING + "reported: [{csv: no.csv, load: x}]\n", "c.yaml:3: reported[0].csv = no.csv: No such file"),
        (RING + "reported: [{csv: t.csv, load: x}]\n", "reported[0].csv = t.csv: has no column 'x'; it has a, b"),
        (RING + "reported: [{csv: t.csv, load: a}]\n", "t.csv:3: 'soon' is no number"),
        (RING + "reported: [{csv: t.csv, load: 1}]\n", "reported[0].load = 1: must be the name of a column"),
        (RING + "reported: [{booksim2: t.csv}]\n", "has no 'Overall Traffic Statistics': is that the whole output?"),
        (RING + "reported: [{booksim2: t.csv, load: 1}]\n", "BookSim2 has names and units of its own"),
        (RING + "reported: [{htsim: t.csv}]\n", "reported[0].htsim = t.csv: has no line 'Flow ... finished at"),
        (RING + "reported: [{htsim: t.csv, csv: t.csv, load: a}]\n", "gives two files: csv or htsim"),
        (RING + "vcs: 0\n" + ASK, "c.yaml:3: vcs = 0: must be greater than or equal to 1"),
        (RING + "vcs: 2\nswitching: {vcs: 2}\n" + ASK, "c.yaml:3: vcs = 2: is given in switching, too"),
        (RING + "loads: [0.1]\n" + ASK, "c.yaml:3: loads = [0.1]: unknown key"),
        (RING + "link_gbps: 100 furlongs\n" + ASK, "c.yaml:3: link_gbps = 100 furlongs: is no rate"),
        (RING + "routing: minmal\n" + ASK, "c.yaml:3: routing.kind = minmal: unknown routing"),
        ("topology: {kind: tourus}\ntraffic: uniform\n" + ASK, "c.yaml:1: topology.kind = tourus: unknown topology"),
        ("topology: gone.txt\ntraffic: uniform\n" + ASK, "c.yaml:1: topology.path"),
        (RING + "switching: {mode: datagram}\nreported: [{latency: 9}]\n", "has no delays in cycles"),
    ],
)  # fmt: skip
def test_wrong_claims_are_refused_with_file_line_and_key(tmp_path, capsys, text, expected):
    (tmp_path / "t.csv").write_text("a,b\n0.1,1\nsoon,2\n")
    (tmp_path / "i.csv").write_text("a\n0.1\ninf\nnan\n")
    (tmp_path / "e.csv").write_text("a\n1e99999999\n")
    (tmp_path / "q.csv").write_text('a\n"0.1\n0.2"\n')
    (tmp_path / "h.log").write_text("Flow a flowId 1 x finished at 1.2.3 total packets 1 RTS 0 total bytes 1\n")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "c.yaml").write_text(text)
    assert main(["judge", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "o")]) == 2
    error = capsys.readouterr().err
    assert expected in error, error
    assert "Traceback" not in error and not (tmp_path / "o").exists()


def test_a_throughput_alone_says_nothing_where_hosts_are_infinite(judged):
    with pytest.raises(ConfigError, match="report the load"):
        judged(RING.replace("dims: [8]", "dims: [8], host_capacity: .inf"), "{throughput: 0.2}")


def test_demands_of_any_size_are_judged_by_what_senders_do(judged):
    """One host of sixteen takes all: senders get a fifteenth of its channel each."""
    network = "topology: {kind: mesh, dims: [4, 4]}\ntraffic: {kind: incast, senders: 15}\n"
    text = judged(network, "{load: 0.9}")
    assert text.verdict == "possible" and np.isclose(text.claim.instance.traffic.column_sums.max(), 1)


def test_rows_that_report_nothing_are_counted(tmp_path, judged):
    (tmp_path / "t.csv").write_text("load,thr,lat\n0.1,0.1,9\n0.5,0.4,inf\n0.9,,nan\n-,-,-\n")
    found = judged(RING, "{csv: t.csv, throughput: thr, latency: lat}")
    assert [check.what for check in found.checks] == ["throughput", "latency", "throughput"]
    assert found.claim.assumed[-1] == "2 rows report nothing in these columns of t.csv: thr, lat."


@pytest.mark.parametrize(("by", "drawn"), [("2", False), ("random", True)])
def test_only_what_another_seed_changes_is_called_random(by, drawn, judged):
    claim = f"topology: {{kind: mesh, dims: [9]}}\ntraffic: {{kind: shift, by: {by}}}\n"
    said = judged(claim, "{load: 0.1}").claim.assumed
    assert any("traffic of kind shift is drawn at random" in one for one in said) == drawn
