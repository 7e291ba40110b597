# SPDX-License-Identifier: Apache-2.0
"""Segmentation of messages into packets."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.jit import kernel


class _MessageStage(NamedTuple):
    """Stages of a message. Rendezvous: RTS is the request to send, CTS the receiver's consent."""

    UNSENT: int = 0
    RTS: int = 1
    CTS: int = 2
    DATA: int = 3
    DELIVERED: int = 4


MessageStage = _MessageStage()


@dataclass(frozen=True)
class Messages:
    """The common properties of all messages of a run.

    packet_bytes: payload of a full packet. flit_bytes: payload of a flit. header_flits: flits of a packet besides its
    payload. packet_flits: flits of a full packet. whole: every packet has ``packet_flits`` flits (deflection).
    rendezvous: bytes above which a message waits for its receiver; the others are eager. overhead: ticks for which a
    send, or a receive, occupies its processor. tick_ns: nanoseconds of a tick. The send of an eager message is done
    when the message has left its host; buffered: when it has joined the host's queue; confirmed: when it has been
    delivered (without any control packet). await_receive: the data of an eager message wait in its host until the
    receive is ready, which its host learns at once. notice: ticks from the delivery of a message until operations that
    wait for it learn of it.
    """

    packet_bytes: int
    flit_bytes: int
    header_flits: int
    packet_flits: int
    whole: bool
    rendezvous: int
    overhead: int
    tick_ns: Fraction
    buffered: bool = False
    confirmed: bool = False
    await_receive: bool = False
    notice: int = 0


@kernel
def packets_of(size: int, packet_bytes: int) -> int:
    """Packets of a message of ``size`` bytes, at least one."""
    return max(1, (size + packet_bytes - 1) // packet_bytes)


@kernel
def flits_of(
    size: int, packets_left: int, packet_bytes: int, flit_bytes: int, header_flits: int, packet_flits: int, whole: bool
) -> int:
    """Flits of the next packet of a message.

    All packets are full but the last, which has the rest; none is shorter than a flit.

    Parameters
    ----------
    size: bytes of the message.
    packets_left: unsent packets, this one included.
    packet_bytes, flit_bytes, header_flits, packet_flits, whole: as in :class:`Messages`.
    """
    if whole or packets_left > 1:
        return packet_flits
    rest = size - (packets_of(size, packet_bytes) - 1) * packet_bytes
    return max(1, header_flits + (rest + flit_bytes - 1) // flit_bytes)


@kernel
def ticks_of(ns: int, numerator: int, denominator: int) -> int:
    """Whole ticks of ``ns`` nanoseconds, rounded up.

    Parameters
    ----------
    ns: nanoseconds.
    numerator, denominator: nanoseconds of a tick.
    """
    return (ns * denominator + numerator - 1) // numerator


def total_flits(size: np.ndarray, messages: Messages) -> Floats:
    """Flits of all packets of messages, float64 (of datagrams: packets).

    Parameters
    ----------
    size: int64, bytes of the messages.
    messages: their common properties.
    """
    packets = np.maximum(1, -(-size // messages.packet_bytes))
    if messages.whole:
        flits: Floats = (packets * messages.packet_flits).astype(float)
        return flits
    rest = size - (packets - 1) * messages.packet_bytes
    last = np.maximum(1, messages.header_flits + -(-rest // messages.flit_bytes))
    flits = ((packets - 1) * messages.packet_flits + last).astype(float)
    return flits
