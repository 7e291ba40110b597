# SPDX-License-Identifier: Apache-2.0
"""Pauses of lossless queues: columns of results.csv, rows of pauses.csv, and deadlocks."""

from fractions import Fraction
from typing import Any

import numpy as np

from flitlab.models.arrays import Ints
from flitlab.models.routing.certificate import describe_cycle
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names
from flitlab.sim.engines.transport.spray import Counters, PauseCount, SprayRun
from flitlab.sim.measure.stall import StallError


def pause_columns(run: SprayRun, before: Counters, after: Counters, ticks: int, may_deadlock: bool) -> dict[str, Any]:
    """Return the columns of results.csv of lossless queues; {} for other queues.

    Parameters
    ----------
    run : SprayRun
        At the end of the window.
    before, after : Counters
        At both ends of the window, of ``ticks`` ticks.
    may_deadlock : bool
        Whether no certificate excludes a deadlock.

    Raises
    ------
    StallError
        For a deadlock that a certificate excludes.
    """
    if before.pause is None or after.pause is None:
        return {}
    session = run.session
    tick_us, servers = session.tick_s * 10**6, session.topology.channels + session.topology.hosts
    moved = after.pause - before.pause
    links = run.deadlock()
    cycle = describe_cycle(session.topology, list(links)) if links else ""
    if cycle and not may_deadlock:
        raise StallError(f"packets wait for each other in a cycle, in spite of the certificate: {cycle}")
    return {
        "pause_frames": int(moved[:, PauseCount.FRAMES].sum()),
        "paused_share": float(moved[:servers, PauseCount.PAUSED].sum() / (max(ticks, 1) * servers)),
        "longest_pause_us": float(int(after.pause[:, PauseCount.LONGEST].max()) * tick_us),
        "most_paused": after.most_paused,
        "watchdogs": int(moved[:, PauseCount.FIRED].sum()),
        "peak_ingress_bytes": int(after.pause[:, PauseCount.PEAK].max()),
        "deadlocked": bool(cycle),
        "deadlock_cycle": cycle,
    }


def pause_rows(topology: Topology, pause: Ints, tick_us: Fraction) -> list[dict[str, Any]]:
    """Return rows of pauses.csv: of every channel that was paused, those from and to hosts included.

    pause: int64 [links, PauseCount]. tick_us: microseconds of a tick.
    """
    switches, hosts = switch_names(topology), host_names(topology)
    channels, rows = topology.channels, []
    for link in np.flatnonzero(pause[:, PauseCount.FRAMES]).tolist():
        if link < channels:
            ends = switches.label(topology.src[link]), switches.label(topology.dst[link])
        else:
            host = (link - channels) % topology.hosts
            ends = f"host {hosts.label(host)}", switches.label(topology.host_switch[host])
            if link >= channels + topology.hosts:
                ends = ends[::-1]
        frames, paused, longest, peak, fired = pause[link].tolist()
        rows.append({
            "from": ends[0], "to": ends[1], "pause_frames": frames, "paused_us": float(paused * tick_us),
            "longest_pause_us": float(longest * tick_us), "peak_ingress_bytes": peak,
            "watchdogs": fired,
        })  # fmt: skip
    return rows
