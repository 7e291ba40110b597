# SPDX-License-Identifier: Apache-2.0
"""What programs do in a tick, after everything that arrives."""

import numpy as np

from flitlab.models.application.messages import CTS
from flitlab.models.jit import device_function, inline
from flitlab.models.transport.newreno import DEADLINE, OPEN, STATE, UNA, resume
from flitlab.models.transport.newreno import NEXT as NEXT_SEQUENCE
from flitlab.sim.engines.compiled.datagram.hosts import pace, send_on, set_timer
from flitlab.sim.engines.compiled.datagram.messages import add_message
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, turn


@inline
def act(talk, const, state, now):
    """Work through the program's events of this tick; the messages that it sends join their connections."""
    if talk is not None and next_event(talk.ranks) <= now:
        turn(talk.ranks, now)
        totals = talk.ranks.totals
        for k in range(totals[OUTBOX]):
            message = talk.ranks.outbox[k]
            flow = talk.back[message] if talk.ranks.stage[message] == CTS else talk.forth[message]
            add_message(talk, state.left, message, flow)
            _go_on(const, state, flow, now)
        totals[OUTBOX] = 0


@device_function
def _go_on(const, state, flow, now):
    """Let the subflows of a connection take what their windows admit."""
    for subflow in range(const.first[flow], const.first[flow + 1]):
        if state.left[flow] == 0:
            return
        seq = state.senders.seq[subflow]
        if const.paced:
            if seq[STATE] != OPEN:
                pace(const, state, subflow, now)
            continue
        if seq[UNA] == seq[NEXT_SEQUENCE] and resume(const.rules, state.senders, subflow, now):
            set_timer(state, min(seq[DEADLINE], now + np.int64(np.ceil(const.rules.min_rto))), subflow)
        send_on(const, state, subflow, now)
