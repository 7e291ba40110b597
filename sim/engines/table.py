# SPDX-License-Identifier: Apache-2.0
"""Which code runs a discipline, in either engine: one entry for each, by its mode."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flitlab.models.closest_match import closest_match
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode


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

_changing: list[str] = []
"""Modes in which networks can change during a run."""

Alone = Callable[[Scenario[Any, Any]], str]
"""Says why one thread simulates a run of a scenario, '' if several can share it."""

_alone: dict[str, Alone] = {}

Kernels = Callable[[Scenario[Any, Any]], Hashable]
"""Tells scenarios of one mode apart that need kernels of their own."""

_kernels: dict[str, Kernels] = {}


def runs(
    discipline: type[SwitchingMode], alone: Alone | None = None, kernels: Kernels | None = None
) -> Callable[[Callable[[], Engines]], Callable[[], Engines]]:
    """Function decorator: what returns the :class:`Engines` of a discipline; it is asked when the first run begins.

    It can import compilers that only a run needs. alone: where it says '' the compiled engine's start takes
    ``threads``; without it, every run has one thread. kernels: equal for scenarios that the same kernels run; without
    it, one set of kernels runs all. Raises ``ValueError`` for a discipline that has some already.
    """

    def enter(loader: Callable[[], Engines]) -> Callable[[], Engines]:
        holder = _loaders.get(discipline.mode)
        if holder is not None and holder.__module__ != loader.__module__:
            raise ValueError(f"mode {discipline.mode} has engines already, from {holder.__module__}")
        _loaders[discipline.mode] = loader
        if discipline.supports_timeline and discipline.mode not in _changing:
            _changing.append(discipline.mode)
        _alone[discipline.mode] = alone or _always_alone
        _kernels[discipline.mode] = kernels or _one_for_all
        return loader

    return enter


def _always_alone(scenario: Scenario) -> str:
    return f"mode {scenario.switching.mode} runs on one thread"


def _one_for_all(scenario: Scenario) -> Hashable:
    return None


def kernels_of(scenario: Scenario[Any, Any]) -> tuple[str, Hashable]:
    """Tell by which kernels the compiled engine runs a scenario: equal for those that it runs by the same."""
    check_runs(scenario.switching)
    mode = scenario.switching.mode
    return mode, _kernels[mode](scenario)


def alone(engine: str, scenario: Scenario[Any, Any]) -> str:
    """Say why one thread simulates a run of a scenario in an engine, '' if several can share it."""
    if engine != "compiled":
        return f"engine {engine} runs on one thread"
    check_runs(scenario.switching)
    return _alone[scenario.switching.mode](scenario)


def check_runs(discipline: SwitchingMode) -> None:
    """Raise ``ValueError`` where nothing runs a discipline; what does is not loaded for that."""
    mode = discipline.mode
    if mode not in _loaders:
        meant = closest_match(mode, list(_loaders))
        raise ValueError(f"no engine runs mode {mode!r}" + (f"; did you mean {meant!r}?" if meant else ""))


def changing() -> list[str]:
    """List the modes in which networks can change during a run, sorted."""
    return sorted(_changing)


def engines_of(discipline: SwitchingMode) -> Engines:
    """What runs a discipline. Raises ``ValueError`` where nothing does."""
    check_runs(discipline)
    return _loaders[discipline.mode]()


def every() -> dict[str, Engines]:
    """What runs each discipline, by its mode."""
    return {mode: loader() for mode, loader in _loaders.items()}
