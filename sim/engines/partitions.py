# SPDX-License-Identifier: Apache-2.0
"""Which runs can be partitioned over several threads, and why the others are single-threaded."""

from flitlab.models.application.workload import Workload
from flitlab.models.arrays import Ints
from flitlab.models.rules.tables import Selection
from flitlab.models.scenario import Scenario
from flitlab.models.switching.vct import Vct
from flitlab.models.topology.flit_times import flit_times

MIN_PARALLEL_WORK = 256
"""The least switches times lookahead ticks for which several threads are used."""


def single_thread_reason(scenario: Scenario[Vct]) -> str:
    """Return why a run of virtual cut-through is single-threaded, '' if it can be partitioned."""
    if scenario.follows_trace:
        return "a trace or batch is single-threaded: packets may await those of any host"
    if scenario.traffic.classes:
        return "traffic with classes is single-threaded"
    if scenario.topology.is_multistage:
        return "hosts inject and eject at different switches, so a run is single-threaded"
    if scenario.timeline is not None:
        return "a run with a timeline is single-threaded"
    if scenario.routes.select == Selection.UGAL_GLOBAL:
        return "ugal with mode global reads the queues of the whole network, so a run is single-threaded"
    switches, ticks = scenario.topology.switches, lookahead(scenario)
    if switches * ticks < MIN_PARALLEL_WORK:
        few = f"{ticks} tick" + "s" * (ticks != 1)
        return f"{switches} switches with a lookahead of {few} are too few for more than one thread"
    return ""


def lookahead(scenario: Scenario[Vct]) -> int:
    """Return the lookahead in ticks: no packet or credit of a switch reaches another switch sooner.

    The delays of channels are included. For a program, neither does a delivery reach a send that waits for it.
    """
    model, topology, flits = scenario.switching, scenario.topology, _shortest_packet(scenario)
    ticks, of_hosts, _ = flit_times(topology)
    channel = model.switch + model.link + model.header + _minimum(topology.delay + ticks - 1)
    last = (flits - 1) * min(of_hosts, int(ticks.min(initial=of_hosts)))
    credit = last + model.credit + _minimum(model.credit_delays(topology))
    if isinstance(scenario.work, Workload):
        delivery = flits * of_hosts - 1 + model.switch + model.ejection + _minimum(topology.access_delay)
        return min(channel, credit, delivery)
    return min(channel, credit)


def _minimum(ticks: Ints) -> int:
    """The least of some delays, int64 [n], in ticks; 0 for none."""
    return int(ticks.min()) if len(ticks) else 0


def _shortest_packet(scenario: Scenario[Vct]) -> int:
    """Flits of the shortest packet."""
    if not isinstance(scenario.work, Workload):
        return min(scenario.source.flits)
    from flitlab.sim.engines.compiled.messages import packet_lengths

    return packet_lengths(scenario.work)[0]
