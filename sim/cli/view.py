# SPDX-License-Identifier: Apache-2.0
"""``simrun view`` (folder): animate a short run: packets and queues on the graph, tick by tick."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import case_of, complain, error_text, is_input, say, study_of
from flitlab.sim.cli.options import add_configuration, add_point, positive
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    add_point(parser)
    parser.add_argument("--ticks", metavar="T", type=positive, default=300, help="simulated ticks (default: 300)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="the page to write (default: NAME.view.html)")


def run(options: argparse.Namespace) -> int:
    """Write a page that animates a short run of one scenario, tick by tick."""
    study = study_of(options, experiment="load_sweep")
    case = None if study is None else case_of(study, options.scenario)
    if study is None or case is None or case.scenario is None:
        return ExitCode.BAD
    from flitlab.sim.report.html.view import animate

    load = case.load_grid[0] if options.load is None else options.load
    seed = case.seeds[0] if options.seed is None else options.seed
    path = options.out or Path(f"{study.name}.view.html")
    if is_input(path, options.file):
        return ExitCode.BAD
    try:
        say(str(animate(case.scenario, case.label, load, seed, options.ticks, path)))
    except OSError as error:
        complain(f"--out = {error_text(error)}")
        return ExitCode.BAD
    except ValueError as error:
        complain(f"simrun view: {error}")
        return ExitCode.BAD
    return 0
