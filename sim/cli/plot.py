# SPDX-License-Identifier: Apache-2.0
"""``simrun plot DIR``."""

import argparse

from flitlab.sim.cli.common import complain, no_run_folder, say, why
from flitlab.sim.cli.components import load
from flitlab.sim.config.draft import PROGRAMS
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
    from flitlab.sim.report.figures.draw import draw, draw_networks
    from flitlab.sim.report.figures.registry import figures
    from flitlab.sim.report.folder.plugins import load_figure_plugins

    try:
        load(options.plugin)
    except ConfigError as error:
        complain(*map(str, error.mistakes))
        return BAD
    asked = read_manifest(folder)
    wanted = options.figures or asked.get("figures") or []
    kinds = wanted if options.figures or asked.get("experiment") in ("load_sweep", *PROGRAMS) else None
    formats = options.format or asked.get("formats") or ("png", "svg")
    size = options.size or asked.get("size") or "column"
    try:
        if kinds is not None and not asked.get("plots"):
            load_figure_plugins(folder, kinds, options.trust_plugins)
        files = draw(folder, kinds, formats=formats, size=size, y=options.y)
        if any("network" in figures()[name].of for name in wanted if name in figures()):
            study = read(folder / "config.resolved.yaml", trust_plugins=options.trust_plugins)
            files += draw_networks(study, folder, wanted, formats)
        for path in files:
            say(str(path))
    except ConfigError as error:
        complain(*map(str, error.mistakes))
        return BAD
    except (OSError, ValueError) as error:
        complain(f"{folder}: {why(error)}")
        return BAD
    return 0
