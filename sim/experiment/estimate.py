# SPDX-License-Identifier: Apache-2.0
"""What a study will cost, from short runs that tell how fast this machine is.

A point's processor time is taken to be ``point + pairs x switches^2 + idle x switches x ticks + hop x packet hops``: of
starting it, of its tables of pairs, of looking at switches, of moving packets (flits, in mode wormhole). The price of a
hop depends on how full the channels are, and is measured at several loads on one network (:data:`NETWORK`); the others,
and the power of the channels with which the price of a hop grows, follow from two sizes of it, of which the larger one
is in no cache. Ceilings are measured on that network, too, and taken to grow with a power of their size (``growth`` of
their kind).

Measured prices are kept beside the compiled code, under the machine's identity, ``SEMANTICS_VERSION`` and this file.
"""

import json
import math
import platform
import re
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from flitlab.fluid.kinds.spec import CeilingSpec, asked
from flitlab.models.application.messages import Messages, total_flits
from flitlab.models.application.program import CALC, SEND
from flitlab.models.application.workload import Workload
from flitlab.models.files import replace_file
from flitlab.models.hashing import content_hash
from flitlab.models.instance import Instance
from flitlab.models.jit import LEVEL, cache_folder
from flitlab.models.rules.tables import ADAPTIVE
from flitlab.models.scenario import SEMANTICS_VERSION, Scenario
from flitlab.models.switching.datagram import Datagram
from flitlab.models.switching.discipline import FLOWS
from flitlab.models.switching.flow import Flow
from flitlab.models.switching.spray import Spray
from flitlab.models.switching.timed import Timed
from flitlab.models.switching.vct import Vct
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.topology.distances import sampled_distances
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.questions import AdaptiveConfig
from flitlab.sim.config.study import Case, read
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.experiment.origin import processor
from flitlab.sim.experiment.saturation import questions
from flitlab.sim.measure.probe_windows import longest_probe

NETWORK = """\
topology: {kind: rrg, n: %d, degree: 6, hosts_per_switch: 4}
routing: {kind: %s}
switching: {mode: %s, vcs: 7, input_speedup: %s, header_ticks: 8, link_ticks: 4}
traffic: {kind: uniform, packet_flits: 16}
loads: [0.1]
transport: {kind: mptcp, subflows: %d}
measure: {warmup: 0, seconds: 0.4}
ceilings: []
"""
"""What is run to measure prices: of so many switches, with a routing, a discipline, inputs and subflows."""

SPRAYED = """\
topology: {kind: rrg, n: %d, degree: 6, hosts_per_switch: 4}
routing: {kind: ecmp}
switching: {mode: spray}
traffic: {kind: permutation, arrivals: together, sizes: {kind: fixed, bytes: %d}}
ceilings: []
"""
"""What is run to measure prices of mode spray: of so many switches, with messages of so many bytes."""

LONG_PROBES = 3
"""Probes of a search whose windows are as long as they may become, about."""

CONTROL = 1.3
"""Packets of mode spray, for each with payload; the others are answers, about."""

SUBFLOWS = 8
"""Subflows that a packet hop of mode datagram is priced with, as well as with one; in between, its price is linear."""

SIZES, SIZES_READABLE = (64, 4096), (16, 64)
"""Switches of the networks on which prices are measured, of the compiled and of the reference engine."""

IDLE = 1e-4
"""A load at which next to nothing happens."""

FILLED = (0.05, 0.4, 0.75, 1.2)
"""How full channels would have to be when the price of a hop is measured."""

ENGINES = {"both": ("compiled", "reference")}
"""What an engine is made of, where it is more than one."""

TICKS = {"compiled": 20_000, "reference": 400}
"""Ticks that one price takes, by engine."""

FULLEST = 0.85
"""Part of the channels' capacity that a saturated network uses, about."""

PRICED = (*FILLED[:-1], FULLEST)
"""How full they are then."""

