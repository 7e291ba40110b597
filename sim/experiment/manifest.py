# SPDX-License-Identifier: Apache-2.0
"""The manifest of a run: configuration, versions, machine, and scenarios."""

import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from flitlab.models.files import read_file
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject
from flitlab.models.scenario import SEMANTICS_VERSION
from flitlab.models.topology.formats.own_json import json_text
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.case import Case, Study
from flitlab.sim.experiment.ceilings import ceiling_ids
from flitlab.sim.experiment.provenance import machine, source, versions
from flitlab.sim.experiment.saturation import is_search
from flitlab.sim.experiment.store import Store
from flitlab.sim.experiment.task import measure_of

MAX_TOPOLOGIES, MAX_CHANNELS = 100, 20_000
"""Topologies that a run folder stores for its page, and channels of the largest of them."""


def manifest(study: Study) -> JsonObject:
    """The manifest without status and results, for JSON."""
    return {
        "name": study.name,
        "file": study.file,
        "path": str(Path(study.file).resolve()),
        "changes": study.changes,
        "experiment": study.experiment,
        "engine": study.engine,
        "created": now(),
        "versions": versions(),
        "source": source(),
        "platform": platform.platform(),
        "machine": machine(),
        "command": sys.argv,
        "semantics_version": SEMANTICS_VERSION,
        "config_hash": config_hash(study),
        "flit_ns": _common([case.flit_ns for case in study.cases]),
        "mean_rate": {case.label: case.instance.traffic.mean_rate for case in study.cases if case.instance},
        "flits_per_load": {case.label: case.flits_per_load for case in study.cases if case.flits_per_load != 1},
        "background_rate": {
            case.label: background.mean_rate
            for case in study.cases
            if case.instance and (background := case.instance.traffic.background) is not None
        },
        "figures": list(study.outputs.figures),
        "formats": list(study.outputs.formats),
        "size": study.outputs.size,
        "y": study.outputs.y,
        "plots": [plot.model_dump(mode="json", exclude_none=True) for plot in study.outputs.plots],
        "metrics": list(dict.fromkeys(metric.label or metric.kind for case in study.cases for metric in case.metrics)),
        "ceilings": list(dict.fromkeys(spec.kind for case in study.cases for spec in case.ceilings)),
        "columns": study.columns,
        "energy": study.outputs.energy.assumptions() if study.outputs.energy else [],
        "scenarios": [_scenario(case) for case in study.cases],
    }


def config_hash(study: Study) -> str:
    """The hash of a resolved configuration without its name."""
    return content_hash({key: value for key, value in study.resolved().items() if key != "name"})


def keep_topologies(study: Study, store: Store) -> None:
    """Write ``topologies/<hash>.json`` of the scenarios, for figures of the results."""
    topologies: dict[str, Topology] = {}
    for case in study.cases:
        if case.instance is not None and len(topologies) < MAX_TOPOLOGIES and case.topology.channels <= MAX_CHANNELS:
            topologies.setdefault(case.topology.content_hash, case.topology)
    for name, topology in topologies.items():
        text, file = json_text(topology) + "\n", store.folder / "topologies" / f"{name}.json"
        if not file.is_file() or read_file(file) != text.encode():
            store.write(f"topologies/{name}.json", text)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _scenario(case: Case) -> JsonObject:
    instance, scenario = case.instance, case.scenario
    described: JsonObject = {"label": case.label, "keys": case.keys}
    if instance is None:
        return described  # metrics.csv has the rest
    topology = case.topology
    described |= {
        "topology": {
            "kind": topology.kind, "switches": topology.switches, "channels": topology.channels,
            "hosts": topology.physical_hosts, "directed": topology.directed, "hash": topology.content_hash,
            "edge_hash": topology.edge_hash, "notes": topology.notes,
        },
        "seeds": case.seeds,
        "loads": case.loads,
        "ceilings": ceiling_ids(case),
    }  # fmt: skip
    described |= {"traffic": {"hash": instance.traffic.content_hash, "notes": instance.traffic.notes}}
    if instance.routes is not None:
        routes = instance.routes
        described["routing"] = {
            "kind": routes.kind, "hash": routes.content_hash, "hops_max": routes.hops_max, "notes": routes.notes,
        }  # fmt: skip
    if scenario is not None:
        described |= {"hash": scenario.content_hash, "switching": case.resolved["switching"]}
        described |= {
            "measured": measure_of(case.measure, scenario, channels=case.channels),
            "placed": case.placing is not None,
        }
        if scenario.counted == "packets":
            described |= {"searched": is_search(case), "zero_load_latency": float(scenario.zero_load_latency)}
    if case.workload is not None:
        described["placement"] = case.resolved.get("placement", {}) | case.workload.notes
    if scenario is not None and case.ticks:
        described |= {
            "ticks": case.ticks,
            "flit_ns": case.flit_ns,
            "measure": case.resolved["measure"],
            "vc_policy": scenario.switching.vc_policy,
            "certificate": case.certificate,
        }
    return described


def _common(values: list[object]) -> object:
    """The common value of all, else None."""
    return values[0] if values and all(value == values[0] for value in values) else None
