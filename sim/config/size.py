# SPDX-License-Identifier: Apache-2.0
"""How much memory a configuration would take, asked before it is allocated.

Estimates are of what grows with the sizes that a configuration may name, within a factor of two of what the compiled
engine takes.
"""

import os

from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.page import Page

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


def refused(draft: Page, key: str, needed: int) -> bool:
    """Whether so many bytes are more than there are; then the key that asks for them is refused."""
    there = machine_bytes()
    if needed > there:
        draft.refuse(key, f"would take about {_shown(needed)} of memory; there are {_shown(there)}")
    return needed > there


def routing_refused(draft: Page, topology: Topology) -> bool:
    """Whether a table of next hops, an entry for each pair of switches, is too large."""
    return refused(draft, "routing", PAIR * topology.switches**2)


def simulation_refused(draft: Draft, topology: Topology, discipline: SwitchingMode, flits: tuple[int, ...]) -> bool:
    """Whether an engine cannot hold the buffers, the longest delay or the batches of a point."""
    measure, ports = draft.config.measure, topology.channels + topology.hosts
    key, held = discipline.buffer_capacity(topology, min(flits))
    buffers = refused(draft, key, SLOT * held)
    wheel = refused(draft, "traffic.packet_flits", discipline.lookahead(topology, max(flits)) * (TICK + ports // 2))
    batches = 40 * (1 + measure.longest // measure.ticks)
    kept = refused(draft, "measure.max_ticks", batches * PAIR * (topology.hosts + 64))
    return buffers or wheel or kept


def length_refused(draft: Draft) -> bool:
    """Whether a point may last longer than engines count; a warm-up that is found takes as long as the window."""
    measure = draft.config.measure
    warmup = measure.ticks if measure.warmup == "auto" else measure.warmup
    if warmup + measure.longest <= LONGEST_RUN:
        return False
    problem = (
        f"up to {warmup:,} ticks of warm-up and {measure.longest:,} to be measured: no run is longer than 2**30 = "
        f"{LONGEST_RUN:,} ticks"
    )
    draft.refuse("measure", problem)
    return True


def points_refused(page: Page, points: int) -> bool:
    """Whether a study has more points than anybody can wait for."""
    if points > MOST_POINTS:
        page.refuse((), f"{points:,} points; at most {MOST_POINTS:,} are run (scenarios x loads x seeds)")
    return points > MOST_POINTS


def _shown(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}" if count < 1000 * size or unit == "TB" else f"{count // size:,} {unit}"
    return f"{count} bytes"
