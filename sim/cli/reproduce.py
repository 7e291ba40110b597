# SPDX-License-Identifier: Apache-2.0
"""``simrun reproduce`` (run): run published figures and tables, and compare the results."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from flitlab.models.mappings import JsonObject
from flitlab.models.threads import cores
from flitlab.sim.cli.common import complain, duration, print_json, print_table, say
from flitlab.sim.cli.options import add_jobs, add_json, shard
from flitlab.sim.cli.run import complete, document, draw, explain, finish, report_store_error
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.networks import SETTING
from flitlab.sim.config.pipeline import read
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment import runner
from flitlab.sim.experiment.folders import UnrelatedFolder, reject_special_files, reject_unrelated_folder
from flitlab.sim.experiment.pool import RunOptions, Shard, SharedProcesses
from flitlab.sim.experiment.published import Claim
from flitlab.sim.experiment.scoreboard import run as row_run
from flitlab.sim.experiment.scoreboard.file import NoRowsError, read_row, row_files, selected
from flitlab.sim.experiment.scoreboard.record import RECORD, DamagedRecord, Ran, load_record, ran_into, save_record
from flitlab.sim.experiment.scoreboard.rows import Row, Score, fits, in_words, rows_of
from flitlab.sim.experiment.store import StoreError
from flitlab.sim.report import reproduction
from flitlab.sim.report.reproduction.figures import take_figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "rows", metavar="PAPER|ROW", nargs="*", help="uni, mut, gbu, dbg, sin, or for instance uni-f05 (default: all)"
    )
    parser.add_argument("--full", action="store_true", help="at the size in the paper (default: quick versions)")
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--shard", metavar="I/N", type=shard, help="run shard I of N of these rows; shards take about the same time"
    )
    part.add_argument(
        "--pages", metavar="DIR", type=Path, nargs="*",
        help="run nothing: write the pages again from the results in --out and in these folders",
    )  # fmt: skip
    part.add_argument(
        "--network", metavar="FILE", action="append",
        help="run the rows with this network as a further case; or {path: FILE, directed: false, ...}, its keys",
    )  # fmt: skip
    add_jobs(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="folder for runs and pages (default: runs/paper-quick, runs/paper)"
    )
    parser.add_argument(
        "--configs", metavar="DIR", type=Path, help="folder of the rows (default: configs/paper, here or as installed)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run rows of ``configs/paper``, or collect them from other folders, and write the pages."""
    out = options.out or Path("runs") / ("paper" if options.full else "paper-quick")
    try:
        every = row_files(options.configs)
        files = selected(every, options.rows)
        if options.network:
            return _run_with_networks(files, options)
        reject_unrelated_folder(out, RECORD)
        board = Board(every, out, load_record(out))
        work = _collect if options.pages is not None else _run
        return work(board, files, options)
    except (NoRowsError, DamagedRecord) as error:
        complain(f"simrun reproduce: {error}")
    except UnrelatedFolder as error:
        complain(f"output folder = {out}: {error}")
    except OSError as error:
        complain(f"output folder = {out}: cannot be written: {error.strerror or error}")
    return ExitCode.BAD


def _run_with_networks(files: Sequence[Path], options: argparse.Namespace) -> int:
    """Run rows with further networks, each into a folder of its own, apart from the record of the rows."""
    if not options.rows:
        raise NoRowsError("--network: say which rows, such as mut-f05")
    codes: list[int] = []
    documents = []
    for file in files:
        try:
            study = read(file, quick=not options.full, networks=options.network)
        except ConfigError as error:
            complain(f"{file.stem}: a network does not fit this row:", *map(str, [*error.warnings, *error.errors]))
            codes.append(ExitCode.BAD)
            continue
        folder = options.out / file.stem if options.out else Path("runs") / _folder_name(study)
        complain(*study.warnings, *_missing_in_plots(study))
        try:
            report = runner.run(study, folder, RunOptions(options.jobs or cores()))
        except StoreError as error:
            codes.append(report_store_error(error, file, folder))
            continue
        if options.json:
            complete(report)
            documents.append(document(report))
            explain(report)
        else:
            finish(report, False)
        codes.append(report.exit_code)
        if report.exit_code == ExitCode.INTERRUPTED:
            break
    if options.json:
        print_json({"rows": documents})
    return max(codes, key=SEVERITY.index)


