# SPDX-License-Identifier: Apache-2.0
"""Switch allocation: inputs are matched with outputs (see :mod:`flitlab.models.rules.allocate`).

Whoever asks for an output that nobody else asks for, and is the only one of its input to ask, has it. All others are
*rivals*: each makes a bid, and the highest wins. A bid says who comes first by rotating priority, and above that when
it was made. (Who has no rivals could as well be treated as one: what is sent is the same.)
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.base import GRANTS
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.wormhole.bids import ask_for, time_of
from flitlab.sim.engines.compiled.wormhole.flits import foresee_next, send
from flitlab.sim.engines.compiled.wormhole.state import AHEAD, FAR_AHEAD, ONE, RETURNED, U

# Bits of a bid: how far the VC is from its turn at its input and, above, the output (or the input at the output),
# whether the output has offered itself, and the time.
_VCS, _PORTS, _PLACES = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_PORT_AT, _OFFERED_AT = U(8), U(24)

# Bits of a wish: the input and, above, the output.
_ENTRY, _OUTPUT_AT = U(0xFFFFFFFF), U(32)


@inner
def _foresee(members, state, i):
    """Begin to load what is needed of VCs and outputs by those who come behind place ``i`` in a list.

    members: the list, uint32.
    """
    prefetch(state.vc, np.int64(members[i + FAR_AHEAD]))
    prefetch(state.output, np.int64(state.vc[U(members[i + AHEAD])].output))


@inner
def _ask_all(const, state, count, time):
    """Let the first ``count`` in ``state.ready`` ask for their outputs and to be the one whom their input serves."""
    for i in range(count):
        if const.large:
            _foresee(state.ready, state, i)
            prefetch(state.entry, np.int64(state.vc[U(state.ready[i + AHEAD])].entry))
        vc_record = state.vc[U(state.ready[i])]
        ask_for(state.output[U(vc_record.output)], time)
        ask_for(state.entry[U(vc_record.entry)], time)


@inner
def _offer(const, state, count, time):
    """Let every output offer itself to one of the inputs that ask for it; count: of the VCs in ``state.rival``."""
    for i in range(count):
        if const.large:
            _foresee(state.rival, state, i)
        vc_record = state.vc[U(state.rival[i])]
        entry, output = U(vc_record.entry), U(vc_record.output)
        state.wish[i] = output << _OUTPUT_AT | entry
        output_record = state.output[output]
        bid = time | ((U(output_record.turn) - entry) & _PLACES)
        if const.iterations > 1 and state.entry[entry].best >= time:  # matched in this tick already
            bid = U(0)
        state.bid[i] = bid
        output_record.best = max(output_record.best, bid)


@inner
def _accept(const, state, count, time):
    """Let every input accept one of the offers, for one of its VCs; count: of the VCs in ``state.rival``."""
    for i in range(count):
        if const.large:
            prefetch(state.entry, np.int64(state.wish[i + AHEAD] & _ENTRY))
        vc = U(state.rival[i])
        output, entry_record = state.wish[i] >> _OUTPUT_AT, state.entry[state.wish[i] & _ENTRY]
        bid = time | (((U(entry_record.output) - output) & _PORTS) << _PORT_AT) | ((U(entry_record.vc) - vc) & _VCS)
        bid |= U(state.output[output].best == state.bid[i]) << _OFFERED_AT
        state.bid[i] = bid
        entry_record.best = max(entry_record.best, bid)


@inner
def _move(const, state, count, closed):
    """Move the VCs that are matched from ``state.rival`` to the second half of ``state.ready``.

    count: of the VCs in ``state.rival``. closed: a time at which nobody bids: for the rest of the tick nobody outbids
    those that are matched. Returns how many are left, and the end of the others in ``state.ready``.
    """
    left, end = U(0), const.spare
    for i in range(count):
        vc, bid = U(state.rival[i]), state.bid[i]
        state.rival[left] = vc
        state.ready[end] = vc
        matched = U(state.entry[state.wish[i] & _ENTRY].best == bid) & (bid >> _OFFERED_AT)
        end += matched
        left += ONE - matched
    if const.iterations > 1:
        for i in range(const.spare, end):
            vc_record = state.vc[U(state.ready[i])]
            state.output[U(vc_record.output)].best = closed
            state.entry[U(vc_record.entry)].best = closed
    return left, end


@inner
def _match(const, state, count, tick, iteration):
    """Match the first ``count`` in ``state.rival`` once more; returns what :func:`_move` does."""
    iterations = U(const.iterations)
    time = time_of(const, tick, iterations + ONE + iteration)
    _offer(const, state, count, time)
    _accept(const, state, count, time)
    return _move(const, state, count, time_of(const, tick, iterations + iterations + ONE))


@inner
def _send_all(const, state, first, end, alone, rotates, ready, asking):
    """Send the front flits of a part of ``state.ready``, but for rivals, which are moved to ``state.rival``.

    alone: ``best`` of what only one asks for; 0 if all are matched. rotates: whether priorities move on. Returns the
    new ``ready`` and ``asking`` (see :func:`~flitlab.sim.engines.compiled.wormhole.flits.send`), and how many rivals
    there are.

    A VC that sends a flit frees a place in its buffer, and a credit for that goes back.
    """
    rivals, heads, credit = U(0), U(0), state.queue[RETURNED].end
    for i in range(first, end):
        if const.large:
            prefetch(state.vc, np.int64(state.ready[i + FAR_AHEAD]))
            foresee_next(const, state, U(state.ready[i + AHEAD]))
        vc = U(state.ready[i])
        vc_record = state.vc[vc]
        output, entry = U(vc_record.output), U(vc_record.entry)
        output_record, entry_record = state.output[output], state.entry[entry]
        if alone and (output_record.best != alone or entry_record.best != alone):
            state.rival[rivals] = vc
            rivals += ONE
            continue
        entry_record.vc = vc
        if rotates:
            entry_record.output = output
            output_record.turn = entry
        state.entries[credit] = vc
        credit += ONE
        ready, asking, head = send(const, state, vc, vc_record, output_record, ready, asking)
        heads += head
    state.queue[RETURNED].end = credit
    state.tally.scalars[GRANTS] += np.int64(heads)
    return ready, asking, rivals


@inner
def allocate_all(const, state, tick, ready, sparse):
    """Send what can be sent of the VCs in ``state.ready``.

    ``ready`` is the length of the list ``state.ready`` before. sparse: whether it is likely that few are rivals, so
    that it pays to find them; else all are taken to be. Returns the new ``ready``; the length of ``state.asking``,
    which now has those to whose front another packet has come; and whether nearly all were sent, which says what is
    likely in the next tick.
    """
    count, first, end, rivals = ready, U(0), ready, U(0)
    alone = time_of(const, tick, U(const.iterations)) + ONE
    if sparse:
        _ask_all(const, state, count, alone - ONE)
    else:
        for i in range(count):
            state.rival[i] = state.ready[i]
        end, rivals = U(0), count
    ready, asking = U(0), U(0)
    for round_ in range(U(const.iterations) + ONE):
        if round_ > 0:
            rivals, end = _match(const, state, rivals, tick, round_ - ONE)
            first, alone = const.spare, U(0)
        ready, asking, new = _send_all(const, state, first, end, alone, round_ < 2, ready, asking)
        rivals += new
        if rivals == 0:
            break
    for i in range(rivals):
        state.ready[ready + i] = state.rival[i]
    returned = state.queue[RETURNED]
    return ready + rivals, asking, U(8) * (returned.end - returned.begun) >= U(7) * count
