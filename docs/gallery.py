# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of docs/gallery.md by the commands that the page gives.

``python docs/gallery.py`` draws all, ``python docs/gallery.py jobs cut`` those two. They are written small enough
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

COMMANDS = {
    "accepted_load": ["configs/quick.yaml", "--out", "{out}"],
    "saturation": ["configs/panels.yaml", "--out", "{out}"],
    "latency_load": ["configs/panels.yaml", "--out", "{out}"],
    "bottleneck": ["ceilings", "configs/quick.yaml", "--set", "routing={{kind: minimal}}", "--draw", "{out}.png"],
    "throughput": ["configs/jellyfish_mptcp_quick.yaml", "--out", "{out}"],
    "slowdown": ["configs/flow_completion_quick.yaml", "--out", "{out}"],
    "latency_offered": [*TAILS, "--out", "{out}"],
    "percentiles": [*TAILS, "--out", "{out}"],
    "time_size": [*BY_SIZE, "--out", "{out}"],
    "busbw_size": [*BY_SIZE, "--out", "{out}"],
    "cut": [*TWO_CLUSTERS, "--out", "{out}"],
    "performance": [*THREE, "--out", "{out}"],
    "steps": [*THREE, "--out", "{out}"],
    "utilisation": [*THREE, "--out", "{out}"],
    "timeline": [*THREE, "--out", "{out}"],
    "jobs": ["configs/jobs_quick.yaml", "--out", "{out}"],
    "transports": [*SIDE_BY_SIDE, "--out", "{out}"],
    "throughput_time": ["configs/timeline_quick.yaml", "--out", "{out}"],
}
"""Kind of figure -> arguments of simrun that draw it."""


def draw(name: str, folder: Path) -> None:
    """Runs the command of a figure and takes what it drew."""
    arguments = COMMANDS[name]
    out = folder / next(other for other, words in COMMANDS.items() if words == arguments)  # run once for several
    code = main([word.format(out=out) for word in arguments])
    assert code == 0, f"{name}: exit code {code}"
    picture = out.with_suffix(".png") if "--draw" in arguments else min(out.glob(f"figures/{name}*.png"))
    FIGURES.mkdir(parents=True, exist_ok=True)
    (FIGURES / f"{name}.png").write_bytes(reduced(picture))


if __name__ == "__main__":
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as scratch:
        for name in sys.argv[1:] or COMMANDS:
            draw(name, Path(scratch))