def _folder_name(study: Study) -> str:
    """The name of a row and of its further networks, which may be cases of several settings."""
    labels = [str(case.keys["case"]) for case in study.cases if not case.compared]
    names = dict.fromkeys(label.partition(SETTING)[0].replace("/", "-") for label in labels)
    return "-".join([study.name, *names])


SEVERITY = (ExitCode.OK, ExitCode.CHECK_FAILED, ExitCode.FAILED, ExitCode.BAD, ExitCode.INTERRUPTED)
"""Exit codes, the gravest last."""


def _missing_in_plots(study: Study) -> list[str]:
    """A line if a figure over a key of the row's own topologies cannot show the further networks."""
    own = {key for case in study.cases if not case.compared for key in case.keys}
    axes = {plot.x for plot in study.outputs.plots if plot.x is not None}
    missing = sorted(axis for axis in axes - own if axis.startswith("topology."))
    return [f"figures over {', '.join(missing)} do not show the network: the tables do"] * bool(missing)


@dataclass
class Board:
    """The folder of the record and the pages. files: of all rows."""

    files: Sequence[Path]
    folder: Path
    record: dict[str, Ran]

    def add(self, rows: Mapping[str, Ran]) -> None:
        """Add rows to the record; rows that other processes have added meanwhile stay."""
        self.record = load_record(self.folder) | dict(rows)
        save_record(self.folder, self.record)

    def remove(self, names: Iterable[str]) -> None:
        """Remove rows, and their figures, from the record."""
        for name in names:
            for file in self.record.pop(name).figures:
                (self.folder / reproduction.FIGURES / file).unlink(missing_ok=True)
        save_record(self.folder, self.record)

    def with_figures(self, ran: Ran, folder: Path) -> Ran:
        """A row whose figures are copied beside the pages."""
        return replace(ran, figures=take_figures(folder, self.folder / reproduction.FIGURES, ran.name))

    def unrecorded(self, name: str) -> Ran | None:
        """A row with a run in the folder that the record does not have."""
        ran, known = ran_into(self.folder / name), self.record.get(name)
        if ran is None or (known is not None and known.finished == ran.finished and known.full == ran.full):
            return None
        return self.with_figures(ran, self.folder / name)

    def rows(self, names: Iterable[str]) -> list[Row]:
        """Some rows of the record, in the order of the pages."""
        return rows_of([file for file in self.files if file.stem in set(names)], self.record)

    def write(self) -> list[Path]:
        """Write the pages."""
        return reproduction.write(self.folder, rows_of(self.files, self.record))


def _collect(board: Board, files: Sequence[Path], options: argparse.Namespace) -> int:
    """Write the pages from the record, and from run folders of this command.

    Rows of the record without a file are removed.
    """
    by_name = {file.stem: file for file in files}
    best: dict[str, tuple[Ran, Path]] = {}
    for folder in options.pages:
        try:
            reject_special_files(folder)
        except UnrelatedFolder as error:
            raise NoRowsError(f"{folder}: {error}") from None
        rows = {inner.name: ran for inner in sorted(folder.glob("*/")) if (ran := ran_into(inner)) is not None}
        if not rows:
            raise NoRowsError(f"{folder}: has no row that this version has run")
        for name, ran in rows.items():
            if name in by_name and _is_better(ran, best[name][0] if name in best else None, by_name[name]):
                best[name] = ran, folder / name
    known = board.record
    board.remove(known.keys() - {file.stem for file in board.files})
    updated = {name: one for name, one in best.items() if _is_better(one[0], known.get(name), by_name[name])}
    board.add({name: board.with_figures(*one) for name, one in updated.items()})
    return _finish(board, board.rows(by_name.keys() & board.record.keys()), options)


def _is_better(ran: Ran, other: Ran | None, file: Path) -> bool:
    """Whether a run of a row replaces another: matching its file, at full size, more recent."""
    if other is None:
        return True
    own, known = ((fits(one, read_row(file, one.full)), one.full, one.finished) for one in (ran, other))
    return own >= known


