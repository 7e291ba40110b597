# SPDX-License-Identifier: Apache-2.0
"""The entry point of the engines: it starts every run."""

from collections.abc import Callable
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.scenario import Scenario
from flitlab.models.switching.deflection import Deflection, Rule
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.sim.engines import switching_modes as switching_modes  # registers their engines
from flitlab.sim.engines.compare import BothApplicationRun, BothRun
from flitlab.sim.engines.table import engines_by_mode, engines_of, single_thread_reason


def start(
    engine: str, scenario: Scenario, load: float = 1.0, seed: int = 1, log: bool = False, threads: int = 1,
    channels: bool = False,
) -> Any:  # fmt: skip
    """Start a run of a scenario at tick 0.

    Parameters
    ----------
    engine : str
        ``reference``, ``compiled``, or ``both`` in lock-step.
    load : float
        Injection rate, flits/tick/host; ignored for programs.
    seed : int
        Seed of traffic and routing.
    log : bool
        Whether to log packets (see :class:`~flitlab.sim.engines.table.Start`).
    threads : int
        Threads of the run, if partitions of the network can share it
        (:func:`~flitlab.sim.engines.table.single_thread_reason`). Results do not depend on it.
    channels : bool
        Whether snapshots have the traffic of channels (:class:`~flitlab.sim.engines.base.Snapshot`).

    Returns
    -------
    Run, ApplicationRun or DatagramRun
        See :class:`~flitlab.sim.engines.table.Start`.

    Raises
    ------
    KeyError
        For another engine.
    ValueError
        For a load that hosts cannot create, a calculation too long to count in ticks, and anything else that the
        switching
        mode cannot run.
    """
    if engine != "both":
        threads = min(threads, scenario.topology.switches)
        options = {} if threads == 1 or single_thread_reason(engine, scenario) else {"threads": threads}
        run = engines_of(scenario.switching).start(engine)(scenario, load, seed, log, **options)
        if channels and not hasattr(run, "count_channels"):
            raise ValueError(f"mode {scenario.switching.mode} does not count the traffic of channels")
        if channels:
            run.count_channels()
        return run
    compiled, reference = (
        start(name, scenario, load, seed, log=True, channels=channels) for name in ("compiled", "reference")
    )
    if (both := engines_of(scenario.switching).both) is not None:
        return both(compiled, reference)
    return (BothApplicationRun if isinstance(scenario.work, Workload) else BothRun)(compiled, reference)


def packet_watch(engine: str, switching_mode: SwitchingMode) -> Callable[..., Any]:
    """Return the class, or function, of runs that follow one packet (see :class:`~flitlab.sim.engines.table.Engines`).

    Raises ``ValueError`` for a switching mode whose packets cannot be followed, ``KeyError`` for another engine.
    """
    if isinstance(switching_mode, Deflection) and switching_mode.rule != Rule.POOL:
        raise ValueError(
            f"switching.rule = {switching_mode.rule!r}: packets of deflection are followed under rule 'pool' only, "
            "where all flits of a packet leave a switch in a row"
        )
    watches = engines_of(switching_mode).watches
    if not watches:
        raise ValueError(
            f"switching.mode = {switching_mode.mode!r}: packets are followed in {', '.join(_modes_with_watch())} only"
        )
    return watches[engine]


def _modes_with_watch() -> list[str]:
    return [mode for mode, engines in engines_by_mode().items() if engines.watches]
