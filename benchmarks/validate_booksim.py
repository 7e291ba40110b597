# SPDX-License-Identifier: Apache-2.0
"""Latency curves beside those of BookSim2, an established flit-level simulator, for the same networks.

    python benchmarks/validate_booksim.py [--ticks 40000] [--figure docs/figures/booksim_validation.png]

``booksim2_curves.json`` holds BookSim2's curves and every parameter they were made with: 64 nodes, single-flit
packets, 4 VCs of 8 flits, iSLIP with one iteration, all channels one cycle. A channel of latency 1 takes two ticks
here (BookSim2 receives a flit in the cycle after its latency), and so does a credit. BookSim2's torus lets
packets that wrap in a dimension use one half of the VCs and the others the other half: ``dateline on_entry``.

Exit code 1 if zero-load latency differs by more than 0.1 %, a mean latency by more than 1 % (5 % above 85 % of
saturation), or saturation falls into another interval of loads. Saturated: latency over three times that at zero load,
or less than 97 % of the offered traffic accepted.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from flitlab.models.instance import Instance
from flitlab.models.registry import make
from flitlab.models.scenario import Scenario
from flitlab.models.switching.wormhole import Wormhole
from flitlab.models.traffic.source import Source
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure

CURVES = Path(__file__).with_name("booksim2_curves.json")
NETWORKS = {
    "mesh8x8_dor_uniform_1flit": ("8x8 mesh", {"kind": "mesh", "dims": [8, 8]}, None),
    "torus8x8_dimorder_uniform_1flit": ("8x8 torus", {"kind": "torus", "dims": [8, 8]}, "dateline"),
    "hypercube64_dor_uniform_1flit": ("6-cube", {"kind": "hypercube", "dim": 6}, None),
}
TIMES = {"header": 1, "switch": 1, "link": 2, "injection": 2, "ejection": 2, "credit": 2}


def scenario(topology: dict, vc_policy: str | None, flits: int = 1) -> Scenario:
    """Dimension-order routing, uniform traffic (a host may draw itself), 4 VCs of 8 flits."""
    graph = make("topology", **topology).build()
    routes = make("routing", kind="dor", **({"vc_policy": vc_policy} if vc_policy else {})).build(graph)
    demand = make("traffic", kind="uniform", include_self=True).build(graph)
    given = Wormhole(vcs=4, buffer_flits=8, shared_input=True, **TIMES)
    return Scenario(Instance(graph, demand, routes), given.certified(graph, routes)[0], Source(flits=(flits,)))


def zero_load(hops: float, flits: int = 1) -> float:
    """BookSim2's closed form for these parameters; hops: channels between switches."""
    return 4 * hops + 6 + flits - 1


def is_saturated(point: dict, unloaded: float) -> bool:
    """The reference's own definition."""
    latency = point["packet_latency"]
    return latency is None or latency > 3 * unloaded or point["accepted"] < 0.97 * point["offered"]


def simulated(case: Scenario, load: float, ticks: int) -> dict:
    """One point, with the reference's names."""
    row = measure("compiled", case, load, 1, Measure(warmup=4000, ticks=ticks)).row
    return {
        "offered": load, "packet_latency": row["latency_mean"], "accepted": row["accepted"],
        "half_width": row["latency_ci95"], "hops": row["hops_mean"],
    }  # fmt: skip


def compare(name: str, points: list[dict], ticks: int) -> tuple[list[dict], list[str]]:
    """Our points, and what is wrong with them; prints a table."""
    title, topology, policy = NETWORKS[name]
    case = scenario(topology, policy)
    unloaded = zero_load(points[0]["hops"] - 1)
    theirs = [is_saturated(point, unloaded) for point in points]
    limit = points[theirs.index(True) if True in theirs else -1]["offered"]
    ours, wrong = [], []
    print(f"\n{title}   saturation of the reference: below {limit}")
    print("  load   BookSim2    flitlab   +- 95 %   difference   accepted: BookSim2  flitlab")
    for point, saturated in zip(points, theirs, strict=True):
        load = point["offered"]
        mine = simulated(case, load, ticks)
        ours.append(mine)
        error = math.nan
        if not saturated:
            # a run draws its own destinations: compare what exceeds the closed form of its own mean distance
            own = mine["packet_latency"] - zero_load(mine["hops"]) + zero_load(point["hops"] - 1)
            error = own / point["packet_latency"] - 1
            allowed = 0.01 if load <= 0.85 * limit else 0.05
            if abs(error) > allowed:
                wrong.append(f"{title}, load {load}: latency differs by {error:+.1%}")
        if is_saturated(mine, unloaded) != saturated:
            wrong.append(f"{title}, load {load}: saturated here {not saturated}, in the reference {saturated}")
        reference = math.nan if point["packet_latency"] is None else point["packet_latency"]
        print(
            f"  {load:<5} {reference:9.2f}  {mine['packet_latency']:9.2f}  {mine['half_width']:7.2f}   "
            f"{error:+10.2%}   {point['accepted']:18.4f} {mine['accepted']:8.4f}{'   saturated' if saturated else ''}"
        )
    return ours, wrong


def lone_packets() -> list[str]:
    """Packets alone in the network take as long as BookSim2's closed form says, to the cycle."""
    wrong = []
    for flits in (1, 5):
        for title, topology, policy in NETWORKS.values():
            case = scenario(topology, policy, flits)
            row = measure("compiled", case, 1e-5 * flits, 1, Measure(0, 400_000, None)).row
            if abs(row["latency_mean"] - zero_load(row["hops_mean"], flits)) > 1e-3 * row["latency_mean"]:
                wrong.append(f"{title}, {flits} flits: zero-load latency {row['latency_mean']:.3f}")
    return wrong


def draw(curves: dict[str, tuple[list[dict], list[dict]]], path: Path) -> None:
    """Both curves of every network."""
    figure, axes = plt.subplots(1, len(curves), figsize=(10, 3.2), layout="constrained")
    for axis, (name, (theirs, ours)) in zip(axes, curves.items(), strict=True):
        for points, style, label in ((theirs, "k-o", "BookSim2"), (ours, "C3--x", "flitlab")):
            shown = [p for p in points if p["packet_latency"] is not None]
            axis.plot(
                [p["offered"] for p in shown], [p["packet_latency"] for p in shown], style, label=label, markersize=4
            )
        axis.set(title=NETWORKS[name][0], xlabel="offered load (flits/tick/host)", ylim=(15, 60), xlim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean packet latency (ticks)")
    axes[0].legend()
    figure.savefig(path, dpi=150)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=40_000)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    configs = json.loads(CURVES.read_text())["configs"]
    wrong, curves = lone_packets(), {}
    for name in NETWORKS:
        points = configs[name]["points"]
        ours, mistakes = compare(name, points, options.ticks)
        curves[name] = points, ours
        wrong += mistakes
    if options.figure:
        draw(curves, options.figure)
    print("\n" + ("\n".join(wrong) if wrong else "all within tolerance"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
