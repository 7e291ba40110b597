# SPDX-License-Identifier: Apache-2.0
"""How many processes, and threads in each of them, a command uses."""

import argparse
from collections import Counter
from collections.abc import Iterator

from flitlab.sim.cli.common import complain
from flitlab.sim.config.study import Study
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.experiment.pool import cores, processes


def jobs_of(options: argparse.Namespace, study: Study, cluster: str | None = None) -> int:
    """The processes that ``--jobs`` and ``--threads`` ask for; says what becomes of the threads."""
    jobs: int = options.jobs or processes(options.threads)
    if options.threads > 1:
        complain(*_about_threads(study, jobs, options.threads, cluster))
    return jobs


def _about_threads(study: Study, jobs: int, threads: int, cluster: str | None) -> Iterator[str]:
    """What becomes of ``--threads`` otherwise than one might think, a line each."""
    if not cluster and jobs * threads > cores():
        yield f"--threads {threads}: with --jobs {jobs} that is more threads than the {cores()} processors here"
    if not study.simulates:
        yield f"--threads {threads}: nothing is simulated in experiment: {study.experiment}"
        return
    scenarios = [case.scenario for case in study.every if case.scenario is not None]
    reasons = Counter(single_thread_reason(study.engine, scenario) for scenario in scenarios)
    for reason, count in reasons.items():
        if reason:
            some = "" if count == len(scenarios) else f" ({count} of {len(scenarios)} scenarios)"
            yield f"--threads {threads}: {reason}{some}"
