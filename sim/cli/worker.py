# SPDX-License-Identifier: Apache-2.0
"""``simrun worker --shard I/N FILE``."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import complain, study_of
from flitlab.sim.cli.processors import jobs_of
from flitlab.sim.cli.run import explain, report_store_error
from flitlab.sim.exit import BAD
from flitlab.sim.experiment.runner import run_shard
from flitlab.sim.experiment.shards import Shard
from flitlab.sim.experiment.store import StoreError


def run(options: argparse.Namespace) -> int:
    """Run one shard of a configuration, and print how to merge the shards."""
    study = study_of(options)
    if study is None:
        return BAD
    folder = options.out or Path("runs") / study.name
    shard = Shard(*options.shard)
    try:
        report = run_shard(study, folder, jobs_of(options, study), shard, options.threads)
    except StoreError as error:
        return report_store_error(error, options.file, folder)
    explain(report)
    if report.exit_code == 0:
        complain(f"shard {shard} is in {folder}; when all are, `simrun merge {folder}` writes tables and figures")
    return report.exit_code
