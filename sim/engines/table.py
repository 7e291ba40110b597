# SPDX-License-Identifier: Apache-2.0
"""Which code runs a discipline, in either engine: one entry for each, by its mode."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flitlab.models.near import near
from flitlab.models.scenario import Scenario
from flitlab.models.switching.discipline import Discipline


class Start(Protocol):
    """Starts a run of a scenario at tick 0. log: keeps a record of every packet, for comparisons.

    The run is a :class:`~flitlab.sim.engines.base.Run`; of a program an
    :class:`~flitlab.sim.engines.base.ApplicationRun`; of flows, and of programs where these are flows, too, a
    :class:`~flitlab.sim.engines.datagram.base.DatagramRun`.
    """

    def __call__(self, scenario: Scenario[Any, Any], load: float, seed: int, log: bool = False) -> Any:
        """Start a run. Raises ``ValueError`` for a scenario that the discipline cannot run."""


@dataclass(frozen=True)
class Engines:
    """What runs a discipline.

    both: compares two runs of it, None: they are compared as those of packets and programs are. watches: by engine,
    what makes a run that looks at one packet; empty where nothing does. A watch is called with (scenario, load, seed,
    id of the packet) and is a :class:`~flitlab.sim.engines.trace.base.Watch`.
    """

    reference: Start
    compiled: Start
    both: Callable[[Any, Any], Any] | None = None
    watches: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def start(self, engine: str) -> Start:
        """What starts a run in the engine ``reference`` or ``compiled``. Raises ``KeyError`` for another."""
        return {"reference": self.reference, "compiled": self.compiled}[engine]


_loaders: dict[str, Callable[[], Engines]] = {}

_timeline_modes: list[str] = []
"""Modes in which networks can change during a run."""

SingleThreadReason = Callable[[Scenario[Any, Any]], str]
"""Says why one thread simulates a run of a scenario, '' if several can share it."""

_single_thread_reasons: dict[str, SingleThreadReason] = {}

Kernels = Callable[[Scenario[Any, Any]], Hashable]
"""Tells scenarios of one mode apart that need kernels of their own."""

_kernels: dict[str, Kernels] = {}


def runs(
    switching_mode: type[Discipline],
    single_thread_reason: SingleThreadReason | None = None,
    kernels: Kernels | None = None,
) -> Callable[[Callable[[], Engines]], Callable[[], Engines]]:
    """Function decorator: what returns the :class:`Engines` of a discipline; it is asked when the first run begins.

    It can import compilers that only a run needs. alone: where it says '' the compiled engine's start takes
    ``threads``; without it, every run has one thread. kernels: equal for scenarios that the same kernels run; without
    it, one set of kernels runs all. Raises ``ValueError`` for a discipline that has some already.
    """

    def register(loader: Callable[[], Engines]) -> Callable[[], Engines]:
        existing = _loaders.get(switching_mode.mode)
        if existing is not None and existing.__module__ != loader.__module__:
            raise ValueError(f"mode {switching_mode.mode} has engines already, from {existing.__module__}")
        _loaders[switching_mode.mode] = loader
        if switching_mode.changes and switching_mode.mode not in _timeline_modes:
            _timeline_modes.append(switching_mode.mode)
        _single_thread_reasons[switching_mode.mode] = single_thread_reason or _single_threaded
        _kernels[switching_mode.mode] = kernels or _same_kernels
        return loader

    return register


def _single_threaded(scenario: Scenario) -> str:
    return f"mode {scenario.switching.mode} runs on one thread"


def _same_kernels(scenario: Scenario) -> Hashable:
    return None


def kernel_key(scenario: Scenario[Any, Any]) -> tuple[str, Hashable]:
    """Tell by which kernels the compiled engine runs a scenario: equal for those that it runs by the same."""
    check_has_engine(scenario.switching)
    mode = scenario.switching.mode
    return mode, _kernels[mode](scenario)


def single_thread_reason(engine: str, scenario: Scenario[Any, Any]) -> str:
    """Say why one thread simulates a run of a scenario in an engine, '' if several can share it."""
    if engine != "compiled":
        return f"engine {engine} runs on one thread"
    check_has_engine(scenario.switching)
    return _single_thread_reasons[scenario.switching.mode](scenario)


def check_has_engine(switching_mode: Discipline) -> None:
    """Raise ``ValueError`` where nothing runs a discipline; what does is not loaded for that."""
    mode = switching_mode.mode
    if mode not in _loaders:
        closest_match = near(mode, list(_loaders))
        raise ValueError(
            f"no engine runs mode {mode!r}" + (f"; did you mean {closest_match!r}?" if closest_match else "")
        )


def timeline_modes() -> list[str]:
    """List the modes in which networks can change during a run, sorted."""
    return sorted(_timeline_modes)


def engines_of(switching_mode: Discipline) -> Engines:
    """What runs a discipline. Raises ``ValueError`` where nothing does."""
    check_has_engine(switching_mode)
    return _loaders[switching_mode.mode]()


def engines_by_mode() -> dict[str, Engines]:
    """What runs each discipline, by its mode."""
    return {mode: loader() for mode, loader in _loaders.items()}
