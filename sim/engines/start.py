# SPDX-License-Identifier: Apache-2.0
"""The one door to the engines: every run, and every look at a packet, starts here."""

from collections.abc import Callable
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import Discipline
from flitlab.sim.engines import switching_modes as switching_modes  # which have their engines by that
from flitlab.sim.engines.compare import BothApplicationRun, BothRun
from flitlab.sim.engines.table import engines_by_mode, engines_of, single_thread_reason


def start(
    engine: str, scenario: Scenario, load: float = 1.0, seed: int = 1, log: bool = False, threads: int = 1
) -> Any:
    """A run of a scenario at tick 0 in the engine ``reference`` or ``compiled``, or in ``both`` side by side.

    load: means nothing to programs. log: see :class:`~flitlab.sim.engines.table.Start`, which has the types of runs,
    too. threads: that simulate it, where they can share it (:func:`~flitlab.sim.engines.table.alone`); results are the
    same for any number. Raises ``KeyError`` for another engine; ``ValueError`` for a load that hosts cannot create, a
    calculation too long to be counted in ticks, and what else the discipline cannot run.
    """
    if engine != "both":
        threads = min(threads, scenario.topology.switches)
        options = {} if threads == 1 or single_thread_reason(engine, scenario) else {"threads": threads}
        return engines_of(scenario.switching).start(engine)(scenario, load, seed, log, **options)
    compiled, reference = (start(name, scenario, load, seed, log=True) for name in ("compiled", "reference"))
    if (both := engines_of(scenario.switching).both) is not None:
        return both(compiled, reference)
    return (BothApplicationRun if isinstance(scenario.work, Workload) else BothRun)(compiled, reference)


def packet_watch(engine: str, switching_mode: Discipline) -> Callable[..., Any]:
    """The class, or function, of runs with an eye on one packet (see :class:`~flitlab.sim.engines.table.Engines`).

    Raises ``ValueError`` for a discipline whose packets are not followed so, ``KeyError`` for another engine.
    """
    watches = engines_of(switching_mode).watches
    if not watches:
        raise ValueError(
            f"switching.mode = {switching_mode.mode!r}: packets are followed in {', '.join(_modes_with_watch())} only"
        )
    return watches[engine]


def _modes_with_watch() -> list[str]:
    return [mode for mode, engines in engines_by_mode().items() if engines.watches]
