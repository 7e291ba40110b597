# SPDX-License-Identifier: Apache-2.0
"""Extreme values for every numeric key of a configuration, read off the JSON schema, and for the numbers of claims."""

import json
import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from flitlab.models.registry import CATEGORIES, names, spec_class
from flitlab.sim.config.json_schema import json_schema
from flitlab.sim.config.units import quantity_of

read_yaml = partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

NUMBERS = ("1e-320", "1e-19", "1e308", '"1e999999999"', str(2**63), ".nan", "-0.0", '""')
"""Extreme values as YAML writes them."""

FURTHER = ("-1", "0", "1e-300", "1e19", str(2**31 - 1), str(2**53), "1" + "0" * 399, ".inf", "true")
"""More of them, for the long test."""

UNITS = {"size": "TiB", "time": "s", "rate": "Tbps", "percentage": "%"}

SMALL = "topology: {kind: mesh, dims: [2, 2]}\n"
PACKETS = SMALL + (
    "routing: {kind: minimal}\ntraffic: {kind: uniform, packet_flits: 2}\nloads: [0.2]\nseeds: [1]\n"
    "measure: {warmup: 20, ticks: 60, ci: null, max_ticks: 100}\nceilings: []\noutputs: {figures: [], html: false}\n"
)
FLOWS = SMALL + (
    "routing: {kind: ecmp, ways: 2}\nloads: [0.5]\nseeds: [1]\nmeasure: {seconds: 0.0002}\nceilings: []\n"
    "outputs: {figures: [], html: false}\n"
)
PROGRAM = SMALL + (
    "experiment: application\nrouting: {kind: dor}\nseeds: [1]\nmeasure: {max_ticks: 1e5}\nceilings: []\n"
    "outputs: {figures: [], html: false}\nmessages: {flit_bytes: 32, packet_flits: 4, header_flits: 1, "
    "rendezvous_bytes: 64, overhead_ns: 1.0}\n"
)
LARGE = "switching: {mode: vct, vcs: 16, buffer_flits: 64}\n"
VCT = "switching: {mode: vct, vcs: 2, buffer_flits: 8, flit_ns: 1.0}\n"
TRAFFIC = "traffic: {kind: shift, by: 1, sizes: {kind: fixed, bytes: 3000}, arrivals: together}\n"
CEILINGS = SMALL + "experiment: ceilings\ntraffic: {kind: uniform}\noutputs: {figures: [], html: false}\n"

