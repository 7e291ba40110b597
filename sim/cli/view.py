# SPDX-License-Identifier: Apache-2.0
"""``simrun view FILE``."""

import argparse
from pathlib import Path

from flitlab.sim.cli.common import complain, error_text, is_input, say, study_of
from flitlab.sim.cli.trace import case_of
from flitlab.sim.exit import BAD


def run(options: argparse.Namespace) -> int:
    """Write a page that animates a short run of one scenario, tick by tick."""
    study = study_of(options, experiment="load_sweep")
    case = None if study is None else case_of(study, options.scenario)
    if study is None or case is None or case.scenario is None:
        return BAD
    from flitlab.sim.report.html.view import animate

    load = case.grid[0] if options.load is None else options.load
    seed = case.seeds[0] if options.seed is None else options.seed
    path = options.out or Path(f"{study.name}.view.html")
    if is_input(path, options.file):
        return BAD
    try:
        say(str(animate(case.scenario, case.label, load, seed, options.ticks, path)))
    except OSError as error:
        complain(f"--out = {error_text(error)}")
        return BAD
    except ValueError as error:
        complain(f"simrun view: {error}")
        return BAD
    return 0
