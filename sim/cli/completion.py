# SPDX-License-Identifier: Apache-2.0
"""``simrun completion``: print a script by which a shell completes commands and their options."""

import argparse
from pathlib import Path

import shtab

from flitlab.sim.cli.parser import whole_parser

SHELLS = ("bash", "zsh", "fish")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("shell", choices=SHELLS, help="the first lines of the script say where to install it")


def run(options: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    parser = whole_parser()
    _complete_files(parser)
    print(shtab.complete(parser, options.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Complete file and folder arguments as such."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.type is Path or "FILE" in str(action.metavar):
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