BASES = {
    "ideal": PACKETS + "switching: {mode: ideal}\n",
    "vct": PACKETS + "switching: {mode: vct, vcs: 2, buffer_flits: 8, flit_ns: 1.0}\n",
    "mix": PACKETS.replace("packet_flits: 2", "packet_flits: [{flits: 2, share: 0.5}, {flits: 3, share: 0.5}], "
                           "arrivals: onoff, burst: 4.0")
    + "switching: {mode: vct, vcs: 2, buffer_flits: 8}\n",
    "wormhole": PACKETS + "switching: {mode: wormhole, vcs: 2, buffer_flits: 4}\n",
    "deflection": PACKETS.replace("packet_flits: 2", "packet_flits: 1").replace("minimal", "deflection")
    + "switching: {mode: deflection, hold_packets: 2}\n",
    "datagram": FLOWS + TRAFFIC
    + "switching: {mode: datagram, packet_bytes: 1000, nic_mbps: 1000, link_us: 1.0, queue_packets: 10, "
    "link_failures: {links: 1, at_ms: 0.1, reroute_ms: 0.1, seed: 1}}\ntransport: {kind: tcp}\n",
    "mptcp": FLOWS.replace("seconds: 0.0002", "seconds: 0.0002, window: [0.0001, 0.0002]")
    + "traffic: {kind: shift, by: 1}\nswitching: {mode: datagram, packet_bytes: 1000, nic_mbps: 1000, "
    "link_us: 1.0, queue_bytes: 10000}\ntransport: {kind: mptcp, subflows: 2}\n",
    "pareto": FLOWS
    + "traffic: {kind: shift, by: 1, sizes: {kind: pareto, mean_bytes: 3000, shape: 1.2, max_bytes: 1e5}}\n"
    "switching: {mode: datagram, packet_bytes: 1000, nic_mbps: 1000, link_us: 1.0, queue_packets: 10}\n",
    "spray": FLOWS + TRAFFIC + "switching: {mode: spray, nic_mbps: 100000, link_us: 1.0, queue_packets: 20, "
    "ecn: [2, 10]}\ntransport: {kind: nscc, paths: 4}\n",
    "ndp": FLOWS + TRAFFIC + "switching: {mode: spray, nic_mbps: 100000, link_us: 1.0, queue_bytes: 100000, "
    "switch_ns: 10}\ntransport: {kind: ndp}\n",
    "capacity": FLOWS + TRAFFIC + "switching: {mode: spray, nic_mbps: 100000, link_us: 1.0}\n"
    "capacity_of: {links: 1, factor: 0.5, seed: 1}\n",
    "timeline": PACKETS + "switching: {mode: vct, vcs: 2, buffer_flits: 8, flit_ns: 1.0}\ntimeline:\n"
    "  - {at_us: 0.03, fail: {links: 1, seed: 1}, reroute_after: 0.01}\n  - {at_us: 0.05, restore: {links: 1}}\n",
    "ticks": PACKETS + "switching: {mode: ideal}\ntimeline:\n  - {at_tick: 30, fail: {links: 1}, reroute_after: 5}\n",
    "slow": FLOWS + TRAFFIC + "switching: {mode: spray, nic_mbps: 100000, link_us: 1.0}\ntimeline:\n"
    "  - {at_us: 1, slow: {links: 1}, factor: 0.1, reroute_after: 2.0}\n",
    "slow datagrams": FLOWS + TRAFFIC + "switching: {mode: datagram, packet_bytes: 1000, nic_mbps: 1000, "
    "link_us: 1.0, queue_packets: 10}\ntimeline:\n  - {at_us: 1, slow: {links: 1}, factor: 0.1}\n",
    "saturation": PACKETS.replace("loads: [0.2]", "loads: {saturation: {tolerance: 0.5, longest: 1}}")
    + "switching: {mode: ideal}\n",
    "adaptive": PACKETS.replace("loads: [0.2]", "loads: {adaptive: {points: 4}, at: {from: 0.1, to: 0.2, step: 0.1}}")
    + "switching: {mode: ideal}\n",
    "budget": PACKETS.replace("loads: [0.2]\n", "").replace("figures: []", "figures: [budget]")
    + "switching: {mode: vct, vcs: 2, buffer_flits: 8}\nbudget: {window: 10, tolerance: 0.5, longest: 1, "
    "sensitivities: []}\n",
    "reduce": PROGRAM + VCT + "application: {kind: all_reduce, size_bytes: 256, ranks: 4, algorithm: ring}\n"
    "placement: {kind: random, seed: 1}\n",
    "stencil": PROGRAM + VCT + "application: {kind: halo, dims: [2, 2], size_bytes: 64, "
    "calculate_ns: 5.0, repeats: 2}\n",
    "training": PROGRAM + VCT + "application: {kind: training, data: 2, pipeline: 2, tensor: 1, layers: 2, "
    "hidden: 4, sequence: 4, batch: 2, microbatches: 2, gflops: 1.0}\n",
    "jobs": PROGRAM + VCT + "application:\n  - {name: a, kind: all_reduce, ranks: 2, size_bytes: 64, start_us: 0.1}\n"
    "  - {name: b, kind: all_to_all, ranks: 2, size_bytes: 64}\n",
    "flow": PROGRAM + "switching: {mode: flow, flit_ns: 1.0, switch_ns: 1.0}\n"
    "application: {kind: broadcast, size_bytes: 256, ranks: 4}\n",
    "collective": PROGRAM.replace("experiment: application", "experiment: collective").replace("dor", "minimal")
    + "switching: {mode: flow, flit_ns: 1.0, switch_ns: 1.0}\n"
    "collective: {kind: all_reduce, size_bytes: 1024, gflops: 1.0, algorithm: ring}\n",
    "root": PROGRAM.replace("experiment: application", "experiment: collective") + VCT
    + "collective: {kind: broadcast, size_bytes: 1024, root: 1, algorithm: {kind: binomial}}\n",
    "ceilings": CEILINGS + "routing: {kind: ksp, k: 2}\nloads: [0.5]\n"
    "ceilings: [mcf, mcf_paths, mmf, split, bounds, cuts, total]\n",
    "relative": CEILINGS.replace("experiment: ceilings", "experiment: relative") + "relative: {by: mcf, draws: 2}\n",
    "search": CEILINGS.replace("experiment: ceilings", "experiment: search").replace(
        SMALL, "topology: {kind: rrg, n: 6, ports: 4, hosts_total: 6, seed: 1}\n")
    + "search: {vary: hosts_total, until: 0.5, verify: 1, draws: 1, share: 1.0, from: 4, to: 8, tolerance: 0.1}\n",
    "metrics": SMALL + "experiment: metrics\nmetrics: [bisection, hop_distribution, {kind: k_shortest, k: 2}]\n",
    "published": PACKETS + "switching: {mode: ideal}\npublished:\n"
    "  - {where: a, scenario: {}, quantity: accepted, value: 0.2, tolerance: 0.5, why: b}\n",
}  # fmt: skip
"""Small configurations that use every section and every mode of switching."""

