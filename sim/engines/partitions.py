# SPDX-License-Identifier: Apache-2.0
"""Which runs several threads can share, each with a region of the network, and why the others have one thread."""

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.rules.tables import UGAL_GLOBAL
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct

MIN_PARALLEL_WORK = 256
"""Switches times ticks from one meeting of threads to the next from which on several threads are used."""


def single_thread_reason(scenario: Scenario[Vct]) -> str:
    """Say why one thread simulates a run of virtual cut-through, '' if several can share it."""
    if scenario.timeline is not None:
        return "a network that changes during a run is simulated by one thread"
    if scenario.routes.select == UGAL_GLOBAL:
        return "ugal with mode global, where every packet looks at the queues of the whole network, runs on one thread"
    switches, ticks = scenario.topology.switches, lookahead(scenario)
    if switches * ticks < MIN_PARALLEL_WORK:
        few = f"{ticks} tick" + "s" * (ticks != 1)
        return f"{switches} switches that affect each other within {few} are too few for more than one thread"
    return ""


def lookahead(scenario: Scenario[Vct]) -> int:
    """Ticks in which nothing that one switch does reaches another: neither a packet nor a credit for its buffer.

    Packets and credits take the delay of their channels besides. Of a program, neither does word of a delivery reach a
    send that waits for it.
    """
    model, topology, last = scenario.switching, scenario.topology, _shortest_packet(scenario) - 1
    channel = model.switch + model.link + model.header + _minimum(topology.delay)
    credit = last + model.credit + _minimum(model.credit_delays(topology))
    if isinstance(scenario.work, Workload):
        return min(channel, credit, last + model.switch + model.ejection + _minimum(topology.access_delay))
    return min(channel, credit)


def _minimum(ticks: Ints) -> int:
    """The least of some delays, int64; 0 where there are none."""
    return int(ticks.min()) if len(ticks) else 0


def _shortest_packet(scenario: Scenario[Vct]) -> int:
    """Flits of the shortest packet."""
    if not isinstance(scenario.work, Workload):
        return min(scenario.source.flits)
    from flitlab.sim.engines.compiled.messages import packet_lengths

    return packet_lengths(scenario.work)[0]
