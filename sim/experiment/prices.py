# SPDX-License-Identifier: Apache-2.0
"""What the parts of a run cost on this machine: prices, measured by short runs and stored.

The price of a hop depends on the channel utilisation, and is measured at several loads on one network
(:data:`NETWORK`). The others, and the exponent by which the price of a hop grows with the channels, follow from two
sizes of it; the larger one exceeds every cache.

Prices are stored beside the compiled code, under the identity of the machine, ``SEMANTICS_VERSION`` and this file.
"""

import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from flitlab.fluid.kinds.spec import ceiling_spec
from flitlab.models.application.messages import Messages, total_flits
from flitlab.models.application.program import Op
from flitlab.models.application.workload import Workload
from flitlab.models.files import replace_file
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.jit import OPT_SUFFIX, cache_folder
from flitlab.models.mappings import Fields, JsonObject
from flitlab.models.rules.tables import Selection
from flitlab.models.scenario import SEMANTICS_VERSION, Scenario
from flitlab.models.switching.byte_switching import ByteSwitching
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.deflection import Deflection, Rule
from flitlab.models.switching.dynamic_topology import Draining
from flitlab.models.switching.flow import Flow
from flitlab.models.switching.spray import Spray
from flitlab.models.switching.switching_mode import SwitchingMode
from flitlab.models.switching.timed import Timed
from flitlab.models.switching.vct import Vct
from flitlab.models.topology.distances import mean_of_reachable, sampled_distances
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.case import Case
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.provenance import processor

NETWORK = """\
topology: {kind: rrg, n: %d, degree: 6, hosts_per_switch: 4}
routing: {kind: %s}
switching: {%s, header_ticks: 8, link_ticks: 4}
traffic: {kind: uniform, packet_flits: 16}
loads: [0.1]
measure: {warmup: 0}
ceilings: []
"""
"""Configuration for measuring prices of modes that simulate packets. Parameters: switches, routing, switching mode."""

CALIBRATED = {
    "deflection": ("deflection", "mode: vct, vcs: 7"), "ideal": ("minimal", "mode: ideal"),
    "deflection vc packet": ("deflection", "mode: deflection, rule: vc, vcs: 7"),
    "deflection vc flit": ("deflection", "mode: deflection, rule: vc, share: flit, vcs: 7"),
    "deflection frame": ("deflection", "mode: deflection, rule: frame, vcs: 7"),
}  # fmt: skip
"""Mode -> routing and switching mode of :data:`NETWORK`, where they are not the usual ones."""

DATAGRAMS = """\
topology: {kind: rrg, n: %d, degree: 6, hosts_per_switch: 4}
routing: {kind: ecmp}
switching: {mode: datagram}
traffic: {kind: permutation}
transport: {kind: mptcp, subflows: %d}
measure: {seconds: 0.4}
ceilings: []
"""
"""Configuration for measuring prices of mode datagram. Parameters: switches, subflows."""

SPRAYED = """\
topology: {kind: rrg, n: %d, degree: 6, hosts_per_switch: 4}
routing: {kind: ecmp}
switching: {mode: spray}
traffic: {kind: permutation, arrivals: together, sizes: {kind: fixed, bytes: %d}}
ceilings: []
"""
"""Configuration for measuring prices of mode spray. Parameters: switches, bytes of a message."""

CONTROL = 1.3
"""Packets of mode spray per data packet, control packets included (approximate)."""

SUBFLOWS = 8
"""Subflows with which a hop of mode datagram is priced, besides one; in between the price is linear."""

SIZES, SIZES_READABLE = (64, 4096), (16, 64)
"""Switches of the networks for prices, of the compiled and of the reference engine."""

IDLE = 1e-4
"""A load at which next to nothing happens."""

FILLED = (0.05, 0.4, 0.75, 1.2)
"""Channel utilisations for which the price of a hop is measured, if channels could carry more than 1."""

TICKS = {"compiled": 20_000, "reference": 400}
"""Ticks of a price measurement, by engine."""

