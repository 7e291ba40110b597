"""``simrun topology FILE|SPEC``."""

import argparse
import re
from pathlib import Path
from typing import Any

from models.registry import names, spec_class
from models.topology.graph import Topology
from sim.cli.common import BAD, complain, number, print_json, study_of
from sim.config.build import Builder
from sim.config.errors import ConfigError, Mistake
from sim.config.load import Node, load_text


def run(options: argparse.Namespace) -> int:
    """Measures the topologies of a configuration, or one described on the command line."""
    from models.metrics.summary import summary

    found = _topologies(options)
    if found is None:
        return BAD
    if options.export and not _export(options, list(found.values())):
        return BAD
    described = {label: summary(topology) for label, topology in found.items()}
    if options.json:
        several = [{"scenario": label, **metrics} for label, metrics in described.items()]
        print_json(next(iter(described.values())) if len(described) == 1 else several)
        return 0
    for label, metrics in described.items():
        print(label)
        for name, value in metrics.items():
            print(f"  {name:<14} {value if isinstance(value, dict) else number(value, 7)}")
    return 0


def _topologies(options: argparse.Namespace) -> dict[str, Topology] | None:
    """Label -> topology, equal ones once; None after the mistakes have been printed."""
    if "=" not in options.file or Path(options.file).exists():
        study = study_of(options, experiment="metrics")
        if study is None:
            return None
        first: dict[str, tuple[str, Topology]] = {}
        for case in study.cases:
            first.setdefault(case.topology.content_hash, (case.label, case.topology))
        return dict(first.values())
    mistakes: list[Mistake] = []
    root = parse_spec(options.file, mistakes)
    built = None if mistakes else Builder(Path.cwd()).build(_without_idle_seed(root), None, "metrics", mistakes)
    complain(*map(str, mistakes))
    return None if mistakes or built is None else {options.file: built.topology}


def parse_spec(text: str, mistakes: list[Mistake]) -> Node:
    """``kind=torus,dims=[6,6,6]`` as the configuration ``topology: {kind: torus, dims: [6, 6, 6]}``."""
    values: dict[str, Node] = {}
    for part in re.split(r",(?=\s*\w+\s*=)", text):
        key, _, value = part.partition("=")
        try:
            values[key.strip()] = load_text(value, "topology", mistakes, lines=False)
        except ConfigError as error:
            mistakes += [Mistake("topology", part.strip(), "", mistake.problem) for mistake in error.mistakes]
    return Node({"topology": Node(values, "topology")}, "topology")


def _without_idle_seed(root: Node) -> Node:
    """On the command line any kind may have a seed; one in which nothing is drawn does without, and says so."""
    topology = root.value["topology"]
    kind, seed = topology.get("kind"), topology.get("seed")
    if seed is None or kind is None or kind.value not in names("topology"):
        return root
    if "seed" in spec_class("topology", kind.value).model_fields:
        return root
    complain(f"topology: seed = {seed.plain()}: a {kind.value} has nothing random; the seed is ignored")
    return root.with_value({"topology": topology.with_value({k: v for k, v in topology.value.items() if k != "seed"})})


def _export(options: argparse.Namespace, topologies: list[Topology]) -> bool:
    """Writes the topology; False after saying why it cannot be."""
    from models.topology.formats import write

    if len(topologies) != 1:
        complain(
            f"--export = {options.export}: the configuration has {len(topologies)} topologies; choose one by --set"
        )
        return False
    try:
        write(topologies[0], options.export)
    except OSError as error:
        complain(f"--export = {options.export}: {error.strerror or error}")
        return False
    return True


__all__: list[Any] = ["parse_spec", "run"]
