# SPDX-License-Identifier: Apache-2.0
"""The network of each scenario, as data for the page's script: channel utilisation, path lengths, maps."""

import base64
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flitlab.fluid.certificate import Certificate, bottlenecks
from flitlab.models.arrays import Floats
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.topology.formats import FormatError, read
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import switch_names
from flitlab.sim.experiment.store import cell
from flitlab.sim.experiment.tables import PointRecord
from flitlab.sim.report.folder.names import Names
from flitlab.sim.report.folder.run import Run
from flitlab.sim.report.folder.stored import certified, points
from flitlab.sim.report.html import tables
from flitlab.sim.report.network.places import positions, suitable

MOST_BYTES = 1_500_000
"""The most bytes of channel utilisation on a page; beyond, some loads, then some scenarios, are left out."""

MOST_SWITCHES = 600
"""The most switches of a map; a larger network is a matrix."""

MOST_LINES = {"circular": 700}
"""The most channels of a map of this style; of the other styles, :data:`MOST_LINKS`."""

MOST_LINKS = 6000

LEVELS = 250
"""Steps of channel utilisation; 1 is this many."""

LISTED_CHANNELS = 10
"""Channels in the table of the busiest."""


@dataclass
class State:
    """A scenario at one load, sums over replicates. use: float64 [channels], flits/tick."""

    use: Floats
    hops: Counter[int] = field(default_factory=Counter)
    deflections: Counter[int] = field(default_factory=Counter)
    replicates: int = 0
    saturated: bool = False

    def add(self, point: PointRecord) -> None:
        """Add a replicate."""
        detail = point.detail
        self.use = self.use + np.array(detail.get("channel_use", ()))  # none without channels
        for name in ("hops", "deflections"):
            for value, packets in detail.get(f"{name}_histogram", ()):
                getattr(self, name)[value] += packets
        self.replicates += 1
        self.saturated |= bool(point.row.get("saturated"))


@dataclass
class NetworkUse:
    """The channel utilisation of a scenario. states: by load.

    optimum: float64 [channels], utilisation in the maximum concurrent flow, whose certified gap is ``gap``; None
    without. price: float64 [channels], relative to the highest, 0 for channels not known to be bottlenecks; None if
    none is known.
    """

    label: str
    topology: Topology
    states: dict[float, State] = field(default_factory=dict)
    optimum: Floats | None = None
    price: Floats | None = None
    gap: float | None = None


def network_use(run: Run, folder: Path) -> list[NetworkUse]:
    """Return the utilisation of each scenario with a stored topology and stored channel counters, or a certified
    ``mcf``.
    """
    by_label: dict[str, NetworkUse] = {}
    topologies: dict[str, Topology] = {}
    for scenario in run.manifest.get("scenarios", ()):
        name = scenario.get("topology", {}).get("hash")
        file = folder / "topologies" / f"{name}.json"
        if name is None or not file.exists():
            continue
        try:
            topology = topologies.setdefault(name, topologies.get(name) or read(file))
        except (OSError, FormatError):
            continue
        by_label[scenario["label"]] = NetworkUse(scenario["label"], topology)
    shown = {(row.get("scenario"), row.get("load"), row.get("seed")) for row in run.rows + run.failures}
    for scenario, point in points(folder, run.manifest):
        one = by_label.get(scenario["label"])
        if (scenario["label"], cell(point.load), cell(point.seed)) not in shown:
            continue  # of another run in the same folder, or past the load that was enough
        if one is not None and len(point.detail.get("channel_use", ())) == one.topology.channels:
            one.states.setdefault(point.load, State(np.zeros(one.topology.channels))).add(point)
    for scenario, row in certified(folder, run.manifest):
        one = by_label.get(scenario["label"])
        if one is not None and row["ceiling"] == "mcf":
            _add_optimum(one, row)
    return [one for one in by_label.values() if one.states or one.optimum is not None]


def _add_optimum(one: NetworkUse, row: Row) -> None:
    """Take a row of mcf unless another one has a smaller gap."""
    flow, lengths, topology = row.get("channel_load"), row.get("certificate"), one.topology
    if flow is None or lengths is None or not len(flow) == len(lengths["network"]) == topology.channels:
        return
    gap = 1 - row["lower"] / row["upper"]
    if one.gap is not None and one.gap <= gap:
        return
    one.gap, one.optimum = gap, np.array(flow) / topology.capacity
    certificate = Certificate(**{name: np.array(part, float) for name, part in lengths.items()})
    price = topology.capacity * certificate.network
    price *= bottlenecks(topology, certificate, row["lower"], row["upper"]).network
    one.price = price / price.max() if price.any() else None