FULLEST = 0.85
"""Channel utilisation of a saturated network (approximate)."""

PRICED = (*FILLED[:-1], FULLEST)
"""Channel utilisations that result from :data:`FILLED`."""

PLACED = 0.7
"""Mean channel utilisation at the loads of a search."""

SOURCES = 128
"""Switches from which distances are sampled."""

DETOUR = {"valiant": 2.0, "ugal": 1.4, "par": 1.4, "deflection": 1.1, "updown": 1.3}
"""Routing kind -> path length over shortest path length (approximate); 1 for other kinds."""


@dataclass(frozen=True)
class Load:
    """The traffic of a case at a load. hops: packet hops, or flit hops where flits are granted, per tick. fill: channel
    utilisation."""

    hops: float
    fill: float


def load_of(case: Case, load: float) -> Load:
    """The traffic of a case at a load, limited to the capacity of the channels."""
    scenario = scenario_of(case)
    hops, full = _hops(scenario.instance), _full_rate(scenario.instance)
    offered = float(scenario.traffic.sent(load).sum()) * case.flits_per_load
    carried = min(offered, FULLEST * full)
    granted = carried if scenario.switching.grants_flits else carried / scenario.source.mean_flits
    return Load(granted * (hops + 1), carried / full)


def full_load(case: Case) -> float:
    """The load at which all channels between switches would be full; infinite without channels."""
    assert case.instance is not None
    traffic = case.instance.traffic
    left = _full_rate(case.instance) - float(traffic.sent(0).sum())
    return max(left, 0.0) / max(float(traffic.rate.sum()), 1e-9)


def _full_rate(instance: Instance) -> float:
    """Flits per tick of all hosts at which all channels between switches would be full."""
    if instance.topology.channels == 0:
        return math.inf
    return float(np.minimum(instance.topology.capacity, 1.0).sum()) / _hops(instance)


def scenario_of(case: Case) -> Scenario:
    """The scenario of a case that is simulated."""
    assert case.scenario is not None
    return case.scenario


def _hops(instance: Instance) -> float:
    """Mean hops of a packet."""
    detour = 1.0 if instance.routes is None else DETOUR.get(instance.routes.kind, 1.0)
    return max(mean_hops(instance.topology), 1e-3) * detour


def mean_hops(topology: Topology) -> float:
    """Mean distance of two switches; of those joined by a path where the topology is not strongly connected."""
    if topology.content_hash not in _distances:
        connected = topology.unreachable_pair() is None
        mean = sampled_distances(topology, SOURCES).mean if connected else mean_of_reachable(topology)
        _distances[topology.content_hash] = mean
    return _distances[topology.content_hash]


_distances: dict[str, float] = {}


def datagram_hops(case: Case, load: float) -> float:
    """Packet hops of a run of mode datagram, ACKs included, if hosts send at the rate of their load."""
    scenario: Scenario[Any] = scenario_of(case)
    queues, topology = scenario.switching.queues, scenario.topology
    packets: float = queues.nic_mbps * 1e6 / (8 * queues.packet_bytes) * case.measure.seconds * topology.hosts
    return packets * min(load, 1.0) * (mean_hops(topology) + 2)


def sprayed_hops(case: Case, load: float) -> float:
    """Packet hops of a run of mode spray, control packets included."""
    scenario: Scenario[Any] = scenario_of(case)
    flows = scenario.switching.session(scenario.instance, scenario.work, load, 1).flows
    return CONTROL * float(flows.packets.sum()) * (mean_hops(scenario.topology) + 2)


Price: TypeAlias = dict[str, Any]
"""CPU seconds of the parts of a point, by name, and what they depend on; JSON-able."""


