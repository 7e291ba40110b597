# SPDX-License-Identifier: Apache-2.0
"""A crossbar of several steps per tick: output queues, and credits that wait for their turn.

Functions take ``state.crossbar`` as their first argument. It is None without a speed-up: Numba then omits their code.
Outputs to hosts only count the flits in their queue, since the tick at which a tail leaves it is known at its grant.
"""

from typing import NamedTuple

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.jit import inline
from flitlab.models.rules.ports import Ports
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.compiled.records import NONE, deliver_packet, pool_is_low
from flitlab.sim.engines.compiled.wormhole import layout
from flitlab.sim.engines.compiled.wormhole.layout import U
from flitlab.sim.engines.compiled.wormhole.queues import push

_32, _LOW32 = U(32), U(0xFFFFFFFF)
_MESSAGE = U(1) << U(32)
"""Flag of a waiting credit: the first one of its message."""

FRONT, BACK = 0, 1
"""Columns of ``Crossbar.delivery``: first packet, NONE if there is none, and last packet."""

TICK, STEP = 0, 1
"""Entries of ``Crossbar.now``."""


class Crossbar(NamedTuple):
    """State of a crossbar of ``numerator / denominator`` steps per tick."""

    numerator: int
    denominator: int
    queue_flits: int  # flits that a queue holds
    now: Ints  # int64 [2]: the tick, and the step, which are counted from 0
    queue_start: Ints  # int64 [outputs + 1]: ring buffer of each output in ``queue``, empty if it ejects
    queue: np.ndarray  # uint64: flit << 32 | VC
    queue_head: Ints  # int64 [outputs]: index of the first flit in the ring buffer
    queue_count: Ints  # int64 [outputs]: flits in the queue
    credit_start: Ints  # int64 [inputs + 1]: ring buffer of each input in ``credit``
    credit: np.ndarray  # uint64: VC, and _MESSAGE
    credit_head: Ints  # int64 [inputs]
    credit_count: Ints  # int64 [inputs]
    credit_step: Ints  # int64 [inputs]: step of the last message
    delivery: np.ndarray  # int64 [hosts, 2]: packets whose tail is granted, by arrival


def make_crossbar(model: Wormhole, ports: Ports, input_flits: Ints) -> Crossbar | None:
    """Make the state of a crossbar; None without a speed-up.

    Parameters
    ----------
    model: its ``speedup`` and ``output_flits``.
    ports: the port numbering.
    input_flits: int64 [inputs], flits that the buffers of an input hold together.
    """
    if model.speedup == 1:
        return None
    outputs, inputs, hosts = len(ports.out_input), len(ports.in_switch), len(ports.eject)
    flits = np.where(ports.out_channel >= 0, input_flits[ports.out_input], 0)  # their credits bound those in a queue
    queue_start, credit_start = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in (flits, input_flits))
    return Crossbar(
        numerator=model.speedup.numerator,
        denominator=model.speedup.denominator,
        queue_flits=np.iinfo(np.int64).max if model.output_flits is None else model.output_flits,
        now=np.zeros(2, np.int64),
        queue_start=queue_start,
        queue=np.zeros(queue_start[-1], np.uint64),
        queue_head=np.zeros(outputs, np.int64),
        queue_count=np.zeros(outputs, np.int64),
        credit_start=credit_start,
        credit=np.zeros(credit_start[-1], np.uint64),
        credit_head=np.zeros(inputs, np.int64),
        credit_count=np.zeros(inputs, np.int64),
        credit_step=np.full(inputs, -1, np.int64),
        delivery=np.full((hosts, 2), NONE, np.int64),
    )


@inline
def lacks_records(crossbar, const, state):
    """Tell whether the pool may lack records for one more tick, as queues to hosts have no limit."""
    if crossbar is None:
        return False
    return pool_is_low(const, state)


@inline
def first_step(crossbar, tick):
    """Return the number of the first step of a tick."""
    if crossbar is None:
        return tick
    return crossbar.numerator * tick // crossbar.denominator


@inline
def start_step(crossbar, tick, step):
    """Note the tick and the step that begin."""
    if crossbar is None:
        return
    crossbar.now[TICK], crossbar.now[STEP] = tick, step


@inline
def tick_of_step(crossbar, step):
    """Return the tick of the present step."""
    if crossbar is None:
        return step
    return crossbar.now[TICK]


