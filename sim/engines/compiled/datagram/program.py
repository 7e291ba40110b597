# SPDX-License-Identifier: Apache-2.0
"""Programs in mode datagram: their events, after all arrivals of a tick."""

import numpy as np

from flitlab.models.application.messages import CTS
from flitlab.models.jit import device_function, inline
from flitlab.models.transport.newreno import DEADLINE, OPEN, STATE, UNA, resume
from flitlab.models.transport.newreno import NEXT as NEXT_SEQUENCE
from flitlab.sim.engines.compiled.datagram.hosts import pace, send_on, set_timer
from flitlab.sim.engines.compiled.datagram.messages import add_message
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, process_events


@inline
def run_program(program, const, state, now):
    """Process the program's events of a tick, and add the messages of its outbox to their connections."""
    if program is not None and next_event(program.ranks) <= now:
        process_events(program.ranks, now)
        totals = program.ranks.totals
        for k in range(totals[OUTBOX]):
            message = program.ranks.outbox[k]
            flow = program.back[message] if program.ranks.stage[message] == CTS else program.forth[message]
            add_message(program, state.unsent, message, flow)
            _resume_connection(const, state, flow, now)
        totals[OUTBOX] = 0


@device_function
def _resume_connection(const, state, flow, now):
    """Let the subflows of a connection send what their windows allow."""
    for subflow in range(const.first[flow], const.first[flow + 1]):
        if state.unsent[flow] == 0:
            return
        seq = state.senders.seq[subflow]
        if const.paced:
            if seq[STATE] != OPEN:
                pace(const, state, subflow, now)
            continue
        if seq[UNA] == seq[NEXT_SEQUENCE] and resume(const.rules, state.senders, subflow, now):
            set_timer(state, min(seq[DEADLINE], now + np.int64(np.ceil(const.rules.min_rto))), subflow)
        send_on(const, state, subflow, now)
