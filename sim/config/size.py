"""How much memory a configuration would take, asked before it is allocated.

Estimates are of what grows with the sizes that a configuration may name, within a factor of two of what the compiled
engine takes.
"""

import os

from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.check import mistake_at
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.schema import MeasureConfig

SLOT, TICK, PAIR = 56, 24, 8
"""Bytes for each packet that a buffer may hold; each tick ahead that an engine looks; each pair of switches."""

MOST_POINTS = 2_000_000
"""A study of more points than this is refused: one takes about a kilobyte before it has run."""


def machine_bytes() -> int:
    """Memory of this machine; what this process may use of it, where that is less."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**63
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:
        return found
    return found if limit == resource.RLIM_INFINITY else min(found, limit)


def refused(root: Node, place: Place, needed: int) -> list[Mistake]:
    """A mistake at a key, if so many bytes are more than there are."""
    there = machine_bytes()
    if needed <= there:
        return []
    return [mistake_at(root, place, f"would take about {_shown(needed)} of memory; there are {_shown(there)}")]


def routing_mistakes(root: Node, topology: Topology) -> list[Mistake]:
    """What any table of next hops takes: an entry for each pair of switches."""
    return refused(root, ("routing",), PAIR * topology.switches**2)


def simulation_mistakes(root: Node, scenario: Scenario, measure: MeasureConfig) -> list[Mistake]:
    """What an engine takes for the buffers, the longest delay and the batches of a point."""
    topology, model, flits = scenario.topology, scenario.switching, scenario.source.flits
    key, held = model.room(topology, min(flits))
    buffers = refused(root, tuple(key.split(".")), SLOT * held)
    ahead = model.looks_ahead(topology, max(flits))
    wheel = refused(root, ("traffic", "packet_flits"), ahead * (TICK + (topology.channels + topology.hosts) // 2))
    batches = 40 * (1 + measure.longest // measure.ticks)
    kept = refused(root, ("measure", "max_ticks"), batches * PAIR * (topology.hosts + 64))
    return [*buffers, *wheel, *kept]


def length_mistakes(root: Node, measure: MeasureConfig) -> list[Mistake]:
    """A mistake if a point may last longer than engines count; a warm-up that is found takes as long as the window."""
    warmup = measure.ticks if measure.warmup == "auto" else measure.warmup
    if warmup + measure.longest <= LONGEST_RUN:
        return []
    problem = (
        f"up to {warmup:,} ticks of warm-up and {measure.longest:,} to be measured: no run is longer than 2**30 = "
        f"{LONGEST_RUN:,} ticks"
    )
    return [mistake_at(root, ("measure",), problem)]


def too_many_points(root: Node, points: int) -> list[Mistake]:
    """A mistake if a study has more points than anybody can wait for."""
    if points <= MOST_POINTS:
        return []
    return [mistake_at(root, (), f"{points:,} points; at most {MOST_POINTS:,} are run (scenarios x loads x seeds)")]


def _shown(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}" if count < 1000 * size or unit == "TB" else f"{count // size:,} {unit}"
    return f"{count} bytes"
