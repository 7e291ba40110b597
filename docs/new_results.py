# SPDX-License-Identifier: Apache-2.0
"""Measures what docs/new_results.md shows, and writes its tables and figure: ``python docs/new_results.py``.

Every network and demand of configs/new_results.yaml is solved in a process of its own, so that the peak of its memory
is known, in the folder runs/new_results_apart. What docs/new_results.csv holds already is not solved again.
"""

import csv
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.axes import Axes
from scipy.sparse import csr_array

from flitlab.models.registry import make
from flitlab.models.topology.distances import distances
from flitlab.sim.report.figures import marks

ROOT = Path(__file__).parents[1]
CONFIG, RUN = ROOT / "configs" / "new_results.yaml", ROOT / "runs" / "new_results_apart"
PAGE, TABLE, FIGURE = (
    ROOT / "docs" / name for name in ("new_results.md", "new_results.csv", "figures/new_results.png")
)
COLUMNS = (
    "network", "switches", "links", "hosts", "traffic", "lower", "upper", "tub", "ways", "used", "method",
    "cpu_s", "peak_mib",
)  # fmt: skip
DEMANDS = {"longest_matching": "longest matching", "random_matching": "permutation", "all_to_all": "all-to-all"}
SIZES = {"about 1,000 switches": range(500, 2000), "about 4,000 switches": range(2000, 8000)}
PLACE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Row = dict[str, str]
Network = dict[str, Row]
"""Its rows by demand."""


