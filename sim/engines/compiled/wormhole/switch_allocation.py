"""Switch allocation: inputs are matched with outputs (see :mod:`flitlab.models.rules.allocate`).

Whoever asks makes a *bid*, and the highest wins. It says who comes first by rotating priority, and above that when it
was made, so that it beats all bids of earlier iterations and nothing has to be cleared.
"""

from flitlab.models.jit import inner
from flitlab.sim.engines.compiled.wormhole.flits import send
from flitlab.sim.engines.compiled.wormhole.queues import place_in
from flitlab.sim.engines.compiled.wormhole.state import ONE, RETURNED, U

# Bits of a bid: how far the VC is from its turn at its input and, above, the output (or the input at the output),
# whether the output has offered itself, and the time.
_VCS, _PORTS, _PLACES = U(0xFF), U(0xFFFF), U(0xFFFFFF)
_PORT_AT, _OFFERED_AT, _TIME_AT = U(8), U(24), U(25)


@inner
def _offer(const, state, count, time):
    """Every output offers itself to one of the inputs that ask for it."""
    for i in range(count):
        vc = U(state.ready[i])
        entry, output = U(state.vc[vc].entry), state.output[U(state.vc[vc].output)]
        bid = time | ((U(output.turn) - entry) & _PLACES)
        if const.iterations > 1 and state.entry[entry].best >= time:  # matched in this tick already
            bid = U(0)
        state.bid[i] = bid
        output.best = max(output.best, bid)


@inner
def _accept(const, state, count, time):
    """Every input accepts one of the offers, for one of its VCs."""
    for i in range(count):
        vc = U(state.ready[i])
        output, entry = U(state.vc[vc].output), state.entry[U(state.vc[vc].entry)]
        bid = time | (((U(entry.output) - output) & _PORTS) << _PORT_AT) | ((U(entry.vc) - vc) & _VCS)
        bid |= U(state.output[output].best == state.bid[i]) << _OFFERED_AT
        state.bid[i] = bid
        entry.best = max(entry.best, bid)


@inner
def _grant(const, state, count):
    """Move the VCs that are matched from ``s.ready`` to the queue of credits; how many are left."""
    queue = state.queue[RETURNED]
    end, left = queue.end, U(0)
    for i in range(count):
        vc, bid = U(state.ready[i]), state.bid[i]
        matched = U(state.entry[U(state.vc[vc].entry)].best == bid) & (bid >> _OFFERED_AT)
        state.entries[place_in(const, RETURNED, end)] = vc
        state.ready[left] = vc
        end += matched
        left += ONE - matched
    queue.end = end
    return left


@inner
def _rotate(const, state, vc, iteration, closed):
    """Priorities move on, and for the rest of the tick nobody outbids an input that is matched."""
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
    """Send what can be sent of the first ``ready`` VCs in ``s.ready``; its new length."""
    iterations = U(const.iterations)
    for iteration in range(iterations):
        first = state.queue[RETURNED].end
        time = (U(tick) + ONE) * (iterations + ONE)
        _offer(const, state, ready, (time + iteration) << _TIME_AT)
        _accept(const, state, ready, (time + iteration) << _TIME_AT)
        ready = _grant(const, state, ready)
        for i in range(first, state.queue[RETURNED].end):
            vc = state.entries[place_in(const, RETURNED, i)]
            _rotate(const, state, vc, iteration, (time + iterations) << _TIME_AT)
            ready = send(const, state, vc, ready)
    return ready
