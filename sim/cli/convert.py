# SPDX-License-Identifier: Apache-2.0
"""``simrun convert`` (convert): write a topology, a table of demands or connections in another format."""

import argparse
from pathlib import Path

from flitlab.models.application.connections import goal_of
from flitlab.models.delimited import quoted
from flitlab.models.files import replace_file
from flitlab.models.registry import SpecError, recorded_warnings
from flitlab.models.topology.formats import FORMATS, HEAD, READ, WRITTEN, detected, read, write
from flitlab.models.topology.formats.common import text_of
from flitlab.models.topology.formats.misplaced import misplaced
from flitlab.models.traffic.demand_file import demand_of, table_entries
from flitlab.models.traffic.demand_formats import holds_only_demands, known_entries
from flitlab.sim.cli.common import complain, is_input, say
from flitlab.sim.exit import ExitCode

DEMANDS = "demands"
"""The kind of a table ``src,dst,demand``."""

GOAL = "goal"
"""The kind of a program, GOAL text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="a topology, a table of demands, connections of htsim (.cm) or flows of ns-3",
    )
    parser.add_argument("--to", metavar="KIND", required=True, choices=(*WRITTEN, DEMANDS, GOAL),
                        help=f"the format: {', '.join(WRITTEN)}; {DEMANDS} (CSV: src,dst,demand); of htsim's .cm "
                        f"and flows of ns-3 also {GOAL}, with starts and triggers")  # fmt: skip
    parser.add_argument("--from", metavar="KIND", dest="source", choices=READ, help="the format of a topology, where "
                        "its content does not tell")  # fmt: skip
    parser.add_argument("--pair-directions", action="store_true", help="opposite channels of a topology are links")
    parser.add_argument("--out", metavar="PATH", type=Path, help="the file (default: FILE with the suffix of KIND)")


def run(options: argparse.Namespace) -> int:
    """Convert a file. Returns the exit code."""
    suffixes = FORMATS[options.to].suffixes if options.to in FORMATS else ()
    suffix = ".csv" if options.to == DEMANDS else next(iter(suffixes), f".{options.to}")
    out = options.out or options.file.with_suffix(suffix or ".txt")
    if is_input(out, options.file):
        return ExitCode.BAD
    try:
        with recorded_warnings() as warnings:
            omitted = {DEMANDS: _demands, GOAL: _program}.get(options.to, _topology)(options, out)
    except OSError as error:
        complain(f"simrun convert: {error.filename or options.file}: {error.strerror}")
        return ExitCode.BAD
    except (SpecError, ValueError) as error:
        complain(f"simrun convert: {error}")
        return ExitCode.BAD
    finally:
        for one in warnings:
            complain(f"simrun convert: {one}")
    if omitted:
        complain(f"simrun convert: {options.to} does not hold {', '.join(omitted)}")
    say(f"{out}: written")
    return 0


def _topology(options: argparse.Namespace, out: Path) -> list[str]:
    file = options.file
    if options.source is None and holds_only_demands(file):
        raise SpecError(f"{file}: a table of demands, which --to {DEMANDS} converts")
    source = options.source or detected(file)
    topology = read(file, source)
    if options.pair_directions:
        topology = topology.pair_directions()
    stated = topology.hosts_stated
    topology = topology if stated else topology.with_hosts(1, topology.host_capacity)  # as ``kind: file`` reads it
    counts = f"{topology.switches} switches, {topology.channels} channels, {topology.hosts} hosts"
    say(f"{file}: {source}, {counts}{'' if stated else ' (none are stated: one a switch)'}")
    return [one for one in write(topology, out, options.to) if stated or one != "hosts"]


def _program(options: argparse.Namespace, out: Path) -> list[str]:
    text = text_of(options.file)
    if (problem := misplaced(text[:HEAD])) and f"--to {GOAL}" not in problem:
        raise SpecError(f"{options.file}: no connections of htsim or flows of ns-3; {problem}")
    lines = goal_of(options.file, text)
    replace_file(out, "\n".join(lines) + "\n")
    return []


def _demands(options: argparse.Namespace, out: Path) -> list[str]:
    file = options.file
    entries = None if file.suffix == ".npy" else known_entries(file)
    if entries is None:
        if not file.is_file():
            raise SpecError(f"{file}: no such file")
        rows = [(source, target, repr(amount)) for source, target, amount in table_entries(file)]
    else:
        rows = []
        for where, source, target, amount in entries:
            demand_of(where, amount)
            rows.append((source, target, amount))
    lines = [f"{quoted(source, '#')},{quoted(target, '#')},{amount}" for source, target, amount in rows]
    replace_file(out, "\n".join(["src,dst,demand", *lines]) + "\n")
    say(f"{file}: {len(lines)} demands")
    return []