def data(run: Run, networks: Iterable[NetworkUse]) -> JsonObject:
    """Return the data of the page's script; {} if there are none. ``left_out`` says what the page does not show."""
    kept, left_out = _within_limits(list(networks))
    if not kept:
        return {}
    names = Names(run.scenarios)
    places: dict[int, int] = {}
    maps: list[JsonObject] = []
    for one in kept:
        if id(one.topology) not in places:
            places[id(one.topology)] = len(maps)
            maps.append(_map(one.topology))
    scenarios = [
        {
            "key": run.scenarios.index(one.label), "name": names[one.label], "map": places[id(one.topology)],
            "states": [_state(one, load) for load in sorted(one.states)],
            "optimum": None if one.optimum is None else _packed(one.optimum),
            "price": None if one.price is None else _packed(one.price),
        }
        for one in kept if one.label in run.scenarios
    ]  # fmt: skip
    return {"levels": LEVELS, "maps": maps, "scenarios": scenarios, "left_out": left_out} if scenarios else {}


def _within_limits(networks: list[NetworkUse]) -> tuple[list[NetworkUse], str]:
    """Return as many scenarios, and loads of each, as the page may hold."""
    each = [one.topology.channels * 4 / 3 for one in networks]
    max_states = int(MOST_BYTES // max(sum(each), 1))
    most = max((len(one.states) for one in networks), default=0) + 2
    if max_states >= most:
        return networks, ""
    if max_states > 2:
        for one in networks:
            loads = sorted(one.states)
            chosen = np.unique(np.linspace(0, max(len(loads) - 1, 0), max_states - 2).astype(int))
            one.states = {loads[i]: one.states[loads[i]] for i in chosen.tolist() if loads}
        return networks, f"{max_states - 2} loads of each scenario are shown."
    kept = []
    for one, size in zip(networks, np.cumsum(each) * 3, strict=True):
        if size <= MOST_BYTES:
            one.states = {load: one.states[load] for load in sorted(one.states)[:1]}
            kept.append(one)
    return kept, f"The first {len(kept)} of {len(networks)} scenarios are shown, at one load."


def _state(one: NetworkUse, load: float) -> JsonObject:
    state = one.states[load]
    use = state.use / state.replicates / one.topology.capacity
    return {
        "load": load, "saturated": state.saturated, "use": _packed(use),
        "mean": round(float(use.mean()), 4) if len(use) else 0.0,
        "hops": _shares(state.hops), "deflections": _shares(state.deflections),
    }  # fmt: skip


def _shares(counts: Counter[int]) -> list[list[float]]:
    """[value, share of packets] from 0, or the smallest, to the largest value."""
    total = sum(counts.values())
    if not total:
        return []
    return [[value, float(f"{counts[value] / total:.4g}")] for value in range(min(counts), max(counts) + 1)]


def _packed(use: Floats) -> str:
    """Utilisation as one byte per channel, in base64. Values above 1, of packets that the window cuts, are 1."""
    return base64.b64encode(np.clip(np.rint(use * LEVELS), 0, LEVELS).astype(np.uint8).tobytes()).decode("ascii")


def _map(topology: Topology) -> JsonObject:
    """Positions of switches (0 .. 1000, y downwards), and the ends of channels."""
    names = switch_names(topology)
    document: JsonObject = {
        "n": topology.switches, "kind": topology.kind, "src": topology.src.tolist(), "dst": topology.dst.tolist(),
        "hosts": topology.host_count.tolist(), "style": "matrix", "xy": [],
        "one_way": (topology.reverse < 0).tolist(), "names": names.values(range(names.count)) if names.labelled else [],
    }  # fmt: skip
    style = suitable(topology, MOST_SWITCHES)
    if style == "matrix" or topology.channels > MOST_LINES.get(style, MOST_LINKS):
        return document
    xy = positions(topology, style).xy * [1, -1]
    low, span = xy.min(axis=0), float(np.ptp(xy, axis=0).max(initial=0)) or 1.0
    placed = np.rint((xy - low) / span * 1000).astype(int)
    return document | {"style": style, "xy": placed.tolist()}


def busiest(networks: Iterable[NetworkUse]) -> list[tables.Table]:
    """Return tables of the busiest channels at the highest unsaturated load, for readers without a script."""
    shown = []
    for one in list(networks)[:4]:
        stable = [load for load, state in one.states.items() if not state.saturated] or list(one.states)
        if not stable:
            continue
        load, topology = max(stable), one.topology
        names = switch_names(topology)
        use = one.states[load].use / one.states[load].replicates / topology.capacity
        rows = [
            (f"{names.label(topology.src[c])} → {names.label(topology.dst[c])}", f"{use[c]:.3f}")
            for c in np.argsort(-use, kind="stable")[:LISTED_CHANNELS].tolist()
        ]
        title = f"Channels used most: {one.label}, load {load:g}"
        shown.append(tables.Table(("channel", "utilisation"), rows, caption=title))
    return shown
