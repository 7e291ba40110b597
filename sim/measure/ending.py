# SPDX-License-Identifier: Apache-2.0
"""Why a program came to no end: what keeps it, and which of its operations wait for what."""

from typing import Any

import numpy as np

from flitlab.models.application.goal import label_of
from flitlab.models.application.program import CALC, RECV, SEND, Program
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.sim.engines.base import ApplicationRun, Execution, ProgramStatus
from flitlab.sim.measure.standstill import patience

SHOWN = 5
"""Operations that are named where a program does not end."""


class UnfinishedError(Exception):
    """A program does not come to its end; the message says why, and what it waits for."""


class Watch:
    """Looks at a run now and then, and raises :class:`UnfinishedError` once nothing can happen in it any more."""

    def __init__(self, run: ApplicationRun, scenario: Scenario[Any, Workload]):
        self.run, self.scenario = run, scenario
        self.deadlock_timeout = patience(scenario, scenario.work.messages.packet_flits)
        self._moved, self._since = -1, 0

    def look(self, tick: int) -> None:
        """Look at the run, which has been advanced to a tick without its program being done."""
        standing = self.run.program_status()
        if standing.stalled and not standing.event_pending:
            some = f"{standing.stalled:,} message{'s are' if standing.stalled > 1 else ' is'}"
            self.give_up(f"{some} stalled for ever, on links that do not work and that the routing does not avoid")
        if standing.event_pending or standing.moved != self._moved:
            self._moved, self._since = standing.moved, tick
        elif not standing.waiting and not standing.in_flight:
            self.give_up("nothing can happen any more: no message is under way, and no operation goes on")
        elif tick - self._since > max(self.deadlock_timeout, standing.retransmission_ticks):
            self.give_up(self._stuck(standing, tick - self._since))

    def give_up(self, why: str) -> None:
        """Raise :class:`UnfinishedError` for a reason."""
        raise UnfinishedError(f"{why}; {unfinished(self.run, self.scenario)}")

    def _stuck(self, standing: ProgramStatus, ticks: int) -> str:
        where = f"{standing.in_flight:,} in the network, {standing.waiting:,} at hosts"
        deadlocked = getattr(self.run, "deadlocked", None)  # which not all runs can tell
        if deadlocked is not None and deadlocked():
            return f"the network is deadlocked: packets wait for each other for ever ({where})"
        return f"no packet {self.scenario.switching.silence(ticks)}, though some wait ({where})"


def unfinished(run: ApplicationRun, scenario: Scenario[Any, Workload]) -> str:
    """How many operations of a program are not done, and of those that wait, which wait for what."""
    program, execution = scenario.work.program, run.execution()
    left = np.flatnonzero(execution.finish < 0)
    waiting = left[execution.ready[left] >= 0][:SHOWN].tolist()
    said = "; ".join(_described(program, o) + _state(scenario, execution, o) for o in waiting)
    return f"{len(left)} of {program.operations} operations are not done; waiting: {said or 'none'}"


def _described(program: Program, o: int) -> str:
    """An operation: its number and label, and what it does."""
    label = label_of(program, o)
    what = {CALC: "calculates", SEND: "sends to", RECV: "receives from"}[int(program.kind[o])]
    text = f"{_named(program, o)}{f', label {label},' if label else ''} {what}"
    if program.kind[o] == CALC:
        return f"{text} for {program.amount[o]} ns"
    return f"{text} rank {program.peer[o]} ({program.amount[o]} bytes, tag {program.tag[o]})"


def _named(program: Program, o: int) -> str:
    rank = int(program.rank[o])
    return f"operation {o - program.start[rank]} of rank {rank}"


def _state(scenario: Scenario[Any, Workload], execution: Execution, o: int) -> str:
    """How far the message of an operation has come, to be put behind the operation; nothing of a calculation."""
    program, messages = scenario.work.program, scenario.work.messages
    if program.kind[o] == CALC:
        return ""
    send, receive = (o, int(program.partner[o])) if program.kind[o] == SEND else (int(program.partner[o]), o)
    if execution.ready[send] < 0:
        return f": {_named(program, send)} sends it after others that are not done"
    if execution.queued[send] < 0:
        return ": the send has begun"
    if execution.delivered[send] >= 0:
        return ": it has arrived"
    since = f"since tick {execution.queued[send] // execution.resolution}"
    if program.amount[send] > messages.rendezvous and execution.ready[receive] < 0:
        return f": offered {since}, {_named(program, receive)} takes it after others that are not done"
    return f": under way {since}"
