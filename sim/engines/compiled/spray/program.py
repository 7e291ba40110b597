# SPDX-License-Identifier: Apache-2.0
"""A program that sprays its messages: what its ranks do as a tick ends."""

from flitlab.models.jit import inner
from flitlab.models.rules.spray.layout import PACED
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, process_events
from flitlab.sim.engines.compiled.spray.flow_rules import rules_of
from flitlab.sim.engines.compiled.spray.hosts import begin_flow, settle_nic
from flitlab.sim.engines.compiled.spray.messages import flow_of


@inner
def run_program(program, const, state, now):
    """Work through the program's events of this tick; the messages that it posts begin."""
    if program is not None and next_event(program.ranks) <= now:
        process_events(program.ranks, now)
        totals = program.ranks.totals
        for k in range(totals[OUTBOX]):
            flow = flow_of(program, program.ranks.outbox[k])
            host = const.hosts_of_flow[flow, 0]
            settle_nic(const, state, host, now)
            begin_flow(const, state, host, flow, rules_of(const, flow).credit == PACED, now)
        totals[OUTBOX] = 0
