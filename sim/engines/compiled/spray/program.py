# SPDX-License-Identifier: Apache-2.0
"""Programs in mode spray: the events of their ranks, at the end of a tick."""

from flitlab.models.jit import inline
from flitlab.models.rules.spray.layout import PACED
from flitlab.sim.engines.compiled.ranks import OUTBOX, next_event, process_events
from flitlab.sim.engines.compiled.spray.flow_rules import rules_of
from flitlab.sim.engines.compiled.spray.hosts import begin_flow, settle_nic
from flitlab.sim.engines.compiled.spray.messages import flow_of


@inline
def run_program(program, const, state, now):
    """Process the program's events of a tick, and start the messages of its outbox."""
    if program is not None and next_event(program.ranks) <= now:
        process_events(program.ranks, now)
        totals = program.ranks.totals
        for k in range(totals[OUTBOX]):
            flow = flow_of(program, program.ranks.outbox[k])
            host = const.hosts_of_flow[flow, 0]
            settle_nic(const, state, host, now)
            begin_flow(const, state, host, flow, rules_of(const, flow).credit == PACED, now)
        totals[OUTBOX] = 0