def scenarios() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every case of the configuration with every traffic that it has."""
    config = yaml.safe_load(CONFIG.read_text())
    for case in config["cases"]:
        traffic = case.pop("traffic", config["traffic"])
        for one in traffic.get("sweep", [traffic]):
            yield case, one


def network_of(case: dict[str, Any]) -> str:
    """Name of the network: what stands before a comma in the label."""
    name: str = case["label"]
    return name.partition(",")[0]


def solve(case: dict[str, Any], traffic: dict[str, Any]) -> Row:
    """A row of the table; ends of intervals and TUB are rounded so that they stay true."""
    known = solved()
    memory = simrun(cases=[case], traffic=traffic, outputs={"plots": [], "html": False})
    assert solved() > known, f"{RUN} has {case['label']}, but not how much memory it took: delete that folder"
    found = [row for file in solved() - known for row in json.loads(file.read_text())["ceilings"]]
    (measured,), mcf = rows_of(RUN / "metrics.csv"), next(row for row in found if row["ceiling"] == "mcf")
    lower, upper, tub = mcf["lower"], mcf["upper"], float(measured["bounds:tub"])
    row = {
        "network": network_of(case), "switches": measured["switches"], "links": measured["degree_max"],
        "hosts": measured["hosts"], "traffic": traffic["kind"], "lower": f"{math.floor(1e4 * lower) / 1e4:.4f}",
        "upper": f"{math.ceil(1e4 * upper) / 1e4:.4f}", "tub": f"{math.ceil(1e4 * tub) / 1e4:.4f}",
        "ways": ways(case, traffic), "used": f"{np.mean(mcf['channel_load']):.4f}",  # all channels have capacity 1
        "method": mcf["method"], "cpu_s": f"{mcf['seconds']:.3g}", "peak_mib": memory // 1024,
    }  # fmt: skip
    return {name: str(value) for name, value in row.items()}


def ways(case: dict[str, Any], traffic: dict[str, Any]) -> str:
    """Median of the numbers of shortest ways, over all pairs of switches of a matching."""
    if traffic["kind"] == "all_to_all":
        return ""
    topology = make("topology", **case["topology"]).build()
    source, target, _ = make("traffic", **traffic).build(topology).switch_pairs()
    hops, pairs = distances(topology)[source, target], np.arange(len(source))
    ends = (topology.src, topology.dst)
    step = csr_array((np.ones(topology.channels), ends), shape=(topology.switches, topology.switches))
    walks = np.zeros((topology.switches, len(pairs)))
    walks[target, pairs] = 1
    found = np.empty(len(pairs))
    for length in range(1, int(hops.max()) + 1):
        walks = step @ walks
        found[hops == length] = walks[source, pairs][hops == length]
    return f"{np.median(found):g}"


def simrun(**changes: Any) -> int:
    """Runs the configuration with these changes; the peak of its memory in KiB."""
    command = [sys.executable, "-m", "flitlab", str(CONFIG), "--out", str(RUN), "--jobs", "1"]
    command += [f"--set={key}={json.dumps(value).replace('Infinity', '.inf')}" for key, value in changes.items()]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"exit code {process.returncode}"
    return used.ru_maxrss


def solved() -> set[Path]:
    """What ceilings the folder holds."""
    return set((RUN / "ceilings").glob("*.json"))


def rows_of(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def measure() -> None:
    """Solves what the table lacks."""
    known = rows_of(TABLE) if TABLE.exists() else []
    for case, traffic in scenarios():
        if not any((row["network"], row["traffic"]) == (network_of(case), traffic["kind"]) for row in known):
            known.append(solve(case, traffic))
            with TABLE.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(known)
            print(*known[-1].values(), sep="  ")


def networks() -> list[Network]:
    """The rows by demand of each network whose longest matching is known, in the order of the configuration."""
    found: dict[str, Network] = {network_of(case): {} for case, _ in scenarios()}
    for row in rows_of(TABLE):
        found[row["network"]][row["traffic"]] = row
    return [rows for rows in found.values() if "longest_matching" in rows]


def written() -> str:
    """The page, as it has to be."""
    tables = {"throughput": throughput(), "matchings": matchings()}
    return PLACE.sub(lambda place: f"{place[1]}\n{tables[place[2]]}\n{place[3]}", PAGE.read_text("utf-8"))


def throughput() -> str:
    """What each network has, TUB, and the certified throughput of every demand."""
    lines = []
    for rows in networks():
        first = rows["longest_matching"]
        cells = [first["network"], first["links"], f"{int(first['hosts']):,}", first["tub"]]
        lines.append(cells + by_demand(rows, lambda row: f"{row['lower']} to {row['upper']}"))
    return markdown(["network", "links", "hosts", "TUB", *DEMANDS.values()], lines)


def matchings() -> str:
    """The longest matching relative to TUB, and how much of it detours take."""
    lines = []
    for rows in networks():
        longest = rows["longest_matching"]
        used, ends = float(longest["used"]), shares(longest)
        relative = " to ".join(f"{100 * end:.1f}" for end in ends)
        lines.append([longest["network"], relative, f"{100 * used:.1f}", f"{used / ends[0]:.3f}", longest["ways"]])
    return markdown(["network", "% of TUB", "capacity used, %", "hops / shortest", "shortest paths"], lines)


def by_demand(rows: Network, text: Callable[[Row], str]) -> list[str]:
    """A cell for each demand, '' where it was not asked for."""
    return [text(rows[demand]) if demand in rows else "" for demand in DEMANDS]


def shares(row: Row) -> tuple[float, float]:
    """The interval relative to TUB."""
    return float(row["lower"]) / float(row["tub"]), float(row["upper"]) / float(row["tub"])


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    """A table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def draw() -> None:
    """Intervals relative to TUB, a line for each network, a panel for each size."""
    figure, panels = plt.subplots(1, 2, figsize=(7.16, 3.1), sharex=True, layout="constrained")
    for axes, (title, sizes) in zip(panels, SIZES.items(), strict=True):
        panel(axes, [rows for rows in networks() if int(rows["longest_matching"]["switches"]) in sizes])
        axes.set_title(title, fontsize=9)
    figure.supxlabel("certified throughput / TUB", fontsize=9)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(FIGURE, dpi=150)


def panel(axes: Axes, found: list[Network]) -> None:
    """One size: a marker in the middle of every interval, and the interval."""
    for place, (demand, name) in enumerate(DEMANDS.items()):
        lines = [line for line, rows in enumerate(found) if demand in rows]
        ends = np.array([shares(found[line][demand]) for line in lines]).reshape(-1, 2)
        heights, colour = np.array(lines) + 0.24 * (place - 1), marks.OKABE_ITO[place]
        axes.hlines(heights, ends[:, 0], ends[:, 1], color=colour, linewidth=5, alpha=0.45)
        axes.plot(ends.mean(axis=1), heights, marks.MARKERS[place], color=colour, markersize=3, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(found)), [rows["longest_matching"]["network"] for rows in found], fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", linewidth=0.4)


if __name__ == "__main__":
    measure()
    draw()
    PAGE.write_text(written(), "utf-8")
