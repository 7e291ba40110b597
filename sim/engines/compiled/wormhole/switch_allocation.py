# SPDX-License-Identifier: Apache-2.0
"""Switch allocation: inputs are matched with outputs (see :mod:`flitlab.models.rules.allocate`).

Whoever asks makes a *bid*, and the highest wins. It says who comes first by rotating priority, and above that when it
was made, so that it beats all bids of earlier iterations and nothing has to be cleared.
"""

import numpy as np

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.memory import prefetch
from flitlab.sim.engines.compiled.wormhole.flits import foresee, send
from flitlab.sim.engines.compiled.wormhole.state import AHEAD, FAR_AHEAD, ONE, RETURNED, U

# Bits of a bid: how far the VC is from its turn at its input and, above, the output (or the input at the output),
# whether the output has offered itself, and the time.
_VCS, _PORTS, _PLACES = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_PORT_AT, _OFFERED_AT, _TIME_AT = U(8), U(24), U(25)

# Bits of a wish: the input and, above, the output.
_ENTRY, _OUTPUT_AT = U(0xFFFFFFFF), U(32)


@inner
def _offer(const, state, count, time):
    """Let every output offer itself to one of the inputs that ask for it.

    count: of the VCs in ``state.ready``. time: of the iteration, above the bits of a bid.
    """
    for i in range(count):
        if const.large:
            prefetch(state.vc, np.int64(state.ready[i + FAR_AHEAD]))
            prefetch(state.output, np.int64(state.vc[U(state.ready[i + AHEAD])].output))
        vc = U(state.ready[i])
        entry, output = U(state.vc[vc].entry), U(state.vc[vc].output)
        state.wish[i] = output << _OUTPUT_AT | entry
        output_record = state.output[output]
        bid = time | ((U(output_record.turn) - entry) & _PLACES)
        if const.iterations > 1 and state.entry[entry].best >= time:  # matched in this tick already
            bid = U(0)
        state.bid[i] = bid
        output_record.best = max(output_record.best, bid)


@inner
def _accept(const, state, count, time):
    """Let every input accept one of the offers, for one of its VCs.

    count: of the VCs in ``state.ready``. time: of the iteration, above the bits of a bid.
    """
    for i in range(count):
        if const.large:
            prefetch(state.entry, np.int64(state.wish[i + AHEAD] & _ENTRY))
        vc = U(state.ready[i])
        output, entry_record = state.wish[i] >> _OUTPUT_AT, state.entry[state.wish[i] & _ENTRY]
        bid = time | (((U(entry_record.output) - output) & _PORTS) << _PORT_AT) | ((U(entry_record.vc) - vc) & _VCS)
        bid |= U(state.output[output].best == state.bid[i]) << _OFFERED_AT
        state.bid[i] = bid
        entry_record.best = max(entry_record.best, bid)


@inner
def _grant(const, state, count):
    """Move the VCs that are matched from ``state.ready`` to the queue of credits; how many are left.

    A VC that sends a flit frees a place in its buffer, and a credit for that goes back. So the grants of a tick are its
    credits, one for one and in this order, and the end of the queue of credits serves as the list of grants as well:
    nothing comes out of a queue in the tick in which it is put there. Each VC is written behind the last one granted,
    and stays there only if it is granted too, which spares a branch; the queue has room for one more than it can hold.
    """
    queue = state.queue[RETURNED]
    end, left = queue.end, U(0)
    for i in range(count):
        vc, bid = U(state.ready[i]), state.bid[i]
        matched = U(state.entry[state.wish[i] & _ENTRY].best == bid) & (bid >> _OFFERED_AT)
        state.entries[end] = vc
        state.ready[left] = vc
        end += matched
        left += ONE - matched
    queue.end = end
    return left


@inner
def _rotate(const, state, vc, iteration, closed):
    """Move the priorities on; for the rest of the tick nobody outbids an input that is matched.

    closed: a bid that is higher than all others of this tick.
    """
    output, entry = state.vc[vc].output, state.vc[vc].entry
    output_record, entry_record = state.output[U(output)], state.entry[U(entry)]
    entry_record.vc = vc
    if iteration == 0:
        entry_record.output = output
        output_record.turn = entry
    if const.iterations > 1:
        entry_record.best = closed
        output_record.best = closed


@inner
def allocate_all(const, state, tick, ready):
    """Send what can be sent of the VCs in ``state.ready``.

    ``ready`` is the length of the list ``state.ready`` before, and its length after is returned.
    """
    iterations = U(const.iterations)
    for iteration in range(iterations):
        first = state.queue[RETURNED].end
        time = (U(tick) + ONE) * (iterations + ONE)
        _offer(const, state, ready, (time + iteration) << _TIME_AT)
        _accept(const, state, ready, (time + iteration) << _TIME_AT)
        ready = _grant(const, state, ready)
        for i in range(first, state.queue[RETURNED].end):
            if const.large:
                prefetch(state.vc, np.int64(state.entries[i + FAR_AHEAD]))
                foresee(const, state, state.entries[i + AHEAD])
            vc = state.entries[i]  # its flit is 0, so the entry is the VC itself
            _rotate(const, state, vc, iteration, (time + iterations) << _TIME_AT)
            ready = send(const, state, vc, ready)
    return ready
