# SPDX-License-Identifier: Apache-2.0
"""Limits of memory, run length and points, checked before anything is allocated.

Memory is estimated for what grows with the configured sizes, within a factor of two of the compiled engine.
"""

import os

from flitlab.models.rules.arrivals import LONGEST_RUN
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.draft import Draft

BYTES_PER_PACKET, BYTES_PER_TICK, BYTES_PER_PAIR = 56, 24, 8
"""Bytes per packet of buffer capacity; per tick of the calendar; per pair of switches."""

MAX_POINTS = 2_000_000
"""Points of the largest study; each takes about a kilobyte before it has run."""


def machine_bytes() -> int:
    """Memory of this machine, or the limit of this process if that is less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**63
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:
        return physical
    return physical if limit == resource.RLIM_INFINITY else min(physical, limit)


def reject_too_large(draft: ConfigDocument, key: str, needed: int) -> bool:
    """Whether the needed bytes exceed the memory; then the key that causes it is rejected.

    Parameters
    ----------
    draft: gets the error.
    key: that causes the size.
    needed: bytes.
    """
    available = machine_bytes()
    if needed > available:
        draft.reject(key, f"needs about {_shown(needed)} of memory; {_shown(available)} are available")
    return needed > available


def is_routing_too_large(draft: ConfigDocument, topology: Topology) -> bool:
    """Whether a next-hop table, one entry per pair of switches, exceeds the memory."""
    return reject_too_large(draft, "routing", BYTES_PER_PAIR * topology.switches**2)


def is_simulation_too_large(
    draft: Draft, topology: Topology, switching_mode: SwitchingMode, flits: tuple[int, ...]
) -> bool:
    """Whether buffers, calendar or batches of a point exceed the memory.

    Parameters
    ----------
    draft: gets the errors.
    topology: channels and hosts.
    switching_mode: buffers and delays.
    flits: the packet lengths.
    """
    measure, ports = draft.config.measure, topology.channels + topology.hosts
    key, packets = switching_mode.buffer_capacity(topology, min(flits))
    buffers = reject_too_large(draft, key, BYTES_PER_PACKET * packets)
    calendar = reject_too_large(
        draft, "traffic.packet_flits", switching_mode.lookahead(topology, max(flits)) * (BYTES_PER_TICK + ports // 2)
    )
    batches = 40 * (1 + measure.longest // measure.ticks)
    batch_means = reject_too_large(draft, "measure.max_ticks", batches * BYTES_PER_PAIR * (topology.hosts + 64))
    return buffers or calendar or batch_means


def is_run_too_long(draft: Draft) -> bool:
    """Whether a point may exceed the tick range. An automatic warm-up takes at most as long as the window."""
    measure = draft.config.measure
    warmup = measure.ticks if measure.warmup == "auto" else measure.warmup
    if warmup + measure.longest <= LONGEST_RUN:
        return False
    problem = (
        f"up to {warmup:,} ticks of warm-up and {measure.longest:,} to be measured: no run is longer than 2**30 = "
        f"{LONGEST_RUN:,} ticks"
    )
    draft.reject("measure", problem)
    return True


def has_too_many_points(document: ConfigDocument, points: int) -> bool:
    """Whether a study exceeds :data:`MAX_POINTS`."""
    if points > MAX_POINTS:
        document.reject((), f"{points:,} points; at most {MAX_POINTS:,} are run (scenarios x loads x seeds)")
    return points > MAX_POINTS


def _shown(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}" if count < 1000 * size or unit == "TB" else f"{count // size:,} {unit}"
    return f"{count} bytes"
