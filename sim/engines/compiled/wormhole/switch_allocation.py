# SPDX-License-Identifier: Apache-2.0
"""Switch allocation: inputs are matched with outputs (see :mod:`flitlab.models.rules.allocate`).

Whoever asks for an output that nobody else asks for, and is the only one of its input to ask, has it. All others are
*rivals*: each makes a bid, and the highest wins. A bid says who comes first by rotating priority, and above that when
it was made. (Who has no rivals could as well be treated as one: what is sent is the same.)
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.wormhole.bids import add_request, time_of
from flitlab.sim.engines.compiled.wormhole.flits import prefetch_send, send_flit
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.state import (
    CROSSBAR_SHIFT,
    FAR_PREFETCH_DISTANCE,
    ONE,
    OUTPUT_SHIFT,
    PREFETCH_DISTANCE,
    RETURNED,
    VC_MASK,
    U,
)

# Bits of a bid: how far the VC is from its turn at its input and, above, the output (or the input at the output),
# whether the output has offered itself, and the time.
_VC_TURN_MASK, _PORT_TURN_MASK, _INPUT_TURN_MASK = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_PORT_SHIFT, _OFFERED_SHIFT = U(8), U(24)


@inner
def _unpack_request(const, request):
    """Take a request to pieces: (the input VC, the input of the crossbar that reads it, the output)."""
    vc = request & VC_MASK
    return vc, vc * const.entries >> CROSSBAR_SHIFT, request >> OUTPUT_SHIFT


@inner
def _prefetch_request(const, state, i):
    """Begin to load the records of output and input of the request ``FAR_PREFETCH_DISTANCE`` places behind ``i``."""
    _, crossbar_input, output = _unpack_request(const, state.ready[i + FAR_PREFETCH_DISTANCE])
    prefetch(state.output, np.int64(output))
    prefetch(state.crossbar_input, np.int64(crossbar_input))


@inner
def _add_requests(const, state, first, end, time):
    """Let a part of ``state.ready`` ask for their outputs and to be the one whom their input serves."""
    for i in range(first, end):
        if const.exceeds_cache:
            _prefetch_request(const, state, i)
        _, crossbar_input, output = _unpack_request(const, state.ready[i])
        add_request(state.output[output], time)
        add_request(state.crossbar_input[crossbar_input], time)


@inner
def _make_offers(const, state, first, contended, time):
    """Let every output offer itself to one of the inputs that ask for it; rivals: how many, in ``state.ready``."""
    for i in range(contended):
        if const.exceeds_cache:
            _prefetch_request(const, state, first + i)
        _, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        output_record = state.output[output]
        bid = time | ((U(output_record.last_input) - crossbar_input) & _INPUT_TURN_MASK)
        if (
            const.iterations > 1 and state.crossbar_input[crossbar_input].best_bid >= time
        ):  # matched in this tick already
            bid = U(0)
        state.bids[i] = bid
        output_record.best_bid = max(output_record.best_bid, bid)


@inner
def _accept_offers(const, state, first, contended, time):
    """Let every input accept one of the offers, for one of its VCs; rivals: how many, in ``state.ready``."""
    for i in range(contended):
        if const.exceeds_cache:
            _prefetch_request(const, state, first + i)
        vc, crossbar_input, output = _unpack_request(const, state.ready[first + i])
        input_record = state.crossbar_input[crossbar_input]
        bid = (
            time
            | (((U(input_record.output) - output) & _PORT_TURN_MASK) << _PORT_SHIFT)
            | ((U(input_record.vc) - vc) & _VC_TURN_MASK)
        )
        bid |= U(state.output[output].best_bid == state.bids[i]) << _OFFERED_SHIFT
        state.bids[i] = bid
        input_record.best_bid = max(input_record.best_bid, bid)


@inner
def _separate_matched(const, state, first, contended, closed_bid):
    """Move the VCs that are matched from among the rivals in ``state.ready`` to the third part of it.

    closed: a time at which nobody bids: for the rest of the tick nobody outbids those that are matched. Returns how
    many rivals are left, and the end of the others.
    """
    remaining, matched = U(0), const.ready_capacity + const.ready_capacity
    for i in range(contended):
        request, bid = state.ready[first + i], state.bids[i]
        _, crossbar_input, _ = _unpack_request(const, request)
        state.ready[first + remaining] = request
        state.ready[matched] = request
        wins = U(state.crossbar_input[crossbar_input].best_bid == bid) & (bid >> _OFFERED_SHIFT)
        matched += wins
        remaining += ONE - wins
    if const.iterations > 1:
        for i in range(const.ready_capacity + const.ready_capacity, matched):
            _, crossbar_input, output = _unpack_request(const, state.ready[i])
            state.output[output].best_bid = closed_bid
            state.crossbar_input[crossbar_input].best_bid = closed_bid
    return remaining, matched


@inner
def _match_contended(const, state, first, contended, tick, iteration):
    """Match the rivals, of whom the first is at ``first``, once more; returns what :func:`_move` does."""
    iterations = U(const.iterations)
    time = time_of(const, tick, iterations + ONE + iteration)
    _make_offers(const, state, first, contended, time)
    _accept_offers(const, state, first, contended, time)
    return _separate_matched(const, state, first, contended, time_of(const, tick, iterations + iterations + ONE))


@inner
def _send_granted(const, state, first, end, uncontended, rotate_priority, ready, new_heads):
    """Send the front flits of a part of ``state.ready``, but for rivals, which are moved to its beginning.

    alone: ``best_bid`` of what only one asks for; 0 if all are matched. rotates: whether priorities move on. Returns
    the
    new ``ready`` and ``new_heads`` (see :func:`~flitlab.sim.engines.compiled.wormhole.flits.send`), and how many rivals
    there are.

    A VC that sends a flit frees a place in its buffer, and a credit for that goes back.
    """
    contended, credit = U(0), state.queue[RETURNED].end
    for i in range(first, end):
        if const.exceeds_cache:
            prefetch(state.vc, np.int64(state.ready[i + FAR_PREFETCH_DISTANCE] & VC_MASK))
            prefetch_send(const, state, state.ready[i + PREFETCH_DISTANCE])
        request = state.ready[i]
        vc, crossbar_input, output = _unpack_request(const, request)
        output_record, input_record = state.output[output], state.crossbar_input[crossbar_input]
        if uncontended and (output_record.best_bid != uncontended or input_record.best_bid != uncontended):
            state.ready[first + contended] = request
            contended += ONE
            continue
        input_record.vc = vc
        if rotate_priority:
            input_record.output = output
            output_record.last_input = crossbar_input
        credit = _return_credit(const.returning, state, vc, credit)
        ready, new_heads = send_flit(const, state, request, U(output_record.queue), ready, new_heads)
    if const.returning is None:
        state.queue[RETURNED].end = credit
    return ready, new_heads, contended


@inner
def _return_credit(returning, state, vc, credit):
    """Let the credit of a flit that leaves an input VC return to the sender.

    returning: ``const.returning``. credit: the next place in the queue of all credits, where there is only one; the
    place after that is returned.
    """
    if returning is None:
        state.entries[credit] = vc
        return credit + ONE
    push(state, U(returning[vc]), U(0), vc)
    return credit


@inner
def allocate_all(const, state, tick, first, end, ready, sparse):
    """Send what can be sent of the VCs in ``state.ready`` from ``first`` to ``end`` - 1.

    ready: end of the list of those who can send in the next tick. sparse: whether it is likely that few are rivals, so
    that it pays to find them; else all are taken to be. Returns the new ``ready``; the length of ``state.new_heads``,
    which now has those to whose front another packet has come; and whether nearly all were sent, which says what is
    likely in the next tick.
    """
    uncontended = time_of(const, tick, U(const.iterations)) + ONE
    begin, stop, contended, new_heads = first, first, end - first, U(0)
    if sparse:
        _add_requests(const, state, first, end, uncontended - ONE)
        stop, contended = end, U(0)
    for round_ in range(U(const.iterations) + ONE):
        if round_ > 0:
            contended, stop = _match_contended(const, state, first, contended, tick, round_ - ONE)
            begin, uncontended = const.ready_capacity + const.ready_capacity, U(0)
        ready, new_heads, newly_contended = _send_granted(
            const, state, begin, stop, uncontended, round_ < 2, ready, new_heads
        )
        contended += newly_contended
        if contended == 0:
            break
    for i in range(contended):
        state.ready[ready + i] = state.ready[first + i]
    return ready + contended, new_heads, U(8) * (end - first - contended) >= U(7) * (end - first)
