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

PICTURES = {
    "accepted": (["configs/quick.yaml", "--out", "{out}"], "figures/accepted_load.png"),
    "saturation": (["configs/panels.yaml", "--out", "{out}"], "figures/saturation.png"),
    "panels": (["configs/panels.yaml", "--out", "{out}"], "figures/latency_load.png"),
    "binds": (["ceilings", "configs/quick.yaml", "--set", "routing={{kind: minimal}}", "--draw", "{out}.png"], ""),
    "tcp": (["configs/jellyfish_mptcp_quick.yaml", "--out", "{out}"], "figures/throughput.png"),
    "slowdown": (["configs/flow_completion_quick.yaml", "--out", "{out}"], "figures/slowdown.png"),
}
"""Name -> arguments of simrun, and the picture in the folder that they write ('': the picture itself)."""


def draw(name: str, folder: Path) -> None:
    """Runs the command of a picture and takes what it drew."""
    arguments, picture = PICTURES[name]
    out = folder / Path(arguments[0]).stem  # what several pictures are taken from is run once
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
