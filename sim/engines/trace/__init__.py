# SPDX-License-Identifier: Apache-2.0
"""The history of one packet, tick by tick, observed from outside in either engine."""

from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.start import packet_watch
from flitlab.sim.engines.trace.base import PacketHistory, PacketWatch, follow, reject_speeds


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
        For a switching mode whose packets cannot be followed, for a timeline, which may drop packets, and for
        channels of different speed.
    KeyError
        For another engine.
    """
    if scenario.timeline is not None:
        raise ValueError("timeline: single packets are followed only in networks that stay as they are")
    reject_speeds(scenario)
    seen: PacketWatch = packet_watch(engine, scenario.switching)(scenario, load, seed, identity)
    return seen


def trace(
    engine: str, scenario: Scenario[Any], load: float, seed: int, identity: int, until: int | None = None
) -> PacketHistory:
    """Return the history of a packet before tick ``until``, at most to its delivery.

    until: by default 100,000 ticks after its creation. Other parameters: see :func:`watch`. Raises ``ValueError`` if
    the packet is not created by then.
    """
    return follow(lambda: watch(engine, scenario, load, seed, identity), scenario, load, seed, identity, until)
