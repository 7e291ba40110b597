"""``simrun ceilings FILE``."""

import argparse
import tempfile
from pathlib import Path

from sim.cli.common import BAD, complain, print_json, study_of
from sim.cli.tables import print_ceilings
from sim.experiment.ceilings import CeilingRuns
from sim.experiment.pool import cores, run_all
from sim.experiment.store import Store


def run(options: argparse.Namespace) -> int:
    """Computes and prints the ceilings of a configuration; writes nothing."""
    study = study_of(options, experiment="ceilings")
    if study is None:
        return BAD
    ceilings = CeilingRuns(study)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        run_all(ceilings.tasks(store), max(1, min(options.jobs or cores(), len(ceilings.missing))), study.plugins)
        store.close()
    rows = ceilings.rows()
    if options.json:
        print_json(rows)
    else:
        print_ceilings(rows)
    complain(*ceilings.problems)
    return 1 if ceilings.problems else 0
