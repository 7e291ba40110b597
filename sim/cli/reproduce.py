"""``simrun reproduce [PAPER|ROW ...]``."""

import argparse
from dataclasses import asdict
from pathlib import Path

from flitlab.sim.cli.common import complain, print_json, print_table
from flitlab.sim.cli.run import draw
from flitlab.sim.exit import BAD, CHECK_FAILED, FAILED, INTERRUPTED, OK
from flitlab.sim.experiment import scoreboard
from flitlab.sim.experiment.folders import ForeignFolder, refuse_foreign
from flitlab.sim.experiment.pool import cores
from flitlab.sim.experiment.scoreboard import NoRowsError, Row
from flitlab.sim.report import reproduction


def run(options: argparse.Namespace) -> int:
    """Runs rows of ``configs/paper`` and writes the page; a row that fails does not keep the others from running."""
    try:
        every = scoreboard.row_files(options.configs)
        files = scoreboard.chosen(every, options.rows)
    except NoRowsError as error:
        complain(f"simrun reproduce: {error}")
        return BAD
    out = options.out or Path("runs") / ("paper" if options.full else "paper-quick")
    interrupted, ran = False, {}
    try:
        refuse_foreign(out, scoreboard.RECORD)
        rows = scoreboard.load_rows(out)
        scoreboard.save_rows(out, rows)
        for index, file in enumerate(files, 1):
            complain(f"[{index}/{len(files)}] {file.stem}")
            try:
                ran[file.stem] = _row(file, out, options.full, options.jobs or cores(), rows.get(file.stem))
            except KeyboardInterrupt:
                interrupted = True
                break
        missing = [file.stem for file in every if file.stem not in rows | ran]
        pages = reproduction.write(out, scoreboard.save_rows(out, rows | ran), missing)
    except NoRowsError as error:
        complain(f"simrun reproduce: {error}")
        return BAD
    except ForeignFolder as error:
        complain(f"output folder = {out}: {error}")
        return BAD
    except OSError as error:
        complain(f"output folder = {out}: cannot be written: {error.strerror or error}")
        return BAD
    if options.json:
        print_json({"folder": str(out), "rows": [asdict(row) for row in ran.values()]})
    else:
        _print(list(ran.values()), pages)
    if interrupted:
        complain(f"interrupted; the same command goes on from what is in {out}")
        return INTERRUPTED
    codes = {row.code for row in ran.values()}
    return next((code for code in (CHECK_FAILED, FAILED) if code in codes), OK)


def _row(file: Path, out: Path, full: bool, jobs: int, kept: Row | None) -> Row:
    """Runs a row, unless the folder has it already."""
    folder = out / file.stem
    if scoreboard.is_finished(file, folder, full):
        complain(f"  is in {folder} already")
        row = scoreboard.row_of(file, folder, full, cpu_s=kept.cpu_s if kept else 0.0)
        if not any(folder.glob("figures/*.png")):
            return row
    else:
        row, report = scoreboard.run_row(file, folder, full, jobs)
        if report is not None:
            draw(report)
    reproduction.take_figure(folder, out, row.name)
    complain(f"  {row.verdict}, {row.cpu_s:.0f} s of CPU time", *([f"  {row.problem}"] if row.problem else []))
    return row


def _print(rows: list[Row], pages: list[Path]) -> None:
    columns = [
        ("row", lambda row: row.name), ("verdict", lambda row: row.verdict),
        ("CPU s", lambda row: f"{row.cpu_s:.0f}"), ("", lambda row: "failed" if row.problem else ""),
    ]  # fmt: skip
    if rows:
        values, agreeing = sum(len(row.published) for row in rows), sum(row.agreeing for row in rows)
        print_table(f"{agreeing} of {values} published values agree", columns, rows)
    for page in pages:
        print(page)
