# SPDX-License-Identifier: Apache-2.0
"""``simrun compare`` (folder): overlay the curves of several runs, and test their differences."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

from flitlab.fluid.kinds.spec import kind_of
from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject
from flitlab.sim.cli.common import (
    Column,
    complain,
    error_text,
    json_text,
    number,
    print_json,
    print_table,
    say,
)
from flitlab.sim.cli.options import add_json
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import NOT_AS_WRITTEN, UnrelatedFolder, reject_unrelated_folder
from flitlab.sim.measure.interval import MEANING
from flitlab.sim.report import compare
from flitlab.sim.report.compare_configs import Configuration, changed, differences
from flitlab.sim.report.folder.run import Run

DOCUMENT = "compare.json"
"""The file with all that is printed; it marks the folder as one of this command."""

HEADINGS = {
    "saturation": "saturates at", "accepted_max": "accepted at most", "latency": "latency",
    "host_throughput": "host throughput", "throughput_min": "least flow", "slowdown": "slowdown",
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="run folders; the first is the reference")
    parser.add_argument(
        "--allow", metavar="KEY", nargs="+", action="extend", default=[],
        help="keys of the configuration that may differ, besides those that were swept",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the figures (default: runs/compare-A-B)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Compare runs of configurations that differ only in swept keys."""
    folders: list[Path] = options.folders
    try:
        runs = {name: Run.read(folder) for name, folder in zip(_names(folders), folders, strict=True)}
        for folder, one in zip(folders, runs.values(), strict=True):
            if one.altered:
                raise ValueError(f"{folder / one.altered[0]}: {NOT_AS_WRITTEN}")
        empty = next((name for name, one in runs.items() if not one.rows and not one.ceilings), None)
        if empty is not None:
            raise ValueError(f"{empty}: no results to compare: neither results.csv nor ceilings.csv has a row")
        configurations = [
            Configuration.read(folder, one.manifest) for folder, one in zip(folders, runs.values(), strict=True)
        ]
        comparison = None if (differing := _differing_keys(configurations, options.allow)) else compare.compare(runs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"simrun compare: {error_text(error)}")
        return ExitCode.BAD
    if comparison is None:
        more = "differ in keys that were neither swept nor changed by --set (allow them with --allow KEY):"
        complain(f"{' and '.join(runs)} {more}", *differing)
        return ExitCode.BAD
    out = options.out or Path("runs") / ("compare-" + "-".join(name.replace("/", "-") for name in runs))
    document = {"runs": {name: str(folder) for name, folder in zip(runs, folders, strict=True)},
                "changed": changed(configurations), "scenarios": comparison.document()}  # fmt: skip
    try:
        reject_unrelated_folder(out, DOCUMENT)
        out.mkdir(parents=True, exist_ok=True)
        replace_file(out / DOCUMENT, json_text(document) + "\n")
        files = compare.draw(comparison, out)
    except UnrelatedFolder as error:
        complain(f"simrun compare: --out {out}: {error}")
        return ExitCode.BAD
    except OSError as error:
        complain(f"simrun compare: {out}: cannot be written: {error.strerror or error}")
        return ExitCode.BAD
    if options.json:
        print_json({**document, "figures": [str(file) for file in files]})
    else:
        _print(comparison)
        if lines := changed(configurations):
            say(f"changed by --set, {' | '.join(runs)}: {'; '.join(lines)}")
        say(f"figures in {out}")
    return 0


def _names(folders: Sequence[Path]) -> list[str]:
    """The last part of each path; the whole path where that is not unique."""
    last = [folder.resolve().name for folder in folders]
    names = last if len(set(last)) == len(last) else [str(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ValueError("the same folder is given twice")
    return names


def _differing_keys(configurations: Sequence[Configuration], allowed: Sequence[str]) -> list[str]:
    known = {part for one in configurations for key in one.values for part in _prefixes(key)}
    if unknown := [key for key in allowed if key not in known]:
        raise ValueError(f"--allow {unknown[0]}: no run has this key")
    return differences(configurations, allowed)


def _prefixes(key: str) -> list[str]:
    parts = key.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _print(comparison: compare.Comparison) -> None:
    rows = comparison.document()

    def cell(name: str) -> Column:
        at = comparison.at.get(name)
        unit = ", ".join(filter(None, (comparison.units[name], f"at load {at:g}" if at and at < 1 else "")))
        return f"{HEADINGS[name]} ({unit})" if unit else HEADINGS[name], lambda row: _quantity(row["quantities"][name])

    bounds = sorted({name for row in rows for name in row["ceilings"]}, key=lambda name: (kind_of(name).rank, name))
    columns: list[Column] = [
        ("run", lambda row: row["run"]), ("scenario", lambda row: row["scenario"]), *map(cell, comparison.units),
        *((name, lambda row, name=name: _ceiling(row["ceilings"].get(name))) for name in bounds),
    ]  # fmt: skip
    print_table("comparison", columns, rows)
    for name in dict.fromkeys(row["reference"] for row in rows if row["reference"]):
        against = [row["scenario"] for row in rows if row["reference"] == name]
        say(f"differences are from {name}: {', '.join(dict.fromkeys(against))}")
    say(f"{MEANING}; * differs at the 5 % level (Welch's t), = does not, ? not tested: too few seeds, or not saturated")


MARKS = {True: " *", False: " =", None: " ?"}


def _quantity(one: JsonObject) -> str:
    if math.isnan(one["value"]):
        note: str = one["note"]
        return note
    text = number(one["value"])
    if not math.isnan(one["ci95"]):
        text += f" ± {number(one['ci95'], 2)}"
    if one["difference"] is None:
        return text
    relative = f"{one['relative']:+.1%}" if one["relative"] is not None else f"{one['difference']:+.3g}"
    return f"{text} ({relative}{MARKS[one['significant']]})"


def _ceiling(one: JsonObject | None) -> str:
    if one is None:
        return "-"
    lower, upper = one["lower"], one["upper"]
    if lower is None:
        return f"at most {number(upper)}"
    text = number(upper) if lower == upper else f"{number(lower)} .. {number(upper)}"
    return text + (" *" if one["differs"] else "")
