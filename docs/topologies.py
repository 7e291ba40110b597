# SPDX-License-Identifier: Apache-2.0
"""Writes docs/topologies.md: every topology family with its definition, an example, a picture and metrics.

``python docs/topologies.py`` writes the page and all pictures, ``python docs/topologies.py torus mesh`` the page and
the pictures of those two.
"""

import inspect
import io
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from flitlab.models.metrics.spec import measure_all
from flitlab.models.registry import make, names, spec_class
from flitlab.models.topology.graph import Topology
from flitlab.sim.report.network.drawing import figure_of

DOCS = Path(__file__).parent
PAGE, PICTURES = DOCS / "topologies.md", DOCS / "figures" / "topologies"

HEAD = """\
# Topologies

The first example of every topology family, drawn by `simrun topology ... --draw` and measured by
`simrun topology ... --metrics bisection`; [keys and sources](reference/topology.md). Jellyfish is `rrg`, a folded Clos
network `fat_tree`, `clos` or `leaf_spine`, Megafly `dragonfly_plus`. `python docs/topologies.py` writes this page.

* **links**: bi-directional, two channels each; for uni-directional families, channels.
* **ASPL**: mean hops over ordered pairs of different switches (multistage: from a switch where hosts inject to one
  where they eject); in brackets the Moore-type lower bound for the largest degree, which multistage networks lack.
* **bisection**: links (uni-directional families: channels of both directions) between two halves of the switches found
  by METIS: an upper bound on the least.

"""

TABLE = (
    "| family | switches | links | hosts | degree | diameter | ASPL | bisection |\n|---|---|---|---|---|---|---|---|\n"
)

DOTS = 170
"""Dots an inch of a picture, so that the numbers of switches can be read."""


def example_of(kind: str) -> str:
    """The first configuration line in a family's documentation."""
    found = re.search(r"Example: ``(topology: .+?)``", spec_class("topology", kind).__doc__ or "")
    assert found, f"{kind} has no example"
    return found[1]


def built(example: str) -> Topology:
    """The topology of a configuration line; paths are relative to the project."""
    parameters: dict[str, Any] = yaml.safe_load(example)["topology"]
    if "path" in parameters:
        parameters["path"] = str(DOCS.parent / parameters["path"])
    return make("topology", **parameters).build()  # type: ignore[attr-defined]


def row(kind: str) -> str:
    """A family's line of the table."""
    found, _ = measure_all(built(example_of(kind)), [make("metric", kind="bisection")])  # type: ignore[list-item]
    links = found["channels"] if found["directed"] else found["channels"] // 2
    degree = "-".join(str(d) for d in sorted({found["degree_min"], found["degree_max"]}))
    bound = f" ({found['moore_aspl']:.3f})" if found["moore_aspl"] else ""
    aspl = f"{found['aspl']:.3f}{bound}"
    sizes = [found["switches"], links, found["hosts"], degree, found["diameter"]]
    cells = [f"[{kind}](#{kind})", *sizes, aspl, f"{found['bisection']:g}"]
    return f"| {' | '.join(map(str, cells))} |\n"


def section(kind: str) -> str:
    """One family: name, first sentence, example, picture."""
    first = (inspect.getdoc(spec_class("topology", kind)) or "").split("\n\n")[0].replace("\n", " ")
    return f"## {kind}\n\n{first}\n\n```yaml\n{example_of(kind)}\n```\n\n![{kind}](figures/topologies/{kind}.png)\n\n"


def save(topology: Topology, path: Path) -> None:
    """A picture small enough for a repository: few dots, few colours."""
    content = io.BytesIO()
    figure_of(topology).savefig(content, format="png", dpi=DOTS)
    Image.open(content).convert("RGB").quantize(48).save(path, optimize=True)


def main(kinds: list[str]) -> None:
    """Writes the page, and the pictures of these kinds."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        save(built(example_of(kind)), PICTURES / f"{kind}.png")
    table, sections = ("".join(map(part, names("topology"))) for part in (row, section))
    PAGE.write_text(f"{HEAD}{TABLE}{table}\n{sections.rstrip()}\n")


if __name__ == "__main__":
    main(sys.argv[1:] or names("topology"))
