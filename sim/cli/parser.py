"""Arguments of ``simrun``. Imports nothing heavy: ``simrun --help`` answers at once."""

import argparse
import difflib
import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from sim.threads import one_thread

ENGINES = ("reference", "compiled", "both")
STARTERS = ("main", "sweep", "jellyfish_vs_fat_tree", "own_graph")
CATEGORIES = ("topology", "routing", "traffic", "transport", "metric", "ceiling")

EPILOG = """\
`simrun FILE` is `simrun run FILE`. Exit codes: 0 done, 1 some points failed, 2 bad configuration or usage,
3 a ceiling or engine-agreement check failed, 130 interrupted (the same command resumes)."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, with ``run``, the function that carries it out.

    Exits with code 2, or 0 for ``--help``.
    """
    parser, known = _parser()
    words = list(arguments)
    if words and not words[0].startswith("-") and words[0] not in known:
        near = difflib.get_close_matches(words[0], known, n=1)
        if near and not Path(words[0]).exists():
            parser.error(f"{words[0]}: no such file or command; did you mean {near[0]!r}?")
        words.insert(0, "run")
    elif words and words[0].startswith("--") and words[0] not in ("--help", "--version"):
        words.insert(0, "run")
    options, rest = parser.parse_known_args(words)
    if rest:
        apart = not any(word.startswith("-") for word in rest)
        hint = "; a value with blanks needs quotes: --set 'routing={kind: minimal}'" if apart else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return options


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of every command, in the order of ``--help``."""
    return _parser()[1]


def _parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="simrun",
        description="Simulate an interconnect and compute the ceilings of the same scenario.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.set_defaults(run=_version_or_help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    run = _command(commands, "run", "run a configuration and write its results and figures")
    _configuration(run)
    run.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME)")
    run.add_argument("--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)")
    run.add_argument(
        "--cluster", metavar="WHERE", help="in place of --jobs: a Dask cluster, tcp://host:port or slurm:key=value,..."
    )
    run.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    check = _command(commands, "check", "check a configuration and show what it means and will cost")
    _configuration(check)
    check.add_argument("--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)")
    check.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    quick = _command(commands, "quick", "run a moment of every scenario, to see that all of it works")
    _configuration(quick)
    quick.add_argument("--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)")
    quick.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    new = _command(commands, "new", "write a commented configuration to begin with")
    new.add_argument("kind", choices=STARTERS)
    new.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: KIND.yaml; never overwritten")

    listing = _command(commands, "list", "list what a configuration may name", module="listing")
    listing.add_argument("category", nargs="?", choices=CATEGORIES, help="default: all")
    listing.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    listing.add_argument("--plugin", action="append", default=[], metavar="FILE", help="load a plugin first")

    show = _command(commands, "show", "describe a topology, routing, traffic, metric or ceiling and its parameters")
    show.add_argument("kind", help="category; may be left out where NAME is the only one of its name")
    show.add_argument("name", nargs="?", help="for instance imase")
    show.add_argument("--plugin", action="append", default=[], metavar="FILE", help="load a plugin first")

    topology = _command(commands, "topology", "measure, and export, the topology of a configuration")
    topology.add_argument(
        "file", metavar="FILE|SPEC", help="a configuration, a graph (.txt, .csv, ...), or 'kind=torus,dims=[6,6,6]'"
    )
    topology.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    topology.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    topology.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    topology.add_argument(
        "--metrics", metavar="LIST", help="more to measure, for instance 'bisection, {kind: k_shortest, k: 8}'"
    )
    topology.add_argument(
        "--export",
        metavar="PATH",
        type=Path,
        help="write it as .json, .graphml, .anynet (BookSim), .topobench, .topobench_servers, .topobench_capacities, "
        ".xml (SimGrid), .dot (Graphviz) or an edge list (.txt)",
    )
    topology.add_argument("--draw", metavar="PATH", type=Path, help="draw it into a .png or .svg file")

    ceilings = _command(commands, "ceilings", "compute the ceilings of a configuration, nothing else")
    _configuration(ceilings, required=False)
    ceilings.add_argument(
        "--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)"
    )
    ceilings.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    ceilings.add_argument("--out", metavar="DIR", type=Path, help="keep what is computed, and begin with what is there")
    ceilings.add_argument(
        "--draw", metavar="PATH", type=Path, help="draw where the bottleneck of mcf is, into a .png or .svg file"
    )
    ceilings.add_argument("--save", metavar="DIR", type=Path, help="save flows and lengths that prove the ceilings")
    ceilings.add_argument(
        "--verify", metavar="DIR", type=Path, help="in place of FILE: verify what --save has saved, without a solver"
    )

    trace = _command(commands, "trace", "follow one packet of a configuration, tick by tick")
    _configuration(trace)
    trace.add_argument(
        "--packet", metavar="ID", type=int, help="sequence number x hosts + source host; without it, ids are listed"
    )
    trace.add_argument("--load", metavar="L", type=_load, help="default: the lowest of the file")
    trace.add_argument("--seed", metavar="S", type=_natural, help="default: the first of the file")
    trace.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")
    trace.add_argument("--from", dest="first", metavar="T", type=_natural, default=0, help="first tick to show")
    trace.add_argument("--to", dest="last", metavar="T", type=_natural, help="tick at which to end")
    trace.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    plot = _command(commands, "plot", "draw the figures of a run folder again")
    plot.add_argument("folder", metavar="DIR", type=Path)
    plot.add_argument("--figures", metavar="NAME", nargs="+", help="default: those of the configuration")
    plot.add_argument(
        "--format", choices=("png", "svg", "pdf"), nargs="+", help="default: those of the configuration"
    )
    plot.add_argument(
        "--size", choices=("column", "double"), help="for one column of a paper, 3.5 in, or across two, 7.16 in"
    )

    report = _command(commands, "report", "write the page of a run folder again, finished or not")
    report.add_argument("folder", metavar="DIR", type=Path)

    view = _command(commands, "view", "animate a short run: packets and queues on the graph, tick by tick")
    _configuration(view)
    view.add_argument("--load", metavar="L", type=_load, help="default: the lowest of the file")
    view.add_argument("--seed", metavar="S", type=_natural, help="default: the first of the file")
    view.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")
    view.add_argument("--ticks", metavar="T", type=_positive, default=300, help="how long (default: 300)")
    view.add_argument("--out", metavar="FILE", type=Path, help="the page to write (default: NAME.view.html)")

    worker = _command(commands, "worker", "run a part of a configuration, as a job of an array does")
    _configuration(worker)
    worker.add_argument(
        "--shard", metavar="I/N", type=_shard, required=True, help="the I-th of N parts of equal size, I = 1, 2, ..., N"
    )
    worker.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME)")
    worker.add_argument("--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)")

    merge = _command(commands, "merge", "write the tables, figures and page of what workers have run")
    merge.add_argument(
        "paths", metavar="[FILE] DIR", type=Path, nargs="+", help="folders of the workers; FILE: what to make of them"
    )
    merge.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: the first DIR)")
    merge.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    compare = _command(commands, "compare", "lay the curves of several runs over each other, and test what differs")
    compare.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="run folders; the first is the reference")
    compare.add_argument(
        "--allow", metavar="KEY", nargs="+", action="extend", default=[],
        help="keys of the configuration that may differ, besides those that were swept",
    )  # fmt: skip
    compare.add_argument("--out", metavar="DIR", type=Path, help="folder for the figures (default: runs/compare-A-B)")
    compare.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    reproduce = _command(commands, "reproduce", "run published figures and tables, and write a page of what they gave")
    reproduce.add_argument(
        "rows", metavar="PAPER|ROW", nargs="*", help="uni, mut, gbu, dbg, sin, or for instance uni-f05 (default: all)"
    )
    reproduce.add_argument("--full", action="store_true", help="at the size in the paper (default: quick versions)")
    reproduce.add_argument(
        "--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)"
    )
    reproduce.add_argument(
        "--out", metavar="DIR", type=Path, help="folder for runs and pages (default: runs/paper-quick, runs/paper)"
    )
    reproduce.add_argument(
        "--configs", metavar="DIR", type=Path, help="folder of the rows (default: configs/paper, here or as installed)"
    )
    reproduce.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    return parser, dict(commands.choices)


def _command(commands, name: str, summary: str, module: str | None = None) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.set_defaults(run=_lazily(f"sim.cli.{module or name}"))
    return parser


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    """The ``run`` function of a command's module, imported when it is called."""

    def run(options: argparse.Namespace) -> int:
        one_thread()
        return importlib.import_module(module).run(options)

    return run


def _version_or_help(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        if not options.version:
            parser.print_help()
            return 2
        from importlib.metadata import version

        print(f"flitlab {version('flitlab')}")
        return 0

    return run


def _configuration(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Options of every command that reads a configuration."""
    parser.add_argument("file", metavar="FILE", nargs=None if required else "?", help="a configuration (YAML)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key, e.g. topology.n=64"
    )
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    parser.add_argument("--engine", choices=ENGINES, help="in place of the file's")


def _load(text: str) -> float:
    load = float(text)
    if not 0 < load <= 1:
        raise argparse.ArgumentTypeError("must be above 0 and at most 1")
    return load


def _shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    index, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= count:
        raise argparse.ArgumentTypeError(f"{text}: must be i/n with i from 1 to n, for instance 2/8")
    return index, count


def _natural(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
