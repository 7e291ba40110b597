"""A program that runs to its end: its time, what its ranks did in it, its messages, and the use of the channels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from flitlab.models.cputime import CpuTime
from flitlab.models.scenario import Scenario
from flitlab.sim.engines import engine
from flitlab.sim.engines.base import ApplicationRun, Flows
from flitlab.sim.engines.compare import BothEngines
from flitlab.sim.measure.columns.registry import measured
from flitlab.sim.measure.ending import UnfinishedError as UnfinishedError
from flitlab.sim.measure.ending import Watch
from flitlab.sim.measure.executed import Executed

MOST_BINS = 256
"""Intervals of utilisation over time: where there are more, each two of them become one."""

FIRST_BIN = 64
"""Ticks of an interval in the beginning."""

MOST_KEPT = 4_000_000
"""Numbers that are kept for utilisation over time; fewer intervals where there are many channels."""


@dataclass(frozen=True)
class ProgramResult:
    """What is known of a run.

    row: the measured columns of results.csv. detail: rows of ranks.csv, steps.csv, utilisation.csv, messages.csv,
    critical_path.csv and timeline.csv, by name; ``compile_s``, CPU seconds of making kernels ready, which are not in
    ``cpu_s``. delivered: flits (of datagrams, bytes) by their ends; present: none.
    window: ticks of the run, in the time that a channel of capacity 1 takes for a flit, or a byte.
    """

    row: dict[str, Any]
    detail: dict[str, Any]
    delivered: Flows
    present: Flows
    window: float


def run_application(name: str, scenario: Scenario, seed: int, max_ticks: int | None = None) -> ProgramResult:
    """Run the program of a scenario to its end with the engine ``reference``, ``compiled`` or ``both``.

    Raises :class:`~flitlab.sim.measure.ending.UnfinishedError` if it has none, or none within ``max_ticks``, and
    :class:`~flitlab.sim.engines.base.EngineMismatch` if both engines run and differ.
    """
    spent = CpuTime()
    run = start(name, scenario, seed)
    edges, carried = run_to_end(run, scenario, max_ticks)
    execution = run.execution()
    executed = Executed.of(scenario, execution)
    row = executed.row() | executed.use(edges, carried) | measured("programs", executed)
    row["cpu_s"] = spent.seconds
    detail = {**executed.detail(edges, carried), "compile_s": spent.compile_s}
    delivered = executed.delivered()
    none = Flows(*(np.zeros_like(part) for part in delivered))
    fastest = 1.0
    if scenario.datagram is not None:
        fastest = max(float(scenario.topology.capacity.max(initial=0.0)), scenario.topology.host_capacity)
    return ProgramResult(row, detail, delivered, none, (executed.ticks + 1) / fastest)


def start(name: str, scenario: Scenario, seed: int) -> ApplicationRun:
    """Start the program of a scenario."""
    if scenario.datagram is not None:
        from flitlab.sim.engines.datagram import start_application

        return start_application(name, scenario, seed)
    return (BothEngines() if name == "both" else engine(name)).start(scenario, 1.0, seed)  # type: ignore[return-value]


def run_to_end(run: ApplicationRun, scenario: Scenario, max_ticks: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Advance until every operation is done.

    What channels carried from edge to edge of equal intervals: int64 [edges], and flits, float64 [edges, channels].
    Raises :class:`~flitlab.sim.measure.ending.UnfinishedError`.
    """
    from flitlab.sim.engines.datagram.base import MessageLost

    bins = max(16, min(MOST_BINS, MOST_KEPT // max(scenario.topology.channels, 1)))
    width, edges, carried = FIRST_BIN, [0], [np.asarray(run.carried(), float)]
    watch = Watch(run, scenario)
    last = run.latest if max_ticks is None else min(max_ticks + 1, run.latest)
    while not run.done():
        if edges[-1] >= last:
            watch.give_up(_too_long(scenario, run.latest, max_ticks))
        if len(edges) > bins:
            edges, carried, width = edges[::2], carried[::2], 2 * width
        edges.append(edges[-1] + width)
        try:
            run.advance(min(edges[-1], last))
        except MessageLost as error:
            watch.give_up(str(error))
        carried.append(np.asarray(run.carried(), float))
        if not run.done():
            watch.look(edges[-1])
    return np.array(edges), np.array(carried)


def _too_long(scenario: Scenario, latest: int, max_ticks: int | None) -> str:
    if max_ticks is not None and max_ticks < latest:
        return f"the program takes longer than measure.max_ticks, {max_ticks:,} ticks"
    far = f"as far as mode {scenario.switching.mode} counts (simulate fewer iterations, or mode flow)"
    return f"the program takes longer than {latest:,} ticks, {far}"
