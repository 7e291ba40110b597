# SPDX-License-Identifier: Apache-2.0
"""Certificates of a front: ``simrun ceilings --verify`` confirms its intervals without a solver."""

import tempfile
from pathlib import Path

import yaml

from flitlab.fluid.design.demands import DesignDemand
from flitlab.models.mappings import Keys
from flitlab.models.topology.candidates import Equipment
from flitlab.sim.config.pipeline import read
from flitlab.sim.design.outcome import Design
from flitlab.sim.exit import RunStatus
from flitlab.sim.experiment.ceilings import CeilingRuns
from flitlab.sim.experiment.certificates import write_index
from flitlab.sim.experiment.pool import RunOptions
from flitlab.sim.experiment.runner import carry_out
from flitlab.sim.experiment.store import Store

FOLDER = "certificates"
"""The folder of the certificates, in that of the design."""


def save_certificates(design: Design, folder: Path) -> tuple[int, str, list[str]]:
    """Solve every demand on one plane of every point to the gap of the front, and save flows and channel prices.

    Parameters
    ----------
    design : Design
        The answer.
    folder : Path
        Of the design.

    Returns
    -------
    Number of certificates, SHA-256 of their index, and what could not be solved.

    Raises ``OSError`` if they cannot be written, ``KeyboardInterrupt`` after Ctrl-C.
    """
    gap = design.request.tolerance.gap
    cases = [
        {
            "label": f"point {point.number}, {demand.name}", "topology": point.result.option.plane(),
            **_traffic_and_ceiling(demand, gap, point.result.option.equipment),
        }
        for point in design.front for demand in design.request.demands
    ]  # fmt: skip
    text = yaml.safe_dump({"schema": 1, "experiment": "ceilings", "cases": cases}, sort_keys=False)
    study = read(f"{design.request.name}-certificates.yaml", text=text)
    with tempfile.TemporaryDirectory() as results:
        store = Store(Path(results))
        try:
            runs = CeilingRuns(study, store, folder / FOLDER)
            count = len(runs.task_indices)
            stopped = carry_out(study, RunOptions.of(1), [runs.tasks], count, count)
        finally:
            store.close()
    if stopped == RunStatus.INTERRUPTED:
        raise KeyboardInterrupt
    number, digest = write_index(study, folder / FOLDER, {job.id: job.users for job in runs.jobs})
    return number, digest, [*runs.problems, *filter(None, [stopped])]


def _traffic_and_ceiling(demand: DesignDemand, gap: float, equipment: Equipment) -> Keys:
    if demand.is_collective:
        ceiling = {"of": "all_reduce", "ranks": "hosts", **demand.traffic}
        return {"traffic": {"kind": "uniform"}, "ceilings": [ceiling]}
    flow = {"kind": "mcf", "method": "approx", "gap": gap}
    bounds = (
        [{"kind": "bounds", "ports": equipment.ports, "split": equipment.split}] if demand.closed == "uniform" else []
    )
    return {"traffic": dict(demand.traffic), "ceilings": [flow, *bounds]}
