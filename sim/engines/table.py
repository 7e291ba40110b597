# SPDX-License-Identifier: Apache-2.0
"""The registry of engines by switching mode."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flitlab.models.closest_match import closest_match
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode


class Start(Protocol):
    """Starts a run of a scenario at tick 0. log: whether to log every packet, for comparisons.

    The run is a :class:`~flitlab.sim.engines.base.Run`; of a program an
    :class:`~flitlab.sim.engines.base.ApplicationRun`; of flows, and of programs over flows, a
    :class:`~flitlab.sim.engines.datagram.base.DatagramRun`.
    """

    def __call__(self, scenario: Scenario[Any, Any], load: float, seed: int, log: bool = False) -> Any:
        """Start a run. Raises ``ValueError`` for a scenario that the switching mode cannot run."""


@dataclass(frozen=True)
class Engines:
    """The engines of a switching mode.

    both: compares two runs; None: the comparison of packets and programs. watches: by engine, the class or function of
    runs that follow one packet, called with (scenario, load, seed, packet id), which returns a
    :class:`~flitlab.sim.engines.trace.base.PacketWatch`; empty where packets cannot be followed.
    """

    reference: Start
    compiled: Start
    both: Callable[[Any, Any], Any] | None = None
    watches: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def start(self, engine: str) -> Start:
        """Return the function that starts a run in engine ``reference`` or ``compiled``.

        Raises ``KeyError`` for another.
        """
        return {"reference": self.reference, "compiled": self.compiled}[engine]


_loaders: dict[str, Callable[[], Engines]] = {}

_timeline_modes: list[str] = []
"""Modes whose network can change during a run."""

SingleThreadReason = Callable[[Scenario[Any, Any]], str]
"""Returns why a run of a scenario is single-threaded, '' if it can be partitioned."""

_single_thread_reasons: dict[str, SingleThreadReason] = {}

Kernels = Callable[[Scenario[Any, Any]], Hashable]
"""Returns a key of the kernels that a scenario of a mode needs."""

_kernels: dict[str, Kernels] = {}


def runs(
    switching_mode: type[SwitchingMode],
    single_thread_reason: SingleThreadReason | None = None,
    kernels: Kernels | None = None,
) -> Callable[[Callable[[], Engines]], Callable[[], Engines]]:
    """Register the decorated function as the loader of the :class:`Engines` of a switching mode.

    The loader is called when the first run begins, so it can import compilers that only a run needs.

    Parameters
    ----------
    switching_mode : type of SwitchingMode
        The switching mode.
    single_thread_reason : callable, optional
        Returns '' for scenarios whose run takes ``threads`` in the compiled engine; by default none does.
    kernels : callable, optional
        Returns equal keys for scenarios that share kernels; by default all do.

    Returns
    -------
    callable
        The decorator. It raises ``ValueError`` for a mode that another module has registered.
    """

    def register(loader: Callable[[], Engines]) -> Callable[[], Engines]:
        existing = _loaders.get(switching_mode.mode)
        if existing is not None and existing.__module__ != loader.__module__:
            raise ValueError(f"mode {switching_mode.mode} has engines already, from {existing.__module__}")
        _loaders[switching_mode.mode] = loader
        if switching_mode.supports_timeline and switching_mode.mode not in _timeline_modes:
            _timeline_modes.append(switching_mode.mode)
        _single_thread_reasons[switching_mode.mode] = single_thread_reason or _single_threaded
        _kernels[switching_mode.mode] = kernels or _same_kernels
        return loader

    return register


def _single_threaded(scenario: Scenario) -> str:
    return f"mode {scenario.switching.mode} is single-threaded"


def _same_kernels(scenario: Scenario) -> Hashable:
    return None


def kernel_key(scenario: Scenario[Any, Any]) -> tuple[str, Hashable]:
    """Return the key of the kernels that run a scenario in the compiled engine: equal keys share kernels."""
    check_has_engine(scenario.switching)
    mode = scenario.switching.mode
    return mode, _kernels[mode](scenario)


def single_thread_reason(engine: str, scenario: Scenario[Any, Any]) -> str:
    """Return why a run of a scenario is single-threaded in an engine, '' if it can be partitioned."""
    if engine != "compiled":
        return f"engine {engine} is single-threaded"
    check_has_engine(scenario.switching)
    return _single_thread_reasons[scenario.switching.mode](scenario)


def check_has_engine(switching_mode: SwitchingMode) -> None:
    """Raise ``ValueError`` for a switching mode without an engine. The engine itself is not loaded."""
    mode = switching_mode.mode
    if mode not in _loaders:
        suggestion = closest_match(mode, list(_loaders))
        raise ValueError(f"no engine runs mode {mode!r}" + (f"; did you mean {suggestion!r}?" if suggestion else ""))


def timeline_modes() -> list[str]:
    """Return the modes whose network can change during a run, sorted."""
    return sorted(_timeline_modes)


def engines_of(switching_mode: SwitchingMode) -> Engines:
    """Return the engines of a switching mode. Raises ``ValueError`` if there are none."""
    check_has_engine(switching_mode)
    return _loaders[switching_mode.mode]()


def engines_by_mode() -> dict[str, Engines]:
    """Return the engines of every switching mode."""
    return {mode: loader() for mode, loader in _loaders.items()}