PLACED = 0.7
"""How full channels are, on average, at the loads of a search."""

SOURCES = 128
"""Switches from which distances are measured."""

DETOUR = {"valiant": 2.0, "ugal": 1.4, "par": 1.4, "deflection": 1.1, "updown": 1.3}
"""Routing kind -> hops of a packet, in shortest paths; those of other kinds are shortest, about."""

COMPILED_BYTES = 300e6
"""Memory of a process that has loaded everything, about."""

OPERATION = 400.0
"""Bytes that an operation of a program takes, with all that is measured of it."""

PAIR = 40.0
"""Bytes for each pair of switches between which packets are delivered, of two snapshots and what lies between them."""

THREAD = 0.8
"""What each thread beyond the first adds to the speed of a simulation, about; see ``docs/performance.md``."""

START_SECONDS = 3.0
"""Until processes have started."""


@dataclass(frozen=True)
class Load:
    """What a case does to channels at a load. hops: packet hops (flit hops in wormhole) a tick. fill: of a channel."""

    hops: float
    fill: float


@dataclass(frozen=True)
class Cost:
    """What a case is expected to take: CPU seconds of all points, of the longest, and of each ceiling (None: unknown).

    points: those whose loads are known, and about as many as will be found. shared: whether threads can share one.
    """

    points: int
    seconds: float
    longest: float
    ceilings: dict[str, float | None]
    shared: bool = False


def load_of(case: Case, load: float) -> Load:
    """The traffic of a case at a load. More than the channels can carry is not carried."""
    scenario = _scenario(case)
    hops, full = _hops(scenario.instance), _full(scenario.instance)
    carried = min(float(scenario.traffic.sent(load).sum()), FULLEST * full)
    packets = carried if isinstance(scenario.switching, Wormhole) else carried / scenario.source.mean_flits
    return Load(packets * (hops + 1), carried / full)


def full_load(case: Case) -> float:
    """The load at which all channels between switches would be full; infinite where there are none."""
    assert case.instance is not None
    traffic = case.instance.traffic
    left = _full(case.instance) - float(traffic.sent(0).sum())
    return max(left, 0.0) / max(float(traffic.rate.sum()), 1e-9)


def _full(instance: Instance) -> float:
    """Flits per tick of all hosts at which all channels between switches would be full."""
    if instance.topology.channels == 0:
        return math.inf
    return instance.topology.channels / _hops(instance)


def _scenario(case: Case) -> Scenario:
    assert case.scenario is not None
    return case.scenario


def _hops(instance: Instance) -> float:
    """Mean channels between switches on the way of a packet."""
    detour = 1.0 if instance.routes is None else DETOUR.get(instance.routes.kind, 1.0)
    return max(mean_hops(instance.topology), 1e-3) * detour


def mean_hops(topology: Topology) -> float:
    """Mean distance of two switches."""
    if topology.content_hash not in _distances:
        _distances[topology.content_hash] = sampled_distances(topology, SOURCES).mean
    return _distances[topology.content_hash]


_distances: dict[str, float] = {}


def datagram_hops(case: Case, load: float) -> float:
    """Packet hops of a run of mode datagram, acknowledgements among them, if hosts send at the rate of their load."""
    scenario = _scenario(case)
    assert isinstance(scenario.switching, Datagram)
    queues, topology = scenario.switching.queues, scenario.topology
    packets = queues.nic_mbps * 1e6 / (8 * queues.packet_bytes) * case.measure.seconds * topology.hosts
    return packets * min(load, 1.0) * (mean_hops(topology) + 2)


def sprayed_hops(case: Case, load: float) -> float:
    """Packet hops of a run of mode spray, those of answers among them."""
    scenario = _scenario(case)
    assert isinstance(scenario.switching, Spray)
    flows = scenario.switching.session(scenario.instance, scenario.work, load, 1).flows
    return CONTROL * float(flows.packets.sum()) * (mean_hops(scenario.topology) + 2)


