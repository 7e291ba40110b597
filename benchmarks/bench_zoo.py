# SPDX-License-Identifier: Apache-2.0
"""Ceilings of many small networks side by side: 242 graphs, two loads, four ceilings each.

    python benchmarks/bench_zoo.py [--runs 1]

The graphs have the sizes and degrees of the Internet Topology Zoo (Knight and others, IEEE J. Sel. Areas Commun.
29(9), 2011, doi:10.1109/JSAC.2011.111002), which cannot be handed on with flitlab: 4 to 754 switches, 40 on average,
of mean degree 2.4. Switches are points of a square, and links are short. Kernels are compiled beforehand.
"""

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import networkx as nx
import numpy as np
from measured import Row, command

RUNS = 1
ROOT = Path(__file__).parents[1]
GRAPHS, FEWEST, MOST = 242, 4, 754
MEDIAN, SPREAD = 22, 1.09
"""Of the sizes, whose logarithms are those of a normal distribution."""
DEGREE = 2.4
JOBS = 2
CONFIG = """\
experiment: ceilings
topology: {kind: file, path: {glob: 'graphs/*.gml'}, hosts_per_switch: 1}
routing: {kind: ecmp}
traffic: {kind: uniform}
loads: [0.1, 0.2]
ceilings: [mcf, mcf_paths, total, bounds]
outputs: {figures: [], html: false}
"""


def sizes() -> list[int]:
    """Switches of each graph, ascending."""
    shares = (np.arange(GRAPHS) + 0.5) / GRAPHS
    found = [round(MEDIAN * float(np.exp(SPREAD * NormalDist().inv_cdf(share)))) for share in shares]
    return [max(size, FEWEST) for size in found[:-1]] + [MOST]


def graph(size: int, seed: int) -> nx.Graph:
    """A connected graph: every switch has a link to the nearest one before it, and some a link to another near one."""
    rng = np.random.default_rng(seed)
    place = rng.random((size, 2))
    far = np.linalg.norm(place[:, None] - place, axis=2)
    far[np.diag_indices(size)] = np.inf
    found = nx.Graph([(v, int(far[v, :v].argmin())) for v in range(1, size)])
    while found.number_of_edges() < min(round(DEGREE * size / 2), size * (size - 1) // 2):
        v = int(rng.integers(size))
        others = [int(w) for w in far[v].argsort()[: size - 1] if not found.has_edge(v, int(w))]
        found.add_edges_from((v, w) for w in others[:1])
    return found


def simrun(folder: Path, name: str) -> tuple[float, float]:
    """Wall and CPU seconds of a run in a folder that has its graphs."""
    (folder / f"{name}.yaml").write_text(CONFIG)
    words = ["-m", "flitlab", f"{name}.yaml", "--jobs", str(JOBS), "--out", name]
    before, began = os.times(), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def spent(folder: Path) -> str:
    """CPU seconds of each kind of ceiling in a run folder."""
    seconds: Counter[str] = Counter()
    with (folder / "ceilings.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            seconds[row["ceiling"].partition(":")[0]] += float(row["seconds"] or 0)
    return ", ".join(f"{kind} {total:.0f}" for kind, total in seconds.most_common())


def rows(runs: int) -> Iterator[Row]:
    """Wall and CPU seconds of all graphs, with the CPU seconds of each ceiling."""
    walls, cpus, note = [], [], ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "graphs").mkdir()
        written = ["\n".join(nx.generate_gml(graph(size, seed))) + "\n" for seed, size in enumerate(sizes())]
        (folder / "graphs" / "000.gml").write_text(written[-3])
        simrun(folder, "compiled")
        for i, text in enumerate(written):
            (folder / "graphs" / f"{i:03}.gml").write_text(text)
        for i in range(runs):
            wall, cpu = simrun(folder, f"run{i}")
            walls.append(wall)
            cpus.append(cpu)
            note = spent(folder / f"run{i}")
    work = f"{GRAPHS} graphs of {FEWEST} to {MOST} switches, two loads and four ceilings each, {JOBS} processes"
    yield Row(work, "s of wall time", walls)
    yield Row(work, "CPU-s", cpus, f"of ceilings: {note}")


if __name__ == "__main__":
    command(__doc__, rows, RUNS)
