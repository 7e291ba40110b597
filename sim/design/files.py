# SPDX-License-Identifier: Apache-2.0
"""The files of a design: front.csv, candidates.csv, a point as a configuration to run, and what has been solved."""

import hashlib
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import yaml

import flitlab
from flitlab.fluid.design.demands import Ends
from flitlab.models.delimited import csv_text
from flitlab.models.files import read_text, replace_file
from flitlab.models.mappings import Keys, Row
from flitlab.models.registry import make
from flitlab.sim.design.outcome import Design, FrontPoint

MARK = "design.yaml"
"""The file that marks a folder of this command: what was asked."""

SOLVED = "solved"
"""The folder of what has been solved, in that of the design."""


def demand_columns(design: Design) -> list[str]:
    """Columns with the ends of every demand: its name, ``.lower`` or ``.upper``."""
    return [f"{demand.name}.{end}" for demand in design.request.demands for end in ("lower", "upper")]


def front_rows(design: Design) -> Iterator[Row]:
    """A row of each point of the front, by cost.

    ``topology`` is the configuration of the network as JSON; ``gap``: by how much another network of as many switches
    could exceed its uniform throughput.
    """
    hosts = design.request.hosts
    for point in design.front:
        result, option = point.result, point.result.option
        ends = dict(zip(demand_columns(design), _ends(point), strict=True))
        yield {
            "point": point.number, "design": option.label, "family": option.kind, "switch": option.sku.name,
            "planes": option.planes, "split": option.equipment.split * option.planes, "switches": option.switches,
            "cables": option.cables, "cost_per_host": option.cost / hosts, "watts_per_host": option.watts / hosts,
            "diameter": result.diameter, "mean_hops": result.mean_hops, **ends, "bound": min(point.bound, 1.0),
            "gap": None if design.uniform is None else design.excess(point), "least_switches": point.least,
            "ecmp": point.ecmp, "score": design.score(point),
            **point.values, "topology": json.dumps(option.topology()),
        }  # fmt: skip


def _ends(point: FrontPoint) -> list[float]:
    pairs = zip(point.result.lower.tolist(), point.result.upper.tolist(), strict=True)
    return [end for pair in pairs for end in pair]


def candidate_rows(design: Design) -> Iterator[Row]:
    """A row of each candidate: upper ends with their proofs, the stage that excluded it, and what dominates it."""
    hosts, results = design.request.hosts, design.search.results
    on_front = set(design.search.front)
    for i, result in enumerate(results):
        option = result.option
        bounds: Row = {}
        for d, demand in enumerate(design.request.demands):
            upper = float(result.upper[d])
            bounds |= {f"{demand.name}.upper": upper if upper < float("inf") else None}
            bounds |= {f"{demand.name}.proof": result.proof[d]}
        yield {
            "candidate": i, "design": option.label, "family": option.kind, "switch": option.sku.name,
            "switches": option.switches, "cables": option.cables, "cost_per_host": option.cost / hosts,
            "watts_per_host": option.watts / hosts, **bounds, "stage": "front" if i in on_front else result.stage,
            "dominated_by": result.by if result.by >= 0 else None,
            "dominated_by_design": results[result.by].option.label if result.by >= 0 else None, "note": result.note,
        }  # fmt: skip


def write_tables(design: Design, folder: Path) -> None:
    """Write front.csv and candidates.csv. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("candidates.csv", list(candidate_rows(design))), ("front.csv", list(front_rows(design)))):
        header = list(rows[0]) if rows else ["point"]
        replace_file(folder / name, csv_text(header, ([_cell(value) for value in row.values()] for row in rows)))


def _cell(value: object) -> object:
    """A value of a table; numbers have twelve digits, the accuracy of a certified end."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def configuration(design: Design, point: FrontPoint) -> Keys:
    """The configuration of a point: its saturation under uniform traffic, beside the certified ceiling.

    Packets take random shortest paths; a VC per hop keeps them from deadlock.
    """
    option, diameter = point.result.option, point.result.diameter or 1
    hops = diameter + (2 if option.planes > 1 else 0)
    return {
        "schema": 1,
        "name": f"{design.request.name}-point-{point.number}",
        "topology": option.topology(),
        "routing": {"kind": "minimal"},
        "switching": {"mode": "vct", "vcs": max(4, hops), "buffer_flits": 32},
        "traffic": {"kind": "uniform", "packet_flits": 4},
        "experiment": "saturation",
        "measure": {"ticks": 2000},
        "ceilings": [{"kind": "mcf", "gap": 0.02}, "split"],
    }


