# SPDX-License-Identifier: Apache-2.0
"""The parameters and the state of RDMA flows, laid out for compiled code.

Sizes are bytes on the wire, times are ticks, rates are bytes per tick. Fields of a flow that other transports have too
are those of :class:`~flitlab.models.rules.spray.layout.Senders` and ``Receivers``.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.rules.spray.layout import NEVER, Records


class Control(IntEnum):
    """The congestion control of a flow."""

    NONE = 0
    DCQCN = 1


class Answer(IntEnum):
    """What a receiver sends for a data packet."""

    NONE = 0
    ACK = 1
    NACK = 2


class Law(NamedTuple):
    """The parameters of a transport. Those of congestion controls that it has not are 0.

    control: :class:`Control`. timeout: ticks without progress after which a sender goes back. extra: 1 where a message
    of full packets only has one more. line: rate of a host.
    DCQCN. gain: g; cnp_interval: least ticks between CNPs of a flow; alpha_period, increase_period: ticks; stages: F,
    increases of fast recovery; byte_counter: bytes per increase, 0: none; additive, hyper: rate steps R_AI and R_HAI;
    least: lowest rate.
    """

    control: int
    timeout: int
    extra: int
    line: float
    gain: float = 0.0
    cnp_interval: int = 0
    alpha_period: int = 0
    increase_period: int = 0
    stages: int = 0
    byte_counter: int = 0
    additive: float = 0.0
    hyper: float = 0.0
    least: float = 0.0


FLOW = np.dtype(
    [
        ("cursor", np.int64),  # packet that the sender sends next
        ("limit", np.int64),  # packets to send
        ("deadline", np.int64),  # tick of the timeout, -1: nothing is outstanding
        ("next_at", np.int64),  # tick before which no packet is sent
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
        ("unused", np.int64, 6),
    ]
)
"""Both ends of an RDMA flow, three cache lines."""


class Rdma(NamedTuple):
    """All RDMA flows of a run.

    laws: the :class:`Law` of each transport; kind: int64 [flows], transport of each flow; flow: FLOW [flows].
    """

    laws: Records
    kind: Ints
    flow: Records


def make_rdma(laws: Sequence[Law], kind: Ints, packets: Ints, last_size: Ints, mtu: int) -> Rdma:
    """The flows before they start.

    Parameters
    ----------
    laws: of each transport.
    kind: int64 [flows], transport of each flow.
    packets, last_size: int64 [flows], packets of each flow, and bytes of the last.
    mtu: bytes of a full packet.
    """
    types: list[Any] = [
        (name, np.float64 if isinstance(value, float) else np.int64) for name, value in laws[0]._asdict().items()
    ]
    table = np.array([tuple(law) for law in laws], types).view(np.recarray)
    flow = np.zeros(len(packets), FLOW).view(np.recarray)
    flow.limit = packets + table.extra[kind] * (last_size == mtu)
    flow.deadline = flow.alpha_at = flow.increase_at = -1
    flow.cnp_at = NEVER
    flow.rate = flow.target = table.line[kind]
    flow.alpha = 1.0
    return Rdma(table, kind.astype(np.int64), flow)
