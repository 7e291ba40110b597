# SPDX-License-Identifier: Apache-2.0
"""``simrun list``: list components, columns, figures and examples."""

import argparse
import re
from operator import attrgetter

from flitlab.sim.cli.common import complain, print_json, print_table
from flitlab.sim.cli.components import LISTED, Listed, kinds, listed, load, singular
from flitlab.sim.cli.options import add_json, add_plugin
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.packaged import packaged
from flitlab.sim.exit import ExitCode

EXAMPLES = "examples"
"""The word for the configurations that are part of flitlab."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "category", nargs="?", type=singular, choices=[*LISTED, EXAMPLES],
        help="or its plural; default: all components, columns and figures",
    )  # fmt: skip
    add_json(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Print the names in one or all categories, with their meaning, their unit, and other names."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(str(error))
        return ExitCode.BAD
    categories = [options.category] if options.category else list(LISTED)
    if options.json:
        print_json({one: list(packaged()) if one == EXAMPLES else kinds(one) for one in categories})
        return 0
    for category in categories:
        rows = _examples() if category == EXAMPLES else listed(category)
        shown = [name for name in Listed._fields if name == "name" or any(getattr(row, name) for row in rows)]
        print_table(category, [(name, attrgetter(name)) for name in shown], rows)
        if not rows:
            print("  (none yet)")
    if options.category == EXAMPLES:
        complain("simrun configs/NAME.yaml runs one, simrun new --from NAME copies it; or in Python Experiment.load")
    return 0


def _examples() -> list[Listed]:
    """The configurations that are part of flitlab, with the first sentence of each."""
    from flitlab.sim.config.text import read_text
    from flitlab.sim.experiment.scoreboard.file import paragraphs

    rows = []
    for name, path in packaged().items():
        text = " ".join(paragraphs(read_text(path))[:1])
        sentence = re.split(r"(?<!Fig)\. ", text)[0]
        rows.append(Listed(name, "", "", sentence.rstrip(".").replace("`", "")))
    return rows