class Prices:
    """The prices of this machine; unknown ones are measured. say: called when that happens."""

    def __init__(self, say: Callable[[str], None]):
        self.say = say
        # prices of another version of this file may have another meaning
        here = (platform.node(), platform.machine(), processor(), SEMANTICS_VERSION, Path(__file__).read_text("utf-8"))
        self.file = cache_folder().parent / f"prices-{content_hash(*here)[:16]}{OPT_SUFFIX}.json"
        self._known = _read(self.file)

    def of(self, engine: str, scenario: Scenario) -> Price:
        """Prices of the switching mode of a scenario in an engine."""
        pricing = pricing_of(scenario)
        price: Price = self._price(f"{engine} {pricing.name}", lambda: pricing.measure(engine))
        return price

    def of_ceiling(self, kind: str) -> float:
        """CPU seconds of a ceiling of the smaller network."""
        seconds: float = self._price(f"ceiling {kind}", lambda: _price_of_ceiling(kind))
        return seconds

    def _price(self, name: str, measure: Callable[[], object]) -> Any:
        """A price by name; measured and stored if it is unknown."""
        if name not in self._known:
            self.say(f"calibrating: {name} on this machine, once")
            self._known[name] = measure()
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self.file, json.dumps(self._known, indent=1))
            except OSError:
                pass  # measured again the next time
        return self._known[name]


def _read(file: Path) -> JsonObject:
    try:
        prices = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return prices if isinstance(prices, dict) else {}


@cache
def network(switches: int, mode: str, shared_input: bool = True, adaptive: bool = False) -> Case:
    """The network of prices of a mode.

    shared_input: whether VCs share an input of the crossbar. adaptive: whether outputs are chosen by their queues.
    """
    usual = "minimal", f"mode: {mode}, vcs: 7, input_speedup: {'1' if shared_input else 'vcs'}"
    routing, switching = CALIBRATED.get(mode, usual)
    return _case(NETWORK % (switches, routing + (", select: adaptive" if adaptive else ""), switching))


def _case(text: str) -> Case:
    return read("calibration", text=text).cases[0]


def _timed(call: Callable[[], object]) -> float:
    """The shorter of two CPU times, so that compilation is not counted."""
    times = []
    for _ in range(2):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def _size(scenario: Scenario) -> int:
    """Channels of a network, those from hosts included: the state of a kernel is proportional to them."""
    return scenario.topology.channels + scenario.topology.hosts


