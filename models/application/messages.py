# SPDX-License-Identifier: Apache-2.0
"""How a message becomes packets."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.jit import kernel

# Stages of a message; RTS and CTS are those of rendezvous: a request to send, and the receiver's consent.
UNSENT, RTS, CTS, DATA, DELIVERED = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Messages:
    """What all messages of a run have in common.

    packet_bytes: payload of a full packet. flit_bytes: payload of a flit. header_flits: flits of a packet besides its
    payload. packet_flits: flits of a full packet. whole: every packet has ``packet_flits`` flits (deflection).
    rendezvous: a message of more bytes waits for its receiver; the others are eager. overhead: ticks for which a send,
    or a receive, holds its processor. tick_ns: nanoseconds of a tick. The send of an eager message is done when the
    message has left its host; buffered: as soon as it has joined the host's queue; confirmed: when it has been
    delivered (the news of that costs nothing).
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


@kernel
def packets_of(size: int, packet_bytes: int) -> int:
    """Packets of a message of ``size`` bytes: one even if it is empty."""
    return max(1, (size + packet_bytes - 1) // packet_bytes)


@kernel
def flits_of(
    size: int, left: int, packet_bytes: int, flit_bytes: int, header_flits: int, packet_flits: int, whole: bool
) -> int:
    """Flits of the next packet of a message of ``size`` bytes of which ``left`` packets are unsent, this one included.

    All packets are full but the last, which has what remains; none is shorter than a flit.
    """
    if whole or left > 1:
        return packet_flits
    rest = size - (packets_of(size, packet_bytes) - 1) * packet_bytes
    return max(1, header_flits + (rest + flit_bytes - 1) // flit_bytes)


@kernel
def ticks_of(ns: int, numerator: int, denominator: int) -> int:
    """Whole ticks of numerator / denominator nanoseconds that ``ns`` nanoseconds take, rounded up."""
    return (ns * denominator + numerator - 1) // numerator


def total_flits(size: np.ndarray, messages: Messages) -> Floats:
    """float64: flits of all packets of messages of these sizes (of datagrams, packets)."""
    packets = np.maximum(1, -(-size // messages.packet_bytes))
    if messages.whole:
        flits: Floats = (packets * messages.packet_flits).astype(float)
        return flits
    rest = size - (packets - 1) * messages.packet_bytes
    last = np.maximum(1, messages.header_flits + -(-rest // messages.flit_bytes))
    flits = ((packets - 1) * messages.packet_flits + last).astype(float)
    return flits
