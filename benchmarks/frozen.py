# SPDX-License-Identifier: Apache-2.0
"""Hashes of the results of all configurations, to prove that a change of names or structure changes no result.

    python -m benchmarks.frozen write before.json
    python -m benchmarks.frozen compare before.json     # after the change

Every configuration runs in its quick variant, where it has one, as ``simrun quick`` runs it: two loads, one seed, a few
hundred ticks. Small networks run on both engines, and budgets with short windows. Recorded are the SHA-256 of every
table (without CPU times), the ids of all stored points, exit codes, the keys of the JSON schema and the flags of every
command. ``compare`` exits with 1 where something differs.
"""

import argparse
import csv
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flitlab.sim.cli.parser import commands
from flitlab.sim.cli.quick import short_study
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.json_schema import json_schema
from flitlab.sim.config.pipeline import read
from flitlab.sim.experiment.runner import run

ROOT = Path(__file__).parents[1]

TIMES = {"cpu_s", "seconds", "compile_s"}
"""Columns of CPU time."""

SMALL = 40
"""Switches up to which a configuration runs on both engines."""

BUDGET = """\
topology: {kind: random_digraph, n: 12, degree: 3, hosts_per_switch: 2, seed: 1}
routing: {kind: minimal}
switching: {vcs: 4, header_ticks: 2}
traffic: {kind: uniform, packet_flits: 4}
seeds: [1, 2]
measure: {warmup: 500, ticks: 1000, ci: null}
budget: {tolerance: 0.05, sensitivities: [vcs]}
"""

Results = dict[str, Any]
"""What is recorded of a run."""


def results_of(study: Study) -> Results:
    """Hashes of the tables of a run, ids of its points and its exit code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report = run(study, folder)
        tables = {path.name: _hash(path) for path in sorted(folder.glob("*.csv"))}
        ids = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.json"))
    return {"exit": report.exit_code, "tables": tables, "ids": hashlib.sha256("\n".join(ids).encode()).hexdigest()}


def _hash(path: Path) -> str:
    """SHA-256 of a table without its columns of CPU time."""
    with path.open(newline="") as file:
        rows = [{key: value for key, value in row.items() if key not in TIMES} for row in csv.DictReader(file)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def frozen(only: str = "") -> Iterator[tuple[str, Any]]:
    """(name, what is recorded) of every configuration whose path contains ``only``, and of keys and flags."""
    yield "flags", {name: sorted(flag for action in parser._actions for flag in action.option_strings)
                    for name, parser in commands().items()}  # fmt: skip
    yield "keys", sorted(_keys(json_schema()))
    yield "budget", results_of(read("budget.yaml", text=BUDGET, experiment="budget"))
    for path in sorted(ROOT.glob("configs/**/*.yaml")):
        name = str(path.relative_to(ROOT))
        if only not in name:
            continue
        try:
            study = read(path, quick=True)
        except ConfigError as error:
            yield name, {"rejected": len(error.errors)}
            continue
        engines = [study.engine]
        sizes = [case.scenario.topology.switches for case in study.cases if case.scenario is not None]
        if sizes and max(sizes) <= SMALL:
            engines.append("reference")
        for engine in engines:
            chosen = read(path, quick=True, engine=engine)
            yield f"{name} {engine}", results_of(short_study(chosen))


def _keys(schema: Any) -> Iterator[str]:
    """Names of all keys in a JSON schema."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for value in schema.values():
            yield from _keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _keys(value)


def main() -> int:
    """Writes hashes, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="part of the path of configurations")
    options = parser.parse_args()
    results = {}
    for name, result in frozen(options.only):
        results[name] = result
        print(name, file=sys.stderr, flush=True)
    if options.command == "write":
        options.file.write_text(json.dumps(results, indent=1, sort_keys=True))
        return 0
    before = json.loads(options.file.read_text())
    different = [name for name in results if results[name] != before.get(name)]
    if not options.only:
        different += [name for name in before if name not in results]
    for name in different:
        print(f"{name}: {before.get(name)} is {results.get(name)}")
    print(f"{len(different)} of {len(results)} differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
