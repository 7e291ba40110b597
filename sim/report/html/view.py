# SPDX-License-Identifier: Apache-2.0
"""``animate(...)``: a self-contained page that plays a short run, packet by packet."""

import math
from pathlib import Path

import numpy as np

from flitlab.models.arrays import Floats
from flitlab.models.mappings import JsonObject
from flitlab.models.scenario import Scenario
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import host_names, switch_names
from flitlab.sim.engines.trace.all_packets import record_all_packets
from flitlab.sim.engines.trace.base import PacketHistory
from flitlab.sim.report.html.shell import write_page
from flitlab.sim.report.network.places import positions, suitable

MOST_SWITCHES, MOST_CHANNELS, MOST_HOSTS = 120, 800, 512
"""The largest network that is animated."""

MOST_PACKETS = 6000
"""The most packets of an animated run."""


def animate(scenario: Scenario, label: str, load: float, seed: int, ticks: int, path: Path) -> Path:
    """Simulate ticks [0, ticks) in the reference engine and write the page that plays them.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    label : str
        Its name on the page.
    load : float
        Injection rate, flits/tick/host.
    seed, ticks : int
        Seed and length of the run.
    path : Path
        The page.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If the network, or the run, is too large, or packets of the switching mode cannot be followed.
    OSError
        If the page cannot be written.
    """
    _reject_large(scenario, load, ticks)
    histories = record_all_packets(*scenario.at(load), seed, ticks)
    title = f"{label}, load {load:g}, seed {seed}"
    document = {"ticks": ticks, "map": _map(scenario.topology), "packets": [_packet(life) for life in histories]}
    facts = [
        scenario.switching.mode, f"{scenario.topology.kind}, {scenario.topology.switches} switches",
        f"{scenario.topology.hosts} hosts", f"{len(histories)} packets", f"ticks 0 – {ticks - 1}", "reference engine",
    ]  # fmt: skip
    return write_page(path, "view.html", title=title, facts=facts, warnings=[], data=document)


def _reject_large(scenario: Scenario, load: float, ticks: int) -> None:
    """Raise ``ValueError`` that says what is too large, and the limit."""
    topology = scenario.topology
    offered = float(scenario.traffic.sent(load).sum()) * scenario.switching.flits_per_load(topology)
    expected = offered * ticks / scenario.source.mean_flits
    sizes = [
        ("switches", topology.switches, MOST_SWITCHES), ("channels", topology.channels, MOST_CHANNELS),
        ("hosts", topology.hosts, MOST_HOSTS), ("packets", math.ceil(expected), MOST_PACKETS),
    ]  # fmt: skip
    for what, value, most in sizes:
        if value > most:
            advice = "a lower --load or fewer --ticks" if what == "packets" else "a smaller network (--set)"
            raise ValueError(f"{value} {what} are too many for an animation (at most {most}): take {advice}")


def _map(topology: Topology) -> JsonObject:
    """Positions of switches and hosts, in thousandths of the width, y downwards; the ends of channels."""
    places = positions(topology, suitable(topology, MOST_SWITCHES))
    hosts = [places.spots(v, count) for v, count in enumerate(topology.host_count.tolist()) if count]
    spots = np.concatenate(hosts) if hosts else np.zeros((0, 2))
    everything = np.concatenate([places.xy, spots])
    low = (everything * [1, -1]).min(axis=0)
    scale = 1000 / max(float(np.ptp(everything, axis=0).max()), 1e-9)

    def placed(xy: Floats) -> list[list[int]]:
        rounded: list[list[int]] = np.rint((xy * [1, -1] - low) * scale).astype(int).tolist()
        return rounded

    return {
        "xy": placed(places.xy), "hosts": placed(spots), "home": topology.host_switch.tolist(),
        "radius": round(places.radius * scale, 1), "src": topology.src.tolist(), "dst": topology.dst.tolist(),
        "capacity": topology.capacity.tolist(), "one_way": (topology.reverse < 0).tolist(),
        "names": list(map(switch_names(topology).label, range(topology.switches))),
        "host_names": list(map(host_names(topology).label, range(topology.hosts))),
    }  # fmt: skip


def _packet(life: PacketHistory) -> list[object]:
    """[id, source, destination, flits, created, sent, delivered, deadlocked, visits], ticks or null.

    A visit: [switch, channel it came by, head arrived, eligible, granted, tail left, deflected].
    """
    visits = [
        [visit.switch, visit.channel, visit.arrived, visit.eligible, visit.granted, visit.tail, int(visit.deflected)]
        for visit in life.visits
    ]
    ends = [life.created, life.sent, life.delivered, int(life.deadlocked)]
    return [life.identity, life.source, life.destination, life.flits, *ends, visits]
