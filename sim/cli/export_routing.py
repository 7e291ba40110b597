# SPDX-License-Identifier: Apache-2.0
"""``simrun export-routing`` (convert): write the tables of a routing: paths, weights, VCs and next hops."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from flitlab.models.delimited import csv_text
from flitlab.models.files import replace_file
from flitlab.models.mappings import JsonObject
from flitlab.models.routing.certificate import POLICY_NAMES
from flitlab.models.routing.layers import unit_pairs
from flitlab.models.routing.minimal import minimal_ports
from flitlab.models.routing.routes import Routes
from flitlab.models.routing.slack import SlackTable, slack_table
from flitlab.models.rules.bits import port_list
from flitlab.models.rules.route import port_part
from flitlab.models.rules.tables import RouteForm, VcPolicy
from flitlab.models.rules.vc import allowed_vcs, make_rings, reserved_vcs, share
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.names import join_path, switch_names
from flitlab.sim.cli.common import cases_of, complain, error_text, json_text, say, shown_label, study_of
from flitlab.sim.cli.options import add_configuration
from flitlab.sim.config.case import Case, Study
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import UnrelatedFolder, reject_unrelated_folder

DESCRIPTION = "routing.json"
"""The file that marks the folder of this command: scenario, routing, certificate and notes."""

TABLES = ("paths.csv", "slacks.csv", "next_hops.csv", "layers.csv")
"""Tables that a routing may have."""

Row = Sequence[object]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_configuration(parser)
    parser.add_argument("--scenario", metavar="LABEL", help="as `simrun check` shows it (default: the only one)")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder for the tables")


def run(options: argparse.Namespace) -> int:
    """Write the tables of the routing of one scenario: paths.csv, slacks.csv, next_hops.csv, layers.csv."""
    study = study_of(options)
    case = None if study is None else _case(study, options.scenario)
    if case is None:
        return ExitCode.BAD
    assert case.instance is not None and case.routes is not None
    files = {
        **_tables(case, case.topology, case.routes),
        DESCRIPTION: json_text(_description(case, case.routes)) + "\n",
    }
    try:
        reject_unrelated_folder(options.out, DESCRIPTION)
        options.out.mkdir(parents=True, exist_ok=True)
        _write(options.out, files)
    except (UnrelatedFolder, OSError) as error:
        complain(f"simrun export-routing: --out {options.out}: {error_text(error)}")
        return ExitCode.BAD
    say(f"{shown_label(case.label)}: {', '.join(files)} in {options.out}")
    return ExitCode.OK


def _case(study: Study, label: str | None) -> Case | None:
    """The chosen scenario, if its routing can be exported; else None, with an error printed. Of subnets it is one."""
    chosen = cases_of(study, label)
    if not chosen:
        return None
    if len(chosen) > 1:
        choices = "; ".join(case.label for case in chosen)
        complain(f"several scenarios: choose one by --scenario LABEL; choices: {choices}")
        return None
    routes = chosen[0].routes
    if routes is None:
        complain(f"{chosen[0].label}: has no routing")
    elif not routes.oblivious:
        how = "sends packets to any free channel" if routes.deflection else "depends on the queues in the network"
        complain(f"{chosen[0].label}: routing {routes.kind} {how}: it has no weights to export")
    else:
        case = chosen[0]
        return case if case.one_subnet is None else replace(case, instance=case.one_subnet)
    return None


def _tables(case: Case, topology: Topology, routes: Routes) -> dict[str, str]:
    """File name -> content."""
    if routes.paths is None:
        rows = _plain_next_hops(topology, routes)
        layers = list(_layers(case, topology, routes))
        return {
            "next_hops.csv": csv_text(("target", "switch", "slack", "next", "weight", "port"), rows),
            **({"layers.csv": csv_text(("source", "target", "leg", "vcs"), layers)} if layers else {}),
        }
    assert case.instance is not None
    demand = case.instance.traffic.at(1.0)[0].switch_demand
    slack = slack_table(topology, routes.paths, demand)
    return {
        "paths.csv": csv_text(("source", "target", "weight", "path", "ports", "vcs"), _paths(case, topology, routes)),
        "slacks.csv": csv_text(("source", "target", "slack", "weight"), _slacks(topology, slack)),
        "next_hops.csv": csv_text(("target", "switch", "slack", "next", "weight", "port"), _next_hops(topology, slack)),
    }


def _paths(case: Case, topology: Topology, routes: Routes) -> Iterable[Row]:
    """Each path: ends, weight within its pair, switches, ports, and the VCs of each channel.

    Switches are labels; :func:`~flitlab.models.topology.names.split_path` splits a path into them.
    """
    table = routes.paths
    assert table is not None
    n, share = topology.switches, table.shares.tolist()
    vcs, names = _VirtualChannels(case, topology, routes), switch_names(topology)
    pair = np.repeat(np.arange(n * n), np.diff(table.pair_start)).tolist()
    start, port = table.path_start.tolist(), table.port.tolist()
    out_start, dst = topology.out_start.tolist(), topology.dst.tolist()
    for p, of in enumerate(pair):
        ports = port[start[p] : start[p + 1]]
        switches, channels = [of // n], []
        for one in ports:
            channels.append(out_start[switches[-1]] + one)
            switches.append(dst[channels[-1]])
        ends = names.values((of // n, of % n))
        yield (
            *ends,
            share[p],
            join_path(map(names.label, switches)),
            "-".join(map(str, ports)),
            vcs.ranges(p, switches, channels),
        )


class _VirtualChannels:
    """The VCs that a packet may use on the channels of a path, by the VC policy of the scenario."""

    def __init__(self, case: Case, topology: Topology, routes: Routes):
        switching: Any = None if case.scenario is None else case.scenario.switching
        self.vcs: int | None = getattr(switching, "vcs", None)
        self.policy = VcPolicy.ANY if switching is None else switching.vc_policy
        self.tables, self.rings = routes.tables(topology, self.policy), make_rings(topology)
        self.reserved, self.topology = reserved_vcs(self.tables, self.policy), topology

    def ranges(self, path: int, switches: list[int], channels: list[int]) -> str:
        """``0..1 2..3``, a range per channel; '' without simulated VCs.

        Under ``rising`` only those of the range above the current VC of the packet; under ``reserve``, ``0+4..7``, VC 0
        where none of the others has space.

        Parameters
        ----------
        path: number of the path.
        switches: the switches on the path, in order.
        channels: the channels between them.
        """
        if self.vcs is None:
            return ""
        ranges = []
        for hop, channel in enumerate(channels):
            port = channel - int(self.topology.out_start[switches[hop]])
            low, high = allowed_vcs(
                self.tables, path, self.policy, self.vcs, hop, self.rings, switches[0], switches[-1], channel,
                switches[hop], port, hop - 1,
            )  # fmt: skip
            free = max(low, self.reserved)
            ranges.append((f"{low}+" if low < free else "") + _range(free, high))
        return " ".join(ranges)


def _range(first: int, end: int) -> str:
    """VCs from ``first`` to one before ``end``, as they are written.

    >>> _range(2, 3), _range(0, 4)
    ('2', '0..3')
    """
    return f"{first}..{end - 1}" if end - first > 1 else str(first)


def _layers(case: Case, topology: Topology, routes: Routes) -> Iterable[Row]:
    """The VCs of each pair of switches under ``layered``, as next hops do not tell the layer.

    With an intermediate switch, the first leg to it and the second from it have VCs of their own.
    """
    switching: Any = None if case.scenario is None else case.scenario.switching
    vcs = getattr(switching, "vcs", None)
    if vcs is None or switching.vc_policy != VcPolicy.LAYERED:
        return
    names, tables, legs = switch_names(topology), routes.tables(topology), 2 if routes.form == RouteForm.VIA else 1
    for pair in unit_pairs(topology, routes)[0].tolist():
        for leg in range(legs):
            allowed = share(vcs, legs * tables.layers, int(tables.layer[pair]) + leg * tables.layers)
            yield (*names.values(divmod(pair, topology.switches)), leg + 1 if legs > 1 else "", _range(*allowed))


def _slacks(topology: Topology, slack: SlackTable) -> Iterable[Row]:
    names = switch_names(topology)
    ends = names.values(slack.first_source.tolist()), names.values(slack.first_target.tolist())
    return zip(*ends, slack.first_slack.tolist(), slack.first_weight.tolist(), strict=True)


def _next_hops(topology: Topology, slack: SlackTable) -> Iterable[Row]:
    names, port = switch_names(topology), slack.channel - topology.out_start[slack.switch]
    target, switch, next_switch = (
        names.values(of.tolist()) for of in (slack.target, slack.switch, topology.dst[slack.channel])
    )
    return zip(target, switch, slack.slack.tolist(), next_switch, slack.weight.tolist(), port.tolist(), strict=True)


def _plain_next_hops(topology: Topology, routes: Routes) -> Iterable[Row]:
    """Next hops with weights; the slack is empty, as the history of a packet is irrelevant. For VIA: of one leg."""
    ports, names = (
        minimal_ports(topology)[0] if routes.form == RouteForm.DIGITS else routes.ports,
        switch_names(topology),
    )
    for target, switch in np.argwhere(ports.reshape(*ports.shape[:2], -1).any(axis=2)).tolist():
        here = ports[target, switch] if ports.ndim == 2 else tuple(ports[target, switch])
        next_ports = port_list(here)
        for port in next_ports:
            next_switch = topology.dst[topology.out_start[switch] + port]
            share = 1 / len(next_ports)
            if routes.port_threshold is not None:
                share = port_part(1.0, routes.port_threshold, here, target, switch, port)
            yield (names.value(target), names.value(switch), "", names.value(next_switch), share, port)


def _description(case: Case, routes: Routes) -> JsonObject:
    switching: Any = None if case.scenario is None else case.scenario.switching
    vcs = getattr(switching, "vcs", None)
    via = (
        "next hops lead to the switch of a host drawn at random, and then to the target"
        if routes.form == RouteForm.VIA
        else ""
    )
    return {
        "scenario": case.label, "kind": routes.kind, "hash": routes.content_hash, "hops_max": routes.hops_max,
        "switches": case.topology.switches, "edge_hash": case.topology.edge_hash, "vcs": vcs,
        "vc_policy": None if vcs is None else POLICY_NAMES[switching.vc_policy], "certificate": case.certificate,
        "note": via, "notes": routes.notes,
    }  # fmt: skip


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write each file atomically, the marker of the folder first, and remove tables of another routing."""
    for name in set(TABLES).difference(files):
        (folder / name).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name != DESCRIPTION):
        replace_file(folder / name, files[name])
