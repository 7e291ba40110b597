"""``simrun plot DIR``."""

import argparse
import json
from pathlib import Path

from sim.cli.common import BAD, complain

TABLES = ("results.csv", "ceilings.csv", "metrics.csv")
"""What figures are drawn from."""


def run(options: argparse.Namespace) -> int:
    """Draws the figures of a run folder from its tables, without simulating anything."""
    folder = options.folder
    if not any((folder / name).exists() for name in TABLES):
        complain(f"{folder}: no run folder: it holds none of {', '.join(TABLES)}")
        return BAD
    from sim.report.figures import draw

    try:
        for path in draw(folder, options.figures or _asked_for(folder)):
            print(path)
    except (OSError, ValueError) as error:
        complain(f"{folder}: {error}")
        return BAD
    return 0


def _asked_for(folder: Path) -> list[str] | None:
    """The figures of a load sweep that the run was asked for; None if it does not say."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return manifest.get("figures") if manifest.get("experiment") == "load_sweep" else None
