# SPDX-License-Identifier: Apache-2.0
"""Checks of a user's own topology family or routing, which state every error in words.

    from flitlab.models.testing import check_routing, check_topology
    print(check_topology(MyFamily(kind="my_family", n=64)))  # [] without errors

Both list one error of each kind, with the switches that show it. They check one example of a component: check several
sizes, including odd ones.
"""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from flitlab.models.registry import FaultyError, Spec, SpecError, make
from flitlab.models.routing.certificate import certify
from flitlab.models.routing.routes import Routes, RoutingSpec
from flitlab.models.rules.tables import VcPolicy
from flitlab.models.topology.graph import Topology
from flitlab.models.topology.spec import TopologySpec
from flitlab.models.topology.validation import connection_errors, topology_errors
from flitlab.models.validation import Errors, error_texts

MAX_VCS = 64
"""Most VCs that the engines support."""


def check_topology(family: TopologySpec | Topology) -> list[str]:
    """List the errors of a topology, or of the family that builds it; an empty list if there are none.

    Checked are the order of channels, pairs of reverse channels, connectivity, hosts, capacities, delays, grid, tiers
    and notes; of a family also its documentation, and that it builds the same topology every time.
    """
    if isinstance(family, Topology):
        return error_texts(_graph_errors(family))
    errors = list(_documentation_errors(family, "topology"))
    built, build_errors = _build(family)
    if built is None:
        return [*error_texts(errors), *build_errors]
    second, _ = _build(family)
    if second is None or second.content_hash != built.content_hash:
        errors.append(("again", "build() gives another topology the second time: draw only from a seed of the spec"))
    return error_texts([*errors, *_graph_errors(built)])


def _graph_errors(topology: Topology) -> Errors:
    errors = list(topology_errors(topology))
    yield from errors or connection_errors(topology)


def check_routing(spec: RoutingSpec, topology: Topology, vcs: int | None = None) -> list[str]:
    """List the errors of a routing on a topology; an empty list if there are none.

    Whatever allowed port is chosen, a packet between any two switches with hosts must reach its destination within
    ``hops_max`` channels. Also checked are array shapes, documentation, that the same routes are built every time, and
    that there is a certificate of deadlock freedom.

    Parameters
    ----------
    spec: the routing.
    topology: the network to route on.
    vcs: number of VCs of the certificate; by default as many as it takes.
    """
    errors = list(_documentation_errors(spec, "routing"))
    routes, build_errors = _build(spec, topology)
    if routes is None:
        return [*error_texts(errors), *build_errors]
    second, _ = _build(spec, topology)
    if second is None or second.content_hash != routes.content_hash:
        errors.append(("again", "build() gives other routes the second time: draw only from a seed of the spec"))
    return error_texts([*errors, *_certificate_errors(topology, routes, vcs)])


def _build(spec: TopologySpec | RoutingSpec, *on: Any) -> tuple[Any, Sequence[str]]:
    """Build a component: (result, []), or (None, errors)."""
    try:
        return spec.build(*on), []
    except FaultyError as error:
        return None, error.errors
    except SpecError as error:
        location = f"{error.key}: " if error.key else ""
        return None, [f"build() rejects its parameters: {location}{error}"]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # third-party code may raise anything, and even exit
        return None, [
            f"build() raises {type(error).__name__}: {error}; parameters that cannot be served should raise "
            "flitlab.models.registry.SpecError"
        ]


def _documentation_errors(spec: Spec, category: str) -> Errors:
    """Check the class documentation, which ``simrun show`` prints: it needs an example and a source."""
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


def _certificate_errors(topology: Topology, routes: Routes, vcs: int | None) -> Errors:
    dateline = routes.vc_policy in (VcPolicy.DATELINE_ENTRY, VcPolicy.DATELINE_CROSSING)
    enough = 2 if dateline else min(MAX_VCS, max(2, routes.hops_max, routes.layers))
    try:
        certify(topology, routes, vcs or enough)
    except SpecError as error:
        yield "certificate", f"no certificate with {vcs or enough} VCs: {error}"
