"""``simrun plot DIR``."""

import argparse

from flitlab.sim.cli.common import complain, no_run_folder, why
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import read
from flitlab.sim.exit import BAD
from flitlab.sim.experiment.folders import read_manifest


def run(options: argparse.Namespace) -> int:
    """Draws the figures of a run folder from its tables, without simulating anything."""
    folder = options.folder
    if problem := no_run_folder(folder):
        complain(problem)
        return BAD
    from flitlab.sim.report.figures.draw import draw
    from flitlab.sim.report.network import bottleneck

    asked = read_manifest(folder)
    wanted = options.figures or asked.get("figures") or []
    kinds = wanted if options.figures or asked.get("experiment") in ("load_sweep", "application") else None
    if kinds is not None:
        kinds = [name for name in kinds if name != bottleneck.NAME]
    formats = options.format or asked.get("formats") or ("png", "svg")
    size = options.size or asked.get("size") or "column"
    try:
        files = draw(folder, kinds, formats=formats, size=size)
        if bottleneck.NAME in wanted:
            files += bottleneck.draw_all(read(folder / "config.resolved.yaml"), folder, formats)
        for path in files:
            print(path)
    except ConfigError as error:
        complain(*map(str, error.mistakes))
        return BAD
    except (OSError, ValueError) as error:
        complain(f"{folder}: {why(error)}")
        return BAD
    return 0
