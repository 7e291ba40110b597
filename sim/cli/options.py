# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENGINES = ("reference", "compiled", "both")


def add_configuration(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Options of commands that read a configuration."""
    parser.add_argument("file", metavar="FILE", nargs=None if required else "?", help="a configuration (YAML)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key, e.g. topology.n=64"
    )
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    parser.add_argument("--engine", choices=ENGINES, help="in place of the file's")


def add_point(parser: argparse.ArgumentParser) -> None:
    """Options that choose a point of a configuration."""
    parser.add_argument("--load", metavar="L", type=load, help="default: the lowest of the file")
    parser.add_argument("--seed", metavar="S", type=natural, help="default: the first of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")


def add_convertible(parser: argparse.ArgumentParser, what: str, forms: str) -> None:
    """Options of a command that reads something, or takes it from a configuration, and may write another form."""
    parser.add_argument("file", metavar="FILE", help=what)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")
    parser.add_argument("--out", metavar="PATH", type=Path, help=f"write it: {forms}")
    add_json(parser)


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME)")


def add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=positive, default=None, help="processes (default: all processors)")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Option after :func:`add_jobs`, whose default depends on it."""
    parser.add_argument(
        "--threads",
        metavar="N",
        type=positive,
        default=1,
        help="threads per simulation, if its mode supports them (default: 1); --jobs defaults to processors / N",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def add_plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plugin", action="append", default=[], metavar="FILE", help="load a plugin first")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Options of commands that read files of others, whose plugins are code."""
    add_plugin(parser)
    parser.add_argument("--trust-plugins", action="store_true", help="import the plugins that the input names")


def load(text: str) -> float:
    load: float = _number(float, text)
    if not 0 < load <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 and at most 1")
    return load


def shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        problem = "must be i/n with i from 1 to n, of at most 9 digits, for instance 2/8"
        raise argparse.ArgumentTypeError(f"{text}: {problem}")
    return index, count


def natural(text: str) -> int:
    number: int = _number(int, text)
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 or more" + " and below 2**63" * (number > 0))
    return number


def positive(text: str) -> int:
    number: int = _number(int, text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return number


def _number(kind: Callable[[str], object], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"{text}: must be {what}") from None