class Prices:
    """What things cost on this machine; those that are not known are measured. say: told when that happens."""

    def __init__(self, say: Callable[[str], None]):
        self.say = say
        # the prices of another version of this file may mean something else
        here = (platform.node(), platform.machine(), processor(), SEMANTICS_VERSION, Path(__file__).read_text("utf-8"))
        self.file = cache_folder().parent / f"prices-{content_hash(*here)[:16]}{LEVEL}.json"
        self._known = _read(self.file)

    def of(self, engine: str, scenario: Scenario) -> dict[str, Any]:
        """Prices of the discipline of a scenario in an engine; those of plugins are taken for virtual cut-through."""
        model = scenario.switching
        if isinstance(model, Datagram):
            price: dict[str, Any] = self._price(f"{engine} {model.mode}", lambda: _of_datagrams(engine))
            return price
        if isinstance(model, Spray):
            price = self._price(f"{engine} {model.mode}", lambda: _of_spray(engine))
            return price
        if isinstance(model, Flow):
            price = self._price(f"{engine} {model.mode}", lambda: _in_mode_flow(engine))
            return price
        mode = model.mode if isinstance(model, Timed) else Vct.mode
        shared = isinstance(model, Vct | Wormhole) and model.shared_input
        adaptive = isinstance(model, Vct | Wormhole) and scenario.routes.select == ADAPTIVE
        name = f"{engine} {mode}" + (", shared inputs" if shared else "") + (", adaptive" if adaptive else "")
        price = self._price(name, lambda: _of(engine, mode, shared, adaptive))
        return price

    def of_ceiling(self, kind: str) -> float:
        """Seconds of a ceiling of the smaller network."""
        seconds: float = self._price(f"ceiling {kind}", lambda: _of_ceiling(kind))
        return seconds

    def _price(self, name: str, measure: Callable[[], Any]) -> Any:
        """The price of that name as far as it is known; else it is measured and kept."""
        if name not in self._known:
            self.say(f"calibrating: {name} on this machine, once")
            self._known[name] = measure()
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self.file, json.dumps(self._known, indent=1))
            except OSError:
                pass  # measured again the next time
        return self._known[name]


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _network(switches: int, mode: str, shared_input: bool = True, subflows: int = 1, adaptive: bool = False) -> Case:
    routing = {"deflection": "deflection", "datagram": "ecmp"}.get(mode, "minimal")
    if adaptive:
        routing += ", select: adaptive"
    inputs = "1" if shared_input else "vcs"
    text = NETWORK % (switches, routing, "vct" if mode == "deflection" else mode, inputs, subflows)
    if mode == "datagram":
        text = re.sub(r"loads: .*\n|, vcs: .*(?=})|, packet_flits: 16", "", text).replace("uniform", "permutation")
    else:
        text = re.sub(r"transport: .*\n", "", text)
    if mode == "ideal":
        text = re.sub(r" vcs: .*, header", " header", text)
    return read("calibration", text=text).cases[0]


def _timed(call: Callable[[], Any]) -> float:
    """The shorter of two times; what is compiled on the way is not counted."""
    times = []
    for _ in range(2):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def _size(scenario: Scenario) -> int:
    """Channels of a network, those from hosts among them: what a kernel keeps is in proportion to them."""
    return scenario.topology.channels + scenario.topology.hosts


