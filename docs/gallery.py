# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of docs/gallery.md by the commands that the page gives.

``python docs/gallery.py`` draws all, ``python docs/gallery.py accepted binds`` those two. They are written small enough
for a repository, into docs/figures/gallery/.
"""

import os
import sys
import tempfile
from pathlib import Path

from flitlab.sim.cli import main
from flitlab.sim.report.reproduction.figures import reduced

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures" / "gallery"

TAILS = ["configs/quick.yaml", "--set", "outputs.figures=[latency_offered, percentiles]"]

BY_SIZE = [
    "configs/collectives_quick.yaml", "--set", "topology={{kind: torus, dims: [8, 8]}}", "--set", "outputs.size=column",
]  # fmt: skip

PAIRS = ", ".join(
    f"{{{{label: nscc and {kind}, transport: {{{{kind: several, of: [{{{{kind: nscc}}}}, {{{{kind: {kind}}}}}]}}}}}}}}"
    for kind in ("dctcp", "rccc", "ndp")
)

SIDE_BY_SIDE = [
    "configs/spray_quick.yaml", "--set", f"cases=[{PAIRS}]", "--set", "transport=null",
    "--set", "measure={{seconds: 0.001, window: [0.00002, 0.0001]}}",
]  # fmt: skip

CLUSTER = "{{count: 8, ports: 6, servers: 1}}"

TWO_CLUSTERS = [
    "configs/collectives_quick.yaml", "--set", "collective.kind=all_gather", "--set", "collective.algorithm=trees",
    "--set", "collective.size_bytes=1MiB",
    "--set", f"topology={{{{kind: two_cluster, large: {CLUSTER}, small: {CLUSTER}, cross_links: 2}}}}",
]  # fmt: skip

PROGRAMS = ", ".join(f"{{{{kind: {kind}, class: B, iterations: 1}}}}" for kind in ("cg", "lu", "mg"))

THREE = [
    "configs/npb_mddp_quick.yaml", "--set", "outputs.size=column",
    "--set", f"application={{{{sweep: [{PROGRAMS}]}}}}",
]  # fmt: skip

PICTURES = {
    "accepted": (["configs/quick.yaml", "--out", "{out}"], "figures/accepted_load.png"),
    "saturation": (["configs/panels.yaml", "--out", "{out}"], "figures/saturation.png"),
    "panels": (["configs/panels.yaml", "--out", "{out}"], "figures/latency_load.png"),
    "binds": (["ceilings", "configs/quick.yaml", "--set", "routing={{kind: minimal}}", "--draw", "{out}.png"], ""),
    "tcp": (["configs/jellyfish_mptcp_quick.yaml", "--out", "{out}"], "figures/throughput.png"),
    "slowdown": (["configs/flow_completion_quick.yaml", "--out", "{out}"], "figures/slowdown.png"),
    "offered": ([*TAILS, "--out", "{out}"], "figures/latency_offered.png"),
    "percentiles": ([*TAILS, "--out", "{out}"], "figures/percentiles.png"),
    "time_size": ([*BY_SIZE, "--out", "{out}"], "figures/time_size.png"),
    "busbw_size": ([*BY_SIZE, "--out", "{out}"], "figures/busbw_size.png"),
    "cut": ([*TWO_CLUSTERS, "--out", "{out}"], "figures/cut_1_two_cluster_all_gather.png"),
    "performance": ([*THREE, "--out", "{out}"], "figures/performance.png"),
    "steps": ([*THREE, "--out", "{out}"], "figures/steps.png"),
    "utilisation": ([*THREE, "--out", "{out}"], "figures/utilisation.png"),
    "timeline": ([*THREE, "--out", "{out}"], "figures/timeline.png"),
    "jobs": (["configs/jobs_quick.yaml", "--out", "{out}"], "figures/jobs.png"),
    "transports": ([*SIDE_BY_SIDE, "--out", "{out}"], "figures/transports.png"),
    "throughput_time": (["configs/timeline_quick.yaml", "--out", "{out}"], "figures/throughput_time.png"),
}
"""Name -> arguments of simrun, and the picture in the folder that they write ('': the picture itself)."""


def draw(name: str, folder: Path) -> None:
    """Runs the command of a picture and takes what it drew."""
    arguments, picture = PICTURES[name]
    out = folder / next(other for other, (words, _) in PICTURES.items() if words == arguments)  # run once for several
    code = main([word.format(out=out) for word in arguments])
    assert code == 0, f"{name}: exit code {code}"
    target = FIGURES / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(reduced(out / picture if picture else out.with_suffix(".png")))


if __name__ == "__main__":
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or PICTURES:
            draw(name, Path(scratch))
