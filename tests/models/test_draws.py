# SPDX-License-Identifier: Apache-2.0
"""The decisions that both engines share, against their distributions: draws, arrivals and routes.

A comparison of the engines cannot see an error there. All tests are chi-square tests, or within 5 standard errors, of
fixed seeds.
"""

from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, chisquare

from flitlab.models.jit import njit
from flitlab.models.registry import make
from flitlab.models.rules.arrivals import make_arrivals, next_arrival
from flitlab.models.rules.bits import port_list, port_set
from flitlab.models.rules.deflect import least_bound_port
from flitlab.models.rules.draw import Stream, below, draw
from flitlab.models.rules.packets import length, make_packets
from flitlab.models.rules.route import fixed_port, next_port, pick
from flitlab.models.rules.tables import Selection
from flitlab.models.traffic.source import BurstRates
from tests.models.test_routing import routes_of, walk
from tests.scenarios import build, line

UNLIKELY = 1e-4
"""The probability of a false alarm of a test of one seed, which always draws the same."""


@njit
def drawn(seed, stream, entity, counters, classes):
    """Draws of several counters, as numbers 0 .. classes - 1."""
    numbers = np.zeros(len(counters), np.int64)
    for i in range(len(counters)):
        numbers[i] = below(draw(seed, stream, entity, counters[i]), classes)
    return numbers


def is_independent(one, other, classes=16):
    """Whether two sequences of numbers look independent (contingency table)."""
    table = np.bincount(one * classes + other, minlength=classes**2).reshape(classes, classes)
    return chi2_contingency(table).pvalue > UNLIKELY


@pytest.mark.parametrize("classes", [2, 7, 31, 256])
@pytest.mark.parametrize("stream", Stream, ids=Stream._fields)
def test_draws_are_uniform(stream, classes):
    for seed in (0, 1, 2**40):
        count = np.bincount(drawn(seed, stream, 5, np.arange(20_000), classes), minlength=classes)
        assert len(count) == classes and chisquare(count).pvalue > UNLIKELY


def test_streams_entities_counters_and_seeds_are_independent():
    counters = np.arange(20_000)
    of_streams = [drawn(1, stream, 3, counters, 16) for stream in Stream]
    pairs = [(one, other) for i, one in enumerate(of_streams) for other in of_streams[:i]]
    ours = of_streams[Stream._fields.index("ROUTE")]
    for seed, entity, shift in [(1, 4, 0), (1, 3 + 2**16, 0), (2, 3, 0), (1 + 2**32, 3, 0), (1, 3, 1), (1, 3, 2**20)]:
        pairs.append((ours, drawn(seed, Stream.ROUTE, entity, counters + shift, 16)))
    assert all(is_independent(one, other) for one, other in pairs)
    assert not is_independent(ours, ours)


def test_entities_are_independent_at_equal_counters():
    """The packets of the same number at all hosts."""
    across = np.array([drawn(1, Stream.DESTINATION, host, np.arange(4), 16) for host in range(20_000)])
    assert all(chisquare(np.bincount(column, minlength=16)).pvalue > UNLIKELY for column in across.T)
    assert is_independent(across[:-1, 0], across[1:, 0])


LENGTH, BURST, PACKETS = 4, 6.0, 40_000


@njit
def times_of(arrivals, packets, seed, host, count):
    """The ticks at which a host creates its packets."""
    ticks, counter, position = np.zeros(count, np.int64), 0, -arrivals.base
    for i in range(count):
        counter, position = next_arrival(arrivals, packets, seed, host, counter, position)
        ticks[i] = position >> arrivals.shift
        counter += 1
    return ticks


def created(kind, load, seed=1, host=3):
    """The ticks at which a host creates packets of 4 flits."""
    traffic = make("traffic", kind="uniform").build(line(2, 4))
    arrivals = make_arrivals(kind, load, LENGTH, traffic.rate, BURST)
    return times_of(arrivals, make_packets(traffic, (LENGTH,), (1.0,)), seed, host, PACKETS)


def survival(kind, load, ticks):
    """The probability that the interval between packets has ``ticks`` ticks or more, and its mean and variance."""
    rate = load / LENGTH
    if kind == "bernoulli":  # geometric
        return (1 - rate) ** np.maximum(ticks - 1, 0), 1 / rate, (1 - rate) / rate**2
    # the next packet follows at once, or with 1 / BURST after a geometric pause, of 0 ticks or more
    pause = BURST * (1 / rate - LENGTH)
    after = (pause / (pause + 1)) ** np.maximum(ticks - LENGTH, 0) / BURST
    variance = (pause * (1 + pause) + pause**2) / BURST - (pause / BURST) ** 2
    return np.where(ticks <= LENGTH, 1.0, after), 1 / rate, variance