@inline
def set_aside_blocked(crossbar, state, first, end, ready_end):
    """Move requests for outputs whose queue is full to the next ready list: (end, new ready_end).

    Parameters
    ----------
    first, end: uint64, the part of ``state.ready`` with the requests of this step.
    ready_end: uint64, end of the list of the next step.
    """
    if crossbar is None:
        return end, ready_end
    kept = first
    for i in range(first, end):
        request = state.ready[i]
        if crossbar.queue_count[np.int64(request >> layout.OUTPUT_SHIFT)] >= crossbar.queue_flits:
            state.ready[ready_end] = request
            ready_end += U(1)
        else:
            state.ready[kept] = request
            kept += U(1)
    return kept, ready_end


@inline
def forward_flit(crossbar, state, queue, output, flit, next_vc):
    """Forward a granted flit to its channel, or to the queue of its output.

    Parameters
    ----------
    queue: delay queue of the output.
    output, flit, next_vc: uint64.
    """
    if crossbar is None:
        push(state, queue, flit, next_vc)
        return
    index = np.int64(output)
    start, count = crossbar.queue_start[index], crossbar.queue_count[index]
    size = crossbar.queue_start[index + 1] - start
    crossbar.queue_count[index] = count + 1
    if size == 0:
        state.vc[next_vc].credits = U(state.vc[next_vc].credits) + U(1)  # of a host, which has unlimited ones
        if flit & layout.TAIL:
            packet = np.int64(flit >> layout.PACKET_SHIFT)
            _append_delivery(crossbar, state, packet, crossbar.now[TICK] + count + state.queue[queue].delay)
        return
    place = crossbar.queue_head[index] + count
    if place >= size:
        place -= size
    crossbar.queue[start + place] = flit << _32 | next_vc


@inline
def _append_delivery(crossbar, state, packet, tick):
    """Append a packet to the deliveries of its host, at a tick."""
    record = state.pool.packet[packet]
    host = np.int64(record.dst_host)
    record.arrives_at, record.next = tick, NONE
    if crossbar.delivery[host, FRONT] == NONE:
        crossbar.delivery[host, FRONT] = packet
    else:
        state.pool.packet[crossbar.delivery[host, BACK]].next = packet
    crossbar.delivery[host, BACK] = packet


@inline
def deliver_due(crossbar, const, state, tick):
    """Deliver the packets whose tail reaches its host in this tick, at most one a host."""
    if crossbar is None:
        return
    for host in range(len(crossbar.delivery)):
        packet = crossbar.delivery[host, FRONT]
        if packet != NONE and np.int64(state.pool.packet[packet].arrives_at) == tick:
            crossbar.delivery[host, FRONT] = np.int64(state.pool.packet[packet].next)
            deliver_packet(const, state, packet, tick)


@inline
def hold_credit(crossbar, const, vc):
    """Append the credit of an input VC to the message of this step of its input."""
    index, message = np.int64(vc // U(const.vcs)), U(0)
    if crossbar.credit_step[index] != crossbar.now[STEP]:
        crossbar.credit_step[index], message = crossbar.now[STEP], _MESSAGE
    start, count = crossbar.credit_start[index], crossbar.credit_count[index]
    place = crossbar.credit_head[index] + count
    if place >= crossbar.credit_start[index + 1] - start:
        place -= crossbar.credit_start[index + 1] - start
    crossbar.credit[start + place] = message | vc
    crossbar.credit_count[index] = count + 1


@inline
def send_queued(crossbar, const, state):
    """Send a flit of every output queue, and a credit message of every input, at the end of a tick."""
    if crossbar is None:
        return
    for output in range(len(crossbar.queue_count)):
        if crossbar.queue_count[output] == 0:
            continue
        crossbar.queue_count[output] -= 1
        start, head = crossbar.queue_start[output], crossbar.queue_head[output]
        size = crossbar.queue_start[output + 1] - start
        if size > 0:
            entry = crossbar.queue[start + head]
            push(state, U(state.output[output].queue), entry >> _32, entry & _LOW32)
            crossbar.queue_head[output] = head + 1 if head + 1 < size else 0
    for index in range(len(crossbar.credit_count)):
        sent = False
        while crossbar.credit_count[index] > 0:
            start, head = crossbar.credit_start[index], crossbar.credit_head[index]
            credit = crossbar.credit[start + head]
            if sent and credit & _MESSAGE:
                break
            _push_credit(const.credit_queue, state, credit & _LOW32)
            crossbar.credit_head[index] = head + 1 if start + head + 1 < crossbar.credit_start[index + 1] else 0
            crossbar.credit_count[index] -= 1
            sent = True


@inline
def _push_credit(credit_queue, state, vc):
    """Push a credit into its delay queue. credit_queue: ``const.credit_queue``."""
    if credit_queue is None:
        push(state, layout.RETURNED, U(0), vc)
        return
    push(state, U(credit_queue[vc]), U(0), vc)
