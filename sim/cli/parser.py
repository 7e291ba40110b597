# SPDX-License-Identifier: Apache-2.0
"""Arguments of ``simrun``. Imports nothing heavy, so ``simrun --help`` is fast."""

import argparse
import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flitlab
from flitlab.models.closest_match import closest_match
from flitlab.models.gc_disabled import gc_disabled
from flitlab.sim.exit import BAD
from flitlab.sim.threads import one_thread

ENGINES = ("reference", "compiled", "both")
STARTERS = ("main", "sweep", "jellyfish_vs_fat_tree", "own_graph")
SHELLS = ("bash", "zsh", "fish")
CATEGORIES = (
    "topology", "routing", "traffic", "switching", "transport", "application", "placement", "metric", "ceiling",
    "algorithm", "column", "figure",
)  # fmt: skip

EPILOG = """\
`simrun FILE` is `simrun run FILE`. Exit codes: 0 done, 1 some points failed, 2 bad configuration or usage,
3 a ceiling or engine-agreement check failed, 70 an unexpected error, 130 interrupted (143 by SIGTERM; the same command
resumes)."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command, with its function ``run``.

    Exits with code 2 for wrong options, with 0 for ``--help``.
    """
    parser, known = _parser()
    words = list(arguments)
    if words and not words[0].startswith("-") and words[0] not in known:
        closest = closest_match(words[0], known)
        if closest and not Path(words[0]).exists():
            parser.error(f"{words[0]}: no such file or command; did you mean {closest!r}?")
        words.insert(0, "run")
    elif words and words[0].startswith("--") and words[0] not in ("--help", "--version"):
        words.insert(0, "run")
    options, rest = parser.parse_known_args(words)
    if rest:
        only_values = not any(word.startswith("-") for word in rest)
        hint = "; a value with blanks needs quotes: --set 'routing={kind: minimal}'" if only_values else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return options


def whole_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    return _parser()[0]


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
    for name, (summary, options) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        command.set_defaults(run=_lazily(f"flitlab.sim.cli.{MODULES.get(name, name)}"))
        options(command)
    return parser, dict(commands.choices)


def _run(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    _results(parser)
    _jobs(parser)
    _threads(parser)
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="in place of --jobs: a Dask cluster, tls://host:port, tcp://localhost:port or slurm:key=value,...",
    )
    _json(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    _jobs(parser)
    _threads(parser)
    _json(parser)


def _quick(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    _jobs(parser)
    _json(parser)


def _new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=STARTERS)
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="default: KIND.yaml; never overwritten")