@pytest.mark.parametrize("load", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("kind", ["bernoulli", "onoff"])
def test_intervals_have_their_distribution(kind, load):
    intervals = np.diff(created(kind, load))
    _, mean, variance = survival(kind, load, np.zeros(1))
    assert abs(intervals.mean() - mean) < 5 * np.sqrt(variance / len(intervals))
    edges = np.unique(np.append(1, np.quantile(intervals, np.linspace(0, 0.99, 30)).astype(int) + 1))
    expected = -np.diff(np.append(survival(kind, load, edges)[0], 0.0)) * len(intervals)
    count = np.histogram(intervals, np.append(edges, np.iinfo(np.int64).max))[0]
    possible = expected > 0
    assert count[~possible].sum() == 0
    assert chisquare(count[possible], expected[possible]).pvalue > UNLIKELY
    of_intervals = (intervals[:-1] > mean).astype(int), (intervals[1:] > mean).astype(int)
    assert is_independent(*of_intervals, classes=2)


@pytest.mark.parametrize("load", [0.02, 0.3, 3.2])
def test_counts_of_a_poisson_process_have_their_distribution(load):
    rate, ticks = load / LENGTH, created("poisson", load)
    for window in (1, 10):  # a grid of 1/1024 tick, which several packets may share, raises the variance by rate / 1024
        per_window = np.bincount(ticks // window)[:-1]
        mean = rate * window
        assert abs(per_window.mean() - mean) < 5 * np.sqrt(mean / len(per_window))
        assert per_window.var() == pytest.approx(mean, rel=5 * np.sqrt((2 + 1 / mean) / len(per_window)) + rate / 1024)
        largest = int(per_window.max())
        share = np.array([1.0])
        for k in range(1, largest + 1):
            share = np.append(share, share[-1] * mean / k)
        share *= np.exp(-mean)
        share[-1] += 1 - share.sum()
        enough = share * len(per_window) > 20
        count = np.bincount(per_window, minlength=largest + 1)
        count = np.append(count[enough], count[~enough].sum())
        share = np.append(share[enough], share[~enough].sum())
        apart = share > 0
        assert chisquare(count[apart], share[apart] / share[apart].sum() * count.sum()).pvalue > UNLIKELY


@pytest.mark.parametrize(("kind", "load"), [("bernoulli", 0.3), ("poisson", 0.3), ("onoff", 0.3)])
def test_counts_in_windows_have_the_variance_of_a_renewal_process(kind, load):
    rate, window = load / LENGTH, 2000
    variance = 1 / rate**2 if kind == "poisson" else survival(kind, load, np.zeros(1))[2]
    counts = np.concatenate([np.bincount(created(kind, load, host=host) // window)[1:-1] for host in range(8)])
    expected = window * variance * rate**3
    assert counts.var(ddof=1) == pytest.approx(expected, rel=5 * np.sqrt(2 / len(counts)))


RARE = 1e-10
"""The same, where many samples tell a fault from chance."""


@pytest.mark.parametrize("rate", [0.5, 0.07])
def test_hosts_of_lower_rates_are_bernoulli_processes_of_their_own(rate):
    """Of the candidates of a rate p each is kept with probability r: gaps are geometric with r p."""
    traffic = make("traffic", kind="uniform").build(line(2, 4))
    arrivals = make_arrivals("bernoulli", 2.0, LENGTH, np.append([1.0], np.full(7, rate)), BURST)
    packets = make_packets(traffic, (LENGTH,), (1.0,))
    gaps = np.diff(times_of(arrivals, packets, 1, 3, PACKETS))
    chance = rate * 2.0 / LENGTH
    edges = np.arange(1, int(np.log(0.001) / np.log(1 - chance)))
    count = np.bincount(np.minimum(gaps, edges[-1]))[1:]
    expected = -np.diff(np.append((1 - chance) ** (edges - 1), 0.0)) * len(gaps)
    assert chisquare(count, expected).pvalue > RARE
    assert is_independent((gaps[:-1] > 1 / chance).astype(int), (gaps[1:] > 1 / chance).astype(int), 2)


@pytest.mark.parametrize("load", [0.02, 0.6])
def test_bursts_are_geometric(load):
    """A burst ends with 1 / BURST after each packet, but a pause of 0 ticks joins it to the next one."""
    pause = BURST * (LENGTH / load - LENGTH)
    end = pause / (1 + pause) / BURST
    ends = np.flatnonzero(np.diff(created("onoff", load)) > LENGTH)
    bursts = np.diff(ends)
    deviation = np.sqrt(1 - end) / end
    assert abs(bursts.mean() - 1 / end) < 6.5 * deviation / np.sqrt(len(bursts))
    fourth = (9 * (1 - end) + end**2) / (1 - end)  # kurtosis of a geometric variable
    assert bursts.var() == pytest.approx(deviation**2, rel=6.5 * np.sqrt((fourth - 1) / len(bursts)))


def test_lengths_have_their_shares_whatever_the_gap_before_them():
    traffic = make("traffic", kind="uniform").build(line(2, 4))
    packets = make_packets(traffic, (1, 5, 64), (0.5, 0.3, 0.2))
    arrivals = make_arrivals("bernoulli", 0.5 * 14.8, 14.8, traffic.rate, BURST)
    gaps = np.diff(times_of(arrivals, packets, 1, 3, 20_001))
    kind = np.searchsorted([1, 5, 64], [length(packets, 1, 3, k + 1) for k in range(20_000)])
    assert chisquare(np.bincount(kind), np.array([0.5, 0.3, 0.2]) * 20_000).pvalue > RARE
    assert is_independent(kind, np.minimum(gaps, 3) - 1, 3)


BURSTS = {
    "long": BurstRates(start=0.01, end=0.05),
    "rate": BurstRates(end=0.2, rate=0.7),
    "every tick": BurstRates(start=0.03, rate=1.0),
    "short": BurstRates(start=1.0, end=1.0),
}


def markov(name, load, host=3):
    """The ticks at which a host creates packets of 4 flits, and its chances (start, end, rate)."""
    traffic = make("traffic", kind="uniform").build(line(2, 4))
    arrivals = make_arrivals("onoff", load, LENGTH, traffic.rate, BURSTS[name])
    packets = make_packets(traffic, (LENGTH,), (1.0,))
    chances = [float(chance) for chance in BURSTS[name].complete(Fraction(load) / LENGTH)]
    return times_of(arrivals, packets, 1, host, PACKETS), chances


@pytest.mark.parametrize(("name", "load"), [("long", 0.2), ("rate", 0.6), ("every tick", 2.0), ("short", 1.2)])
def test_intervals_of_a_markov_process_have_their_distribution(name, load):
    """By powers of its transitions without a packet, from the on-state; neighbouring intervals are independent."""
    ticks, (start, end, rate) = markov(name, load)
    intervals = np.diff(ticks)
    silent = np.array([[(1 - end) * (1 - rate), end], [start * (1 - rate), 1 - start]])  # on, off
    survive, states = [1.0], np.array([1.0, 0.0])
    while survive[-1] > 1e-9:
        states = states @ silent
        survive.append(states.sum())
    survive = np.array(survive)  # P(interval > k)
    assert survive.sum() == pytest.approx(LENGTH / load, rel=1e-6)  # the mean interval
    edges = np.unique(np.append(1, np.quantile(intervals, np.linspace(0, 0.99, 30)).astype(int) + 1))
    expected = -np.diff(np.append(survive[edges - 1], 0.0)) * len(intervals)
    count = np.histogram(intervals, np.append(edges, np.iinfo(np.int64).max))[0]
    assert chisquare(count, expected).pvalue > UNLIKELY
    above = intervals > intervals.mean()
    assert is_independent(above[:-1].astype(int), above[1:].astype(int), classes=2)


@pytest.mark.parametrize(("name", "load"), [("long", 0.2), ("rate", 0.6)])
def test_counts_of_a_markov_process_have_its_index_of_dispersion(name, load):
    window, counts = 2000, []
    for host in range(8):
        ticks, (start, end, rate) = markov(name, load, host)
        counts.append(np.bincount(ticks // window)[1:-1])
    packets, correlation, counts = load / LENGTH, 1 - start - end, np.concatenate(counts)
    variance = packets * (1 - packets) * window
    # sum over pairs of different ticks of the covariance r**2 p (1 - p) c**k, p the share of on-ticks
    share = start / (start + end)
    lags = np.arange(1, window)
    variance += 2 * rate**2 * share * (1 - share) * ((window - lags) * correlation**lags).sum()
    assert counts.mean() == pytest.approx(packets * window, abs=5 * np.sqrt(variance / len(counts)))
    assert counts.var(ddof=1) == pytest.approx(variance, rel=5 * np.sqrt(2 / len(counts)))


def test_hosts_create_packets_independently():
    created_at = [np.bincount(created("bernoulli", 2.0, host=host))[:60_000] for host in (0, 1, 7)]
    assert all(is_independent(created_at[i], created_at[j], 2) for i, j in [(0, 1), (0, 2), (1, 2)])


NETWORKS = {"torus": {"dims": [4, 4]}, "rrg": {"n": 14, "degree": 4, "seed": 2}}


@pytest.mark.parametrize("name", NETWORKS)
def test_minimal_routes_are_drawn_hop_by_hop_of_all_shortest_paths(name):
    """A shortest path has the probability 1 / (next hops on shortest paths), multiplied over its switches."""
    topology = build(name, **NETWORKS[name])
    routes, graph = routes_of(topology, "minimal"), topology.to_networkx()
    length = dict(nx.all_pairs_shortest_path_length(graph))
    farthest = sorted(product(graph, repeat=2), key=lambda pair: -length[pair[0]][pair[1]])
    chi_square = degrees = 0
    for source, destination in farthest[:8]:
        probability = {}
        for path in nx.all_simple_edge_paths(graph, source, destination, length[source][destination]):
            share = 1.0
            for v, _, _ in path:
                share /= sum(length[w][destination] + 1 == length[v][destination] for _, w in graph.out_edges(v))
            probability[tuple(c for _, _, c in path)] = share
        assert sum(probability.values()) == pytest.approx(1)
        taken = [tuple(walk(topology, routes, source, destination, k)[1]) for k in range(400)]
        assert set(taken) <= set(probability)
        for path, share in probability.items():
            chi_square += (taken.count(path) - share * 400) ** 2 / (share * 400)
        degrees += len(probability) - 1
    assert degrees > 10 and chi2.sf(chi_square, degrees) > UNLIKELY


def test_hops_of_a_packet_are_drawn_independently():
    """At a switch of two next hops, at its first and at its second hop, and of two packets in a row."""
    tables = routes_of(build("torus", dims=[4, 4]), "minimal").tables(build("torus", dims=[4, 4]))
    ports = [[next_port(tables, 0, 1, 0, 5, 0, 5, 16, k, hop) for hop in (0, 1)] for k in range(4000)]
    values, choice = np.unique(ports, return_inverse=True)
    first, second = choice.reshape(-1, 2).T
    assert len(values) == 2 and all(chisquare(np.bincount(each)).pvalue > UNLIKELY for each in (first, second))
    assert is_independent(first, second, 2) and is_independent(first[:-1], first[1:], 2)


def test_flows_are_hashed_evenly_and_packets_of_a_flow_alike():
    """Over four ports; at two switches in a row independently, or half of the paths would never be taken."""
    ports, hosts = port_set([0, 2, 3, 7]), 64
    flows = [(source, destination) for source in range(hosts) for destination in range(hosts)]

    def hashed(switch, source, destination, sequence=0, hop=0, seed=1):
        return int(fixed_port(ports, Selection.HASH, seed, switch, source, destination, hosts, sequence, hop))

    first, second, other_seed = (
        np.searchsorted([0, 2, 3, 7], [hashed(switch, *flow, seed=seed) for flow in flows])
        for switch, seed in ((5, 1), (6, 1), (5, 2))
    )
    assert all(chisquare(np.bincount(each, minlength=4)).pvalue > RARE for each in (first, second))
    assert is_independent(first, second, 4) and is_independent(first, other_seed, 4)
    assert all(len({hashed(5, *flow, k, k % 3) for k in range(9)}) == 1 for flow in flows[::100])


@pytest.mark.parametrize("size", [2, 3, 5, 6, 24])
def test_of_equal_ports_each_is_picked_alike(size):
    among = np.sort(np.random.default_rng(size).choice(60, size, replace=False))
    words = [draw(1, Stream.ROUTE, 3, k) for k in range(12_000)]
    picked = [int(pick(port_set(among.tolist()), word)) for word in words]
    assert set(picked) == set(among.tolist())
    assert chisquare(np.bincount(np.searchsorted(among, picked))).pvalue > RARE


def test_a_deflected_packet_takes_the_least_bound_output():
    """Of all states of four outputs with up to three packets each: one of the least bound, none if all are full."""
    for bound in product(range(4), repeat=4):
        for among in ([0, 1, 2, 3], [1, 3]):
            least = min(bound[port] for port in among)
            ties = {port for port in among if bound[port] == least < 3}
            counts = np.array((9, *bound), np.int64)
            chosen = {int(least_bound_port(port_set(among), counts, 1, 3, 1, packet, 2)) for packet in range(3)}
            assert chosen <= (ties or {-1})


def test_ties_of_a_deflected_packet_are_drawn_evenly_and_independently():
    """By packet, by hop and by seed; the outputs of few packets are 1, 2 and 4."""
    bound, ports = np.array([2, 1, 1, 3, 1], np.int64), port_set(range(5))

    def choices(hops, seed, first=0):
        packets = range(first, first + 9000)
        chosen = [int(least_bound_port(ports, bound, 0, 4, seed, packet, hops)) for packet in packets]
        return np.searchsorted([1, 2, 4], chosen)

    ours = choices(0, 1)
    assert chisquare(np.bincount(ours, minlength=3)).pvalue > RARE and len(port_list(ports)) == 5
    assert all(is_independent(ours, other, 3) for other in (choices(1, 1), choices(0, 2), choices(0, 1, 1)))
