# SPDX-License-Identifier: Apache-2.0
"""The engines of flitlab's own switching modes."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flitlab.models.application.workload import Workload
from flitlab.models.jit import interpreted
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.scenario import Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.deflection import Deflection
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
    return scenario.switching.shared_input or select == ADAPTIVE, bool(interpreted(uses_congestion)(select))


@runs(Vct, single_thread_reason, _vct_kernel_key)
def vct() -> Engines:
    """Return the engines of virtual cut-through, and the watches of single packets."""
    from flitlab.sim.engines.compiled import vct as kernel
    from flitlab.sim.engines.compiled.engine import start
    from flitlab.sim.engines.reference.vct import VctNetwork
    from flitlab.sim.engines.trace import compiled, reference

    def timeline_run() -> Callable[..., Any]:
        from flitlab.sim.engines.compiled.vct.timeline import VctTimelineRun

        return VctTimelineRun

    watches = {"compiled": compiled.VctWatch, "reference": reference.VctWatch}
    return Engines(VctNetwork, _network_start(partial(start, kernel), timeline_run), watches=watches)


@runs(Wormhole)
def wormhole() -> Engines:
    """Return the engines of wormhole switching, and the watches of single packets."""
    from flitlab.sim.engines.compiled import wormhole as kernel
    from flitlab.sim.engines.compiled.engine import start
    from flitlab.sim.engines.reference.wormhole import WormholeNetwork
    from flitlab.sim.engines.trace import compiled, reference

    def timeline_run() -> Callable[..., Any]:
        from flitlab.sim.engines.compiled.wormhole.timeline import WormholeTimelineRun

        return WormholeTimelineRun

    watches = {"compiled": compiled.WormholeWatch, "reference": reference.WormholeWatch}
    return Engines(WormholeNetwork, _network_start(partial(start, kernel), timeline_run), watches=watches)


@runs(Deflection)
def deflection() -> Engines:
    """Return the engines of deflection routing, and the watches of single packets."""
    from flitlab.sim.engines.compiled import deflection as kernel
    from flitlab.sim.engines.compiled.engine import start
    from flitlab.sim.engines.reference.deflection import DeflectionNetwork
    from flitlab.sim.engines.trace import compiled, reference

    def timeline_run() -> Callable[..., Any]:
        from flitlab.sim.engines.compiled.deflection_timeline import DeflectionTimelineRun

        return DeflectionTimelineRun

    watches = {"compiled": compiled.DeflectionWatch, "reference": reference.DeflectionWatch}
    return Engines(DeflectionNetwork, _network_start(partial(start, kernel), timeline_run), watches=watches)


@runs(Ideal)
def ideal() -> Engines:
    """Return the engines of ideal switches, whose packets cannot be followed."""
    from flitlab.sim.engines.compiled import ideal as kernel
    from flitlab.sim.engines.compiled.engine import start
    from flitlab.sim.engines.reference.ideal import IdealNetwork

    def timeline_run() -> Callable[..., Any]:
        from flitlab.sim.engines.compiled.ideal_timeline import IdealTimelineRun

        return IdealTimelineRun

    return Engines(IdealNetwork, _network_start(partial(start, kernel), timeline_run))


def _network_start(plain: Start, timeline_run: Callable[[], Callable[..., Any]]) -> Start:
    """Return the function that starts a run on a static network, or with a timeline the run that ``timeline_run``
    loads.
    """

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        run = plain if scenario.timeline is None else timeline_run()
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
    from flitlab.sim.engines.datagram.both import BothDatagrams
    from flitlab.sim.engines.reference.datagram import ReferenceDatagrams

    return Engines(_session_start(ReferenceDatagrams), _session_start(CompiledDatagrams), BothDatagrams)


@runs(Spray)
def spray() -> Engines:
    """Return the engines of mode spray, which run sessions of flows."""
    from flitlab.sim.engines.compiled.spray import CompiledSpray
    from flitlab.sim.engines.reference.spray import ReferenceSpray
    from flitlab.sim.engines.spray.both import BothSprays

    return Engines(_session_start(ReferenceSpray), _session_start(CompiledSpray), BothSprays)


def _session_start(run: Callable[..., Any]) -> Start:
    """Return the function that starts a run of a session."""

    def start(scenario: Scenario[Any], load: float, seed: int, log: bool = False, **options: Any) -> Any:
        changes = () if scenario.timeline is None else (scenario.timeline,)
        session = scenario.switching.session(scenario.instance, scenario.work, load, seed, *changes)
        return run(session, log, **options)

    return start
