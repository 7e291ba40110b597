"""``simrun check FILE``."""

import argparse
from typing import Any

from models.routing.certificate import POLICY_NAMES
from sim.cli.common import BAD, print_json, study_of
from sim.config.study import Case


def run(options: argparse.Namespace) -> int:
    """Checks a configuration and prints what it would run."""
    study = study_of(options)
    if study is None:
        return BAD
    scenarios = [_describe(case) for case in study.cases]
    points = sum(scenario["points"] for scenario in scenarios)
    if options.json:
        head = {"name": study.name, "experiment": study.experiment, "engine": study.engine}
        print_json({**head, "points": points, "scenarios": scenarios})
        return 0
    print(f"{study.name}: {study.experiment}, {len(scenarios)} scenarios, {points} points")
    for scenario in scenarios:
        _print(scenario)
    return 0


def _describe(case: Case) -> dict[str, Any]:
    topology = case.topology
    degree = topology.out_degree
    return {
        "label": case.label,
        "points": len(case.loads) * len(case.seeds) if case.ticks else 0,
        "topology": {
            "kind": topology.kind, "switches": topology.switches, "channels": topology.channels,
            "hosts": topology.hosts, "directed": topology.directed, "degree_min": int(degree.min()),
            "degree_max": int(degree.max()), "edge_hash": topology.edge_hash,
        },
        "routing": _routing(case), "ticks": case.ticks, "zero_load": _zero_load(case.ticks),
        "certificate": case.certificate, "loads": case.loads, "seeds": case.seeds,
        "ceilings": [ceiling.kind for ceiling in case.ceilings], "config": case.resolved,
    }  # fmt: skip


def _routing(case: Case) -> dict[str, Any] | None:
    """What the packets of a simulation follow."""
    scenario = case.scenario
    if scenario is None or not case.ticks:
        return None
    routes = scenario.routes
    return {
        "kind": routes.kind, "vc_policy": POLICY_NAMES[scenario.vc_policy], "hops_max": routes.hops_max,
        "layers": routes.layers or None, **routes.notes,
    }  # fmt: skip


def _zero_load(ticks: dict[str, int]) -> str | None:
    """The latency of a packet alone, of L flits over H channels between switches, as a formula."""
    if not ticks:
        return None
    each, hop = ticks["header"] + ticks["switch"], ticks["link"]
    ends = ticks["injection"] + ticks["ejection"]
    return (
        f"{ticks['injection']} + (H + 1) ({ticks['header']} + {ticks['switch']}) + {hop} H + {ticks['ejection']} "
        f"+ L - 1 = {each + hop} H + {each + ends} + (L - 1) ticks"
    )


def _print(scenario: dict[str, Any]) -> None:
    topology = scenario["topology"]
    degrees = sorted({topology["degree_min"], topology["degree_max"]})
    links = "uni-directional" if topology["directed"] else "bi-directional"
    print(f"\n{scenario['label']}")
    print(
        f"  topology     {topology['kind']}: {topology['switches']} switches, {topology['channels']} channels "
        f"({links}), degree {'-'.join(map(str, degrees))}, {topology['hosts']} hosts"
    )
    if scenario["ticks"]:
        print(f"  ticks        {', '.join(f'{name} {ticks}' for name, ticks in scenario['ticks'].items())}")
        switching = scenario["config"]["switching"]
        shown = ("mode", "vcs", "buffer_flits", "allocator", "iterations", "input_speedup", "hold_packets", "slotted")
        print(f"  switching    {', '.join(f'{key} {switching[key]}' for key in shown if key in switching)}")
        print(f"  zero load    {scenario['zero_load']}, L flits over H channels between switches")
        routing = {key: value for key, value in scenario["routing"].items() if value is not None}
        kind = routing.pop("kind")
        print(f"  routing      {kind}: {', '.join(f'{key} {_short(value)}' for key, value in routing.items())}")
        print(f"  deadlock     {scenario['certificate']}")
        loads = scenario["loads"]
        seeds = ", ".join(map(str, scenario["seeds"]))
        print(f"  points       {scenario['points']}: {len(loads)} loads {loads[0]} .. {loads[-1]}, seeds {seeds}")
    if scenario["ceilings"]:
        print(f"  ceilings     {', '.join(scenario['ceilings'])}")


def _short(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