def _schema(parser: argparse.ArgumentParser) -> None:
    """No options."""


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the first lines of the script say where to install it")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("category", nargs="?", choices=CATEGORIES, help="default: all")
    _json(parser)
    _plugin(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", help="category, optional if NAME is unique; or a section, such as measure")
    parser.add_argument("name", nargs="?", help="for instance imase")
    _plugin(parser)


def _topology(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE|SPEC", help="a configuration, a graph (.txt, .csv, ...), or 'kind=torus,dims=[6,6,6]'"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    _json(parser)
    parser.add_argument(
        "--metrics", metavar="LIST", help="further metrics, for instance 'bisection, {kind: k_shortest, k: 8}'"
    )
    parser.add_argument(
        "--export",
        metavar="PATH",
        type=Path,
        help="write it as .json, .graphml, .gml, .anynet (BookSim), .topobench, .topobench_servers, "
        ".topobench_capacities, .xml (SimGrid), .dot (Graphviz) or an edge list (.txt)",
    )
    parser.add_argument("--draw", metavar="PATH", type=Path, help="draw it into a .png or .svg file")


def _ceilings(parser: argparse.ArgumentParser) -> None:
    _configuration(parser, required=False)
    _jobs(parser)
    _json(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="keep the ceilings here, and reuse those of earlier runs"
    )
    parser.add_argument(
        "--draw", metavar="PATH", type=Path, help="draw the bottlenecks of mcf into a .png or .svg file"
    )
    parser.add_argument("--save", metavar="DIR", type=Path, help="save the certificates: flows and channel prices")
    parser.add_argument(
        "--verify", metavar="DIR", type=Path, help="instead of FILE: verify saved certificates, without a solver"
    )
    _trust(parser)


def _budget(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME-budget)")
    _jobs(parser)
    _threads(parser)
    _json(parser)


def _judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="CLAIM", help="YAML: topology, traffic, and the reported results")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the page (default: runs/NAME-judge)")
    _json(parser)
    _trust(parser)


def _trace(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument(
        "--packet",
        metavar="ID",
        type=_natural,
        help="sequence number x hosts + source host; without it, packet ids are listed",
    )
    _point(parser)
    parser.add_argument("--from", dest="first", metavar="T", type=_natural, default=0, help="first tick to show")
    parser.add_argument("--to", dest="last", metavar="T", type=_natural, help="tick at which to end")
    _json(parser)


def _goal(parser: argparse.ArgumentParser) -> None:
    what = "GOAL text, a folder NAME.program, or a configuration (YAML)"
    _convertible(parser, what, "a folder NAME.program, or text, NAME.goal")


def _schedule(parser: argparse.ArgumentParser) -> None:
    _convertible(parser, "a schedule (JSON), or a configuration (YAML)", "NAME.schedule.json")


def _convertible(parser: argparse.ArgumentParser, what: str, forms: str) -> None:
    """Options of a command that reads something, or takes it from a configuration, and may write another form."""
    parser.add_argument("file", metavar="FILE", help=what)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")
    parser.add_argument("--out", metavar="PATH", type=Path, help=f"write it: {forms}")
    _json(parser)


def _simgrid(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument("--seed", metavar="S", type=_natural, help="default: the first of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: all)")
    parser.add_argument("--python", metavar="PATH", help="a Python that has SimGrid (default: searched for)")
    parser.add_argument(
        "--by-latency", action="store_true", help="let flows share links in inverse proportion to their latencies"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="keep what SimGrid reads and writes")
    _json(parser)


def _export_routing(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the only one)")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder for the tables")


def _plot(parser: argparse.ArgumentParser) -> None:
    _folder(parser)
    _trust(parser)
    parser.add_argument("--figures", metavar="NAME", nargs="+", help="default: those of the configuration")
    parser.add_argument(
        "--format", choices=("png", "svg", "pdf"), nargs="+", help="default: those of the configuration"
    )
    parser.add_argument(
        "--size", choices=("column", "double"), help="for one column of a paper, 3.5 in, or across two, 7.16 in"
    )
    parser.add_argument(
        "--y", choices=("linear", "log", "both"), help="axis of latencies; both: linear, and logarithmic above"
    )


def _view(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    _point(parser)
    parser.add_argument("--ticks", metavar="T", type=_positive, default=300, help="simulated ticks (default: 300)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="the page to write (default: NAME.view.html)")


def _worker(parser: argparse.ArgumentParser) -> None:
    _configuration(parser)
    parser.add_argument(
        "--shard", metavar="I/N", type=_shard, required=True, help="run shard I of N equal shards, I = 1, 2, ..., N"
    )
    _results(parser)
    _jobs(parser)
    _threads(parser)


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="[FILE] DIR",
        type=Path,
        nargs="+",
        help="run folders of the workers; FILE: their configuration",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: the first DIR)")
    _json(parser)
    _trust(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="run folders; the first is the reference")
    parser.add_argument(
        "--allow", metavar="KEY", nargs="+", action="extend", default=[],
        help="keys of the configuration that may differ, besides those that were swept",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the figures (default: runs/compare-A-B)")
    _json(parser)


def _reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rows", metavar="PAPER|ROW", nargs="*", help="uni, mut, gbu, dbg, sin, or for instance uni-f05 (default: all)"
    )
    parser.add_argument("--full", action="store_true", help="at the size in the paper (default: quick versions)")
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--shard", metavar="I/N", type=_shard, help="run shard I of N of these rows; shards take about the same time"
    )
    part.add_argument(
        "--pages", metavar="DIR", type=Path, nargs="*",
        help="run nothing: write the pages again from the results in --out and in these folders",
    )  # fmt: skip
    _jobs(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="folder for runs and pages (default: runs/paper-quick, runs/paper)"
    )
    parser.add_argument(
        "--configs", metavar="DIR", type=Path, help="folder of the rows (default: configs/paper, here or as installed)"
    )
    _json(parser)


def _configuration(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Options of commands that read a configuration."""
    parser.add_argument("file", metavar="FILE", nargs=None if required else "?", help="a configuration (YAML)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key, e.g. topology.n=64"
    )
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    parser.add_argument("--engine", choices=ENGINES, help="in place of the file's")


def _point(parser: argparse.ArgumentParser) -> None:
    """Options that choose a point of a configuration."""
    parser.add_argument("--load", metavar="L", type=_load, help="default: the lowest of the file")
    parser.add_argument("--seed", metavar="S", type=_natural, help="default: the first of the file")
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the first)")


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME)")


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path)


def _jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=_positive, default=None, help="processes (default: all processors)")


def _threads(parser: argparse.ArgumentParser) -> None:
    """Option after :func:`_jobs`, whose default depends on it."""
    parser.add_argument(
        "--threads",
        metavar="N",
        type=_positive,
        default=1,
        help="threads per simulation, if its mode supports them (default: 1); --jobs defaults to processors / N",
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def _plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plugin", action="append", default=[], metavar="FILE", help="load a plugin first")


def _trust(parser: argparse.ArgumentParser) -> None:
    """Options of commands that read files of others, whose plugins are code."""
    _plugin(parser)
    parser.add_argument("--trust-plugins", action="store_true", help="import the plugins that the input names")


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "run": ("run a configuration and write its results and figures", _run),
    "check": ("check a configuration, and show what it would run at which cost", _check),
    "quick": ("run every scenario for a few hundred ticks, to test that it works", _quick),
    "new": ("write a commented starter configuration", _new),
    "schema": ("print the JSON schema of configurations, by which editors complete and check them", _schema),
    "completion": ("print a script by which a shell completes commands and their options", _completion),
    "list": ("list components, columns and figures", _list),
    "show": ("describe a component, or a section of a configuration, and its keys", _show),
    "topology": ("measure and export the topology of a configuration", _topology),
    "ceilings": ("compute the ceilings of a configuration, nothing else", _ceilings),
    "budget": ("measure the loss budget: the throughput lost by routing, buffers and crossbar", _budget),
    "judge": ("decide whether a reported result is possible, with a proof", _judge),
    "trace": ("follow one packet of a configuration, tick by tick", _trace),
    "goal": ("describe a program (GOAL text, NAME.program or a configuration), and write it in another form", _goal),
    "schedule": ("describe the schedule of a collective (JSON or a configuration), and write it as JSON", _schedule),
    "simgrid": ("run a program in mode flow and in SimGrid, if it is installed, and compare the times", _simgrid),
    "export-routing": ("write the tables of a routing: paths, weights, VCs and next hops", _export_routing),
    "plot": ("draw the figures of a run folder again", _plot),
    "report": ("write the page of a run folder again, finished or not", _folder),
    "view": ("animate a short run: packets and queues on the graph, tick by tick", _view),
    "worker": ("run one shard of a configuration, for instance as a job of an array", _worker),
    "merge": ("merge the results of workers into tables, figures and a page", _merge),
    "compare": ("overlay the curves of several runs, and test their differences", _compare),
    "reproduce": ("run published figures and tables, and compare the results", _reproduce),
}
"""Command -> (summary, options), in the order of ``--help``."""

MODULES = {"list": "listing", "export-routing": "export_routing"}
"""Command -> its module in ``flitlab.sim.cli``, where the names differ."""


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    """The ``run`` function of a module, which is imported at the first call."""

    def run(options: argparse.Namespace) -> int:
        one_thread()
        with gc_disabled():
            command = importlib.import_module(module)
        code: int = command.run(options)
        return code

    return run


def _version_or_help(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        if not options.version:
            parser.print_help()
            return BAD
        print(f"flitlab {flitlab.__version__}")
        return 0

    return run


def _load(text: str) -> float:
    load: float = _number(float, text)
    if not 0 < load <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 and at most 1")
    return load


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        problem = "must be i/n with i from 1 to n, of at most 9 digits, for instance 2/8"
        raise argparse.ArgumentTypeError(f"{text}: {problem}")
    return index, count


def _natural(text: str) -> int:
    number: int = _number(int, text)
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 or more" + " and below 2**63" * (number > 0))
    return number


def _positive(text: str) -> int:
    number: int = _number(int, text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return number


def _number(kind: Callable[[str], Any], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"{text}: must be {what}") from None
