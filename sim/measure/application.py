"""A program that runs to its end: its time, what its ranks did in it, its messages, and the use of the channels."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.application.program import CALC, RECV, SEND, Program
from models.scenario import Scenario
from sim.engines import engine
from sim.engines.base import ApplicationRun, Flows
from sim.engines.compare import BothEngines
from sim.measure.executed import Executed, holds

MOST_BINS = 256
"""Intervals of utilisation over time: where there are more, each two of them become one."""

FIRST_BIN = 64
"""Ticks of an interval in the beginning."""

MOST_KEPT = 4_000_000
"""Numbers that are kept for utilisation over time; fewer intervals where there are many channels."""

PATIENCE = 4
"""Times the longest calculation and the longest way that nothing may happen before a run counts as stuck."""

SILENCE_S = 300.0
"""Seconds of a run of mode datagram in which nothing happens: longer than any timeout."""

SHOWN = 5
"""Operations that are named where a program does not end."""


class UnfinishedError(Exception):
    """A program that does not come to its end; the message says what it waits for."""


@dataclass(frozen=True)
class ProgramResult:
    """What is known of a run.

    row: the measured columns of results.csv. detail: rows of ranks.csv, steps.csv, utilisation.csv, messages.csv,
    critical_path.csv and timeline.csv, by name. delivered: flits (of datagrams, bytes) by their ends; present: none.
    window: ticks of the run, in the time that a channel of capacity 1 takes for a flit, or a byte.
    """

    row: dict[str, Any]
    detail: dict[str, Any]
    delivered: Flows
    present: Flows
    window: float


def run_application(name: str, scenario: Scenario, seed: int, max_ticks: int | None = None) -> ProgramResult:
    """Run the program of a scenario to its end with the engine ``reference``, ``compiled`` or ``both``.

    Raises :class:`UnfinishedError` if it has none, or none within ``max_ticks``, and
    :class:`~sim.engines.base.EngineMismatch` if both engines run and differ.
    """
    started = time.process_time()
    run = start(name, scenario, seed)
    edges, carried = run_to_end(run, scenario, max_ticks)
    execution = run.execution()
    measured = Executed.of(scenario, execution)
    row = measured.row() | measured.use(edges, carried)
    row["cpu_s"] = time.process_time() - started
    detail = measured.detail(edges, carried)
    delivered = measured.delivered()
    none = Flows(*(np.zeros_like(part) for part in delivered))
    fastest = 1.0
    if scenario.datagram is not None:
        fastest = max(float(scenario.topology.capacity.max(initial=0.0)), scenario.topology.host_capacity)
    return ProgramResult(row, detail, delivered, none, (measured.ticks + 1) / fastest)


def start(name: str, scenario: Scenario, seed: int) -> ApplicationRun:
    """Start the program of a scenario."""
    if scenario.datagram is not None:
        from sim.engines.datagram import start_application

        return start_application(name, scenario, seed)
    return (BothEngines() if name == "both" else engine(name)).start(scenario, 1.0, seed)  # type: ignore[return-value]


def run_to_end(run: ApplicationRun, scenario: Scenario, max_ticks: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Advance until every operation is done.

    What channels carried from edge to edge of equal intervals: int64 [edges], and flits, float64 [edges, channels].
    Raises :class:`UnfinishedError`.
    """
    bins = max(16, min(MOST_BINS, MOST_KEPT // max(scenario.topology.channels, 1)))
    width, edges, carried = FIRST_BIN, [0], [np.asarray(run.carried(), float)]
    patience = _patience(scenario)
    ended, since = -1, 0
    while not run.done():
        if len(edges) > bins:
            edges, carried, width = edges[::2], carried[::2], 2 * width
        if max_ticks is not None and edges[-1] >= max_ticks:
            raise UnfinishedError(f"after measure.max_ticks: {_unfinished(run, scenario)}")
        edges.append(edges[-1] + width)
        run.advance(edges[-1])
        carried.append(np.asarray(run.carried(), float))
        if not np.array_equal(carried[-1], carried[-2]):
            ended, since = -1, edges[-1]
        elif edges[-1] - since > patience:
            count = int((run.execution().finish >= 0).sum())
            if count == ended:
                raise UnfinishedError(_unfinished(run, scenario))
            ended, since = count, edges[-1]
    return np.array(edges), np.array(carried)


def _patience(scenario: Scenario) -> int:
    """Ticks after which something must have happened."""
    workload, model, topology = scenario.workload, scenario.switching, scenario.topology
    assert workload is not None
    program, messages = workload.program, workload.messages
    longest = int(holds(scenario).max(initial=0))
    hops = topology.switches * (model.header + model.switch + model.link + int(topology.delay.max(initial=0)))
    way = model.injection + hops + model.ejection + messages.packet_flits
    silence = int(SILENCE_S * 1e9 / messages.tick_ns) if scenario.datagram is not None else 0
    return PATIENCE * (longest + way) + silence + (program.operations == 0)


def _unfinished(run: ApplicationRun, scenario: Scenario) -> str:
    """What a program waits for that does not end."""
    assert scenario.workload is not None
    program, execution = scenario.workload.program, run.execution()
    left = np.flatnonzero(execution.finish < 0)
    stuck = getattr(run, "deadlocked", lambda: False)
    why = "the network is deadlocked; " if scenario.may_deadlock and stuck() else ""
    waiting = left[execution.ready[left] >= 0][:SHOWN]
    said = "; ".join(_described(program, int(o)) for o in waiting)
    return f"{why}{len(left)} of {program.operations} operations are not done; waiting: {said or 'none'}"


def _described(program: Program, o: int) -> str:
    rank = int(program.rank[o])
    what = {CALC: "calculates", SEND: "sends to", RECV: "receives from"}[int(program.kind[o])]
    peer = f" rank {program.peer[o]}" if program.kind[o] != CALC else ""
    return f"operation {o - program.start[rank]} of rank {rank} {what}{peer}"
