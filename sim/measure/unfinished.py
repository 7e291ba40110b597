# SPDX-License-Identifier: Apache-2.0
"""Why a program does not end: what stalls it, and what its operations wait for."""

from typing import cast

import numpy as np

from flitlab.models.application.goal import label_of
from flitlab.models.application.program import Op, Program
from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.sim.engines.base import ApplicationRun, Execution, ProgramStatus
from flitlab.sim.engines.transport.spray import SprayRun
from flitlab.sim.measure.pauses import LinkNames

MAX_LISTED = 5
"""The most waiting operations that a message names."""


class UnfinishedError(Exception):
    """A program does not end. The message says why, and what its operations wait for."""


class StallDetector:
    """Checks a run repeatedly, and raises :class:`UnfinishedError` once it cannot make progress."""

    def __init__(self, run: ApplicationRun, scenario: Scenario[SwitchingMode, Workload]):
        self.run, self.scenario = run, scenario
        flits = scenario.work.messages.packet_flits
        self.deadlock_timeout = scenario.switching.deadlock_timeout(scenario.topology, flits)
        self._moved, self._since = -1, 0

    def check(self, tick: int) -> None:
        """Check the run, which has been advanced to a tick without completing its program."""
        if (deadlock := getattr(self.run, "deadlock", None)) is not None and (ports := deadlock()):  # not in all runs
            self.fail(f"the network is deadlocked: {LinkNames(cast('SprayRun', self.run).session).cycle(ports)}")
        status = self.run.program_status()
        if status.stalled and not status.event_pending:
            some = f"{status.stalled:,} message{'s are' if status.stalled > 1 else ' is'}"
            self.fail(f"{some} stalled on failed links that the routing does not avoid")
        if status.event_pending or status.moved != self._moved:
            self._moved, self._since = status.moved, tick
        elif not status.waiting and not status.in_flight:
            self.fail("the program stalls: no message is in flight, and no operation is running")
        elif tick - self._since > max(self.deadlock_timeout, status.retransmission_ticks):
            self.fail(self._stall_message(status, tick - self._since))

    def fail(self, why: str) -> None:
        """Raise :class:`UnfinishedError` with a reason and the waiting operations."""
        raise UnfinishedError(f"{why}; {unfinished(self.run, self.scenario)}")

    def _stall_message(self, status: ProgramStatus, ticks: int) -> str:
        where = f"{status.in_flight:,} in the network, {status.waiting:,} at hosts"
        deadlocked = getattr(self.run, "deadlocked", None)  # not in all runs
        if deadlocked is not None and deadlocked():
            return f"the network is deadlocked: packets wait for each other in a cycle ({where})"
        return f"no packet {self.scenario.switching.stall_message(ticks)}, though some wait ({where})"


def unfinished(run: ApplicationRun, scenario: Scenario[SwitchingMode, Workload]) -> str:
    """Return the number of incomplete operations of a program, and what those that have begun wait for."""
    program, execution = scenario.work.program, run.execution()
    unfinished_operations = np.flatnonzero(execution.finish < 0)
    waiting = unfinished_operations[execution.ready[unfinished_operations] >= 0][:MAX_LISTED].tolist()
    listed = "; ".join(_described(program, o) + _state(scenario, execution, o) for o in waiting)
    return (
        f"{len(unfinished_operations)} of {program.operations} operations are incomplete; waiting: {listed or 'none'}"
    )


def _described(program: Program, o: int) -> str:
    """Describe an operation: number, label and kind."""
    label = label_of(program, o)
    what = {Op.CALC: "calculates", Op.SEND: "sends to", Op.RECV: "receives from"}[int(program.kind[o])]
    text = f"{_named(program, o)}{f', label {label},' if label else ''} {what}"
    if program.kind[o] == Op.CALC:
        return f"{text} for {program.amount[o]} ns"
    return f"{text} rank {program.peer[o]} ({program.amount[o]} bytes, tag {program.tag[o]})"


def _named(program: Program, o: int) -> str:
    rank = int(program.rank[o])
    return f"operation {o - program.start[rank]} of rank {rank}"


def _state(scenario: Scenario[SwitchingMode, Workload], execution: Execution, o: int) -> str:
    """Describe how far the message of an operation has come; '' for a calculation."""
    program, messages = scenario.work.program, scenario.work.messages
    if program.kind[o] == Op.CALC:
        return ""
    send, receive = (o, int(program.partner[o])) if program.kind[o] == Op.SEND else (int(program.partner[o]), o)
    if execution.ready[send] < 0:
        return f": {_named(program, send)} sends it after operations that are incomplete"
    if execution.queued[send] < 0:
        return ": the send has started"
    if execution.delivered[send] >= 0:
        return ": it has arrived"
    since = f"since tick {execution.queued[send] // execution.resolution}"
    if program.amount[send] > messages.rendezvous and execution.ready[receive] < 0:
        return f": offered {since}, {_named(program, receive)} receives it after operations that are incomplete"
    return f": in flight {since}"
