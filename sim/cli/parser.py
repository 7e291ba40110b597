# SPDX-License-Identifier: Apache-2.0
"""The parser of ``simrun``.

A module of this folder whose docstring begins with its command, ``simrun NAME (GROUP): summary.``, is that command: it
has ``add_options`` and ``run``. It is imported only where its command is used, so that ``simrun --help`` is fast.
"""

import argparse
import importlib
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import flitlab
from flitlab.models.closest_match import closest_match
from flitlab.models.gc_disabled import gc_disabled
from flitlab.models.mappings import Fields
from flitlab.sim.exit import ExitCode

EPILOG = """\
`simrun FILE` is `simrun run FILE`. Exit codes: 0 done, 1 some points failed, 2 bad configuration or usage,
3 a ceiling or engine-agreement check failed, 70 an unexpected error, 130 interrupted (143 by SIGTERM; the same command
resumes)."""

HEAD = re.compile(r'(?:#.*\n)*"""``simrun ([\w-]+)``(?: \((\w+)\))?: ([^"]+)\."""')
"""The beginning of the module of a command: its name, its group and its summary."""

CONFIGURATION = (".yaml", ".yml")
"""Suffixes of configurations, which may be part of flitlab."""

GROUPS = {
    "run": "run a configuration",
    "ask": "ask without running it",
    "folder": "read the folder of a run",
    "convert": "convert files of this and other programs",
    "more": "more",
}
"""Groups of commands in ``simrun --help``, in order; commands without a group are in the last."""


class Command(NamedTuple):
    """A command: its summary, the name of its module, and its group."""

    summary: str
    module: str
    group: str


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, with its function ``run``.

    Exits with code 2 for wrong options, with 0 for ``--help``.
    """
    words, known = list(arguments), _commands()
    is_option = bool(words) and words[0].startswith("-")
    if words and not is_option and words[0] not in known:
        closest = closest_match(words[0], known)
        if closest and not Path(words[0]).exists() and not words[0].endswith(CONFIGURATION):
            _parser(known, ()).error(f"{words[0]}: no such file or command; did you mean {closest!r}?")
        words.insert(0, "run")
    elif is_option and words[0].startswith("--") and words[0] not in ("--help", "--version"):
        words.insert(0, "run")
    parser = _parser(known, words)
    options, rest = parser.parse_known_args(words)
    if rest:
        only_values = not any(word.startswith("-") for word in rest)
        hint = "; a value with blanks needs quotes: --set 'routing={kind: minimal}'" if only_values else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return options


def whole_parser() -> argparse.ArgumentParser:
    """The parser with the options of all commands."""
    known = _commands()
    return _parser(known, known)


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, in the order of ``--help``."""
    (action,) = (one for one in whole_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(action.choices)


def _commands() -> dict[str, Command]:
    """The commands by name."""
    commands_by_name = {}
    for file in Path(__file__).parent.glob("*.py"):
        if match := HEAD.match(file.read_text("utf-8")):
            group = match[2] if match[2] in GROUPS else "more"
            commands_by_name[match[1]] = Command(match[3], f"{__package__}.{file.stem}", group)
    return dict(sorted(commands_by_name.items()))


def _parser(known: dict[str, Command], complete: Collection[str]) -> argparse.ArgumentParser:
    """The parser of all commands. complete: names of those with their options; ``known`` for completion of all."""
    parser = argparse.ArgumentParser(
        prog="simrun",
        description="Simulate an interconnect and compute the ceilings of the same scenario.",
        epilog=_listing(known) + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.set_defaults(run=_version_or_help(parser))
    parsers = parser.add_subparsers(metavar="COMMAND", help="one of those below; simrun COMMAND --help has its options")
    for name, (summary, module_name, _) in known.items():
        listed: Fields = {"help": summary} if complete is known else {}  # for completion; --help has groups
        command = parsers.add_parser(name, description=summary[0].upper() + summary[1:] + ".", **listed)
        if name in complete:
            from flitlab.models.threads import one_thread  # an eighth of the time of --help

            one_thread()
            with gc_disabled(), _loading():
                module = importlib.import_module(module_name)
            module.add_options(command)
            command.set_defaults(run=module.run)
    return parser


@contextmanager
def _loading() -> Iterator[None]:
    """Say on a terminal that modules are loaded, and for how long: rich, which shows later stages, is one of them."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show_loading, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        print("\x1b[2K", end="\r", file=sys.stderr, flush=True)


def _show_loading(ended: threading.Event) -> None:
    """Print the seconds so far, each over the one before."""
    for seconds in count():
        print(f"loading flitlab, {seconds} s", end="\r", file=sys.stderr, flush=True)
        if ended.wait(1):
            return


def _listing(known: dict[str, Command]) -> str:
    """The commands by group, with their summaries."""
    lines: list[str] = []
    for group, title in GROUPS.items():
        of_group = [(name, command.summary) for name, command in known.items() if command.group == group]
        if of_group:
            lines += [f"{title}:", *(textwrap.fill(summary, 80, initial_indent=f"  {name:<15} ",
                      subsequent_indent=" " * 18) for name, summary in of_group), ""]  # fmt: skip
    return "\n".join(lines) + "\n"


def _version_or_help(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        if not options.version:
            parser.print_help()
            return ExitCode.BAD
        print(f"flitlab {flitlab.__version__}")
        return 0

    return run
