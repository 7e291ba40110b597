# SPDX-License-Identifier: Apache-2.0
"""``experiment: collective``: a collective of given size, and the algorithm that carries it out."""

from dataclasses import dataclass, replace

import numpy as np

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, for_kind
from flitlab.fluid.problem import FluidError
from flitlab.models.collective.schedule import KINDS
from flitlab.models.registry import SpecError, spec_class
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.check import crash, spec_of
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.load import Node, Place
from flitlab.sim.config.overrides import is_sweep
from flitlab.sim.config.page import Page
from flitlab.sim.config.questions import CollectiveConfig
from flitlab.sim.config.section import named

EVERY = "all"
"""In place of an algorithm: all that the collective has and that can be used on the network."""

FIRST_ALGORITHM: tuple[Place, ...] = (("sweep", 0, "kind"), ("sweep", 0), ("kind",))
"""Where the name of the first algorithm may stand below ``collective.algorithm``."""

SPACED = {"from", "to", "per_decade"}
"""Keys of sizes that grow by a factor."""


@dataclass(frozen=True, eq=False)
class Collective:
    """What a scenario of the experiment ``collective`` asks, and what its algorithm has to say of itself.

    algorithm: its name. plan: without its program.
    """

    question: Question
    algorithm: str
    plan: Plan


def unfolded(root: Node) -> Node:
    """A configuration in which sizes that grow by a factor, and ``algorithm: all``, are sweeps."""
    cases = root.get("cases")
    root = _unfolded(root, root)
    if cases is None or not cases.is_list:
        return root
    changed = [_unfolded(case, root) if case.is_map else case for case in cases.value]
    return root.with_value({**root.value, "cases": cases.with_value(changed)})


def _unfolded(node: Node, root: Node) -> Node:
    given = node.get("collective")
    if given is None or not given.is_map:
        return node
    value = dict(given.value)
    size, algorithm = given.get("size_bytes"), given.get("algorithm")
    if size is not None and size.is_map and set(size.value) == SPACED:
        value["size_bytes"] = size.with_value({"sweep": size})
    if algorithm is not None:
        value["algorithm"] = _all(algorithm, given.get("kind") or root.get("collective", "kind"))
    return node.with_value({**node.value, "collective": given.with_value(value)})


def _all(algorithm: Node, kind: Node | None) -> Node:
    """A sweep with ``all`` replaced by the algorithms of a collective, or of all those of a sweep."""
    options = algorithm.value["sweep"] if is_sweep(algorithm) else algorithm.with_value([algorithm])
    if not options.is_list or all(option.value != EVERY for option in options.value):
        return algorithm
    listed = [option for option in options.value if option.value != EVERY]
    kinds = [] if kind is None else kind.plain()["sweep"] if is_sweep(kind) else [kind.plain()]
    known = [set(filter(_needs_no_keys, for_kind(one))) for one in kinds if isinstance(one, str) and one in KINDS]
    more = sorted(set.intersection(*known)) if known else []
    there = [option.plain().get("kind") if option.is_map else option.plain() for option in listed]
    spare = [
        algorithm.with_value({"kind": algorithm.with_value(name), "optional": algorithm.with_value(True)})
        for name in more if name not in there
    ]  # fmt: skip
    return algorithm.with_value({"sweep": options.with_value([*listed, *spare])})


def _needs_no_keys(algorithm: str) -> bool:
    """Whether an algorithm is known by its name alone."""
    fields = spec_class("algorithm", algorithm).model_fields
    return not any(field.is_required() for name, field in fields.items() if name != "kind")


def ranked(draft: Draft, topology: Topology) -> Topology:
    """The topology with a host for every rank: as it is, or, for ``ranks: switches``, one on each switch with hosts.

    The channels of such a host carry as much as all those of any switch, so that they bind nothing.
    """
    config = draft.config.collective
    if config is None or config.ranks == "hosts":
        return topology
    if draft.switching_mode is not None and draft.switching_mode.mode != "flow":
        problem = "is for mode flow: packets have hosts of capacity 1, so a rank with d channels is d hosts of a switch"
        draft.refuse("collective.ranks", problem)
    places = topology.host_count > 0 if topology.hosts else np.ones(topology.switches, bool)
    ends = (topology.src, topology.dst)
    widest = max(float(np.bincount(end, topology.capacity, topology.switches).max(initial=1.0)) for end in ends)
    return topology.with_hosts(places.astype(np.int64), max(widest, topology.host_capacity))


def asked(draft: Draft, topology: Topology) -> tuple[Question, AlgorithmSpec] | None:
    """The question of a scenario and its algorithm; None once what is wrong with them is refused."""
    config = draft.config.collective
    if config is None:
        return None
    given = named(draft.mapping("collective", "algorithm"))
    spec = spec_of("algorithm", draft, ("collective", "algorithm"), given or {"kind": "library"})
    if not isinstance(spec, AlgorithmSpec):
        return None
    if config.root >= max(topology.hosts, 1):
        draft.refuse("collective.root", f"is no rank: there are {topology.hosts}")
        return None
    if topology.hosts < 2:
        draft.refuse("topology", "has fewer than two ranks")
        return None
    share = KINDS[config.kind].share(topology.hosts)
    piece = max(1, round(config.size_bytes * share))
    free = 0.0 if config.gflops is None else 1 / (8 * config.gflops)
    return Question(config.kind, topology, config.ranks, piece, config.root, free), spec


def planned(draft: Draft, question: Question, spec: AlgorithmSpec, once: Once) -> Plan | None:
    """The plan of an algorithm; None once it is refused, or left out because it is optional and has none.

    once: what is made for one scenario, and serves others too.
    """
    try:
        return spec.build(question, once)
    except (SpecError, FluidError) as error:
        if spec.optional:
            draft.warn("collective.algorithm", f"{spec.kind} is left out: {error}")
        else:
            key = getattr(error, "key", None)
            place = ("collective", "algorithm", key) if key else ("collective", "algorithm")
            draft.refuse(place, str(error), getattr(error, "choices", ()))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an algorithm may be a stranger's: whatever it raises is reported
        draft.refuse("collective.algorithm", f"could not be built: {crash(error)}")
    return None


def refuse_none_left(page: Page, config: CollectiveConfig | None) -> None:
    """Rejects a study without a scenario: every algorithm that it lists is optional and left out, as its warnings say.

    config: the section of the last scenario that was tried.
    """
    left_out = [warning.problem.removeprefix("warning: ") for warning in page.warnings]
    problem = f"no scenario is left: {'; '.join(dict.fromkeys(left_out))}"
    place: Place = ("collective", "algorithm")
    place = next((place + rest for rest in FIRST_ALGORITHM if page.has(*place, *rest)), place)
    page.refuse(place, problem, () if config is None else for_kind(config.kind))


def with_rules(draft: Draft) -> None:
    """Lets all messages be eager, unless the configuration says otherwise."""
    given = draft.config.messages
    if "rendezvous_bytes" not in given.model_fields_set:
        eager = given.model_copy(update={"rendezvous_bytes": None})
        draft.config = draft.config.model_copy(update={"messages": eager})


def kept(question: Question, spec: AlgorithmSpec, plan: Plan) -> Collective:
    """What results need of a plan."""
    return Collective(question, spec.kind, replace(plan, program=None))  # type: ignore[arg-type]
