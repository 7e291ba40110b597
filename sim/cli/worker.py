# SPDX-License-Identifier: Apache-2.0
"""``simrun worker`` (run): run one shard of a configuration, for instance as a job of an array."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import complain, run_options, study_of
from flitlab.sim.cli.options import add_configuration, add_jobs, add_out, add_threads, shard
from flitlab.sim.cli.run import explain, report_store_error
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.pool import Shard
from flitlab.sim.experiment.runner import run_shard
from flitlab.sim.experiment.store import StoreError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    parser.add_argument(
        "--shard", metavar="I/N", type=shard, required=True, help="run shard I of N equal shards, I = 1, 2, ..., N"
    )
    add_out(parser)
    add_jobs(parser)
    add_threads(parser)


def run(options: argparse.Namespace) -> int:
    """Run one shard of a configuration, and print how to merge the shards."""
    study = study_of(options)
    if study is None:
        return ExitCode.BAD
    folder = options.out or Path("runs") / study.name
    shard = Shard(*options.shard)
    try:
        report = run_shard(study, folder, shard, run_options(options, study))
    except StoreError as error:
        return report_store_error(error, options.file, folder)
    explain(report)
    if report.exit_code == 0:
        complain(f"shard {shard} is in {folder}; when all are, `simrun merge {folder}` writes tables and figures")
    return report.exit_code