def _of(name: str, mode: str, shared_input: bool, adaptive: bool) -> dict[str, Any]:
    """Prices of a discipline whose packets are made of flits."""
    from flitlab.sim.measure.measure import measure
    from flitlab.sim.measure.point import Measure

    ticks = TICKS[name]
    sizes = SIZES if name == "compiled" else SIZES_READABLE
    small, large = (_network(n, mode, shared_input, adaptive=adaptive) for n in sizes)

    def run(case: Case, load: float, length: int) -> float:
        return _timed(lambda: measure(name, _scenario(case), load, 1, Measure(0, length, None)))

    start, started = run(small, IDLE, 1), run(large, IDLE, 1)
    few, many = (_scenario(case).topology.switches for case in (small, large))
    pairs = max((started - start) / (many**2 - few**2), 0.0)
    still = max(run(small, IDLE, ticks) - start, 0.0)

    def hop(case: Case, fill: float, length: int, rest: float) -> float:
        load = min(fill * full_load(case), 1.0)
        return max(run(case, load, length) - rest, 0.0) / (load_of(case, load).hops * length)

    hops = [hop(small, fill, ticks, start + still) for fill in FILLED]
    short = max(ticks * few // many, ticks // 10)  # in fewer, memory is used for the first time
    grown = hop(large, FILLED[1], short, started + still * short * many / (few * ticks)) / max(hops[1], 1e-12)
    return {
        "point": max(start - pairs * few**2, 0.0), "pairs": pairs, "idle": still / (few * ticks), "hop": hops,
        "growth": float(np.clip(np.log(max(grown, 1.0)) / np.log(many / few), 0, 1)), "size": _size(_scenario(small)),
    }  # fmt: skip


def _of_datagrams(name: str) -> dict[str, Any]:
    """Prices of mode datagram."""
    from flitlab.sim.measure.datagram import Window
    from flitlab.sim.measure.measure import measure

    def prices(subflows: int) -> tuple[float, float]:
        case = _network(SIZES_READABLE[0] if name == "reference" else SIZES[0], "datagram", subflows=subflows)
        scenario, seconds = _scenario(case), case.measure.seconds
        start = _timed(lambda: measure(name, scenario, 1.0, 1, Window((0.0, seconds / 1000))))
        spent = _timed(lambda: measure(name, scenario, 1.0, 1, Window((0.0, seconds))))
        return start, max(spent - start, 0.0) / datagram_hops(case, 1.0)

    (_, one), (start, many) = prices(1), prices(SUBFLOWS)
    return {"point": start, "hop": one, "hop_of_many": many}


def _of_spray(name: str) -> dict[str, Any]:
    """Prices of mode spray."""
    from flitlab.sim.measure.datagram import Window
    from flitlab.sim.measure.measure import measure

    def run(size: int) -> tuple[float, float]:
        case = read("calibration", text=SPRAYED % (SIZES_READABLE[name != "reference"], size)).cases[0]
        scenario, window = _scenario(case), Window((0.0, case.measure.seconds))
        return _timed(lambda: measure(name, scenario, 1.0, 1, window)), sprayed_hops(case, 1.0)

    (start, few), (spent, many) = run(1_000), run(100_000 if name == "reference" else 1_000_000)
    hop = max(spent - start, 0.0) / (many - few)
    return {"point": max(start - few * hop, 0.0), "hop": hop}


def _in_mode_flow(name: str) -> dict[str, Any]:
    """Prices of mode flow, of a program in which everybody sends to everybody, one after another."""
    from flitlab.models.application.builder import Builder
    from flitlab.models.application.collectives.choose import collective
    from flitlab.sim.measure.application import ProgramMeasure
    from flitlab.sim.measure.measure import measure

    scenario = _scenario(_network(SIZES_READABLE[0] if name == "reference" else SIZES_READABLE[1], "vct"))
    hosts = scenario.topology.hosts

    def run(size: int, rounds: str) -> float:
        builder = Builder(hosts)
        collective(builder, rounds, np.arange(hosts)[None, :], size)
        messages = Messages(1024, 32, 0, 32, False, 1 << 62, 0, Fraction(1))
        workload = Workload(builder.build(), np.arange(hosts), messages)
        delays: dict[str, Any] = scenario.switching.delays
        flows = Scenario(scenario.instance, Flow(**delays), workload)
        return _timed(lambda: measure(name, flows, 1.0, 1, ProgramMeasure()))

    start = run(0, "barrier")
    return {"point": start, "message": max(run(10_000, "all_to_all") - start, 0.0) / (hosts * (hosts - 1))}


def _of_ceiling(kind: str) -> float:
    from flitlab.fluid.ceilings import ceilings

    case = _network(SIZES[0], "vct")
    instance = _scenario(case).instance
    return _timed(lambda: ceilings(instance, [asked(kind)], [1.0]))


def _variables(case: Case) -> int:
    topology = case.topology
    return topology.switches * topology.channels


def cost(case: Case, engine: str, prices: Prices) -> Cost:
    """What the points and the ceilings of a case will take."""
    ceilings: dict[str, float | None] = {spec.kind: _ceiling(case, spec, prices) for spec in case.ceilings}
    if not case.simulated:
        return Cost(0, 0.0, 0.0, ceilings)
    prices_of = [prices.of(name, _scenario(case)) for name in ENGINES.get(engine, (engine,))]
    runs = _runs(case)
    point = _point if case.workload is None else _program
    times = [sum(point(case, load, price, length) for price in prices_of) for load, length in runs]
    shared = not single_thread_reason(engine, _scenario(case))
    return Cost(len(runs) * len(case.seeds), sum(times) * len(case.seeds), max(times), ceilings, shared)


def _runs(case: Case) -> list[tuple[float, float]]:
    """(load, ticks over those that ``measure`` gives) of the points of a case.

    For loads that are not known there are others that are like them; the last probes of a search are its longest.
    """
    given = [(load, 1.0) for load in case.loads]
    if case.placing is None:
        return given
    alike = min(PLACED * full_load(case), 1.0)
    if isinstance(case.placing, AdaptiveConfig):
        return given + [(alike, 1.0)] * max(case.placing.points - len(case.loads), 1)
    warmup, ticks = case.measure.warmup, case.measure.ticks
    first = ticks // 10 if isinstance(warmup, str) else warmup
    longest = longest_probe(first, ticks, case.placing.longest) / (first + ticks)
    short = max(questions(case.placing.tolerance) - LONG_PROBES, 0)
    return given + [(alike, 1.0)] * short + [(alike, longest)] * LONG_PROBES


def _point(case: Case, load: float, price: dict[str, Any], length: float = 1.0) -> float:
    """CPU seconds of a point. length: its ticks over those that ``measure`` gives."""
    scenario = _scenario(case)
    if isinstance(scenario.switching, Datagram):
        more = min(getattr(scenario.switching.transport, "subflows", 1) - 1, SUBFLOWS - 1) / (SUBFLOWS - 1)
        hop = price["hop"] + more * (price["hop_of_many"] - price["hop"])
        seconds: float = price["point"] + hop * datagram_hops(case, load)
        return seconds
    if isinstance(scenario.switching, Spray):
        seconds = price["point"] + price["hop"] * sprayed_hops(case, load)
        return seconds
    here, switches = load_of(case, load), scenario.topology.switches
    each = float(np.interp(here.fill, PRICED, price["hop"])) * (_size(scenario) / price["size"]) ** price["growth"]
    ticks = length * _ticks(case, here.fill)
    seconds = price["point"] + price["pairs"] * switches**2 + ticks * (price["idle"] * switches + each * here.hops)
    return seconds


def _program(case: Case, load: float, price: dict[str, Any], length: float = 1.0) -> float:
    """CPU seconds of a program, if calculations and messages of its busiest rank follow one another."""
    scenario, workload = _scenario(case), case.workload
    assert workload is not None
    program, messages = workload.program, workload.messages
    send, calc = program.kind == SEND, program.kind == CALC
    if "message" in price:
        seconds: float = price["point"] + price["message"] * int(send.sum())
        return seconds
    if isinstance(scenario.switching, Spray):
        seconds = price["point"] + price["hop"] * sprayed_hops(case, load)
        return seconds
    flits = total_flits(program.amount[send], messages)
    packets = float(np.ceil(flits / messages.packet_flits).sum())
    hops = packets * (_hops(scenario.instance) + 1)
    if isinstance(scenario.switching, Datagram):
        seconds = price["point"] + price["hop"] * hops
        return seconds
    sent = np.bincount(program.rank[send], flits, program.ranks)
    worked = np.bincount(program.rank[calc], program.amount[calc], program.ranks) / float(messages.tick_ns)
    ticks, switches = float((sent + worked).max(initial=0.0)), scenario.topology.switches
    each = float(np.interp(PLACED, PRICED, price["hop"])) * (_size(scenario) / price["size"]) ** price["growth"]
    moved = float(flits.sum()) * (_hops(scenario.instance) + 1) if isinstance(scenario.switching, Wormhole) else hops
    seconds = price["point"] + price["pairs"] * switches**2 + ticks * price["idle"] * switches + each * moved
    return seconds


def _ticks(case: Case, fill: float) -> float:
    """Ticks that a point is expected to simulate: fuller networks need longer."""
    measure, full = case.measure, fill / FULLEST
    warmup = measure.warmup
    if isinstance(warmup, str):
        warmup = int((1 + full) * max(30 * _scenario(case).zero_load_latency, measure.ticks // 10))
    return warmup + measure.ticks + full**4 * (measure.longest - measure.ticks) / 2


def _ceiling(case: Case, spec: CeilingSpec, prices: Prices) -> float | None:
    """CPU seconds, within an order of magnitude; None for those that are not measured."""
    growth, instance = spec.growth, case.instance
    if growth is None or instance is None or (spec.routes == "needed" and instance.routes is None):
        return None
    size = _variables(case) / _variables(_network(SIZES[0], "vct"))
    # below saturation the total is the offer
    times = sum(load > full_load(case) for load in case.grid) if spec.by_load else 1
    seconds: float = prices.of_ceiling(spec.kind) * times * size**growth
    return seconds


def memory(cases: Sequence[Case]) -> float:
    """Bytes of a process that runs points of the largest case."""
    simulated = [case for case in cases if case.simulated]
    if not simulated:
        return COMPILED_BYTES
    largest = max(simulated, key=lambda case: case.topology.switches**2 + case.topology.channels)
    return COMPILED_BYTES + _held(_scenario(largest)) + _bytes(largest, max(load for load, _ in _runs(largest)))


def _held(scenario: Scenario) -> float:
    """Bytes of the routes of a scenario, which at thousands of switches are nearly all that it holds."""
    routes = scenario.routes
    parts = [*vars(routes).values(), *(routes.paths or ())]
    return float(sum(part.nbytes for part in parts if isinstance(part, np.ndarray)))


def _bytes(case: Case, load: float) -> float:
    """Memory that one run allocates, its results among it."""
    from flitlab.sim.engines.start import start

    scenario = _scenario(case)
    run = _allocated(lambda: start("compiled", *scenario.at(load), 1))
    if isinstance(scenario.work, Workload):
        return run + OPERATION * scenario.work.program.operations
    if scenario.switching.counts == FLOWS:
        return run
    here = load_of(case, load)
    packets = float(scenario.traffic.sent(load).sum()) / scenario.source.mean_flits * _ticks(case, here.fill)
    return run + PAIR * min(packets, scenario.topology.switches**2)


def _allocated(call: Callable[[], Any]) -> float:
    """Bytes that a call allocates at most, beyond what there is."""
    tracemalloc.start()
    try:
        kept = call()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        tracemalloc.stop()
    return float(peak)


def wall(costs: Sequence[Cost], jobs: int, threads: int = 1) -> float:
    """Seconds until all points are done, by so many processes of so many threads."""
    faster = [1 + THREAD * (threads - 1) if cost.shared else 1.0 for cost in costs]
    longest = max((cost.longest / times for cost, times in zip(costs, faster, strict=True)), default=0.0)
    whole = sum(cost.seconds / times for cost, times in zip(costs, faster, strict=True))
    return max(whole / jobs, longest) + (START_SECONDS if jobs > 1 else 0.0)