CLAIMS = {
    "claim": SMALL + "routing: {kind: minimal}\ntraffic: {kind: uniform, packet_flits: 2}\nvcs: 1\ncycle_ns: 2.0\n"
    "link_gbps: 100.0\ndelays: {hop: 1.0, ends: 2.0, unit: ns}\n"
    "reported: [{load: 0.4, throughput: 0.3, latency: 30.0, error: 0.02}, {throughput: 50.0, unit: Gb/s}]\n",
    "claim per switch": "topology: {kind: torus, dims: [3], hosts_per_switch: 2}\ntraffic: {kind: shift, by: 1}\n"
    "reported: [{load: 0.1, latency: 9.0}, {throughput: 0.2, unit: flits/cycle/switch}]\n",
    "claim of capacity": SMALL + "traffic: {kind: hotspot, hosts: [0], fraction: 0.2, packet_flits: 4}\n"
    "switching: {mode: vct, vcs: 2, buffer_flits: 8, header_ticks: 1}\n"
    "reported: [{load: 0.4, unit: fraction of capacity}, {load: 0.1, unit: packets/cycle}]\n",
}
"""Small claims with numbers in every section."""

CARRIERS = {
    "topology": SMALL + "experiment: metrics\n",
    "routing": PACKETS.replace("2, 2", "4, 4") + LARGE,
    "traffic": PACKETS.replace("2, 2", "4, 4") + LARGE,
    "metrics": SMALL + "experiment: metrics\n",
    "transport": FLOWS + TRAFFIC + "switching: {mode: spray}\n",
    "application": PROGRAM.replace("dims: [2, 2]", "dims: [2, 2], hosts_per_switch: 64") + VCT + "application: {}\n",
    "placement": PROGRAM + VCT + "application: {kind: all_reduce, size_bytes: 256, ranks: 4, algorithm: ring}\n",
    "ceilings": CEILINGS,
}
"""Section -> a configuration in which each kind of component is tried with the keys of its example."""


DRAGONFLY = {"topology": {"kind": "dragonfly", "a": 2, "p": 1, "h": 1}}
REDRAWN = {"routing": {"kind": "ecmp", "ways": 8, "path_draw": "with_replacement"}, "measure": {"seconds": 0.001}}
LOSSLESS = {"switching": {"mode": "spray", "queue": "lossless", "allow_deadlock": True}}
SUITED: dict[str, Any] = {
    "routing.allpath": {"topology": {"kind": "mesh", "dims": [2, 2]}},
    "routing.dragonfly": DRAGONFLY, "routing.par": DRAGONFLY, "traffic.adversarial": DRAGONFLY,
    "routing.imase": {"topology": {"kind": "imase", "n": 8, "degree": 2}},
    "traffic.batch": {"loads": None},
    "transport.tcp": REDRAWN, "transport.mptcp": REDRAWN,
    "transport.roce": LOSSLESS, "transport.dcqcn": LOSSLESS, "transport.hpcc": LOSSLESS,
    "transport.swift": LOSSLESS, "transport.timely": LOSSLESS,
}  # fmt: skip
"""What kinds need besides that do not serve the carrier of their section; None: a key that they must not have."""


