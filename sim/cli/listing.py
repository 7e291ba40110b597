# SPDX-License-Identifier: Apache-2.0
"""``simrun list [category]``."""

import argparse

from flitlab.sim.cli.common import complain, print_json
from flitlab.sim.cli.components import documentation, kinds, load
from flitlab.sim.cli.parser import CATEGORIES
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.exit import BAD


def run(options: argparse.Namespace) -> int:
    """Print the names in one or all categories, with the first line of their documentation."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(str(error))
        return BAD
    categories = [options.category] if options.category else list(CATEGORIES)
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
