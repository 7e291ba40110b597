# SPDX-License-Identifier: Apache-2.0
"""``simrun ceilings`` (ask): compute the ceilings of a configuration, nothing else."""

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

from flitlab.models.delimited import csv_text
from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject, Row
from flitlab.sim.cli.common import complain, error_text, print_json, print_rows, say, shown_label, study_of
from flitlab.sim.cli.components import load
from flitlab.sim.cli.options import add_configuration, add_jobs, add_json, add_trust
from flitlab.sim.cli.tables import print_ceilings
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.exit import ExitCode, RunStatus
from flitlab.sim.experiment.ceilings import COLUMNS, CeilingRuns
from flitlab.sim.experiment.certificates import (
    CONFIGURATION,
    INDEX,
    Verdict,
    sha256,
    unlisted,
    verify_all,
    write_index,
)
from flitlab.sim.experiment.folders import (
    UnrelatedFolder,
    digest_of,
    read_manifest,
    reject_special_files,
    reject_unrelated_folder,
)
from flitlab.sim.experiment.manifest import now
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import carry_out, describe
from flitlab.sim.experiment.store import Store, StoreError, cells


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser, required=False)
    add_jobs(parser)
    add_json(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="keep the ceilings here, and reuse those of earlier runs"
    )
    parser.add_argument(
        "--draw", metavar="PATH", type=Path, help="draw the bottlenecks of mcf into a .png or .svg file"
    )
    parser.add_argument("--save", metavar="DIR", type=Path, help="save the certificates: flows and channel prices")
    parser.add_argument(
        "--mps", metavar="DIR", type=Path,
        help="instead of solving: write the linear programs (mcf, mcf_paths; without either: mcf) as MPS files",
    )  # fmt: skip
    parser.add_argument(
        "--verify", metavar="DIR", type=Path, help="instead of FILE: verify saved certificates, without a solver"
    )
    add_trust(parser)


def run(options: argparse.Namespace) -> int:
    """Compute and print the ceilings of a configuration; writes only the files that the options name."""
    try:
        load(options.plugin)
    except ConfigError as error:
        complain(*map(str, error.errors))
        return ExitCode.BAD
    if options.verify is not None:
        return _verify(options)
    if options.file is None:
        complain("simrun ceilings: FILE is missing (or --verify DIR)")
        return ExitCode.BAD
    study = study_of(options, experiment="ceilings")
    if study is not None and options.mps is not None:
        return _write_models(study, options.mps, options.json)
    if study is None or not _can_draw(options.draw) or not _can_save(study, options.save):
        return ExitCode.BAD
    try:
        if options.save is not None:
            reject_unrelated_folder(options.save, INDEX)
        with _folder(options.out) as folder:
            return _compute(study, Path(folder), options)
    except UnrelatedFolder as error:
        complain(f"simrun ceilings: --save {options.save}: {error}")
        return ExitCode.BAD
    except StoreError as error:
        complain(f"simrun ceilings: {options.out}: {error}")
        return ExitCode.BAD
    except OSError as error:
        complain(f"simrun ceilings: {error_text(error)}")
        return ExitCode.BAD


def _can_save(study: Study, folder: Path | None) -> bool:
    """Whether certificates of all scenarios can be saved; otherwise prints why, before anything is computed."""
    for case in study.cases:
        if folder is not None and case.instance is not None and case.instance.traffic.background is not None:
            complain(f"--save {folder}: {case.label}: certificates of traffic with a background cannot be saved")
            return False
    return True


def _can_draw(path: Path | None) -> bool:
    """Whether a figure can have this name; otherwise prints why, before anything is computed."""
    if path is None:
        return True
    from flitlab.sim.report.figures.style import metadata_of

    try:
        metadata_of(path)
    except ValueError as error:
        complain(f"--draw = {error}")
        return False
    return True


