"""What programs do in a tick, after everything that arrives."""

import numpy as np

from flitlab.models.application.messages import CTS
from flitlab.models.jit import inner, routine
from flitlab.models.transport.newreno import DEADLINE, OPEN, STATE, UNA, resume
from flitlab.models.transport.newreno import NEXT as NEXT_SEQUENCE
from flitlab.sim.engines.compiled.datagram.hosts import pace, send_on, set_timer
from flitlab.sim.engines.compiled.datagram.messages import add_message
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, turn


@inner
def wakes(talk, until):
    """The next tick in which the program does something, at most ``until``."""
    return until if talk is None else min(next_event(talk.ranks), until)


@inner
def act(talk, c, s, now):
    """The program's events of this tick; the messages that it sends join their connections."""
    if talk is not None and next_event(talk.ranks) <= now:
        turn(talk.ranks, now)
        totals = talk.ranks.totals
        for k in range(totals[OUTBOX]):
            o = talk.ranks.outbox[k]
            flow = talk.back[o] if talk.ranks.stage[o] == CTS else talk.forth[o]
            add_message(talk, s.left, o, flow)
            _go_on(c, s, flow, now)
        totals[OUTBOX] = 0


@routine
def _go_on(c, s, flow, now):
    """The subflows of a connection take what their windows admit."""
    for i in range(c.first[flow], c.first[flow + 1]):
        if s.left[flow] == 0:
            return
        seq = s.senders.seq[i]
        if c.paced:
            if seq[STATE] != OPEN:
                pace(c, s, i, now)
            continue
        if seq[UNA] == seq[NEXT_SEQUENCE] and resume(c.rules, s.senders, i, now):
            set_timer(s, min(seq[DEADLINE], now + np.int64(np.ceil(c.rules.min_rto))), i)
        send_on(c, s, i, now)