def write_improved(design: Design, folder: Path) -> list[Path]:
    """Write the improved network of one plane, and a configuration that runs it; returns the files.

    Raises ``OSError``.
    """
    from flitlab.models.topology.formats.own_json import json_text

    improved = design.improved
    if improved is None:
        return []
    point = design.front[improved.point - 1]
    keys = configuration(design, point)
    demand = next(one for one in design.request.demands if one.name == improved.demand)
    network = {"kind": "file", "path": "improved-topology.json"}
    planes = point.result.option.planes
    topology = network if planes == 1 else {"kind": "planes", "count": planes, "capacity": 1 / planes, "of": network}
    traffic = {**demand.traffic, "packet_flits": 4}
    changed = {"name": f"{design.request.name}-improved", "topology": topology, "traffic": traffic}
    files = [folder / "improved-topology.json", folder / "improved.yaml"]
    replace_file(files[0], json_text(improved.topology))
    text = yaml.safe_dump(keys | changed, sort_keys=False, default_flow_style=None, width=110)
    replace_file(files[1], f"# {improved.sentence}\n{text}")
    return files


def write_point(design: Design, point: FrontPoint, folder: Path) -> list[Path]:
    """Write a point: its configuration, topology and list of cables, those of one plane; returns the files.

    Raises ``OSError``.
    """
    from flitlab.models.layout.blueprint import write
    from flitlab.models.metrics.layout import CablingMetric
    from flitlab.models.topology.formats.own_json import json_text

    folder.mkdir(parents=True, exist_ok=True)
    stem = f"point-{point.number}"
    files = [folder / f"{stem}.yaml", folder / f"{stem}-topology.json", folder / f"{stem}-cables.csv"]
    option = point.result.option
    text = yaml.safe_dump(configuration(design, point), sort_keys=False, default_flow_style=None, width=110)
    replace_file(files[0], f"# {option.label}\n{text}")
    replace_file(files[1], json_text(make("topology", **option.topology()).build()))
    plane = make("topology", **option.plane()).build()
    write(plane, CablingMetric(kind="cabling").blueprint(plane)[1], files[2])
    return files


class SolvedFolder(MutableMapping[str, Ends]):
    """Certified intervals by what they depend on, and the version of flitlab: a JSON file for each.

    The folder grows: a design that was interrupted goes on from there. A file that is damaged is left out: what it
    says is solved again.

    Parameters
    ----------
    folder: created if missing. Raises ``OSError``.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def __getitem__(self, key: str) -> Ends:
        try:
            lower, upper, proof = json.loads(read_text(self._file(key)))
            ends = Ends(float(lower), float(upper), str(proof))
        except (OSError, ValueError, TypeError):
            raise KeyError(key) from None
        if not 0 <= ends.lower <= ends.upper:
            raise KeyError(key)
        return ends

    def __setitem__(self, key: str, ends: Ends) -> None:
        replace_file(self._file(key), json.dumps(ends) + "\n", durable=False)

    def __delitem__(self, key: str) -> None:
        self._file(key).unlink()

    def __iter__(self) -> Iterator[str]:
        return (file.stem for file in sorted(self.folder.glob("*.json")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, key: str) -> Path:
        name = hashlib.sha256(f"{flitlab.__version__} {key}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.json"
