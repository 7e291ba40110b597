# SPDX-License-Identifier: Apache-2.0
"""The history of one packet, tick by tick, observed from outside in either engine."""

from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.classes import reject_classes
from flitlab.sim.engines.start import packet_watch
from flitlab.sim.engines.table import packet_modes
from flitlab.sim.engines.trace.base import PacketHistory, PacketWatch, follow, reject_speeds


def reject_unlisted(scenario: Scenario[Any]) -> None:
    """Raise ``ValueError`` for a scenario whose runs do not log packets."""
    if scenario.counted != "packets":
        mode, modes = scenario.switching.mode, ", ".join(packet_modes())
        raise ValueError(f"switching.mode = {mode!r}: delivered packets are listed in {modes} only")


def reject_unfollowed(scenario: Scenario[Any], purpose: str = "following a packet") -> None:
    """Raise ``ValueError`` for a scenario whose packets cannot be followed; purpose: of following, for the message.

    Its mode, timeline, trace, speeds or classes exclude it.
    """
    packet_watch("reference", scenario.switching)
    if scenario.timeline is not None:
        raise ValueError("timeline: single packets are followed only in networks that stay as they are")
    if scenario.follows_trace:
        raise ValueError(
            "traffic: single packets are followed only where hosts draw them, at a load; a run writes those of a trace "
            "or batch to packets.csv"
        )
    reject_speeds(scenario)
    reject_classes(scenario, purpose)


def watch(engine: str, scenario: Scenario[Any], load: float, seed: int, identity: int) -> PacketWatch:
    """Start a run of the engine ``reference`` or ``compiled`` that follows one packet.

    Parameters
    ----------
    engine : str
        ``reference`` or ``compiled``.
    load : float
        Injection rate, flits/tick/host.
    seed : int
        Seed of the run.
    identity : int
        Packet id: sequence number times hosts, plus source host.

    Returns
    -------
    PacketWatch
        The run, at tick 0.

    Raises
    ------
    ValueError
        For a switching mode whose packets cannot be followed, for a timeline, which may drop packets, for a
        trace, whose packets are not drawn, for channels of different speed, and for classes of traffic.
    KeyError
        For another engine.
    """
    reject_unfollowed(scenario)
    seen: PacketWatch = packet_watch(engine, scenario.switching)(scenario, load, seed, identity)
    return seen


def trace(
    engine: str, scenario: Scenario[Any], load: float, seed: int, identity: int, until: int | None = None
) -> PacketHistory:
    """Return the history of a packet before tick ``until``, at most to its delivery.

    until: by default 100,000 ticks after its creation. Other parameters: see :func:`watch`. Raises ``ValueError`` if
    no packet can be followed, before anything starts, and if the packet is not created by then.
    """
    reject_unfollowed(scenario)
    return follow(lambda: watch(engine, scenario, load, seed, identity), scenario, load, seed, identity, until)