def _examples() -> Iterator[tuple[str, str]]:
    """Every kind with the example of its docstring, as a base: ``topology.torus``."""
    for category, section in (("metric", "metrics"), ("ceiling", "ceilings"), *((name, name) for name in CARRIERS)):
        for kind in names(category) if category in CATEGORIES else ():
            text = " ".join((spec_class(category, kind).__doc__ or "").split())
            if (found := re.search(r"Example: ``(.*?)``", text)) is not None and "path:" not in found[1]:
                config = read_yaml(CARRIERS[section]) | read_yaml(found[1])
                config |= SUITED.get(f"{section}.{kind}", {})
                config = {key: value for key, value in config.items() if value is not None}
                if category == "transport" and kind in ("tcp", "mptcp"):
                    config["switching"] = {"mode": "datagram"}
                yield f"{section}.{kind}", yaml.dump(config, sort_keys=False, default_flow_style=None)


BASES |= dict(_examples())

Path = tuple[str | int, ...]


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _forms(schema: Any, value: Any) -> Iterator[dict[str, Any]]:
    """The parts of a schema that speak of a value, without references and conditions."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from _forms(_schema()["$defs"][schema["$ref"].rpartition("/")[2]], value)
    if "if" in schema:
        condition = {**schema["if"], "$defs": _schema()["$defs"]}
        holds = Draft202012Validator(condition).is_valid(value)
        yield from _forms(schema.get("then" if holds else "else"), value)
    for key in ("anyOf", "allOf"):
        for one in schema.get(key, ()):
            yield from _forms(one, value)
    yield schema


def numeric_keys(value: Any, schema: Any = None, path: Path = (), depth: int = 0) -> Iterator[Path]:
    """Paths of all numeric keys that a configuration has, or might have."""
    if schema is None:
        schema = _schema()
    forms = list(_forms(schema, value))
    if any(form.get("type") in ("number", "integer") for form in forms):
        yield path
    if isinstance(value, list):
        for i, one in enumerate(value):
            for form in forms:
                if "items" in form:
                    yield from numeric_keys(one, form["items"], (*path, i), depth)
        return
    if value is not None and not isinstance(value, dict):
        return
    for form in forms:
        for key, inner in form.get("properties", {}).items():
            if key in ("sweep", "cases", "keys", "quick", "schema"):
                continue
            there = isinstance(value, dict) and key in value
            if there or depth < 2:
                child = value[key] if there else None
                yield from numeric_keys(child, inner, (*path, key), depth + (not there))


def _numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all numbers in a value."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(one, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


SHARE = 10
"""One in this number of bases tries a key of a section that it lacks: what rejects the key is the same in all."""


def places(base: str) -> list[Path]:
    """The numeric keys of a base, each once; of one for a component those of its section, and the numbers of a claim.

    They are those that the schema knows, of sections that the base lacks a :data:`SHARE`, and numbers that the base has
    (of jobs the schema knows no keys).
    """
    if base in CLAIMS:
        return list(_numbers(read_yaml(CLAIMS[base])))
    section, _, kind = base.partition(".")
    root = read_yaml(BASES[base])
    if kind:
        return [path for path in dict.fromkeys([*numeric_keys(root), *_numbers(root)]) if path[0] == section]
    turn = list(BASES).index(base)
    missing = [path for path in numeric_keys(root) if path[0] not in root]
    left = {path for i, path in enumerate(missing) if (i + turn) % SHARE}
    return [path for path in dict.fromkeys([*numeric_keys(root), *_numbers(root)]) if path not in left]


def values(path: Path, further: bool = False) -> list[str]:
    """Extreme values for a key, as YAML writes them; of a key with a unit, also with the largest one."""
    found = [*NUMBERS, *(FURTHER if further else ())]
    key = next(str(part) for part in reversed(path) if isinstance(part, str))
    quantity = quantity_of(key, str(path[0]))
    if quantity is not None:
        found += [f'"{text} {UNITS[quantity.name]}"' for text in ("1e-320", "1e-19", "1e299", "1e999999999", "-0.0")]
    return found


MARK = "<<EXTREME>>"


def mutant(base: str, path: Path, value: str) -> str:
    """The text of a base with another value at a path; mappings on the path are made."""
    root = read_yaml(CLAIMS[base] if base in CLAIMS else BASES[base])
    node = root
    for part, after in zip(path, (*path[1:], None), strict=True):
        if after is None:
            node[part] = MARK
        elif isinstance(node, dict) and node.get(part) is None:
            node[part] = {}
        node = node[part] if after is not None else node
    return yaml.dump(root, sort_keys=False, default_flow_style=None).replace(MARK, value)


def described(base: str, path: Path, value: str) -> str:
    """A mutant in a message."""
    return json.dumps([base, ".".join(map(str, path)), value[:40]])
