# SPDX-License-Identifier: Apache-2.0
"""A program that sprays its messages: what its ranks do as a tick ends."""

from flitlab.models.jit import inline
from flitlab.models.rules.spray.layout import PACED
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, turn
from flitlab.sim.engines.compiled.spray.chosen import rules_of
from flitlab.sim.engines.compiled.spray.hosts import begin_flow, settle_nic
from flitlab.sim.engines.compiled.spray.messages import flow_of


@inline
def act(talk, const, state, now):
    """Work through the program's events of this tick; the messages that it posts begin."""
    if talk is not None and next_event(talk.ranks) <= now:
        turn(talk.ranks, now)
        totals = talk.ranks.totals
        for k in range(totals[OUTBOX]):
            flow = flow_of(talk, talk.ranks.outbox[k])
            host = const.ends[flow, 0]
            settle_nic(const, state, host, now)
            begin_flow(const, state, host, flow, rules_of(const, flow).credit == PACED, now)
        totals[OUTBOX] = 0
