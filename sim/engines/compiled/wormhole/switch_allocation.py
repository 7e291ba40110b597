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
def _offer(c, s, count, time):
    """Every output offers itself to one of the inputs that ask for it."""
    for i in range(count):
        v = U(s.ready[i])
        e, output = U(s.vc[v].entry), s.output[U(s.vc[v].output)]
        bid = time | ((U(output.turn) - e) & _PLACES)
        if c.iterations > 1 and s.entry[e].best >= time:  # matched in this tick already
            bid = U(0)
        s.bid[i] = bid
        output.best = max(output.best, bid)


@inner
def _accept(c, s, count, time):
    """Every input accepts one of the offers, for one of its VCs."""
    for i in range(count):
        v = U(s.ready[i])
        o, entry = U(s.vc[v].output), s.entry[U(s.vc[v].entry)]
        bid = time | (((U(entry.output) - o) & _PORTS) << _PORT_AT) | ((U(entry.vc) - v) & _VCS)
        bid |= U(s.output[o].best == s.bid[i]) << _OFFERED_AT
        s.bid[i] = bid
        entry.best = max(entry.best, bid)


@inner
def _grant(c, s, count):
    """Move the VCs that are matched from ``s.ready`` to the queue of credits; how many are left."""
    queue = s.queue[RETURNED]
    end, left = queue.end, U(0)
    for i in range(count):
        v, bid = U(s.ready[i]), s.bid[i]
        matched = U(s.entry[U(s.vc[v].entry)].best == bid) & (bid >> _OFFERED_AT)
        s.entries[place_in(c, RETURNED, end)] = v
        s.ready[left] = v
        end += matched
        left += ONE - matched
    queue.end = end
    return left


@inner
def _rotate(c, s, v, iteration, closed):
    """Priorities move on, and for the rest of the tick nobody outbids an input that is matched."""
    o, e = s.vc[v].output, s.vc[v].entry
    output, entry = s.output[U(o)], s.entry[U(e)]
    entry.vc = v
    if iteration == 0:
        entry.output = o
        output.turn = e
    if c.iterations > 1:
        entry.best = closed
        output.best = closed


@inner
def allocate_all(c, s, tick, ready):
    """Send what can be sent of the first ``ready`` VCs in ``s.ready``; its new length."""
    iterations = U(c.iterations)
    for iteration in range(iterations):
        first = s.queue[RETURNED].end
        time = (U(tick) + ONE) * (iterations + ONE)
        _offer(c, s, ready, (time + iteration) << _TIME_AT)
        _accept(c, s, ready, (time + iteration) << _TIME_AT)
        ready = _grant(c, s, ready)
        for i in range(first, s.queue[RETURNED].end):
            v = s.entries[place_in(c, RETURNED, i)]
            _rotate(c, s, v, iteration, (time + iterations) << _TIME_AT)
            ready = send(c, s, v, ready)
    return ready
