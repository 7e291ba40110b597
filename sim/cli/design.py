# SPDX-License-Identifier: Apache-2.0
"""``simrun design`` (ask): find the networks to build, with proofs of what is left out."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject
from flitlab.sim.cli.common import complain, duration, error_text, number, print_json, print_rows, print_table, say
from flitlab.sim.cli.components import load
from flitlab.sim.cli.options import add_json, add_plugin, positive
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.design.files import (
    MARK,
    SOLVED,
    SolvedFolder,
    candidate_rows,
    front_rows,
    write_improved,
    write_point,
    write_tables,
)
from flitlab.sim.design.measures import PARTS
from flitlab.sim.design.outcome import Design, FrontPoint, design, search_of
from flitlab.sim.design.reader import least_of_all, read_design
from flitlab.sim.design.request import DesignRequest
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import UnrelatedFolder, reject_unrelated_folder


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="FILE", help="YAML: hosts, switches, demands and limits")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of the file")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: runs/NAME-design)")
    parser.add_argument(
        "--write", metavar="N", type=positive, action="append", default=[],
        help="write point N of the front as a configuration to run, with its topology and list of cables",
    )  # fmt: skip
    parser.add_argument(
        "--certificates", action="store_true",
        help="save certificates of the front's intervals, for simrun ceilings --verify DIR/certificates",
    )  # fmt: skip
    parser.add_argument("--simulate", action="store_true", help="simulate the points written, or all: their saturation")
    add_json(parser)
    add_plugin(parser)


def run(options: argparse.Namespace) -> int:
    """Search, print the front and what is proven, and write tables, figure and page."""
    try:
        load(options.plugin)
        request = read_design(options.file, options.set)
        folder = options.out or Path("runs") / f"{request.name}-design"
        reject_unrelated_folder(folder, MARK)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / MARK, request.text)
        answer = design(request, complain, SolvedFolder(folder / SOLVED))
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    except UnrelatedFolder as error:
        complain(f"simrun design: {folder}: {error}")
        return ExitCode.BAD
    except OSError as error:
        complain(f"simrun design: {error_text(error)}")
        return ExitCode.BAD
    unsolved: list[str] = []
    chosen = [point for point in answer.front if point.number in options.write]
    try:
        page = _write(answer, folder)
        files = [file for point in chosen for file in write_point(answer, point, folder)]
        files += write_improved(answer, folder)
        if options.certificates and answer.front:
            unsolved = _save_certificates(answer, folder)
    except OSError as error:
        complain(f"simrun design: {error_text(error)}")
        return ExitCode.BAD
    simulated = _simulate(answer, chosen or answer.front, folder) if options.simulate else []
    if options.json:
        print_json(_document(answer, simulated))
    else:
        _print(answer)
        if simulated:
            print_rows("simulated", list(simulated[0]), simulated)
        say(f"page in {page}", *(f"wrote {file}" for file in files))
    if missing := sorted(set(options.write) - {point.number for point in answer.front}):
        complain(f"--write {missing[0]}: the front has points 1 to {len(answer.front)}")
        return ExitCode.BAD
    if not answer.front:
        complain(f"{options.file}: no candidate meets the limits; candidates.csv says what each of them violates")
        return ExitCode.FAILED
    return ExitCode.FAILED if unsolved else ExitCode.OK


PROMISING = 10
"""Candidates that ``simrun check`` lists."""


def check(options: argparse.Namespace) -> int:
    """Check the file of a design, and print what would be searched and how long that takes; nothing is built."""
    try:
        request = read_design(options.file, options.set)
        search = search_of(request)
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    left, seconds = search.left(), search.estimate()
    families = [
        {
            "family": kind, "candidates": sum(result.option.kind == kind for result in search.results),
            **{
                stage: sum(result.stage == stage and result.option.kind == kind for result in search.results)
                for stage in ("limit", "floor")
            },
            "left": sum(search.results[i].option.kind == kind for i in left),
        }
        for kind in dict.fromkeys(result.option.kind for result in search.results)
    ]  # fmt: skip
    best = [search.results[i] for i in search.promising(PROMISING)]
    names = [demand.name for demand in request.demands]
    promising = [
        {"design": result.option.label, "$/host": result.option.cost / request.hosts}
        | {f"{name} <=": min(float(x), 1.0) for name, x in zip(names, result.upper, strict=True) if x < float("inf")}
        for result in best
    ]
    floor = max((demand.floor for demand in request.demands if demand.closed == "uniform"), default=0.0)
    least = least_of_all(request, floor)
    assert least is not None  # else the file is rejected
    proof = f"at least {least[0]} switches, however they are wired" + f", for uniform {floor:g}" * (floor > 0)
    if options.json:
        print_json(
            {
                "name": request.name, "experiment": "design", "hosts": request.hosts, "profile": request.prices.profile,
                "prices": {key: value for key, value, _ in request.prices.assumptions()},
                "candidates": len(search.results), "left": len(left), "families": families, "promising": promising,
                "least_switches": least[0], "estimate": {"cpu_s": seconds},
            }
        )  # fmt: skip
        return ExitCode.OK
    say(f"{request.name}: design, {request.hosts} hosts, {len(search.results)} candidates, {proof}", "")
    for line in assumptions(request):
        say(line)
    print_rows("candidates, in closed form", ["family", "candidates", "limit", "floor", "left"], families)
    bounds = [f"{name} <=" for name in names if any(f"{name} <=" in row for row in promising)]
    print_rows("most throughput for the cost, by closed forms", ["design", "$/host", *bounds], promising, 4)
    say(f"estimate: {duration(seconds)} of CPU time, within a factor of three, without failures of the front")
    return ExitCode.OK


def _write(answer: Design, folder: Path) -> Path:
    from flitlab.sim.report.figures.design import figures_of
    from flitlab.sim.report.figures.style import save
    from flitlab.sim.report.html.design import write

    write_tables(answer, folder)
    pictures = {name: save(figure, folder / "figures" / name)[0] for name, figure in figures_of(answer).items()}
    return write(answer, folder, pictures)


def _save_certificates(answer: Design, folder: Path) -> list[str]:
    """Save them; returns what could not be solved."""
    from flitlab.sim.design.certificates import FOLDER, save_certificates
    from flitlab.sim.experiment.certificates import INDEX

    number, digest, problems = save_certificates(answer, folder)
    complain(*problems, f"{folder / FOLDER}: {number} certificates; SHA-256 of {INDEX}: {digest}")
    return problems


def _simulate(answer: Design, points: list[FrontPoint], folder: Path) -> list[JsonObject]:
    """The saturation of points, beside the certified ceiling."""
    from flitlab.sim.config.pipeline import read
    from flitlab.sim.experiment.pool import RunOptions
    from flitlab.sim.experiment.runner import run as run_study
    from flitlab.sim.experiment.store import StoreError

    rows = []
    for point in points:
        file = write_point(answer, point, folder)[0]
        try:
            report = run_study(read(file), folder / "simulated" / file.stem, RunOptions.of(1))
        except ConfigError as error:
            complain(f"point {point.number} is not simulated: {error.errors[0]}")
            continue
        except StoreError as error:
            complain(f"point {point.number} is not simulated: {error}")
            continue
        if report.exit_code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if not report.tables.get("saturation.csv"):
            complain(*(f"point {point.number} is not simulated: {problem}" for problem in report.problems))
            continue
        (row,) = report.tables["saturation.csv"]
        rows.append(
            {
                "point": point.number, "design": point.result.option.label, "saturation": row["saturation"],
                "ceiling": float(point.result.upper[answer.uniform or 0]), "efficiency": row["efficiency"],
            }
        )  # fmt: skip
    return rows


def _document(answer: Design, simulated: list[JsonObject]) -> JsonObject:
    request, search = answer.request, answer.search
    return {
        "name": request.name, "hosts": request.hosts, "profile": request.prices.profile,
        "prices": {key: value for key, value, _ in request.prices.assumptions()},
        "front": list(front_rows(answer)), "stages": search.counts(), "families": answer.families(),
        "sentences": [*answer.sentences(), *answer.orders], "candidates": len(list(candidate_rows(answer))),
        "seconds": answer.seconds, "simulated": simulated,
    }  # fmt: skip


def interval(lower: float, upper: float) -> str:
    """A certified interval of theta, both ends rounded outwards to three digits."""
    low, high = int(lower * 1000) / 1000, -(-int(upper * 1e9) // 10**6) / 1000
    return f"{low:.3f}..{max(high, low):.3f}"


def _columns(answer: Design) -> Iterator[Any]:
    def of(row: Any, d: int) -> str:
        return interval(float(row.result.lower[d]), float(row.result.upper[d]))

    hosts = answer.request.hosts
    yield "point", lambda row: str(row.number)
    yield "design", lambda row: row.result.option.label
    yield "$/host", lambda row: number(row.result.option.cost / hosts)
    yield "W/host", lambda row: number(row.result.option.watts / hosts, 3)
    yield "switches", lambda row: str(row.result.option.switches)
    yield "cables", lambda row: str(row.result.option.cables)
    yield "diameter", lambda row: str(row.result.diameter)
    for d, demand in enumerate(answer.request.demands):
        yield demand.name, lambda row, d=d: of(row, d)
    if answer.uniform is not None:
        yield "bound", lambda row: number(min(row.bound, 1.0))
        yield "least switches", lambda row: str(row.least)
        yield "ECMP", lambda row: number(row.ecmp, 3)


def _print(answer: Design) -> None:
    request = answer.request
    for line in assumptions(request):
        say(line)
    print_table(f"{request.name}: the front, {request.hosts} hosts", list(_columns(answer)), answer.front)
    for part in PARTS.values():
        if columns := part.columns(request):
            points = [{"point": point.number, **point.values} for point in answer.front]
            print_rows(part.title, ["point", *columns], points, 4)
    rows = [
        {**row, "could exceed": None if row["could_exceed"] is None else f"{100 * row['could_exceed']:.1f} %"}
        for row in answer.families()
    ]
    stages = ["limit", "floor", "closed form", "built", "one solve", "solved"]
    print_rows("why not", ["family", "candidates", *stages, "front", "could exceed"], rows)
    for sentence in [*answer.sentences(), *answer.orders]:
        say(sentence)
    say(f"{answer.seconds:.1f} CPU s")


def assumptions(request: DesignRequest) -> list[str]:
    """Every price that is used, with its source."""
    lines = [f"prices: profile {request.prices.profile}; every value can be replaced (prices: {{KEY: VALUE}})"]
    lines += [f"  {key} {value:g}: {source}" for key, value, source in request.prices.assumptions()]
    lines += [f"  switch {sku.name}: {sku.ports} ports, {sku.price:g} $, {sku.watts:g} W" for sku in request.skus]
    return [*lines, "  NICs of hosts are not included; throughputs are of ideal routing (beside them that of ECMP)"]
