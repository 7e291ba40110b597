# SPDX-License-Identifier: Apache-2.0
"""Runs a trace to its end, and measures all of it and each of its packets."""

from dataclasses import replace
from typing import NoReturn

import numpy as np

from flitlab.models.application.trace import TraceProgram
from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.sim.engines.base import PacketLog, PacketProgramRun, Scalar
from flitlab.sim.measure.application import ProgramMeasure
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.point import details
from flitlab.sim.measure.result import Result
from flitlab.sim.measure.unfinished import StallDetector, UnfinishedError
from flitlab.sim.measure.window import Window

STEP = 64
"""Ticks after which a run is checked for its end."""


class _StallDetector(StallDetector):
    """Checks a run of a trace."""

    run: PacketProgramRun

    def fail(self, why: str) -> NoReturn:
        created, delivered = self.run.scalars()[[Scalar.CREATED_PACKETS, Scalar.DELIVERED_PACKETS]].tolist()
        raise UnfinishedError(f"{why}; {created:,} packets are created, and {delivered:,} delivered")


def measure_trace(
    run: PacketProgramRun, scenario: Scenario[SwitchingMode, Workload], load: float, how: ProgramMeasure
) -> Result:
    """Run a trace to its end.

    Parameters
    ----------
    run : PacketProgramRun
        The run at tick 0, with a log.
    scenario : Scenario
        Its scenario, whose work is a :class:`~flitlab.models.application.trace.TraceProgram`.
    load : float
        Not used.
    how : ProgramMeasure
        The limit of the run.

    Returns
    -------
    Result
        Of all ticks up to the delivery of the last packet, or of ``max_ticks`` ticks. Its detail has the columns of
        packets.csv as ``packets``.

    Raises
    ------
    UnfinishedError
        If packets wait indefinitely.
    """
    program = scenario.work.program
    assert isinstance(program, TraceProgram)
    before, watch, tick = run.snapshot(), _StallDetector(run, scenario), 0
    last = run.latest if how.max_ticks is None else min(how.max_ticks, run.latest)
    while not (done := int(run.scalars()[Scalar.DELIVERED_PACKETS]) == program.rows) and tick < last:
        tick = min(tick + STEP, last)
        run.advance(tick)
        if not run.done():
            watch.check(tick)
    if not done and how.max_ticks is None:
        watch.fail(f"the trace takes longer than {run.latest:,} ticks")
    after, log = run.snapshot(), run.log()
    end = int(log.delivered.max(initial=0)) + 1 if done else tick
    after = replace(after, tick=end)
    window = Window(scenario, before, after, (after.scalars - before.scalars)[None, :])
    row: Row = measured("packets", window)
    row |= {"saturated": None, "saturated_by": "", "deadlocked": False, "warmup_ticks": 0, "steady": True}
    created = run.execution().queued[: program.rows]
    detail = details(before, after) | {"packets": _packets(program, created, log)}
    delivered = after.delivered.minus(before.delivered)
    return Result(row, detail, delivered, before.present, end, limited=not done)


def _packets(program: TraceProgram, created: Ints, log: PacketLog) -> JsonObject:
    """Return the columns of packets.csv by name; None where a packet is not created or not delivered yet.

    created: int64 [rows], ticks, or -1.
    """
    rows = program.rows

    def logged(values: Ints) -> list[int | None]:
        column = np.full(rows, -1)
        column[log.send] = values
        return _cells(column)

    hosts = (program.ranks - 1) // 2
    return {
        "source": program.rank[:rows].tolist(), "destination": (program.peer[:rows] - hosts).tolist(),
        "class": list(program.classes) or [""] * rows, "flits": program.amount[:rows].tolist(),
        "created": _cells(created), "started": logged(log.started), "delivered": logged(log.delivered),
        "hops": logged(log.hops), "deflections": logged(log.deflections),
    }  # fmt: skip


def _cells(column: Ints) -> list[int | None]:
    return [None if value < 0 else value for value in column.tolist()]
