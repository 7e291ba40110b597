# SPDX-License-Identifier: Apache-2.0
"""SLEEK: what a sender makes of packets that were dropped, against closed forms and its own sentences."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from flitlab.models.registry import make
from flitlab.models.rules.spray.layout import Ack, make_senders
from flitlab.models.rules.spray.sender import may_send, on_ack, on_timeout, send
from flitlab.models.transport.fabric import Fabric
from flitlab.sim.engines.transport.spray import FlowCount, LinkCount
from tests.sim.test_spray import completed, session

MTU, MSS, SLOW = 4150, 4086, 4


def over_slow_links(packets, room, **keys):
    """A flow of full packets, all sent at once, over two channels at a quarter of the hosts' rate."""
    line = make("topology", kind="leaf_spine", leaves=2, spines=1, hosts_per_leaf=1).build()
    line = replace(line, capacity=np.full(line.channels, 1 / SLOW))
    transport = {"kind": "nscc", "paths": 1, "init_window": packets, "sack_threshold": 1} | keys
    fabric = Fabric(trim=False, queue_bytes=SLOW * room * MTU)
    return session([(0, 1, packets * MSS, 0)], transport, fabric, line, {"kind": "minimal"})


def test_the_loss_of_the_last_packet_is_found_by_a_probe():
    """Of twelve packets two have left when the last one comes, and nine are in the queue."""
    packets = 12
    of = over_slow_links(packets, room=9, sleek=True)
    found, counters = completed(of)
    assert counters.link[:, LinkCount.DROPS].sum() == counters.flow[0, FlowCount.RESENT] == 1
    assert counters.flow[0, FlowCount.TIMEOUTS] == 0
    link, control = of.ticks(1e-6), 64
    there, back = (2 * (size + SLOW * size) + 4 * link for size in (MTU, control))
    trip, probe = there + back, 2 * back
    known = trip + (packets - 2) * SLOW * MTU  # the answer to the last packet but one
    waits = of.rules.rtt0 + int(
        of.rules.target
    )  # the network's round trip, of links as fast as hosts, is less than any
    assert counters.flow[0, FlowCount.FINISHED] == known + waits + probe + trip
    later, counters = completed(over_slow_links(packets, room=9))
    assert counters.flow[0, FlowCount.TIMEOUTS] == 1
    assert later[0] > found[0]


def begun(packets=200, **keys):
    """Rules and senders of a flow that has sent all that its window lets it."""
    of = over_slow_links(packets, room=50, **keys)
    rules = of.rules._replace(first_window=60.0 * MTU)
    senders = make_senders((rules,), of.flows.kinds, of.flows.packets, of.flows.last_size)
    while may_send(rules, senders, 0):
        send(rules, senders, 0, 0, 0)
    return rules, senders


def acknowledge(rules, senders, number, missing, now):
    """Packet ``number`` has come; so have all before it but the first ``missing``."""
    received = (number + 1 - missing) * MTU
    on_ack(rules, senders, 0, Ack(0, received, number, False, 0, False, number, 1), now)


@pytest.mark.parametrize("sleek", [False, True])
def test_packets_count_as_lost_when_one_and_a_half_windows_came_beyond_them(sleek):
    rules, senders = begun(sleek=sleek)
    seq = senders.seq[0]
    sent, senders.win[0].window = int(seq.next), 10.0 * MTU
    now = rules.rtt0 + 1
    few = int(1.5 * 10 * MTU / MSS)  # packets of the window, by their payload
    acknowledge(rules, senders, few + 2, 3, now)
    assert seq.resends_pending == 0
    senders.win[0].window = 10.0 * MTU
    acknowledge(rules, senders, few + 4, 3, now)
    assert seq.recover == (sent if sleek else -1)
    window = int(senders.win[0].window / MSS)
    assert seq.resends_pending == (window if sleek else 0)  # nobody said which of them came
    assert may_send(rules, senders, 0) == sleek
    if sleek:
        senders.win[0].window = MTU
        assert send(rules, senders, 0, 0, now)[0] == 0  # the window does not matter
        before = int(seq.resends_pending)
        acknowledge(rules, senders, few + 5, 3, now)
        assert seq.resends_pending == before  # each packet once in a recovery
        senders.win[0].window = 10.0 * MTU
        on_timeout(rules, senders, 0, now + rules.timeout)
        assert senders.win[0].window == 10.0 * MTU
        on_ack(rules, senders, 0, Ack(sent, sent * MTU, sent - 1, False, 0, False, sent, 0), now)
        assert seq.recover == -1
        assert seq.probe_at == -1


def test_only_nscc_has_it():
    with pytest.raises(ValidationError, match="sleek"):
        make("transport", kind="rccc", sleek=True)
