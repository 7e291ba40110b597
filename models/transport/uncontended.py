# SPDX-License-Identifier: Apache-2.0
"""Uncontended completion times of flows: the denominators of slowdowns."""

import numpy as np

from flitlab.models.arrays import Floats, Ints
from flitlab.models.jit import njit
from flitlab.models.transport.feeders import with_feeders
from flitlab.models.transport.law import AckPath
from flitlab.models.transport.newreno import (
    Rules,
    Senders,
    acknowledge,
    fits_window,
    make_senders,
    opened,
)
from flitlab.models.transport.paths import Paths
from flitlab.models.transport.session import Session, first_samples, services


def uncontended_ticks(session: Session) -> Floats:
    """Ticks from a flow's start until its receiver has it, without other traffic or full queues: float64 [flows].

    A flow of one subflow is followed packet by packet: its opening round trip, and its windows as acknowledgements
    widen them. A flow of several subflows has the least time of any split of its packets: the fastest opening, and then
    all subflows send without a pause.

    Parameters
    ----------
    session: the session.
    """
    session = with_feeders(session)
    service = services(session, session.queues.packet_bytes)
    ticks = _unhindered(session, service)
    for number, rules in enumerate(session.rules):
        flows = np.flatnonzero(session.flows.kinds == number)
        if (np.diff(session.first)[flows] == 1).all():
            _follow_flows(session, rules, flows, service, ticks)
    return ticks


def _unhindered(session: Session, service: np.ndarray) -> Floats:
    """The times if each subflow sends as fast as its path and rate allow, all together as fast as their host."""
    link, start, first = session.paths.link, session.paths.start[:-1], session.first[:-1]
    packets, subflows = session.flows.packets, np.diff(session.first)
    crossing = np.add.reduceat((service + session.delay)[link], start)
    apart = np.maximum.reduceat(service[link], start)
    if session.transport.law:
        crossing = crossing + first_samples(session)
    else:
        apart = np.maximum(apart, session.gap)
    if session.subflows > len(subflows):
        apart = 1.0 / np.add.reduceat(1.0 / apart, first)
    host = service[session.topology.channels + session.flows.source]
    ticks = np.maximum((packets - 1) * host, np.maximum(packets - subflows, 0) * apart)
    finished = np.minimum.reduceat(crossing, first) + ticks
    return finished.astype(float)


def _follow_flows(session: Session, rules: Rules, flows: Ints, service: Ints, ticks: Floats) -> None:
    """Replace ``ticks`` of some flows of one subflow each by their uncontended times."""
    back = session.back or Paths(np.zeros_like(session.paths.start), np.zeros(0, np.int32))
    past = session.ack_delay if session.transport.ack_path == AckPath.PURE_DELAY else np.zeros_like(session.ack_delay)
    answer = services(session, session.transport.ack_bytes)
    _follow(
        rules, make_senders(session.subflows), flows, session.first, session.flows.packets, first_samples(session),
        session.paths, back, session.delay, service, answer, past, ticks,
    )  # fmt: skip


@njit
def _follow(
    r: Rules,
    senders: Senders,
    flows: Ints,
    first: Ints,
    packets: Ints,
    opening: Ints,
    forth: Paths,
    back: Paths,
    delay: Ints,
    service: Ints,
    answer: Ints,
    past: Ints,
    ticks: Floats,
) -> None:
    """Compute ``ticks`` of some flows of one subflow each; first: int64 [flows + 1], their subflows."""
    for flow in flows:
        i = first[flow]
        links = forth.link[forth.start[i] : forth.start[i + 1]]
        home = back.link[back.start[i] : back.start[i + 1]]
        opened(r, senders, i, opening[i], opening[i])
        ticks[flow] = _last_arrival(
            r, senders, i, packets[flow], opening[i], service[links], delay[links], answer[home], delay[home], past[i]
        )


@njit
def _last_arrival(
    r: Rules,
    senders: Senders,
    i: int,
    packets: int,
    now: int,
    service: Ints,
    delay: Ints,
    answer: Ints,
    delay_home: Ints,
    past: int,
) -> int:
    """The tick in which the receiver of flow i has all packets; the sender may send from ``now`` on.

    service, delay: of each link of its path; answer, delay_home: of each link of its acknowledgements; past: their
    remaining ticks.
    """
    seq, slowest = senders.seq[i], service.max()
    trip = (service + delay).sum() + (answer + delay_home).sum() + past
    free, free_home = np.zeros(len(service), np.int64), np.zeros(len(answer), np.int64)
    sent_at, acked_at = np.empty(packets, np.int64), np.empty(packets, np.int64)
    while True:
        while seq.next < packets and fits_window(senders.win[i].cwnd, seq.una, seq.next, r.mss):
            arrival = _pass(free, service, delay, now)
            sent_at[seq.next] = now
            acked_at[seq.next] = _pass(free_home, answer, delay_home, arrival) + past
            seq.next += 1
        waiting = packets - seq.next
        # once the window covers a round trip of the slowest link, that link is never idle again
        steady = senders.win[i].cwnd // r.mss * slowest >= trip and (answer <= slowest).all()
        if waiting == 0 or steady:
            return arrival + waiting * slowest
        now, sample = acked_at[seq.una], acked_at[seq.una] - sent_at[seq.una]
        acknowledge(r, senders, i, i, i + 1, seq.una + 1, sample, False, now)


@njit
def _pass(free: Ints, service: Ints, delay: Ints, now: int) -> int:
    """The tick in which a packet has passed links. free: ticks from which each link is idle."""
    for k in range(len(free)):
        free[k] = max(now, free[k]) + service[k]
        now = free[k] + delay[k]
    return now
