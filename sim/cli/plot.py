# SPDX-License-Identifier: Apache-2.0
"""``simrun plot`` (folder): draw the figures of a run folder again."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import complain, error_text, run_folder_problem, say
from flitlab.sim.cli.components import load
from flitlab.sim.cli.options import add_trust
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.draft import PROGRAMS
from flitlab.sim.config.pipeline import read
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import read_manifest


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", metavar="DIR", type=Path)
    add_trust(parser)
    parser.add_argument("--figures", metavar="NAME", nargs="+", help="default: those of the configuration")
    parser.add_argument(
        "--format", choices=("png", "svg", "pdf"), nargs="+", help="default: those of the configuration"
    )
    parser.add_argument(
        "--size", choices=("column", "double"), help="for one column of a paper, 3.5 in, or across two, 7.16 in"
    )
    parser.add_argument(
        "--y", choices=("linear", "log", "both"), help="axis of latencies; both: linear, and logarithmic above"
    )


def run(options: argparse.Namespace) -> int:
    """Draw the figures of a run folder from its tables."""
    folder = options.folder
    if problem := run_folder_problem(folder):
        complain(problem)
        return ExitCode.BAD
    from flitlab.sim.report.figures.draw import draw, draw_networks, left_out, load_figure_plugins
    from flitlab.sim.report.figures.registry import figures

    try:
        load(options.plugin)
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    manifest = read_manifest(folder)
    figures_named = options.figures or manifest.get("figures") or []
    kinds = figures_named if options.figures or manifest.get("experiment") in ("load_sweep", *PROGRAMS) else None
    formats = options.format or manifest.get("formats") or ("png", "svg")
    size = options.size or manifest.get("size") or "column"
    try:
        if kinds is not None and not manifest.get("plots"):
            load_figure_plugins(folder, kinds, options.trust_plugins)
        files = draw(folder, kinds, formats=formats, size=size, y=options.y)
        complain(*(f"{folder}: {name} is left out: no data for it" for name in left_out(options.figures or (), files)))
        if any("network" in figures()[name].of for name in figures_named if name in figures()):
            study = read(folder / "config.resolved.yaml", trust_plugins=options.trust_plugins)
            files += draw_networks(study, folder, figures_named, formats)
        for path in files:
            say(str(path))
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    except (OSError, ValueError) as error:
        complain(f"{folder}: {error_text(error)}")
        return ExitCode.BAD
    return 0
