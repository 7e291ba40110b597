"""``simrun plot DIR``."""

import argparse
import json

from sim.cli.common import BAD, complain


def run(options: argparse.Namespace) -> int:
    """Draws the figures of a run folder from its tables, without simulating anything."""
    folder = options.folder
    if not (folder / "results.csv").exists() and not (folder / "ceilings.csv").exists():
        complain(f"{folder}: no run folder: it holds neither results.csv nor ceilings.csv")
        return BAD
    from sim.report.figures import draw

    try:
        for path in draw(folder, options.figures or _asked_for(folder)):
            print(path)
    except (OSError, ValueError) as error:
        complain(f"{folder}: {error}")
        return BAD
    return 0


def _asked_for(folder) -> list[str] | None:
    """The figures that the run was asked for, None if it does not say."""
    try:
        return json.loads((folder / "manifest.json").read_text("utf-8")).get("figures")
    except (OSError, ValueError):
        return None
