# SPDX-License-Identifier: Apache-2.0
"""``simrun hosts``: print the number of hosts of every scenario."""

import argparse

from flitlab.sim.cli.common import study_of
from flitlab.sim.cli.options import add_configuration
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each scenario."""
    study = study_of(options)
    for case in study.cases if study else ():
        print(f"{case.label}: {case.topology.hosts} hosts")
    return 0 if study else ExitCode.BAD
