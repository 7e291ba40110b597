# SPDX-License-Identifier: Apache-2.0
"""``simrun topology`` (ask): measure and export the topology of a configuration."""

import argparse
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import shorten

from flitlab.models.closest_match import closest_match, edit_distance
from flitlab.models.mappings import JsonObject
from flitlab.models.metrics.spec import MetricSpec, measure_all
from flitlab.models.registry import make, names, spec_class
from flitlab.models.topology.formats import is_topology, suffixes
from flitlab.models.topology.graph import Topology
from flitlab.sim.cli.common import complain, is_input, number, print_json, say, shown_label, study_of
from flitlab.sim.cli.components import example
from flitlab.sim.cli.options import add_json
from flitlab.sim.config.build import build
from flitlab.sim.config.components import ComponentBuilder, metrics_of
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.text import Node, load_text, wrap
from flitlab.sim.exit import ExitCode

TopologyAndMetrics = tuple[Topology, list[MetricSpec]]
"""A topology, and the metrics to measure."""

Writer = Callable[[Topology, list[MetricSpec], Path], Iterable[str]]
"""Writes a topology, measured by metrics, into a file, and returns what the file does not hold."""

GRAPHS = {*suffixes(), ".txt", ".csv", ".tsv", ".net", ".dot"} - {"", ".json"}
"""Suffixes of graph files."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "file", metavar="FILE|SPEC", help="a configuration, a graph (.txt, .csv, ...), or 'kind=torus,dims=[6,6,6]'"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--quick", action="store_true", help="apply the quick variant of the file")
    add_json(parser)
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
    parser.add_argument(
        "--blueprint",
        metavar="PATH",
        type=Path,
        help="write its cables as .csv: racks, ports, length and bundle, by the metric cabling",
    )
    parser.add_argument("--draw", metavar="PATH", type=Path, help="draw it into a .png or .svg file")


def run(options: argparse.Namespace) -> int:
    """Measure, export or draw the topologies of a configuration, or one given on the command line."""
    topologies = _topologies(options)
    if topologies is None:
        return ExitCode.BAD
    for option, write in (("export", _export), ("blueprint", _blueprint), ("draw", _draw)):
        path = getattr(options, option)
        if path and (is_input(path, options.file) or not _write(f"--{option} = {path}", path, write, topologies)):
            return ExitCode.BAD
    measured, problems = {}, []
    for label, (topology, metrics) in topologies.items():
        measured[label], undefined = measure_all(topology, metrics)
        problems += [f"{label}: {problem}" for problem in undefined]
    if options.json:
        rows = [{"scenario": label, **metrics} for label, metrics in measured.items()]
        print_json(next(iter(measured.values())) if len(measured) == 1 else rows)
    else:
        _print(measured)
    complain(*problems)
    return ExitCode.FAILED if problems else 0


def _print(measured: dict[str, JsonObject]) -> None:
    for label, metrics in measured.items():
        say(shown_label(label))
        width = max(map(len, metrics))
        for name, value in metrics.items():
            say(f"  {name:<{width}}  {shorten(_text(value), 150, placeholder=' ...')}")


def _text(value: object) -> str:
    """A metric as the table shows it: of several values each with its name."""
    if isinstance(value, dict):
        return "; ".join(f"{name} {one}" for name, one in value.items()) or "-"
    return str(value) if isinstance(value, list) else number(value, 7)


def _topologies(options: argparse.Namespace) -> dict[str, TopologyAndMetrics] | None:
    """Label -> topology, equal ones once; None, with errors printed, if the input is invalid."""
    diagnostics = Diagnostics()
    metrics = _metrics(options.metrics, diagnostics)
    if diagnostics.errors:
        complain(*map(str, diagnostics.errors))
        return None
    file = Path(options.file)
    is_graph = file.is_file() and (file.suffix.lower() in GRAPHS or is_topology(file))
    if not Path(options.file).exists() and (hint := _hint(options.file)):
        complain(hint)
        return None
    if not is_graph and ("=" not in options.file or Path(options.file).exists()):
        study = study_of(options, experiment="metrics")
        if study is None:
            return None
        distinct: dict[str, tuple[str, TopologyAndMetrics]] = {}
        for case in study.cases:
            topology = case.topology
            distinct.setdefault(topology.content_hash, (case.label, (topology, metrics or case.metrics)))
        named = dict(distinct.values())
        return {only[0].kind: only for only in named.values()} if len(named) == 1 else named
    graph = {"topology": {"kind": "file", "path": options.file}}
    root = wrap(graph, "topology") if is_graph else parse_spec(options.file, diagnostics)
    draft = Draft(_without_idle_seed(root), "metrics", Path.cwd(), diagnostics)
    only = None if diagnostics.errors else build(draft, ComponentBuilder())
    complain(*dict.fromkeys(map(str, [*diagnostics.warnings, *diagnostics.errors])))
    return None if diagnostics.errors or only is None else {options.file: (only.topology, metrics)}


def _hint(word: str) -> str:
    """The command for the bare name of a kind, or a similar name; '' for what looks like a file."""
    if not re.fullmatch(r"\w+", word):
        return ""
    kind = closest_match(word, names("topology"))
    if kind is None or edit_distance(word, kind) > max(1, len(word) // 3):
        return f"simrun topology: {word}: no such file or kind of topology; `simrun list topology` lists the kinds"
    keys = example("topology", kind).items()
    line = ",".join(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in keys)
    return f"simrun topology: {word}: no such file; did you mean the kind: simrun topology '{line}'"


def _metrics(text: str | None, diagnostics: Diagnostics) -> list[MetricSpec]:
    """The metrics of ``--metrics``: names, or mappings such as ``{kind: k_shortest, k: 8}``, comma-separated."""
    if not text:
        return []
    try:
        listed = load_text(f"[{text}]", "--metrics", diagnostics, lines=False)
    except ConfigError as error:
        for one in error.errors:
            diagnostics.reject("--metrics", text, one.problem)
        return []
    return metrics_of(Draft(Node({"metrics": listed}, "--metrics"), "metrics", Path.cwd(), diagnostics))


def parse_spec(text: str, diagnostics: Diagnostics) -> Node:
    """``kind=torus,dims=[6,6,6]`` as the configuration ``topology: {kind: torus, dims: [6, 6, 6]}``."""
    values: dict[str, Node] = {}
    for part in re.split(r",(?=\s*\w+\s*=)", text):
        key, _, value = part.partition("=")
        key = key.strip()
        if key in values:
            diagnostics.reject("topology", part.strip(), "duplicate key")
        errors = Diagnostics()
        try:
            values[key] = load_text(value, "topology", errors, lines=False)
        except ConfigError as error:
            errors.errors += error.errors
        for one in errors.errors:
            diagnostics.reject("topology", part.strip(), one.problem)
    return Node({"topology": Node(values, "topology")}, "topology")


def _without_idle_seed(root: Node) -> Node:
    """A topology without its seed, with a note, if its kind draws nothing."""
    topology = root.value["topology"]
    kind, seed = topology.get("kind"), topology.get("seed")
    if seed is None or kind is None or kind.value not in names("topology"):
        return root
    if "seed" in spec_class("topology", kind.value).model_fields:
        return root
    complain(f"topology: seed = {seed.plain()}: a {kind.value} has nothing random; the seed is ignored")
    return root.with_value({"topology": topology.with_value({k: v for k, v in topology.value.items() if k != "seed"})})


def _write(option: str, path: Path, write: Writer, topologies: dict[str, TopologyAndMetrics]) -> bool:
    """Write the only topology, and print what the format cannot hold; False, with an error printed, if that fails."""
    if len(topologies) != 1:
        complain(f"{option}: the configuration has {len(topologies)} topologies; choose one by --set")
        return False
    try:
        omitted = list(write(*next(iter(topologies.values())), path))
    except (OSError, ValueError) as error:
        complain(f"{option}: {getattr(error, 'strerror', None) or error}")
        return False
    if omitted:
        complain(f"{option}: this format does not hold {', '.join(omitted)}")
    return True


def _export(topology: Topology, _metrics: list[MetricSpec], path: Path) -> Iterable[str]:
    from flitlab.models.topology.formats import write

    return write(topology, path)


def _blueprint(topology: Topology, metrics: list[MetricSpec], path: Path) -> Iterable[str]:
    from flitlab.models.layout.blueprint import write
    from flitlab.models.metrics.layout import CablingMetric

    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path.suffix or 'no suffix'}: a blueprint is a .csv file")
    spec = next(one for one in [*metrics, make("metric", kind="cabling")] if isinstance(one, CablingMetric))
    write(topology, spec.blueprint(topology)[1], path)
    return ()


def _draw(topology: Topology, _metrics: list[MetricSpec], path: Path) -> Iterable[str]:
    from flitlab.sim.report.network.drawing import draw_topology

    draw_topology(topology, path)
    return ()
