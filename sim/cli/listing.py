# SPDX-License-Identifier: Apache-2.0
"""``simrun list``: list components, columns and figures."""

import argparse

from flitlab.sim.cli.common import complain, print_json
from flitlab.sim.cli.components import LISTED, documentation, kinds, load
from flitlab.sim.cli.options import add_json, add_plugin
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.exit import ExitCode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("category", nargs="?", choices=LISTED, help="default: all")
    add_json(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print the names in one or all categories, with the first line of their documentation."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(str(error))
        return ExitCode.BAD
    categories = [options.category] if options.category else list(LISTED)
    if options.json:
        print_json({category: kinds(category) for category in categories})
        return 0
    for category in categories:
        print(category)
        for kind in kinds(category):
            print(f"  {kind:<18} {documentation(category, kind).partition(chr(10))[0]}")
        if not kinds(category):
            print("  (none yet)")
    return 0