def _folder(path: Path | None) -> AbstractContextManager[Path | str]:
    """The folder for results: the given one, else a temporary one."""
    return tempfile.TemporaryDirectory() if path is None else nullcontext(path)


def _compute(study: Study, folder: Path, options: argparse.Namespace) -> int:
    store = Store(folder)
    try:
        _reject_other_experiment(folder, study.experiment)
        manifest = describe(study, store)
        ceilings = CeilingRuns(study, store, options.save)
        count = len(ceilings.task_indices)
        stopped = carry_out(study, RunOptions.of(options.jobs), [ceilings.tasks], count, count)
        rows = ceilings.rows()
        store.write_csv("ceilings.csv", COLUMNS, rows)
        status = RunStatus.of(_code(ceilings, stopped))
        tables = manifest["tables"] | {"ceilings.csv": digest_of(folder / "ceilings.csv")}
        ended = {"status": status, "finished": now(), "tables": tables, "problems": ceilings.problems}
        store.write_manifest({**manifest, **ended})
    finally:
        store.close()
    if options.json:
        print_json(rows)
    else:
        print_ceilings(rows)
    if not count:
        complain(f"{study.file}: names no ceilings: add some, for instance --set 'ceilings=[mcf]'")
    if options.save:
        _index(study, ceilings, options.save)
    is_drawn = stopped or not options.draw or _draw(study, ceilings, options.draw)
    complain(*ceilings.problems, *([stopped] if stopped else []))
    return _code(ceilings, stopped) or (ExitCode.OK if is_drawn else ExitCode.FAILED)


MODELS = "models.csv"
"""The index of a folder of linear programs."""

MODEL_COLUMNS = ["scenario", "ceiling", "file", "rows", "columns", "entries"]


def _write_models(study: Study, folder: Path, as_json: bool) -> int:
    """Write the linear programs of all scenarios, and their index."""
    from flitlab.fluid.linear_program import write_concurrent_flow
    from flitlab.fluid.problem import FluidError
    from flitlab.sim.report.figures.kinds.bottleneck import numbered

    programs = ("mcf", "mcf_paths")
    models = [
        (number, case, kind)
        for number, case in enumerate(study.cases, 1)
        if case.instance is not None
        for kind in [spec.kind for spec in case.ceilings if spec.kind in programs] or programs[:1]
    ]
    if not models:
        complain(f"{study.file}: no scenario has demand of which to write a linear program")
        return ExitCode.BAD
    problems, rows = [], []
    try:
        reject_unrelated_folder(folder, MODELS)
        folder.mkdir(parents=True, exist_ok=True)
        for number, case, kind in models:
            file = folder / f"{numbered(kind, number, case.label)}.mps"
            try:
                assert case.instance is not None
                size = write_concurrent_flow(case.instance, kind, file)
            except FluidError as error:
                problems.append(f"{case.label}: {kind}: {error}")
            else:
                rows.append({"scenario": case.label, "ceiling": kind, "file": file.name, **asdict(size)})
        replace_file(folder / MODELS, csv_text(MODEL_COLUMNS, cells(MODEL_COLUMNS, rows)))
    except UnrelatedFolder as error:
        complain(f"simrun ceilings: --mps {folder}: {error}")
        return ExitCode.BAD
    except OSError as error:
        complain(f"simrun ceilings: --mps: {error_text(error)}")
        return ExitCode.BAD
    if as_json:
        print_json(rows)
    else:
        print_rows(str(folder), MODEL_COLUMNS, rows)
    complain(*problems)
    return ExitCode.FAILED if problems else ExitCode.OK


def _code(ceilings: CeilingRuns, stopped: str) -> int:
    if stopped == RunStatus.INTERRUPTED:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if ceilings.problems or stopped else ExitCode.OK


def _reject_other_experiment(folder: Path, experiment: str) -> None:
    """Raise :class:`~flitlab.sim.experiment.store.StoreError` for the folder of another run, whose tables would be
    lost."""
    stored = read_manifest(folder).get("experiment", experiment)
    if stored != experiment:
        raise StoreError(f"holds a run of experiment {stored}: choose another folder")


