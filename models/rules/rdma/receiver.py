# SPDX-License-Identifier: Apache-2.0
"""The receiver of an RDMA flow: it accepts packets in order or nearly so, and notifies senders of marks."""

import numpy as np

from flitlab.models.arrays import Int
from flitlab.models.jit import device_function, kernel
from flitlab.models.rules.rdma.layout import Answer, Rdma
from flitlab.models.rules.spray.layout import Receivers, has, put

_ONE = np.uint64(1)


@device_function
def on_data(
    d: Rdma, g: Receivers, i: Int, number: Int, size: Int, marked: bool, hop: Int, now: Int
) -> int:  # fmt: skip
    """Take in a data packet of flow i.

    A packet that arrived before is acknowledged again, so that a lost acknowledgement is repeated.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    g: the receivers, changed in place (:class:`~flitlab.models.rules.spray.layout.Receivers`).
    i: the flow.
    number: the packet.
    size: its bytes.
    marked: whether it has an ECN mark.
    hop: channels between switches that it took.
    now: the present tick.

    Returns
    -------
    :class:`~flitlab.models.rules.rdma.layout.Answer`.
    """
    got, flow = g.got[i], d.flow[i]
    got.marks += np.int64(marked)
    flow.links = hop + 2
    if d.laws[d.kind[i]].selective != 0:
        return _on_data_selective(d, g, i, number, size, now)
    beyond = number - got.expected
    if beyond > 0:
        if beyond <= d.laws[d.kind[i]].reorder:
            _keep(d, g, i, beyond, size if number < got.packets else np.int64(0))
            return np.int64(Answer.NONE)
        if flow.nacked != 0:
            return np.int64(Answer.NONE)
        flow.nacked = 1
        got.nacks += 1
        return np.int64(Answer.NACK)
    if beyond == 0:
        flow.nacked = 0
        if number < got.packets:
            got.bytes += size
        _advance(d, g, i)
        if got.complete < 0 and got.expected >= got.packets:
            got.complete = now
    got.acks += 1
    return np.int64(Answer.ACK)


@kernel
def _on_data_selective(d: Rdma, g: Receivers, i: Int, number: Int, size: Int, now: Int) -> int:
    """Keep a data packet, and acknowledge it; it is a NACK if it proves that the expected one is lost."""
    got = g.got[i]
    beyond = number - got.expected
    if beyond >= 0 and not has(g.have, got.word, number):
        put(g.have, got.word, number)
        if number < got.packets:
            got.bytes += size
        got.out_of_order += 1
        while got.expected <= got.packets and has(g.have, got.word, got.expected):
            got.expected += 1
            got.out_of_order -= 1
        if got.complete < 0 and got.expected >= got.packets:
            got.complete = now
    if beyond > d.laws[d.kind[i]].reorder:
        got.nacks += 1
        return np.int64(Answer.NACK)
    got.acks += 1
    return np.int64(Answer.ACK)


@kernel
def _keep(d: Rdma, g: Receivers, i: Int, beyond: Int, size: Int) -> None:
    """Keep a packet whose number is ``beyond`` above that of the expected one."""
    got, flow, bit = g.got[i], d.flow[i], _ONE << np.uint64(beyond - 1)
    if flow.kept & bit == 0:
        flow.kept |= bit
        got.out_of_order += 1
        got.bytes += size


@kernel
def _advance(d: Rdma, g: Receivers, i: Int) -> None:
    """Expect the next packet that is missing."""
    got, flow = g.got[i], d.flow[i]
    got.expected += 1
    while flow.kept & _ONE != 0:
        flow.kept >>= _ONE
        got.expected += 1
        got.out_of_order -= 1
    flow.kept >>= _ONE


@kernel
def notifies(d: Rdma, i: Int, now: Int) -> bool:
    """Whether the receiver of flow i sends a CNP for a marked packet now; else it may at :func:`cnp_tick`.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    flow, law = d.flow[i], d.laws[d.kind[i]]
    if law.cnps == 0:
        return False
    if now < flow.cnp_at + law.cnp_interval:
        flow.cnp_pending = 1
        return False
    return _notify(d, i, now)


@kernel
def _notify(d: Rdma, i: Int, now: Int) -> bool:
    flow = d.flow[i]
    flow.cnp_at, flow.cnp_pending = now, 0
    flow.cnps += 1
    return True


@kernel
def cnp_tick(d: Rdma, i: Int) -> int:
    """The tick of the next CNP of flow i for marks that came already; -1: there are none.

    Parameters
    ----------
    d: the RDMA flows (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    """
    if d.flow[i].cnp_pending == 0:
        return np.int64(-1)
    return np.int64(d.flow[i].cnp_at + d.laws[d.kind[i]].cnp_interval)


@kernel
def notifies_late(d: Rdma, i: Int, now: Int) -> bool:
    """Whether the receiver of flow i sends a CNP at the end of an interval.

    Parameters
    ----------
    d: the RDMA flows, changed in place (:class:`~flitlab.models.rules.rdma.layout.Rdma`).
    i: the flow.
    now: the present tick.
    """
    tick = cnp_tick(d, i)
    if tick < 0 or tick > now:
        return False
    return _notify(d, i, now)
