# SPDX-License-Identifier: Apache-2.0
"""What senders, receivers, queues and pacers of sprayed packets decide, against the sentences that say so."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flitlab.models.registry import SpecError, make
from flitlab.models.rules.draw import Stream
from flitlab.models.rules.draw import draw as random_bits
from flitlab.models.rules.spray.credit import (
    claim,
    count_arrival,
    make_pacers,
    next_pull,
    on_pull,
    pull_target,
)
from flitlab.models.rules.spray.layout import Ack, Feedback, Rules, make_receivers, make_senders
from flitlab.models.rules.spray.ports import AtSwitch, PortChoice, chosen_port, make_salts, spray_route
from flitlab.models.rules.spray.queues import evicts, is_marked, next_turn
from flitlab.models.rules.spray.receiver import bits_from, bits_of, on_data, on_trimmed
from flitlab.models.rules.spray.sender import may_send, on_ack, on_nack, on_timeout, send
from flitlab.models.rules.spray.spread import choose_entropy, learn
from flitlab.models.rules.spray.window import window_on_ack, window_on_trim
from flitlab.models.topology.graph import Topology
from flitlab.models.transport.fabric import Fabric, make_routing, make_spray_session
from flitlab.models.transport.flows import Flows
from flitlab.models.transport.oversubscription import oversubscription
from flitlab.models.transport.spraying import Spraying

MTU, MSS = 4150, 4086


def session(transport=None, fabric=None, routing=None, sizes=(2_000_000,), seed=1, topology=None):
    """A session of flows from host 0 to the last host of a fat tree of 128 hosts."""
    topology = topology or make("topology", kind="fat_tree", k=8).build()
    routes = make("routing", **(routing or {"kind": "ecmp", "ways": 16})).build(topology)
    spraying = make("transport", **(transport or {"kind": "nscc"})).spraying()
    count = len(sizes)
    flows = Flows(np.zeros(count, int), np.full(count, 127), np.array(sizes), np.zeros(count, int))
    return make_spray_session(topology, routes, spraying, fabric or Fabric(), flows, seed)


def parties(of):
    """Rules, senders and receivers of a session."""
    senders = make_senders(of.transports, of.flows.kinds, of.flows.packets, of.flows.last_size)
    return of.rules, senders, make_receivers(senders)


@pytest.fixture(scope="module")
def nscc():
    return session()


def test_the_numbers_of_the_network_are_those_of_the_specification(nscc):
    us = float(nscc.tick_s) * 1e6
    assert nscc.rules.rtt0 * us == pytest.approx(14.02272, abs=1e-9)
    assert nscc.rules.timeout * us == pytest.approx(100.656, abs=1e-9)
    assert nscc.rules.first_window == 262_926
    assert nscc.queue_bytes.tolist() == [43 * MTU] * len(nscc.queue_bytes)
    assert (nscc.low[0], nscc.high[0]) == (9 * MTU, 35 * MTU)
    fast = session(fabric=Fabric(nic_mbps=400_000))
    assert fast.rules.rtt0 * float(fast.tick_s) * 1e6 == pytest.approx(12.50568, abs=1e-9)
    assert fast.queue_bytes[0] == 151 * MTU


def test_a_message_is_full_packets_and_a_short_last_one(nscc):
    assert nscc.flows.packets.tolist() == [490]
    assert nscc.flows.last_size.tolist() == [2010]
    short = session(sizes=(1, MSS, MSS + 1))
    assert short.flows.packets.tolist() == [1, 1, 2]
    assert short.flows.last_size.tolist() == [65, MTU, 65]


def test_untrimmed_queues_are_five_times_as_long_and_credit_keeps_last_queues_from_marking():
    assert session(fabric=Fabric(trim=False)).queue_bytes[0] == 5 * 43 * MTU
    credit = session({"kind": "rccc"})
    hosts = credit.topology.hosts
    assert (credit.low[-hosts:] > 1 << 50).all()
    assert (credit.low[:-hosts] == 9 * MTU).all()


def test_marks_may_be_parts_of_the_room():
    assert session(fabric=Fabric(queue_bytes=100 * MTU, ecn=(0.25, 0.75))).low[0] == 25 * MTU
    assert session(fabric=Fabric(queue_bytes=100 * MTU, ecn=(12, 37))).high[0] == 37 * MTU


# paths


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**62), paths=st.sampled_from([2, 8, 64]))
def test_oblivious_uses_every_entropy_once_in_each_round(seed, paths):
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "oblivious", "paths": paths}, seed=seed))
    rounds = [[choose_entropy(rules, senders, 0) for _ in range(paths)] for _ in range(4)]
    assert all(sorted(one) == list(range(paths)) for one in rounds)
    if paths == 64:
        assert len({tuple(one) for one in rounds}) > 1


def test_bitmap_skips_what_is_penalised_and_forgives_one_each_time():
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "bitmap", "paths": 4}))
    walk = [choose_entropy(rules, senders, 0) for _ in range(4)]
    bad = walk[0]
    learn(rules, senders, 0, bad, Feedback.TRIMMED, 0)
    learn(rules, senders, 0, walk[1], Feedback.GOOD, 0)
    assert senders.penalty[0].tolist() == [4 * (e == bad) for e in range(4)]
    used = [choose_entropy(rules, senders, 0) for _ in range(12)]
    assert bad not in used
    assert senders.penalty[0, bad] == 0
    for _ in range(9):
        learn(rules, senders, 0, bad, Feedback.MARKED, 0)
    assert senders.penalty[0, bad] == 9
    learn(rules, senders, 0, bad, Feedback.TIMED_OUT, 0)
    assert senders.penalty[0, bad] == 15


def test_all_entropies_penalised_still_gives_one():
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "bitmap", "paths": 2}))
    for entropy in (0, 1):
        learn(rules, senders, 0, entropy, Feedback.TRIMMED, 0)
    assert choose_entropy(rules, senders, 0) in (0, 1)
    assert senders.penalty[0].sum() == 7


@pytest.mark.parametrize("trim", [True, False])
def test_reps_freezes_at_a_timeout_where_switches_trim(trim):
    """Frozen, cells are read in turn, valid or not; otherwise each is used once, and then entropies are drawn."""
    of = session({"kind": "nscc", "spread": "reps", "paths": 64}, Fabric(trim=trim))
    rules, senders, _ = parties(of)
    for entropy in (5, 6):
        learn(rules, senders, 0, entropy, Feedback.GOOD, 0)
    learn(rules, senders, 0, 9, Feedback.TIMED_OUT, 0)
    taken = [choose_entropy(rules, senders, 0) for _ in range(6)]
    assert taken[:2] == [5, 6]
    assert (taken[2:] == [5, 6, 5, 6]) == trim
    assert senders.seq[0].drawn == (0 if trim else 4)


@pytest.mark.parametrize(("policy", "least"), [(AtSwitch.ROUND_ROBIN, 128), (AtSwitch.ADAPTIVE, 100)])
def test_switches_that_choose_leave_little_data_to_the_hash(policy, least):
    of = session()
    degrees = np.diff(of.topology.out_start)
    routing = make_routing(replace(of, port_choice=PortChoice(int(policy), 10, 10)))
    leaf, target = 0, int(of.topology.host_switch[127])

    def ports(size):
        return {chosen_port(routing, leaf, target, 0, 3, 0, size, now) for now in range(40)}

    assert len(ports(0)) == len(ports(least - 1)) == 1
    assert len(ports(least)) == degrees[leaf]


def test_reps_takes_good_entropies_again_the_oldest_first_and_once_each():
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "reps", "paths": 64}))
    for entropy in (5, 6, 7):
        learn(rules, senders, 0, entropy, Feedback.GOOD, 0)
    learn(rules, senders, 0, 9, Feedback.MARKED, 0)
    assert [choose_entropy(rules, senders, 0) for _ in range(3)] == [5, 6, 7]
    assert senders.seq[0].drawn == 0
    choose_entropy(rules, senders, 0)
    assert senders.seq[0].drawn == 1
    for entropy in range(10):  # two more than there are cells
        learn(rules, senders, 0, entropy, Feedback.GOOD, 0)
    assert [choose_entropy(rules, senders, 0) for _ in range(8)] == list(range(2, 10))


def test_reps_freezes_after_a_timeout_and_explores_after_it():
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "reps", "paths": 64}))
    for entropy in (5, 6, 7):
        learn(rules, senders, 0, entropy, Feedback.GOOD, 0)
    learn(rules, senders, 0, 0, Feedback.TIMED_OUT, 100)
    assert [choose_entropy(rules, senders, 0) for _ in range(7)] == [5, 6, 7, 5, 6, 7, 5]
    learn(rules, senders, 0, 9, Feedback.GOOD, 100 + rules.freeze)
    drawn = senders.seq[0].drawn
    for _ in range(16):
        choose_entropy(rules, senders, 0)
    assert senders.seq[0].drawn == drawn + 16
    assert choose_entropy(rules, senders, 0) == 9


def test_mixed_takes_what_was_good_before_the_walk():
    rules, senders, _ = parties(session({"kind": "nscc", "spread": "mixed", "paths": 64}))
    learn(rules, senders, 0, 42, Feedback.GOOD, 0)
    learn(rules, senders, 0, 43, Feedback.MARKED, 0)
    assert choose_entropy(rules, senders, 0) == 42
    assert senders.penalty[0, 43] == 1
    assert senders.seq[0].rounds == 0
    choose_entropy(rules, senders, 0)
    assert senders.seq[0].rounds == 1


@pytest.mark.parametrize("entropies", [16, 64])
def test_entropies_are_shared_evenly_by_the_paths_of_a_pair(entropies):
    of = session({"kind": "nscc", "paths": entropies}, routing={"kind": "ksp", "k": 8})
    salts = np.zeros(of.topology.switches + 1, np.int64)
    make_salts(1, salts)
    tables = of.routes
    for key in range(4):
        ways = [spray_route(tables, salts, entropies, 0, 31, key, entropy) for entropy in range(entropies)]
        assert sorted(Counter(ways).values()) == [entropies // 8] * 8


@pytest.mark.parametrize("entropies", [16, 64, 256])
def test_successive_entropies_take_different_paths(entropies):
    """A window of a flow that walks through its values in order, or in order up to a mask, uses every path alike."""
    of = session({"kind": "nscc", "paths": entropies}, routing={"kind": "ksp", "k": 8})
    salts = np.zeros(of.topology.switches + 1, np.int64)
    make_salts(1, salts)
    for mask in (0, 5, entropies - 1):
        paths = [spray_route(of.routes, salts, entropies, 0, 31, 0, i ^ mask) for i in range(entropies)]
        assert all(len(set(paths[i : i + 8])) == 8 for i in range(0, entropies, 8))


def test_entropies_are_shared_by_weight():
    of = session({"kind": "nscc", "paths": 64}, routing={"kind": "ksp", "k": 2})
    salts = np.zeros(of.topology.switches + 1, np.int64)
    make_salts(1, salts)
    threshold = np.full(len(of.routes.path_start) - 1, 1 << 30, np.uint32)  # a quarter for the first of two paths
    threshold[1::2] = (1 << 32) - 1
    tables = of.routes._replace(path_threshold=threshold)
    ways = Counter(spray_route(tables, salts, 64, 0, 31, 0, entropy) for entropy in range(64))
    assert sorted(ways.values()) == [16, 48]


# queues


def test_queues_toss_a_fair_coin_and_mark_by_what_is_left_behind():
    heads = sum(evicts(1, 7, i) for i in range(2000))
    assert 900 < heads < 1100
    assert not is_marked(1, 0, 0, 1000, 1000, 3000)
    assert is_marked(1, 0, 0, 3001, 1000, 3000)
    half = sum(is_marked(1, 3, i, 2000, 1000, 3000) for i in range(2000))
    assert 900 < half < 1100


# receivers


def test_a_receiver_acknowledges_every_fourth_full_packet(nscc):
    rules, _, receivers = parties(nscc)
    acked = [n for n in range(41) if on_data(rules, receivers, 0, n, MTU, False, False, n)]
    assert acked == [0, *range(4, 41, 4)]
    assert receivers.got[0].expected == 41


def test_a_receiver_acknowledges_marks_requests_and_duplicates_at_once(nscc):
    rules, _, receivers = parties(nscc)
    on_data(rules, receivers, 0, 0, MTU, False, False, 0)
    assert on_data(rules, receivers, 0, 1, MTU, True, False, 0)
    assert on_data(rules, receivers, 0, 2, MTU, False, True, 0)
    assert on_data(rules, receivers, 0, 2, MTU, False, False, 0)
    assert receivers.got[0].bytes == 3 * MTU


def test_a_receiver_acknowledges_when_the_last_hole_is_filled_after_it_was_asked(nscc):
    rules, _, receivers = parties(nscc)
    for number in (0, 2):
        on_data(rules, receivers, 0, number, MTU, False, False, 0)
    assert on_data(rules, receivers, 0, 4, MTU, False, True, 0)
    assert not on_data(rules, receivers, 0, 1, MTU, False, False, 0)
    assert on_data(rules, receivers, 0, 3, MTU, False, False, 0)
    assert not on_data(rules, receivers, 0, 5, MTU, False, False, 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=150))
def test_acknowledgements_say_what_has_come(numbers):
    rules, _, receivers = parties(OF_NUMBERS)
    for number in numbers:
        on_data(rules, receivers, 0, number, MTU, False, False, 0)
    known, got = set(numbers), receivers.got[0]
    expected = next(n for n in range(300) if n not in known)
    assert got.expected == expected
    assert got.out_of_order == sum(n > expected for n in known)
    assert got.bytes == MTU * len(known)
    start = bits_from(receivers, 0, numbers[-1], False)
    assert start == max(numbers[-1] - 63, expected + 1)
    bits = bits_of(receivers, 0, start) % 2**64
    assert {start + b for b in range(64) if bits >> b & 1} == {n for n in known if start <= n < start + 64}
    assert bits_from(receivers, 0, numbers[-1], True) == numbers[-1]


OF_NUMBERS = session()


def test_a_trimmed_packet_is_asked_for_unless_it_has_come(nscc):
    rules, _, receivers = parties(nscc)
    assert on_trimmed(rules, receivers, 0, 3, False)
    on_data(rules, receivers, 0, 3, MTU, False, False, 0)
    assert not on_trimmed(rules, receivers, 0, 3, False)


# senders


def sent(rules, senders, count, now=0):
    return [send(rules, senders, 0, 0, now + i)[:3] for i in range(count)]


def ack(rules, senders, receivers, number, now, marked=False, again=False):
    """The acknowledgement of a packet, taken in by the sender."""
    got = receivers.got[0]
    start = bits_from(receivers, 0, number, marked)
    ack = Ack(got.expected, got.bytes, number, again, 0, marked, start, bits_of(receivers, 0, start))
    return on_ack(rules, senders, 0, ack, now)


def test_a_sender_fills_its_window_and_asks_for_an_answer_with_the_last_packet_of_it(nscc):
    rules, senders, _ = parties(nscc)
    flags = []
    while may_send(rules, senders, 0):
        flags.append(send(rules, senders, 0, 0, 0)[2])
    assert len(flags) == 262_926 // MTU
    assert flags == [0] * (len(flags) - 1) + [1]


def test_trimmed_packets_are_sent_again_first_lowest_number_first_and_leave_the_flight(nscc):
    rules, senders, _ = parties(nscc)
    sent(rules, senders, 10)
    for number in (7, 3, 5):
        assert on_nack(rules, senders, 0, number, False, False, 100)
    assert not on_nack(rules, senders, 0, 3, False, False, 100)
    assert senders.seq[0].flight == 7 * MTU
    assert [row[0] for row in sent(rules, senders, 4, 200)] == [3, 5, 7, 10]
    assert senders.seq[0].flight == 11 * MTU
    assert senders.seq[0].resent == 3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_flight_is_what_the_receiver_is_not_known_to_have(seed):
    """Packets come in any order, some trimmed, some twice: in the end all is known and nothing is under way."""
    rules, senders, receivers = parties(OF_49)
    draw = Random(seed)
    order, now = [], 0
    while not receivers.got[0].complete >= 0 or senders.seq[0].finished < 0:
        now += 1
        if may_send(rules, senders, 0) and (not order or draw.random() < 0.5):
            number, size, flags, *_ = send(rules, senders, 0, 0, now)
            order.append((number, size, flags))
            continue
        number, size, flags = order.pop(draw.randrange(len(order)))
        if draw.random() < 0.1 and on_trimmed(rules, receivers, 0, number, False):
            on_nack(rules, senders, 0, number, flags & 2 != 0, False, now)
        elif on_data(rules, receivers, 0, number, size, False, True, now):
            ack(rules, senders, receivers, number, now, again=flags & 2 != 0)
        if not order and not may_send(rules, senders, 0) and senders.seq[0].finished < 0:
            raise AssertionError("nothing is under way, and nothing may be sent")
    assert senders.seq[0].flight == 0
    assert senders.seq[0].resends_pending == 0
    assert not senders.in_flight.any()
    assert senders.seq[0].known == 49 * 64 + 200_000


OF_49 = session(sizes=(200_000,))


def test_the_round_trip_is_measured_where_it_is_certain(nscc):
    rules, senders, receivers = parties(nscc)
    sent(rules, senders, 3)
    on_data(rules, receivers, 0, 0, MTU, False, True, 0)
    ack(rules, senders, receivers, 0, 150_000)
    assert senders.seq[0].base_rtt == 150_000
    on_nack(rules, senders, 0, 1, False, False, 160_000)
    sent(rules, senders, 1, 170_000)
    on_data(rules, receivers, 0, 1, MTU, False, True, 0)
    ack(rules, senders, receivers, 1, 171_000)  # of the first time, though it was sent again
    assert senders.seq[0].base_rtt == 150_000


def test_a_timeout_puts_one_packet_into_the_queue_and_narrows_the_window(nscc):
    rules, senders, _ = parties(nscc)
    sent(rules, senders, 5)
    assert not on_timeout(rules, senders, 0, rules.timeout)
    assert senders.seq[0].flight == 4 * MTU
    assert senders.win[0].window == 262_926 - MTU
    assert sent(rules, senders, 1, rules.timeout)[0] == (0, MTU, 3)


# windows


def moved(marked, delay, average=0.0, news=MTU):
    """The window of a sender with ten packets, and what it gathered, after an acknowledgement."""
    rules, senders, _ = parties(OF_NUMBERS)
    senders.win[0].window, senders.win[0].average = 10 * MTU, average
    window_on_ack(rules, senders, 0, news, marked, int(rules.rtt0 + delay), 10)
    return senders.win[0].window / MTU, senders.win[0].pending


def test_the_four_cells_of_the_window():
    rules = OF_NUMBERS.rules
    target = rules.target
    assert moved(True, target / 2) == (10.0, 0.0)  # marked though early: nothing
    window, gathered = moved(False, target * 0.5)
    assert (window, gathered) == (
        10.0,
        pytest.approx(rules.alpha * MTU * (target - int(rules.rtt0 + target * 0.5) + rules.rtt0)),
    )
    assert moved(False, 2 * target) == (10.0, pytest.approx(rules.fair * MTU))
    late = 2 * target
    average = (1 - rules.weight) * late + rules.weight * int(late)
    cut = max(1 - 0.8 * (average - target) / average, 0.5)
    assert moved(True, late, average=late)[0] == pytest.approx(10 * cut, rel=1e-6)
    assert moved(True, late, average=0.0) == (10.0, 0.0)  # the average is not late yet


def test_a_whole_window_without_delay_widens_it_fast():
    rules, senders, _ = parties(OF_NUMBERS)
    senders.win[0].window = 10 * MTU
    for _ in range(35):
        window_on_ack(rules, senders, 0, MTU, False, rules.rtt0, 10)
    assert senders.seq[0].is_fast == 1
    before = senders.win[0].window
    window_on_ack(rules, senders, 0, MTU, False, rules.rtt0, 10)
    assert senders.win[0].window - before == pytest.approx(rules.fast * MTU)


def test_a_trimmed_packet_narrows_the_window_by_itself():
    rules, senders, _ = parties(OF_NUMBERS)
    window_on_trim(rules, senders, 0, MTU, 10)
    assert senders.win[0].window == 262_926 - MTU


def test_quick_adaptation_sets_the_window_to_what_arrived():
    rules, senders, _ = parties(OF_NUMBERS)
    senders.seq[0].flight = 50 * MTU
    window_on_trim(rules, senders, 0, MTU, 10)  # opens a period
    window_on_ack(rules, senders, 0, 2 * MTU, True, -1, 20)
    period = int(rules.rtt0 + rules.target)
    window_on_trim(rules, senders, 0, MTU, 11 + period)
    assert senders.win[0].window == 2 * MTU
    assert senders.seq[0].ignore == 50 * MTU
    window_on_trim(rules, senders, 0, MTU, 12 + period)  # still ignored
    assert senders.win[0].window == 2 * MTU


# credit


def test_a_sender_asks_for_what_it_lacks_and_loses_its_first_credit_with_the_first_answer():
    rules, senders, _ = parties(session({"kind": "rccc"}, sizes=(100_000,)))
    sent(rules, senders, 3)
    assert pull_target(rules, senders, 0, 0) == -(-MTU // 256)  # speculating: a packet at least
    on_pull(rules, senders, 0, 64)
    assert senders.seq[0].credit == 64 * 256
    want = 22 * MTU - 64 * 256 - (MTU - senders.seq[0].last_size)
    assert pull_target(rules, senders, 0, 0) == 64 + -(-want // 256)
    assert [pull_target(rules, senders, 0, waiting) for waiting in (1, 2, 4)] == [
        64 + -(-(want // part) // 256) for part in (1, 2, 4)
    ]


def test_the_target_of_a_sender_with_credit_to_spare_does_not_advance():
    """It asks for less than it was granted, though never for less than nothing."""
    rules, senders, _ = parties(session({"kind": "rccc"}, sizes=(100_000,)))
    sent(rules, senders, 20)
    on_pull(rules, senders, 0, 64)
    targets = []
    for granted in range(128, 257, 64):
        targets.append(pull_target(rules, senders, 0, 1))
        on_pull(rules, senders, 0, granted)
    backlog = 100_000 + 25 * 64 - 20 * MTU
    assert targets == [-(-backlog // 256)] * 3  # as it had no credit left before the first pull
    assert pull_target(rules, senders, 0, 1) == -(-backlog // 256)
    senders.seq[0].credit = 10**6
    assert pull_target(rules, senders, 0, 1) == 0


def test_a_pacer_serves_in_turn_at_its_rate():
    rules, _, receivers = parties(session({"kind": "rccc"}, sizes=(10**6,) * 3))
    pacers = make_pacers(128, 3)
    for flow in range(3):
        claim(rules, receivers, pacers, 127, flow, 200, False, 1000)
    now, turns = 1000, []
    for _ in range(9):
        turns.append(next_pull(rules, receivers, pacers, 127, now))
        now = pacers.due[127]
    assert turns == [0, 1, 2] * 3
    assert now - 1000 == 9 * round(64 * 256 / 0.99)
    rest = [next_pull(rules, receivers, pacers, 127, int(pacers.due[127])) for _ in range(3)]
    assert rest == [0, 1, 2]
    assert receivers.got.credit_granted.tolist() == [200] * 3
    slow = 0
    while pacers.due[127] >= 0 and next_pull(rules, receivers, pacers, 127, int(pacers.due[127])) >= 0:
        slow += 1
    assert slow == 3 * -(-262_926 // (64 * 256))  # each up to 1.5 products beyond its target


def test_a_connection_becomes_active_whenever_its_target_advances():
    """The grant is then 0 and the next service 4 quanta later; each time it gets another turn among the idle ones."""
    rules, _, receivers = parties(session({"kind": "rccc"}, sizes=(10**6,) * 2))
    pacers = make_pacers(128, 2)
    now, served = 1000, []

    def serve():
        nonlocal now
        flow = next_pull(rules, receivers, pacers, 127, now)
        served.append((flow, int(pacers.due[127]) - now))
        now = int(pacers.due[127])

    for flow in range(2):
        claim(rules, receivers, pacers, 127, flow, 4, False, now)
    for _ in range(4):
        serve()
    full, empty = round(64 * 256 / 0.99), round(4 * 256 / 0.99)
    assert served == [(0, empty), (1, empty), (0, full), (1, full)]  # 4 quanta each, then beyond the target
    for target, demanded in ((5, False), (5, False), (6, False), (2, True)):
        claim(rules, receivers, pacers, 127, 0, target, demanded, now)
        serve()
    assert served[4:] == [(0, empty), (0, full), (0, empty), (0, empty)]  # the second claim was no advance
    served.clear()
    for _ in range(10):
        serve()
    assert [flow for flow, _ in served] == [1, 0, 0, 0, 0] * 2
    assert receivers.got.credit_granted.tolist() == [4 + 64 * 10, 4 + 64 * 3]


def test_receivers_adjust_their_rate_by_a_timer_that_runs_from_the_beginning():
    """Against a program that keeps the timer, for packets of any kind at any time."""
    of = session({"kind": "rccc", "oversubscription": 4.0}, sizes=(10**7,))
    rules, _, receivers = parties(of)
    pacers, draw = make_pacers(128, 1), Random(5)

    def period(number):
        part = random_bits(rules.seed, Stream.CREDIT_RATE, 127, number) / 2**63
        return int(1.5 * rules.rtt0 * (0.75 + 0.5 * part)) + 1

    rate, share, rises, timer, adjustments = 1.0, 0.0, 0, period(0), 0
    counted = dict.fromkeys(("all", "trimmed", "untrimmed", "marked"), 0)
    now, rates = 0, []
    for _ in range(3_000):
        now += draw.choice([1, 400, 4_000, 60_000, 2_000_000 if draw.random() < 0.01 else 1])
        while timer < now:
            part = counted["marked"] / counted["untrimmed"] if counted["untrimmed"] else 0.0
            share = share / 2 + part / 2
            if counted["trimmed"]:
                rate -= counted["trimmed"] / counted["all"]
            if share > 0.3:
                rate *= 1 - 0.5 * (share - 0.3)
            if not counted["trimmed"] and share <= 0.3:
                rate += 0.01 * (1 if counted["marked"] else 2 ** min(rises, 30))
                rises += 1
            else:
                rises = 0
            rate = min(max(rate, 0.9 / 4), 1.0)
            counted, adjustments = dict.fromkeys(counted, 0), adjustments + 1
            timer += period(adjustments)
        if draw.random() < 0.5:
            what = draw.choices([Feedback.GOOD, Feedback.MARKED, Feedback.TRIMMED, Feedback.TIMED_OUT], [60, 30, 1, 9])[
                0
            ]
            count_arrival(rules, pacers, 127, what, now)
            counted["all"] += 1
            counted["trimmed"] += what == Feedback.TRIMMED
            counted["untrimmed"] += what in (Feedback.GOOD, Feedback.MARKED)
            counted["marked"] += what == Feedback.MARKED
        else:
            next_pull(rules, receivers, pacers, 127, now)
            rates.append((pacers.rate[127], rate))
    found, expected = zip(*rates, strict=True)
    assert found == pytest.approx(expected, rel=1e-12)
    assert min(found) < 0.3 and max(found) == 1.0 and len(set(found)) > 50


def test_ndp_grants_a_packet_for_each_that_came():
    rules, senders, receivers = parties(session({"kind": "ndp"}, sizes=(10**6,)))
    assert senders.seq[0].credit == 15 * MTU
    pacers = make_pacers(128, 1)
    for _ in range(5):
        claim(rules, receivers, pacers, 127, 0, 0, False, 0)
    now, pulls = 0, 0
    while (flow := next_pull(rules, receivers, pacers, 127, now)) >= 0:
        assert flow == 0
        pulls, now = pulls + 1, int(pacers.due[127])
    assert (pulls, receivers.got[0].credit_granted, now) == (5, 5, 5 * round(MTU / 0.99))


def test_a_server_with_weighted_turns_serves_ten_control_packets_for_each_data_packet():
    turn, data = 0, []
    for number in range(33):
        data += [number] if turn == 0 else []
        turn = next_turn(turn)
    assert data == [0, 11, 22]


def test_queues_of_ndp_alone_hold_eight_packets_at_any_rate_and_mark_only_where_asked():
    tree = make("topology", kind="fat_tree", k=8).build()
    capacity = tree.capacity.copy()
    capacity[[5, 9]] = 0.1, 4.0
    slow = replace(tree, capacity=capacity)
    of = session({"kind": "ndp"}, topology=slow)
    assert of.rules.weighted == 1
    assert (of.queue_bytes == 8 * MTU).all() and (of.low > 10**15).all()
    asked = session({"kind": "ndp"}, topology=slow, fabric=Fabric(ecn=(2, 6)))
    assert asked.low[0] == 2 * MTU and asked.high[0] == 6 * MTU
    of = session(topology=slow)
    assert of.rules.weighted == 0
    assert of.queue_bytes[5] == pytest.approx(of.queue_bytes[0] / 10, abs=1) and of.low[0] < MTU * 20


# refusals


def test_what_cannot_be_sprayed_is_refused():
    with pytest.raises(SpecError, match="next hops or whole paths"):
        session(routing={"kind": "valiant"})
    with pytest.raises(SpecError, match="whole paths"):
        session(fabric=Fabric(at_switch="adaptive"), routing={"kind": "ksp", "k": 2})
    with pytest.raises(SpecError, match="does not spray"):
        make("transport", kind="tcp").spraying()
    with pytest.raises(SpecError, match=r"switching\.mode: spray"):
        make("transport", kind="nscc").build()
    with pytest.raises(SpecError, match=r"mark_packets: not for switching\.mode spray"):
        make("transport", kind="dctcp", mark_packets=3).spraying()
    with pytest.raises(SpecError, match=r"paths: not for switching\.mode datagram"):
        make("transport", kind="dctcp", paths=4).build()


def test_every_kind_that_sprays_has_rules():
    for kind in ("nscc", "rccc", "nscc_rccc", "ndp", "dctcp", "constant", "none"):
        spraying = make("transport", kind=kind).spraying()
        assert isinstance(spraying, Spraying)
        assert isinstance(session({"kind": kind}).rules, Rules)
        assert replace(spraying) == spraying


def pods_of_leaves(pods: int, leaves: int, uplinks: int, cores: int, hosts: int = 4) -> Topology:
    """A tree of three tiers: pods of leaves, each linked to ``uplinks`` switches, and each of these to ``cores``."""
    links = []
    for pod in range(pods):
        for above in range(uplinks):
            middle = pods * leaves + pod * uplinks + above
            links += [(pod * leaves + leaf, middle) for leaf in range(leaves)]
            links += [(middle, pods * (leaves + uplinks) + above * cores + core) for core in range(cores)]
    count = pods * (leaves + uplinks) + uplinks * cores
    return Topology.from_links("tree", count, links).with_hosts(hosts * (np.arange(count) < pods * leaves))


@pytest.mark.parametrize(("spines", "ratio"), [(16, 1), (8, 2), (4, 4), (3, 16 / 3), (32, 1)])
def test_oversubscription_is_hosts_over_links_up(spines, ratio):
    leaf_spine = make("topology", kind="leaf_spine", leaves=8, spines=spines, hosts_per_leaf=16).build()
    assert oversubscription(leaf_spine) == pytest.approx(ratio)
    capacity = leaf_spine.capacity.copy()
    capacity[:2] = 0.25
    assert oversubscription(replace(leaf_spine, capacity=capacity)) == pytest.approx(ratio)
    assert oversubscription(replace(leaf_spine, host_capacity=4.0)) == pytest.approx(max(1, 64 / spines))


@pytest.mark.parametrize(
    ("pods", "leaves", "uplinks", "cores", "ratio"),
    [
        (8, 4, 4, 4, 1),
        (8, 4, 4, 2, 2),
        (8, 4, 4, 1, 4),
        (2, 4, 4, 1, 4),
        (8, 4, 2, 4, 2),
        (8, 4, 2, 2, 4),
        (3, 6, 1, 6, 4),
    ],
)
def test_oversubscription_of_a_tree_is_hosts_of_a_leaf_or_pod_over_its_links_up(pods, leaves, uplinks, cores, ratio):
    """Traffic inside pods does not count: 4 of 4:1, the product of 2 and 2, and of 4 above leaves alone."""
    tree = pods_of_leaves(pods, leaves, uplinks, cores)
    assert oversubscription(tree) == pytest.approx(ratio)
    slow = tree.capacity.copy()
    slow[[3, -3]] = 0.1
    assert oversubscription(replace(tree, capacity=slow)) == pytest.approx(ratio)
    above = np.maximum(tree.src, tree.dst) >= pods * (leaves + uplinks)  # links of the highest tier at a quarter
    slow_tier = oversubscription(replace(tree, capacity=np.where(above, 0.25, 1.0)))
    assert slow_tier == pytest.approx(max(ratio, 4 * leaves * 4 / (uplinks * cores)))


def test_oversubscription_of_planes_and_rails_is_that_of_their_pods():
    plane = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 16}
    for spines, ratio in ((16, 1), (4, 4)):
        planes = make("topology", kind="planes", count=4, capacity=0.25, of={**plane, "spines": spines}).build()
        assert oversubscription(planes) == pytest.approx(ratio)
    for nvlink in (None, 1.0):
        rail = make("topology", kind="rail", servers=8, gpus=4, servers_per_pod=4, spines=2, nvlink=nvlink).build()
        assert oversubscription(rail) == pytest.approx(2)


def test_oversubscription_of_a_direct_network_is_the_load_of_uniform_traffic():
    ring = Topology.from_arcs("ring", 5, [(v, (v + 1) % 5) for v in range(5)]).with_hosts(1)
    assert oversubscription(ring) == pytest.approx((1 + 2 + 3 + 4) / 4)
    torus = make("topology", kind="torus", dims=[8, 8], hosts_per_switch=2).build()
    assert oversubscription(torus) == pytest.approx(128 * 4 * 64 / 63 / 256)
    line = Topology.from_links("line", 2, [(0, 1)])
    assert oversubscription(line.with_hosts([10, 2])) == pytest.approx(2)  # as much as two hosts receive
    assert oversubscription(line.with_hosts([4, 0])) == 1.0


def test_receivers_throttle_where_a_network_is_oversubscribed():
    for cores, ratio in ((1, 4), (4, 1)):
        tree = pods_of_leaves(8, 4, 4, cores)
        routes = make("routing", kind="ecmp", ways=64).build(tree)
        flows = Flows(*(np.array([value]) for value in (0, 100, 10**6, 0)))
        transport = make("transport", kind="rccc").spraying()
        assert make_spray_session(tree, routes, transport, Fabric(), flows, 1).rules.oversubscription == ratio
