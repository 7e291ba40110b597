# SPDX-License-Identifier: Apache-2.0
"""The parameters and the state of RDMA flows, laid out for compiled code, and the pace of their packets.

Sizes are bytes on the wire, times are ticks, rates are bytes per tick. Fields of a flow that other transports have too
are those of :class:`~flitlab.models.rules.spray.layout.Senders` and ``Receivers``.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Int, Ints
from flitlab.models.jit import kernel
from flitlab.models.rules.spray.layout import NEVER, Records


class Control(IntEnum):
    """The congestion control of a flow."""

    NONE = 0
    DCQCN = 1
    SWIFT = 2
    HPCC = 3
    TIMELY = 4
    DCQCN_NS3 = 5


class Answer(IntEnum):
    """What a receiver sends for a data packet."""

    NONE = 0
    ACK = 1
    NACK = 2


class Response(NamedTuple):
    """What an ACK or NACK says.

    nack: whether it is a NACK. number: the packet that caused it. expected: first packet that is missing at the
    receiver. stamp: tick at which the packet began to be sent. marked: whether it had an ECN mark. telemetry: int64
    [1 + FIELDS * HOPS], of the packet (HPCC).
    """

    nack: bool
    number: Int
    expected: Int
    stamp: Int
    marked: bool
    telemetry: Ints


HOPS, FIELDS = 5, 5
"""Outputs that report to a packet (telemetry), and numbers of a report: link, tick, bytes sent, bytes in the queue, and
ticks per byte times 2**16.
"""


class Law(NamedTuple):
    """The parameters of a transport. Those of congestion controls that it has not are 0.

    control: :class:`Control`. timeout: ticks without progress after which a sender goes back. extra: 1 where a message
    of full packets only has one more. line: rate of a host. payload: bytes of a full packet without its header. window:
    bytes of payload in flight below which a packet may be sent, 0: any; scales_window: 1 where it shrinks with the
    rate. cnps: 1 where receivers send CNPs for marks; telemetry: 1 where outputs report to packets. reorder: packets
    beyond the expected one that a receiver keeps, at most 64. selective: 1 where receivers keep all packets and senders
    repeat only missing ones; reorder is then how many packets beyond a missing one do not prove it lost. short_timeout:
    ticks of the timeout while at most three packets are in flight, with selective.
    stages: F of DCQCN, increases of fast recovery; maxStage of HPCC, additive increases in a row; those of TIMELY
    before larger ones. additive: increase of the rate (DCQCN, TIMELY), of the window in packets per round trip (Swift)
    or in bytes (HPCC). least_window, first_window, most_window: in packets (Swift) or bytes (HPCC).
    DCQCN. gain: g; cnp_interval: least ticks between CNPs of a flow; alpha_period, increase_period: ticks;
    byte_counter: bytes per increase, 0: none; hyper: rate step R_HAI; least: lowest rate. In the
    variant of ns-3 cnp_interval is the least time between decreases.
    Swift. base_delay, link_delay: of the target delay, ticks, once and per link; scaling_range: more for small windows,
    between scaling_least and scaling_most packets; decrease: beta; most_decrease: largest part by which a window falls;
    round_trip: ticks, T of HPCC, and what Swift assumes before the first acknowledgement.
    TIMELY. gain: weight of the latest change of the round-trip time; base_delay, most_delay: ticks below and above
    which its gradient does not count; round_trip: ticks by which changes are divided; hyper: later rate step;
    decrease: beta.
    HPCC. eta: utilisation aimed at; first_use: utilisation assumed at first.
    """

    control: int
    timeout: int
    extra: int
    line: float
    payload: float
    window: float = 0.0
    scales_window: int = 0
    cnps: int = 0
    telemetry: int = 0
    reorder: int = 0
    selective: int = 0
    short_timeout: int = 0
    gain: float = 0.0
    cnp_interval: int = 0
    alpha_period: int = 0
    increase_period: int = 0
    stages: int = 0
    byte_counter: int = 0
    additive: float = 0.0
    hyper: float = 0.0
    least: float = 0.0
    least_window: float = 0.0
    first_window: float = 0.0
    most_window: float = 0.0
    base_delay: float = 0.0
    link_delay: float = 0.0
    most_delay: float = 0.0
    scaling_range: float = 0.0
    scaling_least: float = 0.0
    scaling_most: float = 0.0
    decrease: float = 0.0
    most_decrease: float = 0.0
    eta: float = 0.0
    round_trip: float = 0.0
    first_use: float = 0.0


FLOW = np.dtype(
    [
        ("cursor", np.int64),  # packet that the sender sends next
        ("limit", np.int64),  # packets to send
        ("deadline", np.int64),  # tick of the timeout, -1: nothing is outstanding
        ("next_at", np.int64),  # tick before which no packet is sent
        ("pace_at", np.int64),  # tick of the timer that is set for it, -1: none
        ("sent_at", np.int64),  # start of the last packet
        ("sent_size", np.int64),  # its bytes
        ("rate", np.float64),  # bytes per tick
        ("target", np.float64),  # DCQCN: target rate
        ("alpha", np.float64),
        ("alpha_at", np.int64),  # tick at which alpha decays next, -1: never
        ("increase_at", np.int64),  # tick at which the timer raises the rate next, -1: never
        ("timer_stage", np.int64),  # increases by the timer since the last CNP
        ("byte_stage", np.int64),  # and by the byte counter
        ("counted", np.int64),  # bytes since the last increase by the byte counter
        ("nacked", np.int64),  # receiver: 1 after a NACK for the expected packet
        ("cnp_at", np.int64),  # receiver: tick of the last CNP
        ("cnp_pending", np.int64),  # receiver: 1 if marks came since then
        ("cnps", np.int64),  # receiver: CNPs sent
        ("links", np.int64),  # of the path of the last packet that arrived
        ("window", np.float64),  # packets (Swift) or bytes (HPCC)
        ("round_trip", np.float64),  # Swift: smoothed, TIMELY: latest, ticks; 0: none was measured
        ("cut_at", np.int64),  # Swift: tick of the last decrease
        ("lost", np.int64),  # timeouts in a row
        ("reference", np.float64),  # HPCC: window W_c, which is renewed once per round trip
        ("reference_end", np.int64),  # packet beyond which an acknowledgement renews it, or the rate of TIMELY
        ("utilisation", np.float64),  # HPCC: U
        ("stage", np.int64),  # HPCC, TIMELY: additive increases in a row
        ("change", np.float64),  # TIMELY: smoothed change of the round-trip time per round trip, ticks
        ("kept", np.uint64),  # receiver: packets beyond the expected one that it keeps, a bit each
        ("decrease_at", np.int64),  # DCQCN of ns-3: tick at which the rate may fall next, -1: never
        ("notified", np.int64),  # DCQCN of ns-3: whether marks came since alpha, and since the rate, was adjusted; bits
        # selective repeat: in recovery packets below ``SENDER.recover`` are repeated before new ones are sent
        ("next_lost", np.int64),  # packet that is repeated next, -1: none
        ("searched", np.int64),  # no packet below is repeated again in this recovery
        ("highest", np.int64),  # no packet from here on was acknowledged
        ("restarted", np.int64),  # tick at which the timeout was restarted
        ("unused", np.int64, 4),
    ]
)
"""Both ends of an RDMA flow, five cache lines."""


class Rdma(NamedTuple):
    """All RDMA flows of a run.

    laws: the :class:`Law` of each transport; kind: int64 [flows], transport of each flow; flow: FLOW [flows].
    telemetry: int64 [packets, 1 + FIELDS * HOPS], number and reports of each packet; last: int64 [flows, 1 + FIELDS *
    HOPS], those of the last acknowledgement; both have one row, which means nothing, unless a flow has HPCC.
    """

    laws: Records
    kind: Ints
    flow: Records
    telemetry: Ints
    last: Ints


def make_rdma(
    laws: Sequence[Law], kind: Ints, packets: Ints, last_size: Ints, mtu: int, records: int = 1
) -> Rdma:  # fmt: skip
    """The flows before they start.

    Parameters
    ----------
    laws: of each transport.
    kind: int64 [flows], transport of each flow.
    packets, last_size: int64 [flows], packets of each flow, and bytes of the last.
    mtu: bytes of a full packet.
    records: packets with telemetry.
    """
    types: list[Any] = [
        (name, np.float64 if isinstance(value, float) else np.int64) for name, value in laws[0]._asdict().items()
    ]
    table = np.array([tuple(law) for law in laws], types).view(np.recarray)
    flow = np.zeros(len(packets), FLOW).view(np.recarray)
    flow.limit = packets + table.extra[kind] * (last_size == mtu)
    flow.deadline = flow.pace_at = flow.alpha_at = flow.increase_at = flow.decrease_at = -1
    flow.cnp_at = NEVER
    flow.rate = flow.target = table.line[kind]
    flow.alpha = 1.0
    flow.window = flow.reference = table.first_window[kind]
    flow.utilisation = table.first_use[kind]
    flow.cut_at = NEVER
    flow.next_lost = -1
    reports = any(law.telemetry for law in laws)
    telemetry, last = (
        np.zeros((rows if reports else 1, 1 + FIELDS * HOPS), np.int64) for rows in (records, len(packets))
    )
    return Rdma(table, kind.astype(np.int64), flow, telemetry, last)


@kernel
def pace(d: Rdma, i: Int) -> None:
    """Set the earliest tick of the next packet of sender i from the last one and the rate; at line rate it is past.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    flow = d.flow[i]
    flow.next_at = flow.sent_at
    if flow.rate < d.laws[d.kind[i]].line:
        flow.next_at += np.int64(np.ceil(float(flow.sent_size) / flow.rate))