class Pricing:
    """How the points of a scenario are priced: here of modes that simulate packets, by switch, tick and grant.

    name: of the prices. Plugins have those of virtual cut-through.
    """

    name: str

    def __init__(self, scenario: Scenario[Any, Any]):
        self.scenario, mode = scenario, scenario.switching
        self._mode = mode.mode if isinstance(mode, Timed | ByteSwitching) else Vct.mode
        if isinstance(mode, Deflection) and mode.rule != Rule.POOL:
            self._mode += f" {mode.rule}" + f" {mode.share}" * (mode.rule == Rule.VC)
        buffered = isinstance(mode, Draining)
        self._shared, self._adaptive = (
            buffered and mode.shared_input,
            buffered and scenario.routes.select == Selection.ADAPTIVE,
        )
        self.name = self._mode + ", shared inputs" * self._shared + ", adaptive" * self._adaptive

    def measure(self, engine: str) -> Price:
        """Measure the prices of this machine."""
        from flitlab.sim.measure.measure import measure
        from flitlab.sim.measure.point import Measure

        ticks = TICKS[engine]
        sizes = SIZES if engine == "compiled" else SIZES_READABLE
        small, large = (network(n, self._mode, self._shared, self._adaptive) for n in sizes)

        def run(case: Case, load: float, length: int) -> float:
            return _timed(lambda: measure(engine, scenario_of(case), load, 1, Measure(0, length, None)))

        start, started = run(small, IDLE, 1), run(large, IDLE, 1)
        small_switches, large_switches = (scenario_of(case).topology.switches for case in (small, large))
        pairs = max((started - start) / (large_switches**2 - small_switches**2), 0.0)
        still = max(run(small, IDLE, ticks) - start, 0.0)

        def hop(case: Case, fill: float, length: int, rest: float) -> float:
            load = min(fill * full_load(case), 1.0)
            return max(run(case, load, length) - rest, 0.0) / (load_of(case, load).hops * length)

        hops = [hop(small, fill, ticks, start + still) for fill in FILLED]
        short = max(ticks * small_switches // large_switches, ticks // 10)  # in shorter runs, page faults dominate
        rest = started + still * short * large_switches / (small_switches * ticks)
        grown = hop(large, FILLED[1], short, rest) / max(hops[1], 1e-12)
        return {
            "point": max(start - pairs * small_switches**2, 0.0), "pairs": pairs,
            "idle": still / (small_switches * ticks), "hop": hops,
            "growth": float(np.clip(np.log(max(grown, 1.0)) / np.log(large_switches / small_switches), 0, 1)),
            "size": _size(scenario_of(small)),
        }  # fmt: skip

    def point(self, case: Case, load: float, price: Price, length: float) -> float:
        """CPU seconds of a point. length: its ticks over those of ``measure``."""
        traffic = load_of(case, load)
        ticks = length * expected_ticks(case, traffic.fill)
        return self._seconds(price, traffic.fill, ticks, ticks * traffic.hops)

    def program(self, case: Case, price: Price) -> float:
        """CPU seconds of a program, if calculations and messages of its busiest rank are sequential."""
        program, messages = self.scenario.work.program, self.scenario.work.messages
        send, calc = program.kind == Op.SEND, program.kind == Op.CALC
        flits = total_flits(program.amount[send], messages)
        sent = np.bincount(program.rank[send], flits, program.ranks)
        worked = np.bincount(program.rank[calc], program.amount[calc], program.ranks) / float(messages.tick_ns)
        by_flit = self.scenario.switching.grants_flits
        hops = float(flits.sum()) * (_hops(self.scenario.instance) + 1) if by_flit else _packet_hops(self.scenario)
        return self._seconds(price, PLACED, float((sent + worked).max(initial=0.0)), hops)

    def _seconds(self, price: Price, fill: float, ticks: float, hops: float) -> float:
        """CPU seconds of a number of ticks and hops at a channel utilisation."""
        each = float(np.interp(fill, PRICED, price["hop"])) * (_size(self.scenario) / price["size"]) ** price["growth"]
        switches = self.scenario.topology.switches
        seconds: float = price["point"] + price["pairs"] * switches**2 + ticks * price["idle"] * switches + each * hops
        return seconds


def _packet_hops(scenario: Scenario[Any, Workload]) -> float:
    """Packet hops of a program."""
    program, messages = scenario.work.program, scenario.work.messages
    flits = total_flits(program.amount[program.kind == Op.SEND], messages)
    return float(np.ceil(flits / messages.packet_flits).sum()) * (_hops(scenario.instance) + 1)


class DatagramPricing(Pricing):
    """Prices of mode datagram: by hop, with one and with :data:`SUBFLOWS` subflows."""

    def measure(self, engine: str) -> Price:
        from flitlab.sim.measure.measure import measure
        from flitlab.sim.measure.transport import Window

        def prices(subflows: int) -> tuple[float, float]:
            case = _case(DATAGRAMS % (SIZES_READABLE[0] if engine == "reference" else SIZES[0], subflows))
            scenario, seconds = scenario_of(case), case.measure.seconds
            start = _timed(lambda: measure(engine, scenario, 1.0, 1, Window((0.0, seconds / 1000))))
            spent = _timed(lambda: measure(engine, scenario, 1.0, 1, Window((0.0, seconds))))
            return start, max(spent - start, 0.0) / datagram_hops(case, 1.0)

        (_, one), (start, many) = prices(1), prices(SUBFLOWS)
        return {"point": start, "hop": one, "hop_of_many": many}

    def point(self, case: Case, load: float, price: Price, length: float) -> float:
        subflows = getattr(self.scenario.switching.transport, "subflows", 1)
        share = min(subflows - 1, SUBFLOWS - 1) / (SUBFLOWS - 1)
        hop = price["hop"] + share * (price["hop_of_many"] - price["hop"])
        seconds: float = price["point"] + hop * datagram_hops(case, load)
        return seconds

    def program(self, case: Case, price: Price) -> float:
        seconds: float = price["point"] + price["hop"] * _packet_hops(self.scenario)
        return seconds


class SprayPricing(Pricing):
    """Prices of mode spray: by hop."""

    def measure(self, engine: str) -> Price:
        from flitlab.sim.measure.measure import measure
        from flitlab.sim.measure.transport import Window

        def run(size: int) -> tuple[float, float]:
            case = _case(SPRAYED % (SIZES_READABLE[engine != "reference"], size))
            scenario, window = scenario_of(case), Window((0.0, case.measure.seconds))
            return _timed(lambda: measure(engine, scenario, 1.0, 1, window)), sprayed_hops(case, 1.0)

        (start, few), (spent, many) = run(1_000), run(100_000 if engine == "reference" else 1_000_000)
        hop = max(spent - start, 0.0) / (many - few)
        return {"point": max(start - few * hop, 0.0), "hop": hop}

    def point(self, case: Case, load: float, price: Price, length: float) -> float:
        seconds: float = price["point"] + price["hop"] * sprayed_hops(case, load)
        return seconds

    def program(self, case: Case, price: Price) -> float:
        return self.point(case, 1.0, price, 1.0)


class FlowPricing(Pricing):
    """Prices of mode flow: by message, for barriers and an all-to-all."""

    def measure(self, engine: str) -> Price:
        from flitlab.models.application.builder import Builder
        from flitlab.models.application.collectives.choose import collective
        from flitlab.sim.measure.application import ProgramMeasure
        from flitlab.sim.measure.measure import measure

        scenario = scenario_of(network(SIZES_READABLE[0] if engine == "reference" else SIZES_READABLE[1], "vct"))
        hosts = scenario.topology.hosts

        def run_rounds(size: int, rounds: str) -> float:
            builder = Builder(hosts)
            collective(builder, rounds, np.arange(hosts)[None, :], size)
            messages = Messages(1024, 32, 0, 32, False, 1 << 62, 0, Fraction(1))
            workload = Workload(builder.build(), np.arange(hosts), messages)
            delays: Fields = scenario.switching.delays
            flows = Scenario(scenario.instance, Flow(**delays), workload)
            return _timed(lambda: measure(engine, flows, 1.0, 1, ProgramMeasure()))

        start = run_rounds(0, "barrier")
        return {"point": start, "message": max(run_rounds(10_000, "all_to_all") - start, 0.0) / (hosts * (hosts - 1))}

    def program(self, case: Case, price: Price) -> float:
        sends = self.scenario.work.program.kind == Op.SEND
        seconds: float = price["point"] + price["message"] * int(sends.sum())
        return seconds


PRICINGS: dict[type[SwitchingMode], type[Pricing]] = {
    Datagram: DatagramPricing, Spray: SprayPricing, Flow: FlowPricing,
}  # fmt: skip
"""Switching mode -> its pricing, where it is not that of packets."""


def pricing_of(scenario: Scenario) -> Pricing:
    """The pricing of a scenario."""
    return PRICINGS.get(type(scenario.switching), Pricing)(scenario)


def _price_of_ceiling(kind: str) -> float:
    from flitlab.fluid.ceilings import ceilings

    case = network(SIZES[0], "vct")
    instance = scenario_of(case).instance
    return _timed(lambda: ceilings(instance, [ceiling_spec(kind)], [1.0]))


def expected_ticks(case: Case, fill: float) -> float:
    """Expected ticks of a point; fuller networks need longer."""
    measure, full = case.measure, fill / FULLEST
    warmup = measure.warmup
    if isinstance(warmup, str):
        warmup = int((1 + full) * max(30 * scenario_of(case).zero_load_latency, measure.ticks // 10))
    return warmup + measure.ticks + full**4 * (measure.longest - measure.ticks) / 2
