# SPDX-License-Identifier: Apache-2.0
"""The life of one packet, tick by tick, observed from outside in either engine: neither of them knows of it."""

from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.start import packet_watch
from flitlab.sim.engines.trace.base import PacketHistory, PacketWatch, follow


def watch(engine: str, scenario: Scenario[Any], load: float, seed: int, identity: int) -> PacketWatch:
    """A run of the engine ``reference`` or ``compiled``, at tick 0, with an eye on one packet.

    Raises ``ValueError`` for a discipline whose packets are not followed so, and for a network that changes, whose
    packets may be lost; ``KeyError`` for another engine.
    """
    if scenario.timeline is not None:
        raise ValueError("timeline: single packets are followed only in networks that stay as they are")
    seen: PacketWatch = packet_watch(engine, scenario.switching)(scenario, load, seed, identity)
    return seen


def trace(
    engine: str, scenario: Scenario[Any], load: float, seed: int, identity: int, until: int | None = None
) -> PacketHistory:
    """What happens to a packet before tick ``until``, at most to its delivery.

    until: by default 100,000 ticks after its creation. Raises ``ValueError`` if the packet is not created by then.
    """
    return follow(lambda: watch(engine, scenario, load, seed, identity), scenario, load, seed, identity, until)
