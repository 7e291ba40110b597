# SPDX-License-Identifier: Apache-2.0
"""Routings made from a maximum concurrent flow: what they promise, what is loaded, and what runs."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from flitlab.fluid.ceilings import ceilings
from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.fluid.mcf.choose import solve
from flitlab.fluid.mcf.shortest import PathSplit, nearest_weights
from flitlab.fluid.problem import Problem
from flitlab.fluid.weights import routes_for
from flitlab.models.instance import Instance
from flitlab.models.paths.bounded import all_paths_within, sampled_shortest
from flitlab.models.registry import FaultyError, SpecError, make
from flitlab.models.routing.optimal import Optimal
from flitlab.models.routing.planned import equal_thresholds, thresholds
from flitlab.models.routing.route_set import LAST_WORD
from flitlab.models.routing.validation import validate_routes
from flitlab.models.rules.route import choose_route, next_port, path_share
from flitlab.models.rules.tables import Selection
from flitlab.models.rules.ugal import cheaper_path
from flitlab.models.topology.graph import Topology
from flitlab.models.traffic.traffic import Traffic
from flitlab.sim.api import Experiment
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.engines.start import start
from tests import long_after
from tests.scenarios import build, scenario

GRAPH = build("random_digraph", n=16, degree=3, hosts=2, seed=1)


def demand_of(topology, kind="uniform", **keys) -> Traffic:
    return make("traffic", kind=kind, **keys).build(topology)


def optimal(topology, demand=None, **keys):
    return routes_for(make("routing", kind="optimal", **keys), topology, demand or demand_of(topology))


def loads_of(topology, demand, routes) -> np.ndarray:
    """The load of every channel at load 1, path by path."""
    table, load, n = routes.paths, np.zeros(topology.channels), topology.switches
    for pair, amount in enumerate(demand.switch_demand.ravel()):
        for p in range(table.pair_start[pair], table.pair_start[pair + 1]):
            begin = 0 if p == table.pair_start[pair] else int(table.threshold[p - 1])
            end = 2**32 if p + 1 == table.pair_start[pair + 1] else int(table.threshold[p])
            v = pair // n
            for port in table.port[table.path_start[p] : table.path_start[p + 1]].tolist():
                load[topology.out_start[v] + port] += amount * (end - begin) / 2**32
                v = topology.dst[topology.out_start[v] + port]
    return load


@pytest.mark.parametrize("keys", [{}, {"paths": 2}, {"entries": 16}, {"entries": 5, "paths": 3}], ids=str)
def test_the_notes_tell_what_the_tables_carry(keys):
    demand = demand_of(GRAPH, "longest_matching")
    routes = optimal(GRAPH, demand, **keys)
    carried = 1 / (loads_of(GRAPH, demand, routes) / GRAPH.capacity).max()
    split = ceilings(Instance(GRAPH, demand, routes), [ceiling_spec("split")])[0]
    assert routes.notes["theta"] == pytest.approx(carried, rel=1e-9)
    assert split.lower == pytest.approx(carried, rel=1e-9) and split.method == "split by weight"
    assert routes.notes["theta"] <= routes.notes["theta_upper"]
    assert routes.notes["split_longest_matching"] == routes.notes["theta"] != routes.notes["split_uniform"]
    if "entries" in keys:
        entries = routes.paths.shares * keys["entries"]
        own = np.repeat(demand.switch_demand.ravel() > 0, np.diff(routes.paths.pair_start))
        assert np.abs(entries - np.rint(entries))[own].max() < 1e-8


@pytest.mark.parametrize(
    ("topology", "traffic", "hops", "least", "most"),
    [
        (build("rrg", n=64, degree=6, seed=1), {"kind": "longest_matching"}, 4, 0.978, 0.998),
        (build("rrg", n=64, degree=6, seed=1), {"kind": "longest_matching"}, 5, 0.997, 1),
        (build("dragonfly", a=4, p=2, h=2, hosts=2), {"kind": "shift", "by": 8}, 3, 0.92, 0.94),
        (build("dragonfly", a=4, p=2, h=2, hosts=2), {"kind": "shift", "by": 8}, None, 0.997, 1),
        (build("slim_fly", q=5), {"kind": "longest_matching"}, 2, 0.19, 0.21),
    ],
    ids=lambda value: getattr(value, "kind", str(value)),
)  # fmt: skip
def test_the_longest_path_allowed_decides_what_of_the_optimum_is_reached(topology, traffic, hops, least, most):
    unlimited = replace(topology, host_capacity=np.inf)
    demand = demand_of(unlimited, **traffic)
    best = solve(Problem.of(unlimited, demand), 1e-4)
    routes = optimal(unlimited, demand, hops=hops)
    assert least * best.lower <= routes.notes["theta"] <= most * best.upper
    assert routes.hops_max <= routes.notes["hops_allowed"]


def test_a_slim_fly_has_nothing_to_gain_under_uniform_traffic():
    topology = build("slim_fly", q=5)
    demand = demand_of(topology)
    minimal = Instance(topology, demand, make("routing", kind="minimal").build(topology))
    assert optimal(topology).notes["theta"] == pytest.approx(
        ceilings(minimal, [ceiling_spec("split")])[0].lower, rel=1e-3
    )


def by_two_routes(direct: float, around: float) -> Topology:
    """Switch 0 reaches switch 1 over one channel, or over switch 2; no other pair has a choice."""
    arcs, capacity = [(0, 1), (0, 2), (2, 1), (1, 2), (2, 0)], [direct, around, around, 1e5, 1e5]
    return replace(Topology.from_arcs("two", 3, arcs, capacity=capacity).with_hosts(1), host_capacity=np.inf)


@pytest.mark.parametrize("size", [0.01, 1, 100])
def test_a_path_is_dropped_by_its_share_of_the_traffic_whatever_the_unit_of_capacities(size):
    """5 % of the traffic go around. Where it carries less than a thousandth of the *demand*, the path stays, too."""
    topology = by_two_routes(0.95 * size, 0.05 * size)
    routes = optimal(topology, demand_of(topology, "matrix", text="0,1,1", normalise="none"))
    assert routes.notes["theta"] == pytest.approx(size, rel=1e-6)
    assert routes.paths.shares[routes.paths.pair_start[1] :][:2] == pytest.approx([0.95, 0.05])


@pytest.mark.parametrize("size", [0.01, 1, 100])
def test_long_paths_that_carry_little_stay_where_they_decide_the_throughput(size):
    """A third of a small demand goes around: less than a hundredth of all flow, and a third of theta."""
    topology = by_two_routes(1 * size, 0.5 * size)
    routes = optimal(topology, demand_of(topology, "matrix", text="0,1,1\n2,0,100", normalise="none"))
    assert routes.notes["theta"] == pytest.approx(1.5 * size, rel=1e-6)


@pytest.mark.parametrize("kind", ["random_digraph", "torus"])
def test_wide_path_sets_come_from_the_solver_and_carry_as_much(kind):
    topology = GRAPH if kind == "random_digraph" else build("torus", dims=[4, 4])
    demand = demand_of(topology, "shift", by=5)
    listed, priced = (optimal(topology, demand, hops=5, candidates=most) for most in (10**4, 1))
    assert priced.notes["theta"] == pytest.approx(listed.notes["theta"], rel=3e-3)
    assert priced.hops_max <= 5


@pytest.mark.parametrize("hops", [3, 4])
def test_bounded_paths_are_those_of_networkx(hops):
    topology = build("hyperx", dims=[2, 3], multiplicity=2)
    pairs = np.array([(s, t) for s in range(6) for t in range(6) if s != t])
    found = all_paths_within(topology, pairs[:, 0], pairs[:, 1], hops, 10**6, 10**6)
    graph = topology.to_networkx()
    for i, (s, t) in enumerate(pairs.tolist()):
        every = {tuple(key for _, _, key in path) for path in nx.all_simple_edge_paths(graph, s, t, hops)}
        own = [tuple(path.tolist()) for path in found.paths_of(i)]
        assert set(own) == every and len(own) == len(every)
        assert [len(path) for path in own] == sorted(map(len, own))
    assert all_paths_within(topology, pairs[:, 0], pairs[:, 1], hops, 5, 10**6) is None
    assert all_paths_within(topology, pairs[:, 0], pairs[:, 1], hops, 10**6, 50) is None
    some = sampled_shortest(topology, pairs[:, 0], pairs[:, 1], 3, 0)
    for i, (s, t) in enumerate(pairs.tolist()):
        own, least = [tuple(path.tolist()) for path in some.paths_of(i)], nx.shortest_path_length(graph, s, t)
        shortest = {tuple(key for _, _, key in path) for path in nx.all_simple_edge_paths(graph, s, t, least)}
        assert 0 < len(own) == len(set(own)) <= 3 and set(own) <= shortest


def test_packets_draw_paths_by_weight_and_equal_shares_as_ever():
    demand = demand_of(GRAPH, "longest_matching")
    routes = optimal(GRAPH, demand)
    r, table = routes.tables(GRAPH), routes.paths
    pair = int(np.argmax(np.diff(table.pair_start)))
    first, end = table.pair_start[pair : pair + 2].tolist()
    origin, target = divmod(pair, GRAPH.switches)
    ways = [choose_route(r, 1, 0, 1, GRAPH.hosts, sequence, origin, target) for sequence in range(20_000)]
    drawn = np.bincount(np.array(ways) - first, minlength=end - first) / len(ways)
    assert end - first > 1 and np.abs(drawn - table.shares[first:end]).max() < 0.015
    assert [path_share(r, p, first, end) for p in range(first, end)] == table.shares[first:end].tolist()
    counts = np.diff(table.pair_start)
    same = r._replace(path_threshold=thresholds(table.pair_start, np.repeat(1 / np.maximum(counts, 1), counts)))
    alike = r._replace(path_threshold=r.path_threshold[:0])
    for sequence in range(200):
        drawn_by = [choose_route(one, 1, 0, 1, GRAPH.hosts, sequence, origin, target) for one in (same, alike)]
        assert drawn_by[0] == drawn_by[1]


def test_thresholds_leave_nothing_over():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 12, 300)
    pair_start = np.concatenate([[0], np.cumsum(counts)])
    weight = rng.random(counts.sum()) + 1e-3
    weight /= np.repeat(np.add.reduceat(np.append(weight, 0), pair_start[:-1])[counts > 0], counts[counts > 0])
    routes = optimal(GRAPH)
    table = routes.paths._replace(pair_start=pair_start, threshold=thresholds(pair_start, weight))
    assert (table.threshold[pair_start[1:][counts > 0] - 1] == LAST_WORD).all()
    assert np.abs(table.shares - weight).max() < 12 * 2.0**-32
    whole = np.add.reduceat(np.append(table.shares, 0), pair_start[:-1])[counts > 0]
    assert (whole == 1).all()


def test_tables_with_shares_that_are_none_are_refused():
    routes = optimal(GRAPH, demand_of(GRAPH, "longest_matching"))
    table = routes.paths
    pair = int(np.argmax(np.diff(table.pair_start)))
    for place, value in ((table.pair_start[pair], 0), (table.pair_start[pair + 1] - 1, 5)):
        threshold = table.threshold.copy()
        threshold[place] = value
        with pytest.raises(FaultyError, match=f"threshold {value} of a path from switch {pair // 16} to"):
            validate_routes(GRAPH, replace(routes, paths=table._replace(threshold=threshold)))
    with pytest.raises(FaultyError, match="threshold must be uint32"):
        validate_routes(GRAPH, replace(routes, paths=table._replace(threshold=table.shares)))


def test_weights_are_a_part_of_the_content():
    routes = optimal(GRAPH)
    other = replace(routes, paths=routes.paths._replace(threshold=routes.paths.threshold[:0]))
    assert other.content_hash != routes.content_hash == optimal(GRAPH).content_hash


@pytest.mark.parametrize("mode", ["vct", "wormhole"])
@pytest.mark.parametrize("per", long_after(1, ["packet", "flow"]))
def test_engines_agree_on_weighted_paths(mode, per):
    routing = {"kind": "optimal", "per": per, "for": {"kind": "longest_matching"}}
    run = start("both", scenario(GRAPH, routing=routing, mode=mode, vcs=6), 0.3, 1)
    run.advance(600)
    assert run.snapshot().hops.sum() > 50


def test_every_pair_has_a_way_where_hosts_differ_and_demand_is_a_file(tmp_path):
    file = tmp_path / "demand.csv"
    file.write_text("src,dst,demand\n0,7,2\n3,9,1\n9,3,1\n5,1,0.5\n")
    hosts = [2, 0, 1, 0, 1, 3, 1, 0, 1, 1, 1, 1]
    topology = make("topology", kind="rrg", n=12, degree=3, seed=1, hosts=hosts).build()
    demand = demand_of(topology, "matrix", path=str(file))
    routes = optimal(topology, demand, paths=4)
    best = solve(Problem.of(topology, demand), 1e-5)
    assert routes.notes["theta"] >= min(0.95 * best.lower, 1)
    filled = np.diff(routes.paths.pair_start).reshape(12, 12)[np.ix_(np.nonzero(hosts)[0], np.nonzero(hosts)[0])]
    assert (filled + np.eye(9) > 0).all() and filled.max() <= 4


STUDY = {
    "schema": 1, "experiment": "ceilings", "ceilings": ["mcf", "mcf_paths", "split"],
    "topology": {"kind": "torus", "dims": [4, 4]}, "traffic": {"kind": "uniform"},
}  # fmt: skip


def test_one_study_makes_a_routing_for_each_demand():
    sweep = {"sweep": [{"kind": "uniform"}, {"kind": "shift", "by": 5}]}
    routing = {"sweep": [{"kind": "optimal"}, {"kind": "optimal", "for": {"kind": "uniform"}}]}
    cases = Experiment.load(STUDY | {"traffic": sweep, "routing": routing}).study.cases
    hashes = [case.routes.content_hash for case in cases]
    assert len(cases) == 4 and len(set(hashes)) >= 2
    for_uniform = [case.routes for case in cases if "for" in case.resolved["routing"]]
    assert for_uniform[0].content_hash == for_uniform[1].content_hash


@pytest.mark.parametrize(
    ("routing", "text"),
    [
        ({"hops": 3}, r"routing.hops = 3: switch \d+ is 4 channels from switch \d+, and paths have at most 3"),
        ({"for": {"kind": "unifrom"}}, r"routing.for.kind = unifrom: .*did you mean 'uniform'"),
        ({"for": {"by": 3}}, "routing.for.kind: is missing"),
        ({"entries": 0}, "routing.entries = 0"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused(routing, text):
    with pytest.raises(ConfigError, match=text):
        Experiment.load(STUDY | {"routing": {"kind": "optimal"} | routing})


def test_without_a_demand_there_is_no_such_routing():
    with pytest.raises(SpecError, match="made for a demand"):
        make("routing", kind="optimal").build(GRAPH)


DENSE = build("rrg", n=24, degree=6, hosts=2, seed=1)


@pytest.fixture
def never_listed(monkeypatch):
    monkeypatch.setattr("flitlab.models.routing.optimal.MAX_LISTED_PATHS", 0)
    monkeypatch.setattr("flitlab.fluid.weights.NEAR_OPTIMAL", 9)  # small graphs need longer paths as well


def hop_loads(topology, demand, routes) -> np.ndarray:
    """The load of every channel at load 1 under weighted next hops, switch by switch."""
    load = np.zeros(topology.channels)
    for t in range(topology.switches):
        carried = demand.switch_demand[:, t].copy()
        while carried.any():
            v = int(np.flatnonzero(carried)[0])
            flow, carried[v], begin = carried[v], 0.0, 0
            ports = [p for p in range(64) if int(routes.ports[t, v]) >> p & 1]
            for p in ports if v != t else []:
                end = 256 if p == ports[-1] else int(routes.port_threshold[t, v, p])
                c = topology.out_start[v] + p
                load[c] += flow * (end - begin) / 256
                carried[topology.dst[c]] += flow * (end - begin) / 256
                begin = end
    return load


@pytest.mark.parametrize("entries", [None, 8])
def test_dense_demand_takes_weighted_next_hops(never_listed, entries):
    demand = demand_of(DENSE)
    routes = optimal(DENSE, demand, entries=entries)
    carried = 1 / (hop_loads(DENSE, demand, routes) / DENSE.capacity).max()
    assert routes.notes["theta"] == pytest.approx(min(carried, 1), rel=1e-9)
    aimed = nearest_weights(PathSplit(Problem.of(DENSE, demand)), 1e-3, np.inf).theta
    assert carried >= (0.85 if entries else 0.985) * aimed
    alike = replace(routes, port_threshold=equal_thresholds(routes.ports, 6))
    assert alike.content_hash != routes.content_hash
    drawn = np.zeros(64)
    t, v = np.unravel_index(np.argmax(np.bitwise_count(routes.ports)), routes.ports.shape)
    for sequence in range(4000):
        drawn[next_port(routes.tables(DENSE), 0, 1, v, t, 0, 1, DENSE.hosts, sequence, 0)] += 1 / 4000
    begin, ports = 0, [p for p in range(64) if int(routes.ports[t, v]) >> p & 1]
    for p in ports:
        end = 256 if p == ports[-1] else int(routes.port_threshold[t, v, p])
        assert drawn[p] == pytest.approx((end - begin) / 256, abs=0.03)
        begin = end


def test_thresholds_of_next_hops_that_are_none_are_refused(never_listed):
    routes = optimal(DENSE)
    t, v = np.unravel_index(np.argmax(np.bitwise_count(routes.ports)), routes.ports.shape)
    threshold = routes.port_threshold.copy()
    threshold[t, v] = 0
    with pytest.raises(FaultyError, match=f"thresholds of switch {v} for switch {t} are"):
        validate_routes(DENSE, replace(routes, port_threshold=threshold))
    with pytest.raises(FaultyError, match="select RANDOM or HASH"):
        validate_routes(DENSE, replace(routes, select=Selection.ADAPTIVE))


@pytest.mark.parametrize("mode", long_after(1, ["vct", "wormhole"]))
def test_engines_agree_on_weighted_next_hops(never_listed, mode):
    run = start("both", scenario(DENSE, routing={"kind": "optimal"}, mode=mode, vcs=6), 0.4, 1)
    run.advance(400)
    assert run.snapshot().hops.sum() > 50


@pytest.mark.long
@pytest.mark.parametrize("mode", ["vct", "wormhole"])
def test_engines_agree_on_the_least_queued_of_two_paths(mode):
    routing = {"kind": "optimal", "select": "adaptive", "for": {"kind": "longest_matching"}}
    run = start("both", scenario(GRAPH, routing=routing, mode=mode, vcs=6), 0.8, 1)
    run.advance(600)
    assert run.snapshot().hops.sum() > 50


def test_a_shorter_path_and_a_shorter_queue_are_better():
    r = optimal(GRAPH, demand_of(GRAPH, "longest_matching"), select="adaptive").tables(GRAPH)
    table = np.diff(r.path_start)
    short, long = int(table.argmin()), int(table.argmax())
    assert cheaper_path(r, long, short, 0, 0, 4) == short == cheaper_path(r, short, long, 0, 0, 4)
    assert cheaper_path(r, short, long, 99, 0, 4) == long
    assert cheaper_path(r, short, short, 7, 7, 4) == short


def test_what_decides_by_queues_fixes_no_split():
    routes = optimal(GRAPH, select="adaptive")
    assert not routes.oblivious and routes.notes["theta"] == optimal(GRAPH).notes["theta"]
    others = [optimal(GRAPH), optimal(GRAPH, select="adaptive", draws=3)]
    assert len({routes.content_hash, *(other.content_hash for other in others)}) == 3


@pytest.mark.parametrize("weight", [[-0.5, 1.5, 1], [np.nan, 1, 1], [0, 0, 1], [0.5, 0.5, np.inf], [0.5, 0.5]], ids=str)
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(SpecError, match="weight"):
        thresholds(np.array([0, 2, 2, 3]), np.array(weight))


class Careless(Optimal):
    """Writes to what it is given, or gives no demand."""

    how: str

    def demand(self, topology, traffic):
        if self.how == "writes first":
            traffic.rate[0] /= 2
        return None if self.how == "none" else traffic

    def planned(self, topology, demand, weigh):
        routes = super().planned(topology, demand, weigh)
        if self.how == "writes later":
            demand.rate.setflags(write=True)
            demand.rate[0] /= 2
        return routes


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("none", r"demand\(\) must return a Traffic, not NoneType"),
        ("writes first", r"demand\(\) changes the traffic; copy"),
        ("writes later", r"planned\(\) changes the traffic; copy"),
    ],
)
def test_a_planned_routing_of_a_users_own_is_looked_at(how, said):
    small = build("torus", dims=[3, 3], hosts=1)
    with pytest.raises(SpecError, match=said):
        routes_for(Careless(kind="careless", how=how), small, demand_of(small))
    assert routes_for(Careless(kind="careless", how="well"), small, demand_of(small)).paths is not None