def _index(study: Study, ceilings: CeilingRuns, folder: Path) -> None:
    """Write the index of the saved certificates: their scenarios and claims."""
    count, digest = write_index(study, folder, {job.id: job.users for job in ceilings.jobs})
    complain(f"{folder}: {count} certificates; SHA-256 of {INDEX}: {digest}")


def _verify(options: argparse.Namespace) -> int:
    """Verify saved certificates; exit code 3 if one does not prove its claim."""
    folder = options.verify
    try:
        reject_special_files(folder)
        verdicts = list(verify_all(folder, options.trust_plugins))
    except UnrelatedFolder as error:
        complain(f"simrun ceilings: --verify {folder}: {error}")
        return ExitCode.BAD
    except OSError:
        complain(f"simrun ceilings: --verify {folder}: holds no saved certificates ({INDEX}, {CONFIGURATION})")
        return ExitCode.BAD
    rows = [_row(verdict) for verdict in verdicts]
    if options.json:
        print_json(rows)
    else:
        _print(rows, verdicts)
    complain(*(f"{folder / name}: not verified: the index does not list it" for name in unlisted(folder, verdicts)))
    complain(f"SHA-256 of {INDEX}: {sha256(folder / INDEX)}; compare it with what --save printed")
    return 0 if all(verdict.confirmed for verdict in verdicts) else ExitCode.CHECK_FAILED


def _print(rows: list[Row], verdicts: Sequence[Verdict]) -> None:
    """Print claims and verdicts, and the hashes of graphs, demands and routes."""
    print_rows("certificates", ["scenario", "ceiling", "claim", "verdict"], rows)
    for of in dict.fromkeys(verdict.of for verdict in verdicts if verdict.of is not None):
        routes = f", routes {of.routes[:HASH_DIGITS]}" if of.routes else ""
        say(
            f"{shown_label(of.label)}: topology {of.topology[:HASH_DIGITS]}, traffic {of.traffic[:HASH_DIGITS]}{routes}"
        )


HASH_DIGITS = 16
"""Digits of a hash in a table; JSON has all of them."""


def _row(verdict: Verdict) -> JsonObject:
    """The claim, the scenario and the verdict of a certificate."""
    scenario, claimed, proven = verdict.of, verdict.claimed, verdict.proven
    ends = ("lower", "upper")
    return {
        "scenario": None if scenario is None else scenario.label,
        "ceiling": verdict.file if claimed is None else claimed.ceiling,
        "load": None if claimed is None else claimed.load,
        **{end: getattr(claimed, end, None) for end in ends},
        **{f"proven_{end}": getattr(proven, end, None) for end in ends},
        "claim": None if claimed is None else claimed.statement(),
        "verdict": verdict.problem or "confirmed", "file": verdict.file,
        **{name: getattr(scenario, name, None) for name in ("topology", "traffic", "routes")},
    }  # fmt: skip


def _draw(study: Study, ceilings: CeilingRuns, path: Path) -> bool:
    """Draw the bottlenecks of each scenario, in one file each; returns whether all could be written."""
    from flitlab.sim.report.figures.kinds.bottleneck import draw_bottleneck, numbered

    is_drawn = True
    for index, case in enumerate(study.cases):
        file = path if len(study.cases) == 1 else path.with_stem(numbered(path.stem, index + 1, case.label))
        mcf = ceilings.optimum(index)
        if mcf is None:
            complain(f"--draw: {case.label}: no certified flow to draw: list mcf under ceilings")
            continue
        try:
            complain(str(draw_bottleneck(case, mcf, file)))
        except (OSError, ValueError) as error:
            complain(f"--draw = {error_text(error) if isinstance(error, OSError) else f'{file}: {error}'}")
            is_drawn = False
    return is_drawn
