# SPDX-License-Identifier: Apache-2.0
"""Runs rows of the scoreboard: which are finished, their cost, and their shards."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from flitlab.sim.config.diagnostics import ConfigError, crash
from flitlab.sim.config.pipeline import read
from flitlab.sim.exit import ExitCode, RunStatus
from flitlab.sim.experiment.folders import ManifestError, read_manifest
from flitlab.sim.experiment.manifest import now
from flitlab.sim.experiment.pool import RunOptions, Shard, SharedProcesses, cpu_seconds
from flitlab.sim.experiment.provenance import processor
from flitlab.sim.experiment.runner import Report, run
from flitlab.sim.experiment.scoreboard.file import read_row
from flitlab.sim.experiment.scoreboard.record import Ran, changes_of, load_record, ran_into
from flitlab.sim.experiment.scoreboard.rows import fits
from flitlab.sim.experiment.store import Store, StoreError


def is_finished(file: Path, folder: Path, full: bool) -> bool:
    """Whether a folder has the complete result of a row.

    Parameters
    ----------
    file: of the row.
    folder: of the run.
    full: at the size of the paper.
    """
    try:
        done = read_manifest(folder).get("status") == RunStatus.DONE
    except ManifestError:
        return False
    ran = ran_into(folder) if done else None
    if ran is None or ran.full != full:
        return False
    row_file = read_row(file, full)
    return fits(ran, row_file) and row_file.outputs == read_row(folder / "config.yaml", full).outputs


def run_row(
    file: Path, folder: Path, full: bool, jobs: int, pool: SharedProcesses | None = None
) -> tuple[Ran, Report | None]:
    """Run a row into its folder. An error becomes part of the result, so that further rows can run.

    Parameters
    ----------
    file: of the row.
    folder: of the run.
    full: whether at the size of the paper.
    jobs: processes.
    pool: shared processes for rows without plugins; others start their own.
    """
    began, spent, report, code = cpu_seconds(), _spent(file, folder, full), None, int(ExitCode.FAILED)
    before = pool.spent if pool else 0.0
    try:
        study = read(file, quick=not full)
        report = run(study, folder, RunOptions(jobs, pool=None if study.plugins else pool))
        problem, code = "; ".join(report.problems), report.exit_code
        _note(folder, spent + cpu_seconds() - began + (pool.spent - before if pool else 0.0))
    except ConfigError as error:
        problem = str(error)
    except StoreError as error:
        problem = f"output folder = {folder}: {error}"
    except Exception as error:
        problem = crash(error)
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    ran = ran_into(folder) if report is not None else None
    if ran is None:
        stamp = read_row(file, full).fingerprint
        ran = Ran(file.stem, full, now(), stamp, machine(), problem=problem, code=code)
    return ran, report


def _spent(file: Path, folder: Path, full: bool) -> float:
    """CPU seconds of earlier runs of the same configuration in a folder."""
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return 0.0
    before = read_row(folder / "config.yaml", full) if manifest.get("changes") == changes_of(full) else None
    same = before is not None and before.fingerprint == read_row(file, full).fingerprint
    return float(manifest.get("row", {}).get("cpu_s", 0.0)) if same else 0.0


def _note(folder: Path, cpu_s: float) -> None:
    """Record cost and machine of a row in its manifest."""
    store = Store(folder)
    try:
        note = {"cpu_s": round(cpu_s, 6), "machine": machine()}
        store.write_manifest({**read_manifest(folder), "row": note})
    finally:
        store.close()


def machine() -> str:
    """The processor of this machine, and its cores."""
    return f"{os.cpu_count()} cores, {processor()}"


def known_costs(full: bool) -> dict[str, float]:
    """CPU seconds of rows, by name, from the record of the documentation for that size."""
    record = load_record(Path(__file__).resolve().parents[3] / "docs")
    return costs_in(record, full)


def costs_in(record: Mapping[str, Ran], full: bool) -> dict[str, float]:
    """CPU seconds of the rows of a record that ran at a size."""
    return {name: ran.cpu_s for name, ran in record.items() if ran.cpu_s and ran.full == full}


def shard_of(files: Sequence[Path], shard: Shard, costs: Mapping[str, float]) -> list[Path]:
    """The files of a shard; all shards cost about the same. Rows of unknown cost count as the median.

    Parameters
    ----------
    files: of the rows.
    shard: index and count.
    costs: CPU seconds by name of the row.
    """
    usual = median(costs.values()) if costs else 1.0
    cost = {file: costs.get(file.stem, usual) for file in files}
    shares: list[list[Path]] = [[] for _ in range(shard.count)]
    for file in sorted(files, key=lambda file: (-cost[file], file.stem)):
        min(shares, key=lambda share: sum(cost[one] for one in share)).append(file)
    return sorted(shares[shard.index - 1])
