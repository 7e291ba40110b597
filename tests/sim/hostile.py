# SPDX-License-Identifier: Apache-2.0
"""Plugins that give what they must not (``hostile.yaml``), each with the words in which it is refused.

``python -m tests.sim.hostile`` runs every one as a user would, in a process of its own, and counts how they end.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests import ROOT

HEAD = """\
from dataclasses import replace

import numpy as np

from flitlab.models.application.placement import PlacementSpec
from flitlab.models.application.spec import ApplicationSpec
from flitlab.models.registry import make, register
from flitlab.models.rules.tables import RouteForm, Selection, VcPolicy
from flitlab.models.routing.routes import *
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.topology.graph import Grid, Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.traffic.demand import DestinationRule, Traffic
from flitlab.models.traffic.table import table_traffic
from flitlab.models.traffic.traffic import TrafficSpec
from flitlab.models.transport.law import Law, Transport, TransportSpec, WindowedSpec, law


def routes(topology, kind="minimal", **keys):
    return make("routing", kind=kind, **keys).build(topology)


def table(topology, change, **keys):
    given = routes(topology)
    ports = given.ports.copy()
    change(ports)
    return replace(given, ports=ports, **keys)


def with_set(topology, t, v, ports):
    return replace(routes(topology), ports=put(routes(topology).ports, (t, v), ports))


def paths(topology, **keys):
    given = routes(topology, "ksp", k=2)
    return replace(given, paths=given.paths._replace(**{name: make_it(given.paths) for name, make_it in keys.items()}))


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def ring(**changes):
    return replace(Topology.from_links("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0)]).with_hosts(1), **changes)


def rows(topology, **changes):
    return replace(table_traffic("rows", topology, np.ones((topology.hosts,) * 2)), **changes)


"""

BASE = {"routing": "RoutingSpec", "topology": "TopologySpec", "traffic": "TrafficSpec", "transport": "WindowedSpec",
        "application": "ApplicationSpec", "placement": "PlacementSpec"}  # fmt: skip

METHOD = {
    "routing": "routes(self, topology)", "topology": "graph(self)", "traffic": "demand(self, topology)",
    "transport": "transport(self)", "application": "program(self, hosts)",
    "placement": "hosts(self, topology, program)",
}  # fmt: skip

PARTS = {
    "topology": "topology: {kind: mesh, dims: [3, 3]}",
    "routing": "routing: {kind: minimal}",
    "traffic": "traffic: {kind: uniform}",
}
"""What configurations have; the plugin takes the place of one. A mesh has switches of 2, 3 and 4 channels."""

SIMULATION = "switching: {vcs: 8}\nloads: [0.2]\nmeasure: {warmup: 50, ticks: 200, ci: null}\nceilings: [mcf, split]\n"
DATAGRAMS = "switching: {mode: datagram, queue_packets: 10}\nmeasure: {seconds: 0.02}\nceilings: []\n"
PROGRAM = "experiment: application\nswitching: {vcs: 8, flit_ns: 1}\nceilings: []\n"


@dataclass(frozen=True)
class Hostile:
    """A plugin of a category.

    gives: what the method of its category (``METHOD``) returns, or all its lines. says: pattern of the message.
    """

    category: str
    name: str
    gives: str
    says: str

    @property
    def plugin(self) -> str:
        """The file."""
        whole = "\n" in self.gives or self.gives.startswith(("raise ", "return "))
        lines = (self.gives if whole else f"return {self.gives}").splitlines()
        head = f'@register("{self.category}", "hostile")\nclass Hostile({BASE[self.category]}):\n    """x"""\n\n'
        return f"{HEAD}{head}    def {METHOD[self.category]}:\n" + "".join(f"        {line}\n" for line in lines)

    def config(self, plugin: str) -> str:
        """A configuration that uses it."""
        parts, rest = dict(PARTS), SIMULATION
        if self.category == "transport":
            parts |= {"routing": "routing: {kind: ecmp}", "traffic": "traffic: {kind: permutation}"}
            rest = DATAGRAMS
        elif self.category in ("application", "placement"):
            del parts["traffic"]
            parts |= {"application": "application: {kind: all_to_all, size_bytes: 64}"}
            rest = PROGRAM
        parts[self.category] = f"{self.category}: {{kind: hostile}}"
        return "\n".join(["name: hostile", f"plugins: [{plugin}]", *parts.values(), rest])


def read_all() -> list[Hostile]:
    """All that are in the file."""
    listed = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return [Hostile(category, name, **entry) for category, entries in listed.items() for name, entry in entries.items()]


ALL = read_all()


def write(case: Hostile, folder: Path) -> Path:
    """Writes the plugin and its configuration; the latter's path."""
    name = re.sub(r"\W+", "_", f"hostile_{case.category}_{case.name}")
    (folder / f"{name}.py").write_text(case.plugin)
    file = folder / f"{name}.yaml"
    file.write_text(case.config(f"{name}.py"))
    return file


def run_alone(case: Hostile, folder: Path) -> str:
    """How a run of it ends, in a process of its own."""
    file = write(case, folder)
    command = [sys.executable, "-m", "flitlab", str(file), "--out", str(folder / "out"), "--jobs", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    if run.returncode < 0:
        return f"killed by signal {-run.returncode}"
    if run.returncode != 2:
        return f"exit code {run.returncode}"
    if (folder / "out").exists():
        return "a folder is left behind"
    return "named" if re.search(case.says, run.stderr) else f"not named: {run.stderr.strip()}"


def main() -> None:
    """Runs all, and prints how those end that are not refused by name."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in ALL:
            end = run_alone(case, Path(folder))
            ends[end.split(":")[0]] += 1
            if end != "named":
                print(f"{case.category} {case.name}: {end}", flush=True)
    print(f"{len(ALL)} plugins: " + ", ".join(f"{count} {end}" for end, count in ends.items()))


if __name__ == "__main__":
    main()