def _run(board: Board, files: Sequence[Path], options: argparse.Namespace) -> int:
    """Run rows that are not in the folder yet; a failing row does not stop the others."""
    board.add({})
    costs = row_run.known_costs(options.full)
    if options.shard:
        files = row_run.shard_of(files, Shard(*options.shard), costs)
    costs |= row_run.costs_in(board.record, options.full)
    missing = [file for file in files if not row_run.is_finished(file, board.folder / file.stem, options.full)]
    names = [file.stem for file in files if file not in missing]
    board.add({name: ran for name in names if (ran := board.unrecorded(name)) is not None})
    if names:
        complain(f"{len(names)} of {len(files)} rows are already in {board.folder}")
    if missing:
        complain(f"{len(missing)} rows to run: {_expected(missing, costs)}")
    interrupted, jobs = False, options.jobs or cores()
    # quick rows share processes, whose start takes longer than most rows; full rows get their own, to free memory
    pool = SharedProcesses(jobs) if jobs > 1 and not options.full else None
    for index, file in enumerate(missing):
        complain(f"[{index + 1}/{len(missing)}] {file.stem}: {_expected([file], costs)}")
        try:
            board.add({file.stem: _one(board, file, options.full, jobs, pool)})
        except KeyboardInterrupt:
            interrupted = True
            break
        names.append(file.stem)
        complain(f"  {_outcome(board.rows([file.stem])[0])}", f"  left: {_expected(missing[index + 1 :], costs)}")
    if pool is not None:
        pool.end()
    code = _finish(board, board.rows(names), options)
    if interrupted:
        complain(f"interrupted; the same command resumes from {board.folder}")
    return ExitCode.INTERRUPTED if interrupted else code


def _one(board: Board, file: Path, full: bool, jobs: int, pool: SharedProcesses | None) -> Ran:
    """Run a row and draw its figures."""
    folder = board.folder / file.stem
    ran, report = row_run.run_row(file, folder, full, jobs, pool)
    if report is None:
        return ran
    if not draw(report):
        ran = replace(ran, code=ran.code or ExitCode.FAILED, problem=ran.problem or "the figures could not be written")
    return board.with_figures(ran, folder)


def _expected(files: Sequence[Path], costs: Mapping[str, float]) -> str:
    """The cost of rows, as far as known from earlier runs."""
    known = [costs[file.stem] for file in files if file.stem in costs]
    unknown = len(files) - len(known)
    parts = [f"{duration(sum(known))} of CPU time"] * bool(known)
    parts += [f"{unknown} of unknown cost" if known or unknown > 1 else "unknown cost"] * bool(unknown)
    return " and ".join(parts) or "nothing"


def _outcome(row: Row) -> str:
    assert row.last is not None
    problem = f": {row.problem}" * bool(row.problem)
    return f"{row.state or in_words([row])}, {row.last.cpu_s:.0f} s of CPU time{problem}"


def _finish(board: Board, rows: Sequence[Row], options: argparse.Namespace) -> int:
    """Write the pages, print the results of rows, and return the exit code."""
    pages = board.write()
    if options.json:
        print_json({"folder": str(board.folder), "rows": [_plain(row) for row in rows]})
    else:
        _print(rows, pages)
    codes = {row.last.code for row in rows if row.last is not None}
    return next((code for code in (ExitCode.CHECK_FAILED, ExitCode.FAILED) if code in codes), ExitCode.OK)


def _plain(row: Row) -> JsonObject:
    """A row for JSON."""
    assert row.last is not None
    values = [
        {
            **value.entry.model_dump(mode="json"), "scenario": value.scenario, "measured": value.measured,
            "claim": value.claim, "verdict": value.verdict,
        }
        for value in row.values
    ]  # fmt: skip
    ran = {key: value for key, value in asdict(row.last).items() if key != "measured"}
    return {**ran, "title": row.title, "published": values, "problem": row.problem}


def _print(rows: Sequence[Row], pages: Sequence[Path]) -> None:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("row", lambda row: row.name),
        ("numbers", lambda row: Score.of([row]).ratio_text(Claim.NUMBER)),
        ("orders", lambda row: Score.of([row]).ratio_text(Claim.ORDER)),
        ("CPU s", lambda row: f"{row.last.cpu_s:.0f}" if row.last else "-"), ("", lambda row: row.state),
    ]  # fmt: skip
    if rows:
        print_table(in_words(rows), columns, rows)
    for page in pages:
        say(str(page))
