# SPDX-License-Identifier: Apache-2.0
"""``simrun report`` (folder): write the page of a run folder again, finished or not."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import complain, error_text, run_folder_problem, say
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folder", metavar="DIR", type=Path)


def run(options: argparse.Namespace) -> int:
    """Write the page of a run folder again, from its tables; the run may be unfinished."""
    folder = options.folder
    if problem := run_folder_problem(folder):
        complain(problem)
        return ExitCode.BAD
    from flitlab.sim.report import html

    try:
        say(str(html.write(folder)))
    except (OSError, ValueError) as error:
        complain(f"{folder}: {error_text(error)}")
        return ExitCode.BAD
    return 0
