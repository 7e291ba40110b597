# SPDX-License-Identifier: Apache-2.0
"""Switch allocation: inputs are matched with outputs (see :mod:`flitlab.models.rules.allocate`).

Whoever asks for an output that nobody else asks for, and is the only one of its input to ask, has it. All others are
*rivals*: each makes a bid, and the highest wins. A bid says who comes first by rotating priority, and above that when
it was made. (Who has no rivals could as well be treated as one: what is sent is the same.)
"""

import numpy as np

from flitlab.models.jit import inline
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.wormhole.bids import ask_for, time_of
from flitlab.sim.engines.compiled.wormhole.flits import foresee, send
from flitlab.sim.engines.compiled.wormhole.queues import push
from flitlab.sim.engines.compiled.wormhole.state import AHEAD, ENTRIES_AT, FAR_AHEAD, ONE, OUTPUT_AT, RETURNED, VC_OF, U

# Bits of a bid: how far the VC is from its turn at its input and, above, the output (or the input at the output),
# whether the output has offered itself, and the time.
_VCS, _PORTS, _PLACES = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_PORT_AT, _OFFERED_AT = U(8), U(24)


@inline
def _parts(const, request):
    """Take a request to pieces: (the input VC, the input of the crossbar that reads it, the output)."""
    vc = request & VC_OF
    return vc, vc * const.entries >> ENTRIES_AT, request >> OUTPUT_AT


@inline
def _foresee(const, state, i):
    """Begin to load the records of output and input of the request ``FAR_AHEAD`` places behind ``i``."""
    _, entry, output = _parts(const, state.ready[i + FAR_AHEAD])
    prefetch(state.output, np.int64(output))
    prefetch(state.entry, np.int64(entry))


@inline
def _ask_all(const, state, first, end, time):
    """Let a part of ``state.ready`` ask for their outputs and to be the one whom their input serves."""
    for i in range(first, end):
        if const.large:
            _foresee(const, state, i)
        _, entry, output = _parts(const, state.ready[i])
        ask_for(state.output[output], time)
        ask_for(state.entry[entry], time)


@inline
def _offer(const, state, first, rivals, time):
    """Let every output offer itself to one of the inputs that ask for it; rivals: how many, in ``state.ready``."""
    for i in range(rivals):
        if const.large:
            _foresee(const, state, first + i)
        _, entry, output = _parts(const, state.ready[first + i])
        output_record = state.output[output]
        bid = time | ((U(output_record.turn) - entry) & _PLACES)
        if const.iterations > 1 and state.entry[entry].best >= time:  # matched in this tick already
            bid = U(0)
        state.bid[i] = bid
        output_record.best = max(output_record.best, bid)


@inline
def _accept(const, state, first, rivals, time):
    """Let every input accept one of the offers, for one of its VCs; rivals: how many, in ``state.ready``."""
    for i in range(rivals):
        if const.large:
            _foresee(const, state, first + i)
        vc, entry, output = _parts(const, state.ready[first + i])
        entry_record = state.entry[entry]
        bid = time | (((U(entry_record.output) - output) & _PORTS) << _PORT_AT) | ((U(entry_record.vc) - vc) & _VCS)
        bid |= U(state.output[output].best == state.bid[i]) << _OFFERED_AT
        state.bid[i] = bid
        entry_record.best = max(entry_record.best, bid)


@inline
def _move(const, state, first, rivals, closed):
    """Move the VCs that are matched from among the rivals in ``state.ready`` to the third part of it.

    closed: a time at which nobody bids: for the rest of the tick nobody outbids those that are matched. Returns how
    many rivals are left, and the end of the others.
    """
    left, matched = U(0), const.spare + const.spare
    for i in range(rivals):
        request, bid = state.ready[first + i], state.bid[i]
        _, entry, _ = _parts(const, request)
        state.ready[first + left] = request
        state.ready[matched] = request
        wins = U(state.entry[entry].best == bid) & (bid >> _OFFERED_AT)
        matched += wins
        left += ONE - wins
    if const.iterations > 1:
        for i in range(const.spare + const.spare, matched):
            _, entry, output = _parts(const, state.ready[i])
            state.output[output].best = closed
            state.entry[entry].best = closed
    return left, matched


@inline
def _match(const, state, first, rivals, tick, iteration):
    """Match the rivals, of whom the first is at ``first``, once more; returns what :func:`_move` does."""
    iterations = U(const.iterations)
    time = time_of(const, tick, iterations + ONE + iteration)
    _offer(const, state, first, rivals, time)
    _accept(const, state, first, rivals, time)
    return _move(const, state, first, rivals, time_of(const, tick, iterations + iterations + ONE))


@inline
def _send_all(const, state, first, end, alone, rotates, ready, asking):
    """Send the front flits of a part of ``state.ready``, but for rivals, which are moved to its beginning.

    alone: ``best`` of what only one asks for; 0 if all are matched. rotates: whether priorities move on. Returns the
    new ``ready`` and ``asking`` (see :func:`~flitlab.sim.engines.compiled.wormhole.flits.send`), and how many rivals
    there are.

    A VC that sends a flit frees a place in its buffer, and a credit for that goes back.
    """
    rivals, credit = U(0), state.queue[RETURNED].end
    for i in range(first, end):
        if const.large:
            prefetch(state.vc, np.int64(state.ready[i + FAR_AHEAD] & VC_OF))
            foresee(const, state, state.ready[i + AHEAD])
        request = state.ready[i]
        vc, entry, output = _parts(const, request)
        output_record, entry_record = state.output[output], state.entry[entry]
        if alone and (output_record.best != alone or entry_record.best != alone):
            state.ready[first + rivals] = request
            rivals += ONE
            continue
        entry_record.vc = vc
        if rotates:
            entry_record.output = output
            output_record.turn = entry
        credit = _return_credit(const.returning, state, vc, credit)
        ready, asking = send(const, state, request, U(output_record.queue), ready, asking)
    if const.returning is None:
        state.queue[RETURNED].end = credit
    return ready, asking, rivals


@inline
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


@inline
def allocate_all(const, state, tick, first, end, ready, sparse):
    """Send what can be sent of the VCs in ``state.ready`` from ``first`` to ``end`` - 1.

    ready: end of the list of those who can send in the next tick. sparse: whether it is likely that few are rivals, so
    that it pays to find them; else all are taken to be. Returns the new ``ready``; the length of ``state.asking``,
    which now has those to whose front another packet has come; and whether nearly all were sent, which says what is
    likely in the next tick.
    """
    alone = time_of(const, tick, U(const.iterations)) + ONE
    begin, stop, rivals, asking = first, first, end - first, U(0)
    if sparse:
        _ask_all(const, state, first, end, alone - ONE)
        stop, rivals = end, U(0)
    for round_ in range(U(const.iterations) + ONE):
        if round_ > 0:
            rivals, stop = _match(const, state, first, rivals, tick, round_ - ONE)
            begin, alone = const.spare + const.spare, U(0)
        ready, asking, new = _send_all(const, state, begin, stop, alone, round_ < 2, ready, asking)
        rivals += new
        if rivals == 0:
            break
    for i in range(rivals):
        state.ready[ready + i] = state.ready[first + i]
    return ready + rivals, asking, U(8) * (end - first - rivals) >= U(7) * (end - first)
