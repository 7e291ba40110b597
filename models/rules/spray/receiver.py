# SPDX-License-Identifier: Apache-2.0
"""The receiver of a flow: acknowledge packets, at once or later, and request trimmed packets again."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.bits import lowest
from flitlab.models.rules.spray.layout import (
    Receivers,
    Rules,
    bits_at,
    has,
    put,
)

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@device_function
def on_data(
    r: Rules, g: Receivers, i: Int, number: Int, size: Int, marked: bool, ack_requested: bool, now: Int
) -> bool:
    """Take in an untrimmed data packet of flow i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    i: the flow.
    number: the packet.
    size: its bytes.
    marked: whether it has an ECN mark.
    ack_requested: whether it requests an acknowledgement.
    now: the present tick.

    Returns
    -------
    Whether it is acknowledged now.
    """
    got = g.got[i]
    got.marks += np.int64(marked)
    if number < got.expected or has(g.have, got.word, number):
        return _answer(r, g, i)
    put(g.have, got.word, number)
    first, filled = got.begun == 0, False
    got.begun = 1
    got.bytes += size
    got.since += size
    if ack_requested:
        got.ack_requested = 1
    if number == got.expected:
        _advance(g, i)
        filled = got.out_of_order == 0 and got.ack_requested != 0
        if filled:
            got.ack_requested = 0
        if got.expected == got.packets:
            got.complete = now
    else:
        got.out_of_order += 1
    if marked or ack_requested or first or filled or got.since >= r.ack_bytes:
        return _answer(r, g, i)
    return False


@kernel
def _answer(r: Rules, g: Receivers, i: Int) -> bool:
    g.got[i].since = 0
    g.got[i].acks += r.acknowledges
    return r.acknowledges != 0


@kernel
def _advance(g: Receivers, i: Int) -> None:
    """Advance to the first missing packet."""
    got = g.got[i]
    before = got.expected
    while True:
        received = lowest(~bits_at(g.have, got.word, got.expected))
        got.expected += received
        if received < 64:
            break
    got.out_of_order -= got.expected - before - 1


@kernel
def on_trimmed(r: Rules, g: Receivers, i: Int, number: Int, marked: bool) -> bool:
    """Take in a trimmed packet of flow i.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    i: the flow.
    number: the packet.
    marked: whether it has an ECN mark.

    Returns
    -------
    Whether a NACK requests it again, if the transport acknowledges; False: it arrived before, and is acknowledged.
    """
    got = g.got[i]
    got.trims += 1
    got.marks += np.int64(marked)
    if number < got.expected or has(g.have, got.word, number):
        _answer(r, g, i)
        return False
    got.nacks += r.acknowledges
    return True


@kernel
def on_request(r: Rules, g: Receivers, i: Int) -> None:
    """Take in a request to send, or a probe, of flow i, which is acknowledged at once.

    Parameters
    ----------
    r: rules of the transport (:class:`~flitlab.models.rules.spray.layout.Rules`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    i: the flow.
    """
    _answer(r, g, i)


@kernel
def bits_from(g: Receivers, i: Int, number: Int, exact: bool) -> int:
    """The first packet of the received set that an acknowledgement reports.

    Parameters
    ----------
    g: the receivers.
    i: the flow.
    number: the packet that caused the acknowledgement.
    exact: whether it was marked or requested the acknowledgement.
    """
    if exact and number >= 0:
        return np.int64(number)
    return max(np.int64(number) - 63, g.got[i].expected + 1)


@kernel
def bits_of(g: Receivers, i: Int, start: Int) -> int:
    """The received packets among the 64 from ``start`` on, as bits of an int64, lowest first.

    Parameters
    ----------
    g: the receivers.
    i: the flow.
    start: the first packet.
    """
    got = g.got[i]
    if start >= got.packets:
        return np.int64(0)
    return np.int64(bits_at(g.have, got.word, np.int64(start)))
