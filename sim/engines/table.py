# SPDX-License-Identifier: Apache-2.0
"""The registry of engines by switching mode."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from flitlab.models.closest_match import closest_match
from flitlab.models.scenario import Scenario
from flitlab.models.switching.switching_mode import SwitchingMode


class Start(Protocol):
    """Starts a run of a scenario at tick 0. log: whether to log every packet, for comparisons.

    The run is a :class:`~flitlab.sim.engines.base.Run`; of a program an
    :class:`~flitlab.sim.engines.base.ApplicationRun`; of flows, and of programs over flows, a
    :class:`~flitlab.sim.engines.transport.datagram.DatagramRun`.
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
    both: Callable[[Any, Any], object] | None = None
    watches: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def start(self, engine: str) -> Start:
        """Return the function that starts a run in engine ``reference`` or ``compiled``.

        Raises ``KeyError`` for another.
        """
        return {"reference": self.reference, "compiled": self.compiled}[engine]


def network_start(kernel: ModuleType, timeline_run: Callable[..., Any]) -> Start:
    """Return the function that starts a compiled run of a kernel, or with a timeline a ``timeline_run``."""
    from flitlab.sim.engines.compiled import engine

    static_run = partial(engine.start, kernel)

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        run = static_run if scenario.timeline is None else timeline_run
        return run(scenario, load, seed, log, **options)

    return start


def session_start(run: Callable[..., Any]) -> Start:
    """Return the function that starts a run of a session."""

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        changes = () if scenario.timeline is None else (scenario.timeline,)
        session = scenario.switching.session(scenario.instance, scenario.work, load, seed, *changes)
        return run(session, log, **options)

    return start


SingleThreadReason = Callable[[Scenario[Any, Any]], str]
"""Returns why a run of a scenario is single-threaded, '' if it can be partitioned."""

Kernels = Callable[[Scenario[Any, Any]], Hashable]
"""Returns a key of the kernels that a scenario of a mode needs."""


class _Entry(NamedTuple):
    """A switching mode with engines; parameters as of :func:`runs`."""

    switching_mode: type[SwitchingMode]
    load: Callable[[], Engines]
    single_thread_reason: SingleThreadReason
    kernels: Kernels


_entries: dict[str, _Entry] = {}
"""Switching modes by name."""


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
        mode = switching_mode.mode
        existing = _entries.get(mode)
        if existing is not None and existing.load.__module__ != loader.__module__:
            raise ValueError(f"mode {mode} has engines already, from {existing.load.__module__}")
        reason, key = single_thread_reason or _single_threaded, kernels or _same_kernels
        _entries[mode] = _Entry(switching_mode, loader, reason, key)
        return loader

    return register


def _single_threaded(scenario: Scenario) -> str:
    return f"mode {scenario.switching.mode} is single-threaded"


def _same_kernels(scenario: Scenario) -> Hashable:
    return None


def kernel_key(scenario: Scenario[Any, Any]) -> tuple[str, Hashable]:
    """Return the key of the kernels that run a scenario in the compiled engine: equal keys share kernels."""
    return scenario.switching.mode, _entry(scenario.switching).kernels(scenario)


def single_thread_reason(engine: str, scenario: Scenario[Any, Any]) -> str:
    """Return why a run of a scenario is single-threaded in an engine, '' if it can be partitioned."""
    if engine != "compiled":
        return f"engine {engine} is single-threaded"
    return _entry(scenario.switching).single_thread_reason(scenario)


def check_has_engine(switching_mode: SwitchingMode) -> None:
    """Raise ``ValueError`` for a switching mode without an engine. The engine itself is not loaded."""
    _entry(switching_mode)


def _entry(switching_mode: SwitchingMode) -> _Entry:
    mode = switching_mode.mode
    if mode not in _entries:
        suggestion = closest_match(mode, list(_entries))
        raise ValueError(f"no engine runs mode {mode!r}" + (f"; did you mean {suggestion!r}?" if suggestion else ""))
    return _entries[mode]


def timeline_modes() -> list[str]:
    """Return the modes whose network can change during a run, sorted."""
    return sorted(mode for mode, entry in _entries.items() if entry.switching_mode.supports_timeline)


def packet_modes() -> list[str]:
    """Return the modes whose runs count packets, and so can log them, in the order of their registration."""
    return [mode for mode, entry in _entries.items() if entry.switching_mode.counts == "packets"]


def engines_of(switching_mode: SwitchingMode) -> Engines:
    """Return the engines of a switching mode. Raises ``ValueError`` if there are none."""
    return _entry(switching_mode).load()


def engines_by_mode() -> dict[str, Engines]:
    """Return the engines of every switching mode."""
    return {mode: entry.load() for mode, entry in _entries.items()}
