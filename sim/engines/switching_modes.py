# SPDX-License-Identifier: Apache-2.0
"""The engines of flitlab's own switching modes."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.jit import interpreted
from flitlab.models.rules.tables import Selection
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.deflection import Deflection, Rule
from flitlab.models.switching.flow import Flow
from flitlab.models.switching.ideal import Ideal
from flitlab.models.switching.spray import Spray
from flitlab.models.switching.vct import Vct
from flitlab.models.switching.wormhole import Wormhole
from flitlab.sim.engines.base import ApplicationRun
from flitlab.sim.engines.compare import BothFluidRun
from flitlab.sim.engines.partitions import single_thread_reason
from flitlab.sim.engines.table import Engines, Start, runs


def _vct_kernel_key(scenario: Scenario[Vct]) -> tuple[bool, bool]:
    """Return which kernels of virtual cut-through a scenario needs.

    The first flag: heads of a switch are arbitrated together. The second: routes are chosen by congestion.
    """
    from flitlab.sim.engines.compiled.ugal import uses_congestion

    select = scenario.routes.select
    return scenario.switching.shared_input or select == Selection.ADAPTIVE, bool(interpreted(uses_congestion)(select))


@runs(Vct, single_thread_reason, _vct_kernel_key)
def vct() -> Engines:
    """Return the engines of virtual cut-through, and the watches of single packets."""
    from flitlab.sim.engines.compiled import vct as kernel
    from flitlab.sim.engines.compiled.vct.timeline import VctTimelineRun
    from flitlab.sim.engines.reference.vct import VctNetwork
    from flitlab.sim.engines.trace import compiled, reference

    watches = {"compiled": compiled.VctWatch, "reference": reference.VctWatch}
    return Engines(VctNetwork, _network_start(kernel, VctTimelineRun), watches=watches)


@runs(Wormhole)
def wormhole() -> Engines:
    """Return the engines of wormhole switching, and the watches of single packets."""
    from flitlab.sim.engines.compiled import wormhole as kernel
    from flitlab.sim.engines.compiled.wormhole.timeline import WormholeTimelineRun
    from flitlab.sim.engines.reference.wormhole import WormholeNetwork
    from flitlab.sim.engines.trace import compiled, reference

    watches = {"compiled": compiled.WormholeWatch, "reference": reference.WormholeWatch}
    return Engines(WormholeNetwork, _network_start(kernel, WormholeTimelineRun), watches=watches)


def _deflection_kernel_key(scenario: Scenario[Deflection]) -> str:
    """Return the rule, each of which has kernels of its own."""
    return scenario.switching.rule


@runs(Deflection, kernels=_deflection_kernel_key)
def deflection() -> Engines:
    """Return the engines of deflection routing, and the watches of single packets."""
    from flitlab.sim.engines.compiled import deflection as kernel
    from flitlab.sim.engines.compiled import deflection_frame, deflection_vc, engine
    from flitlab.sim.engines.compiled.deflection_timeline import DeflectionTimelineRun
    from flitlab.sim.engines.reference.deflection import DeflectionNetwork
    from flitlab.sim.engines.reference.deflection_frame import FrameNetwork
    from flitlab.sim.engines.reference.deflection_vc import VcNetwork
    from flitlab.sim.engines.trace import compiled, reference

    reference_start = _by_rule({Rule.POOL: DeflectionNetwork, Rule.VC: VcNetwork, Rule.FRAME: FrameNetwork})
    compiled_start = _by_rule({
        Rule.POOL: _network_start(kernel, DeflectionTimelineRun), Rule.VC: partial(engine.start, deflection_vc),
        Rule.FRAME: partial(engine.start, deflection_frame),
    })  # fmt: skip
    watches = {"compiled": compiled.DeflectionWatch, "reference": reference.DeflectionWatch}
    return Engines(reference_start, compiled_start, watches=watches)


def _by_rule(starts: dict[str, Callable[..., Any]]) -> Start:
    """Return the function that starts a run of deflection routing, by its rule."""

    def start(scenario: Scenario[Deflection], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        return starts[scenario.switching.rule](scenario, load, seed, log, **options)

    return start


@runs(Ideal)
def ideal() -> Engines:
    """Return the engines of ideal switches, whose packets cannot be followed."""
    from flitlab.sim.engines.compiled import ideal as kernel
    from flitlab.sim.engines.compiled.ideal_timeline import IdealTimelineRun
    from flitlab.sim.engines.reference.ideal import IdealNetwork

    return Engines(IdealNetwork, _network_start(kernel, IdealTimelineRun))


def _network_start(kernel: ModuleType, timeline_run: Callable[..., Any]) -> Start:
    """Return the function that starts a compiled run of a kernel, or with a timeline a ``timeline_run``."""
    from flitlab.sim.engines.compiled import engine

    static_run = partial(engine.start, kernel)

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        run = static_run if scenario.timeline is None else timeline_run
        return run(scenario, load, seed, log, **options)

    return start


@runs(Flow)
def flow() -> Engines:
    """Return the engines of mode flow, which has neither packets to log or follow nor a load."""
    from flitlab.sim.engines.compiled.flow import FlowRun
    from flitlab.sim.engines.reference.flow import FlowNetwork

    return Engines(_program_start(FlowNetwork), _program_start(FlowRun), BothFluidRun)


def _program_start(run: Callable[..., ApplicationRun]) -> Start:
    """Return the function that starts a run without load and log."""

    def start(
        scenario: Scenario[Flow, Workload], load: float, seed: int, log: bool = False, **options: Any
    ) -> ApplicationRun:
        return run(scenario, seed, **options)

    return start


@runs(Datagram)
def datagram() -> Engines:
    """Return the engines of mode datagram, which run sessions: flows, or the connections of a program."""
    from flitlab.sim.engines.compiled.datagram import CompiledDatagrams
    from flitlab.sim.engines.reference.datagram import ReferenceDatagrams
    from flitlab.sim.engines.transport.run import Lockstep

    return Engines(_session_start(ReferenceDatagrams), _session_start(CompiledDatagrams), Lockstep)


@runs(Spray)
def spray() -> Engines:
    """Return the engines of mode spray, which run sessions of flows."""
    from flitlab.sim.engines.compiled.spray import CompiledSpray
    from flitlab.sim.engines.reference.spray import ReferenceSpray
    from flitlab.sim.engines.transport.run import Lockstep

    return Engines(_session_start(ReferenceSpray), _session_start(CompiledSpray), Lockstep)


def _session_start(run: Callable[..., Any]) -> Start:
    """Return the function that starts a run of a session."""

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        changes = () if scenario.timeline is None else (scenario.timeline,)
        session = scenario.switching.session(scenario.instance, scenario.work, load, seed, *changes)
        return run(session, log, **options)

    return start
