# SPDX-License-Identifier: Apache-2.0
"""The number of processes, and of threads in each, of a command."""

import argparse
from collections import Counter
from collections.abc import Iterator

from flitlab.sim.cli.common import complain
from flitlab.sim.config.study import Study
from flitlab.sim.engines.table import single_thread_reason
from flitlab.sim.experiment.pool import cores, processes


def jobs_of(options: argparse.Namespace, study: Study, cluster: str | None = None) -> int:
    """The number of processes by ``--jobs`` and ``--threads``; prints where threads have no effect.

    Parameters
    ----------
    options: of the command.
    study: for the reasons.
    cluster: ``--cluster``, which has processors of its own.
    """
    jobs: int = options.jobs or processes(options.threads)
    if options.threads > 1:
        complain(*_thread_notes(study, jobs, options.threads, cluster))
    return jobs


def _thread_notes(study: Study, jobs: int, threads: int, cluster: str | None) -> Iterator[str]:
    """A line for each reason why ``--threads`` has no, or little, effect."""
    if not cluster and jobs * threads > cores():
        yield (
            f"--threads {threads}: with --jobs {jobs} these are more threads than the {cores()} processors "
            "of this machine"
        )
    if not study.simulates:
        yield f"--threads {threads}: nothing is simulated in experiment: {study.experiment}"
        return
    scenarios = [case.scenario for case in study.all_cases if case.scenario is not None]
    reasons = Counter(single_thread_reason(study.engine, scenario) for scenario in scenarios)
    for reason, count in reasons.items():
        if reason:
            some = "" if count == len(scenarios) else f" ({count} of {len(scenarios)} scenarios)"
            yield f"--threads {threads}: {reason}{some}"
