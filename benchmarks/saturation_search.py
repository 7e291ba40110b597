# SPDX-License-Identifier: Apache-2.0
"""How often the bracket of a search for saturation misses the saturation point, and how wide it is.

    python -m benchmarks.saturation_search [--seeds 40] [--jobs 2] [--long 400000] [--only NAME ...]

Every network is searched with the defaults of ``loads: {saturation: {}}``, once for each seed. The true value is that
of long runs: searches of three other seeds with windows of up to ``--long`` packets of a full channel. Two counts:
brackets that do not contain the mean of the long runs, and brackets that do not overlap theirs.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from time import process_time
from typing import NamedTuple

import numpy as np

from flitlab.fluid.split import certified_limit
from flitlab.models.scenario import Scenario
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.saturation import bisect
from flitlab.sim.measure.measure import measure
from flitlab.sim.measure.point import Measure
from flitlab.sim.measure.saturation import SEARCHED, bracket

TOLERANCE, LONGEST = 0.01, 16
"""Of a search, as by default."""

LONG_SEEDS = (1001, 1002, 1003)
"""Seeds of long runs."""

VCT = "switching: {vcs: 4, buffer_flits: 32, header_ticks: 2, link_ticks: 4}"
NETWORKS = {
    "switch of 2 hosts, wormhole": (
        "topology: {kind: hyperx, dims: [1], hosts_per_switch: 2}\nrouting: {kind: minimal}\n"
        "switching: {mode: wormhole, vcs: 1, buffer_flits: 8}\n"
        "traffic: {kind: uniform, include_self: true, packet_flits: 1}"
    ),
    "ring of 8, minimal": (
        "topology: {kind: torus, dims: [8], hosts_per_switch: 1}\nrouting: {kind: minimal}\n"
        "switching: {mode: ideal}\ntraffic: {kind: uniform, packet_flits: 4}"
    ),
    "imase(16, 3), minimal": (
        f"topology: {{kind: imase, n: 16, degree: 3, hosts_per_switch: 2}}\n"
        f"routing: {{kind: minimal}}\n{VCT}\ntraffic: {{kind: uniform, packet_flits: 8}}"
    ),
    "imase(16, 3), hot-potato": (
        f"topology: {{kind: imase, n: 16, degree: 3, hosts_per_switch: 2}}\n"
        f"routing: {{kind: deflection}}\n{VCT}\ntraffic: {{kind: uniform, packet_flits: 8}}"
    ),
    "8 x 8 mesh, wormhole": (
        "topology: {kind: mesh, dims: [8, 8]}\nrouting: {kind: dor}\n"
        "switching: {mode: wormhole, vcs: 4, buffer_flits: 8}\n"
        "traffic: {kind: transpose, packet_flits: 4}"
    ),
    "rrg(32, 5), permutation": (
        f"topology: {{kind: rrg, n: 32, degree: 5, hosts_per_switch: 2}}\n"
        f"routing: {{kind: minimal, vc_policy: hop}}\n{VCT.replace('vcs: 4', 'vcs: 6')}\n"
        "traffic: {kind: permutation, packet_flits: 4}"
    ),
    "fat tree(4), adaptive": (
        f"topology: {{kind: fat_tree, k: 4}}\nrouting: {{kind: minimal, select: adaptive}}\n{VCT}\n"
        "traffic: {kind: permutation, packet_flits: 4}"
    ),
    "8 x 8 torus, dimension order": (
        f"topology: {{kind: torus, dims: [8, 8]}}\nrouting: {{kind: dor}}\n{VCT}\n"
        "traffic: {kind: uniform, packet_flits: 4}"
    ),
    "slim fly(5), permutation, ideal": (
        "topology: {kind: slim_fly, q: 5, hosts_per_switch: 4}\nrouting: {kind: minimal}\n"
        "switching: {mode: ideal}\ntraffic: {kind: permutation, packet_flits: 4}"
    ),
    "mddp(64, 6), Valiant": (
        f"topology: {{kind: mddp, n: 64, degree: 6, hosts_per_switch: 4}}\n"
        f"routing: {{kind: valiant}}\n{VCT.replace('vcs: 4', 'vcs: 8')}\n"
        "traffic: {kind: uniform, packet_flits: 4}"
    ),
    "dragonfly(8, 4, 4), adversarial": (
        "topology: {kind: dragonfly, a: 8, p: 4, h: 4}\nrouting: {kind: minimal}\n"
        "switching: {vcs: 8, buffer_flits: 64, header_ticks: 4, link_ticks: 10}\n"
        "traffic: {kind: adversarial, packet_flits: 4}"
    ),
}
"""Name -> what its configuration says."""


class Found(NamedTuple):
    """What a search came to. cpu: seconds."""

    lower: float
    value: float
    upper: float
    cpu: float


@cache
def scenario(name: str) -> tuple[Scenario, Measure, float]:
    """(the scenario, its first window, the load that it certainly does not carry)."""
    text = NETWORKS[name] + "\nloads: {saturation: {}}\nceilings: []\n"
    case = read("benchmark.yaml", text=text).cases[0]
    assert case.scenario is not None and isinstance(case.measure.warmup, int)
    first = Measure(case.measure.warmup, case.measure.ticks, resolution=1.0, longest=LONGEST)
    return case.scenario, first, min(certified_limit(case.scenario.instance), 1.0)


def search(job: tuple[str, int, float, int, bool]) -> Found:
    """The search of a seed.

    job: (name of the network, seed, tolerance, longest window over the first, whether fresh draws confirm the bracket).
    """
    name, seed, tolerance, longest, confirm = job
    case, how, top = scenario(name)
    began, rows, steps = process_time(), {}, bisect(top, tolerance)
    answer = None
    while True:
        try:
            question = steps.send(answer)
        except StopIteration:
            break
        if question.draws and not confirm:
            break
        probe = Measure(how.warmup, how.ticks, resolution=question.resolution, longest=longest, draws=question.draws)
        row = measure("compiled", case, question.load, seed, probe).row | {"load": question.load, SEARCHED: True}
        rows[question.load] = row  # of several at a load, the last, as in a study
        answer = [row]
    found = bracket(rows.values(), top)
    return Found(found.lower, found.value, found.upper, process_time() - began)


def long_run(name: str, longest: int) -> Iterator[tuple[str, int, float, int, bool]]:
    """The jobs that find what is true of a network. longest: packets of a full channel in the longest window."""
    case, how, _ = scenario(name)
    packets = how.ticks / case.source.mean_flits
    return ((name, seed, 0.001, max(int(longest / packets), LONGEST), False) for seed in LONG_SEEDS)


def main() -> None:
    """Prints a row for every network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--long", type=int, default=400_000)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    options = parser.parse_args()
    print(
        "| network | channels | long runs | searches, mean | bracket | without that mean | apart | CPU-s |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for name in options.only:
            truths = list(pool.map(search, long_run(name, options.long)))
            truth = float(np.mean([one.value for one in truths]))
            jobs = [(name, seed, TOLERANCE, LONGEST, True) for seed in range(1, options.seeds + 1)]
            found = list(pool.map(search, jobs))
            low, value, high, cpu = (float(np.mean(column)) for column in zip(*found, strict=True))
            ends = min(one.lower for one in truths), max(one.upper for one in truths)
            outside = sum(not one.lower <= truth <= one.upper for one in found)
            apart = sum(one.upper < ends[0] or one.lower > ends[1] for one in found)
            print(
                f"| {name} | {scenario(name)[0].topology.channels} | {truth:.4f} ({ends[0]:.4f} .. {ends[1]:.4f}) | "
                f"{value:.4f} | {low:.4f} .. {high:.4f} | {outside} | {apart} of {len(found)} | {cpu:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
