# SPDX-License-Identifier: Apache-2.0
"""Checks of a topology family or a routing of one's own, which say in words what is wrong with it.

    from flitlab.models.testing import check_routing, check_topology
    print(check_topology(MyFamily(kind="my_family", n=64)))  # [] if nothing is wrong

Both list one problem of each sort, with the switches that show it. They look at one example of a component: check
several sizes, and odd ones.
"""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from flitlab.models.faults import Found, one_of_each
from flitlab.models.registry import FaultyError, Spec, SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.tables import DATELINE_CROSSING, DATELINE_ENTRY
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.sound import connection_faults, topology_faults
from flitlab.models.topology.spec import TopologySpec

MOST_VCS = 64
"""VCs that the engines can be given."""


def check_topology(given: TopologySpec | Topology) -> list[str]:
    """What is wrong with a topology, or with the family that builds it; an empty list if nothing is.

    Channels in order, pairs of reverse channels, connection, hosts, capacities, delays, grid, tiers, notes; of a
    family also its documentation and that it builds the same every time.
    """
    if isinstance(given, Topology):
        return one_of_each(_graph_faults(given))
    found = list(_documentation_problems(given, "topology"))
    built, problems = _build(given)
    if built is None:
        return [*one_of_each(found), *problems]
    again, _ = _build(given)
    if again is None or again.content_hash != built.content_hash:
        found.append(("again", "build() gives another topology the second time: draw only from a seed of the spec"))
    return one_of_each([*found, *_graph_faults(built)])


def _graph_faults(topology: Topology) -> Found:
    found = list(topology_faults(topology))
    yield from found or connection_faults(topology)


def check_routing(spec: RoutingSpec, topology: Topology, vcs: int | None = None) -> list[str]:
    """What is wrong with a routing on a topology; an empty list if nothing is.

    Whatever port of those allowed is taken, a packet between any two switches with hosts must reach its destination,
    within ``hops_max`` channels. Also: arrays of the right shape, documentation, the same routes every time, and a
    certificate that no deadlock is possible: with ``vcs`` VCs, or, by default, with as many as it takes.
    """
    found = list(_documentation_problems(spec, "routing"))
    routes, problems = _build(spec, topology)
    if routes is None:
        return [*one_of_each(found), *problems]
    again, _ = _build(spec, topology)
    if again is None or again.content_hash != routes.content_hash:
        found.append(("again", "build() gives other routes the second time: draw only from a seed of the spec"))
    return one_of_each([*found, *_certificate_problems(topology, routes, vcs)])


def _build(spec: TopologySpec | RoutingSpec, *on: Any) -> tuple[Any, Sequence[str]]:
    """(what a component is built to, nothing), or (None, why it gives nothing of use)."""
    try:
        return spec.build(*on), []
    except FaultyError as error:
        return None, error.faults
    except SpecError as error:
        place = f"{error.key}: " if error.key else ""
        return None, [f"build() refuses: {place}{error}"]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's code may raise anything, and even exit
        return None, [
            f"build() raises {type(error).__name__}: {error}; parameters that cannot be served should raise "
            "flitlab.models.registry.SpecError"
        ]


def _documentation_problems(spec: Spec, category: str) -> Found:
    """The class documentation is what ``simrun show`` prints: it needs an example and a source."""
    text = inspect.getdoc(type(spec)) or ""
    if not text or "Source" not in text:
        yield "source", f'the documentation of {type(spec).__name__} needs a line "Source: ..."'
    examples = re.findall(rf"Example: ``({category}: .+?)``", text, re.DOTALL)
    if not examples:
        yield (
            "example",
            f'the documentation of {type(spec).__name__} needs a line "Example: ``{category}: {{kind: {spec.kind}}}``"',
        )
    for example in examples:
        try:
            made = make(category, **yaml.safe_load(example)[category])
        except (SpecError, ValidationError, yaml.YAMLError, TypeError, KeyError) as error:
            yield "example works", f"the example {example!r} does not work: {error}"
            continue
        if made.kind != spec.kind:
            yield "example kind", f"the example {example!r} is of another kind than {spec.kind!r}"


def _certificate_problems(topology: Topology, routes: Routes, vcs: int | None) -> Found:
    dateline = routes.vc_policy in (DATELINE_ENTRY, DATELINE_CROSSING)
    enough = 2 if dateline else min(MOST_VCS, max(2, routes.hops_max, routes.layers))
    try:
        certify(topology, routes, vcs or enough)
    except SpecError as error:
        yield "certificate", f"no certificate with {vcs or enough} VCs: {error}"
