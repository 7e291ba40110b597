# SPDX-License-Identifier: Apache-2.0
"""The histories of all packets of a short run, for an animation."""

from typing import Any

from flitlab.models.scenario import Scenario
from flitlab.sim.engines.start import packet_watch
from flitlab.sim.engines.trace import reject_unfollowed
from flitlab.sim.engines.trace.base import PacketHistory, Recorder
from flitlab.sim.engines.trace.reference import ReferenceWatch, watched_run


def record_all_packets(scenario: Scenario[Any], load: float, seed: int, ticks: int) -> list[PacketHistory]:
    """Return the history of every packet created before tick ``ticks``, up to that tick, in the reference engine.

    Sorted by creation, then by id. Raises ``ValueError`` for a scenario whose packets cannot be followed
    (:func:`~flitlab.sim.engines.trace.reject_unfollowed`), and for a load that hosts cannot create.
    """
    reject_unfollowed(scenario, "an animation")
    kind: Any = packet_watch("reference", scenario.switching)
    run, ledger = watched_run(kind.network, scenario, load, seed)
    lives: dict[int, PacketHistory] = {}
    observed: dict[int, tuple[ReferenceWatch, Recorder]] = {}
    for now in range(ticks):
        run.advance(now + 1)
        for identity, packet in ledger.known.items():
            if identity not in lives:
                life = PacketHistory(identity, packet.source, packet.destination, packet.flits, packet.created, ticks)
                watch = kind(scenario, load, seed, identity, (run, ledger))
                lives[identity], observed[identity] = life, (watch, Recorder(scenario, life))
        for identity, (watch, recorder) in list(observed.items()):
            sight = watch.observe(now)
            if sight is not None:
                recorder.add(sight, now)
            if identity in ledger.done:
                del observed[identity]
    if run.deadlocked():
        for identity in observed:
            lives[identity].deadlocked = lives[identity].sent is not None
    return sorted(lives.values(), key=lambda life: (life.created, life.identity))
