# SPDX-License-Identifier: Apache-2.0
"""Adds networks to a configuration: each as a case with the traffic, routing and metrics of the others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flitlab.models.registry import SpecError, UnknownKindError, make, recorded_warnings
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import ConfigError, Diagnostic, Diagnostics, show
from flitlab.sim.config.overrides import KIND_INDEPENDENT_KEYS, is_sweep, merge
from flitlab.sim.config.short_forms import expanded
from flitlab.sim.config.text import Node, load_text, wrap

OPTION = "--network"
"""Name of the source of added networks in messages."""

SETTING = " as "
"""Between the name of a network and the case whose settings it has, in a label."""

BY_SWITCHES = ("gdbg", "imase", "mddp", "random_digraph", "rrg")
"""Topologies whose ``n`` is the number of switches, and ``degree`` their links to other switches."""


@dataclass(frozen=True)
class NetworkCases:
    """The cases that a network adds.

    Attributes
    ----------
    root: the configuration with only these cases.
    names: label of an existing case -> that of the added case with the same settings.
    keys: columns of the row's own topologies that the added cases have, too.
    """

    root: Node
    names: Mapping[str, str]
    keys: frozenset[str] = field(default_factory=frozenset)


def network_cases(root: Node, network: str, diagnostics: Diagnostics) -> NetworkCases:
    """Return the cases that a network adds to a configuration.

    If a case changes nothing but the topology, or there are no cases, the network is one case. Otherwise the cases have
    settings of their own, and the network is a case for each of these settings. Of the common keys of topologies, such
    as ``host_capacity``, the network gets those that all topologies of the configuration share; ``hosts_per_switch``
    only if its file places no hosts.

    Parameters
    ----------
    root: the configuration, without short forms.
    network: a file, or the keys of ``topology:`` in YAML, with ``label``: ``{path: a.txt, directed: false}``.
    diagnostics: gets an unusable name.

    Raises
    ------
    ConfigError: the network is neither a file nor a mapping.
    """
    name, keys = _described(network, diagnostics)
    cases = root.get("cases")
    own = [case for case in cases.value if case.is_map] if cases is not None and cases.is_list else []
    topologies = list(_topologies(root, own))
    built = _built(keys)
    topology = merge(_common(topologies, built), keys, "topology")
    columns = _columns(root, topologies, built)
    settings = _settings(own)
    single = len(settings) == 1
    added: list[Node] = []
    names: dict[str, str] = {}
    for labels, changes in settings:
        label = name if single else f"{name}{SETTING}{labels[0]}"
        names |= dict.fromkeys(labels, label)
        keys_of_case = wrap({"case": label, **columns}, OPTION)
        named = {"label": Node(label, OPTION), "keys": keys_of_case, "compared": Node(False, OPTION)}
        added.append(Node({**changes, **named}, OPTION))
    if taken := {_plain(case, "label") for case in own} & {_plain(case, "label") for case in added}:
        problem = "is the label of a case: choose another, as in {label: mine, path: FILE}"
        diagnostics.reject(OPTION, "label", problem, str(taken.pop()))
    base = root.without("topology", "cases").value
    return NetworkCases(root.with_value({**base, "topology": topology, "cases": Node(added, OPTION)}), names,
                        frozenset(columns))  # fmt: skip


def in_plots(root: Node, added: Iterable[NetworkCases]) -> Node:
    """A configuration whose plots of some cases show the added cases with the same settings, too.

    Plots over a key of the row's own topologies show those that have it.
    """
    plots = root.get("outputs", "plots")
    if plots is None or not plots.is_list:
        return root
    changed = plots.with_value([_with_names(plot, list(added)) for plot in plots.value])
    outputs = root.value["outputs"]
    return root.with_value({**root.value, "outputs": outputs.with_value({**outputs.value, "plots": changed})})


def _with_names(plot: Node, added: Sequence[NetworkCases]) -> Node:
    cases = plot.get("where", "case")
    if cases is None:
        return plot
    x = _plain(plot, "x")
    labels = cases.plain() if cases.is_list else [cases.plain()]
    more = [
        one.names[label]
        for one in added if not str(x).startswith("topology.") or x in one.keys
        for label in labels if label in one.names
    ]  # fmt: skip
    if not more:
        return plot
    where = plot.value["where"]
    every = wrap(list(dict.fromkeys([*labels, *more])), cases.file, cases.line)
    return plot.with_value({**plot.value, "where": where.with_value({**where.value, "case": every})})


def _described(network: str, diagnostics: Diagnostics) -> tuple[str, Node]:
    """The name of a network, and the keys of its topology, with absolute file names."""
    if not network.lstrip().startswith("{"):
        node = wrap({"path": network}, OPTION)
    else:
        node = load_text(network, OPTION, diagnostics, lines=False)
    if not node.is_map or not network.strip():
        problem = "must be a file, or keys of a topology: {path: FILE, directed: false}"
        raise ConfigError([Diagnostic(OPTION, "", show(node.plain()), problem)])
    keys = dict(node.without("label").value)
    keys.setdefault("kind", Node("file", OPTION))
    path = keys["path"].plain() if "path" in keys else None
    if isinstance(path, str):
        keys["path"] = Node(str(Path(path).resolve()), OPTION)
    label = node.get("label")
    usual = Path(path).stem if isinstance(path, str) else keys["kind"].plain()
    topology = expanded(Node({"topology": node.with_value(keys)}, OPTION)).value["topology"]
    return str(usual if label is None else label.plain()), topology


def _topologies(root: Node, cases: Sequence[Node]) -> Iterator[Node]:
    """The topologies of a configuration: those of its cases, each option of a sweep as one."""
    base = root.get("topology") or Node({}, root.file)
    for over in [case.get("topology") for case in cases] or [None]:
        topology = base if over is None else merge(base, over, "topology")
        options = (
            topology.value["sweep"].value if is_sweep(topology) and topology.value["sweep"].is_list else [topology]
        )
        yield from (option for option in options if option.is_map)


def _common(topologies: Sequence[Node], built: Topology | None) -> Node:
    """The keys of any topology that all topologies share."""
    keys = set(KIND_INDEPENDENT_KEYS["topology"])
    if built is None or built.hosts_stated:
        keys.discard("hosts_per_switch")
    first = topologies[0] if topologies else Node({}, OPTION)
    return Node(
        {
            key: value for key, value in first.value.items()
            if key in keys and all(_plain(other, key) == value.plain() for other in topologies)
        },
        OPTION,
    )  # fmt: skip


def _plain(node: Node, key: str) -> Any:
    value = node.get(key)
    return None if value is None else value.plain()


def _built(keys: Node) -> Topology | None:
    """The graph of a network; None if it cannot be built, which the validation of its case reports."""
    try:
        with recorded_warnings():
            topology: Topology = make("topology", **keys.plain()).graph()
    except (SpecError, UnknownKindError, ValidationError, TypeError, ValueError):
        return None
    return topology


def _columns(root: Node, topologies: Sequence[Node], built: Topology | None) -> dict[str, int]:
    """Values of the network for keys of the row's topologies that figures have as their x axis."""
    kinds = {_plain(one, "kind") for one in topologies if "n" in one.value or "degree" in one.value}
    plots = root.get("outputs", "plots")
    axes = {_plain(plot, "x") for plot in plots.value} if plots is not None and plots.is_list else set()
    if built is None or not kinds or not kinds <= set(BY_SWITCHES):
        return {}
    degrees = set(built.out_degree.tolist())
    values = {"topology.n": built.switches} | ({"topology.degree": degrees.pop()} if len(degrees) == 1 else {})
    return {key: value for key, value in values.items() if key in axes}


def _settings(cases: Sequence[Node]) -> list[tuple[list[str], dict[str, Node]]]:
    """(labels, keys besides the topology) of cases with the same settings; one if a case has none of its own."""
    groups: list[tuple[list[str], dict[str, Node]]] = []
    for case in cases:
        changes = case.without("label", "keys", "compared", "topology").value
        plain = {key: node.plain() for key, node in changes.items()}
        label = _plain(case, "label")
        for labels, known in groups:
            if {key: node.plain() for key, node in known.items()} == plain:
                labels.append(label)
                break
        else:
            groups.append(([label], changes))
    if not groups or any(not changes for _, changes in groups):
        return [([label for labels, _ in groups for label in labels], {})]
    return groups
