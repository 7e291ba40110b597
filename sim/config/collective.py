# SPDX-License-Identifier: Apache-2.0
"""``experiment: collective``: a collective, its size, and its algorithm."""

from dataclasses import dataclass, replace

import numpy as np

from flitlab.fluid.collective.algorithms.spec import AlgorithmSpec, Once, Plan, Question, algorithms_for
from flitlab.fluid.problem import FluidError
from flitlab.models.collective.schedule import KINDS
from flitlab.models.registry import SpecError, spec_class
from flitlab.models.topology.file_delays import OF_HOSTS_NS
from flitlab.models.topology.graph import Topology
from flitlab.sim.config.diagnostics import KeyPath, crash
from flitlab.sim.config.draft import Draft
from flitlab.sim.config.overrides import is_sweep
from flitlab.sim.config.sections import CollectiveConfig, as_component
from flitlab.sim.config.text import ConfigDocument, Node
from flitlab.sim.config.validation import spec_of

EVERY = "all"
"""Value of ``algorithm`` for all algorithms of the collective that the network supports."""

FIRST_ALGORITHM: tuple[KeyPath, ...] = (("sweep", 0, "kind"), ("sweep", 0), ("kind",))
"""Paths below ``collective.algorithm`` at which the first algorithm may be named."""

SPACED = {"from", "to", "per_decade"}
"""Keys of a geometric range of sizes."""


@dataclass(frozen=True, eq=False)
class Collective:
    """A collective of a scenario, and the summary of its algorithm.

    algorithm: its name. plan: without the program.
    """

    question: Question
    algorithm: str
    plan: Plan


def expand_algorithms(root: Node) -> Node:
    """A configuration with geometric ranges of sizes, and ``algorithm: all``, expanded to sweeps."""
    cases = root.get("cases")
    root = _expand_section(root, root)
    if cases is None or not cases.is_list:
        return root
    changed = [_expand_section(case, root) if case.is_map else case for case in cases.value]
    return root.with_value({**root.value, "cases": cases.with_value(changed)})


def _expand_section(node: Node, root: Node) -> Node:
    section = node.get("collective")
    if section is None or not section.is_map:
        return node
    value = dict(section.value)
    size, algorithm = section.get("size_bytes"), section.get("algorithm")
    if size is not None and size.is_map and set(size.value) == SPACED:
        value["size_bytes"] = size.with_value({"sweep": size})
    if algorithm is not None:
        value["algorithm"] = _expand_all(algorithm, section.get("kind") or root.get("collective", "kind"))
    return node.with_value({**node.value, "collective": section.with_value(value)})


def _expand_all(algorithm: Node, kind: Node | None) -> Node:
    """A sweep in which ``all`` is replaced by the algorithms that all swept collectives have."""
    options = algorithm.value["sweep"] if is_sweep(algorithm) else algorithm.with_value([algorithm])
    if not options.is_list or all(option.value != EVERY for option in options.value):
        return algorithm
    listed = [option for option in options.value if option.value != EVERY]
    kinds = [] if kind is None else kind.plain()["sweep"] if is_sweep(kind) else [kind.plain()]
    known = [set(filter(_needs_no_keys, algorithms_for(one))) for one in kinds if isinstance(one, str) and one in KINDS]
    common = sorted(set.intersection(*known)) if known else []
    listed_kinds = [option.plain().get("kind") if option.is_map else option.plain() for option in listed]
    added = [
        algorithm.with_value({"kind": algorithm.with_value(name), "optional": algorithm.with_value(True)})
        for name in common if name not in listed_kinds
    ]  # fmt: skip
    return algorithm.with_value({"sweep": options.with_value([*listed, *added])})


def _needs_no_keys(algorithm: str) -> bool:
    """Whether an algorithm requires no key but its name."""
    fields = spec_class("algorithm", algorithm).model_fields
    return not any(field.is_required() for name, field in fields.items() if name != "kind")


def ranked(draft: Draft, topology: Topology) -> Topology:
    """The topology with one host per rank: unchanged, or, for ``ranks: switches``, one on each switch with hosts.

    The channels of such a host are as wide as all channels of the widest switch, so they never limit.
    """
    config = draft.config.collective
    if config is None or config.ranks == "hosts":
        return topology
    if draft.switching_mode is not None and draft.switching_mode.mode != "flow":
        problem = "is for mode flow: packets have hosts of capacity 1, so a rank with d channels is d hosts of a switch"
        draft.reject("collective.ranks", problem)
    has_rank = topology.host_count > 0 if topology.hosts else np.ones(topology.switches, bool)
    ends = (topology.src, topology.dst)
    widest = max(float(np.bincount(end, topology.capacity, topology.switches).max(initial=1.0)) for end in ends)
    notes = {key: note for key, note in topology.notes.items() if key != OF_HOSTS_NS}
    return replace(topology, notes=notes).with_hosts(has_rank.astype(np.int64), max(widest, topology.host_capacity))


def question_of(draft: Draft, topology: Topology) -> tuple[Question, AlgorithmSpec] | None:
    """The collective of a scenario and the specification of its algorithm; None if they are invalid."""
    config = draft.config.collective
    if config is None:
        return None
    algorithm = as_component(draft.mapping("collective", "algorithm"))
    spec = spec_of("algorithm", draft.part("collective", "algorithm"), algorithm or {"kind": "library"})
    if not isinstance(spec, AlgorithmSpec):
        return None
    if config.root >= max(topology.hosts, 1):
        draft.reject("collective.root", f"must be below {topology.hosts}, the number of ranks")
        return None
    if topology.hosts < 2:
        draft.reject("topology", "has fewer than two ranks")
        return None
    share = KINDS[config.kind].share(topology.hosts)
    piece = max(1, round(config.size_bytes * share))
    free = 0.0 if config.gflops is None else 1 / (8 * config.gflops)
    return Question(config.kind, topology, config.ranks, piece, config.root, free), spec


def plan_of(draft: Draft, question: Question, spec: AlgorithmSpec, once: Once) -> Plan | None:
    """The plan of an algorithm; None if it is invalid, or optional and not applicable.

    Parameters
    ----------
    draft: the configuration.
    question: the collective on the network.
    spec: the algorithm.
    once: caches what several scenarios share.
    """
    part = draft.part("collective", "algorithm")
    try:
        return spec.build(question, once)
    except (SpecError, FluidError) as error:
        if spec.optional:
            part.warn((), f"{spec.kind} is left out: {error}")
        else:
            key = getattr(error, "key", None)
            part.reject((key,) if key else (), str(error), getattr(error, "choices", ()))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a third-party algorithm may raise anything
        part.reject((), f"could not be built: {crash(error)}")
    return None


def reject_empty_study(document: ConfigDocument, config: CollectiveConfig | None) -> None:
    """Reject a study in which every algorithm is optional and not applicable, with the reasons.

    config: the section of the last scenario.
    """
    left_out = [warning.problem.removeprefix("warning: ") for warning in document.diagnostics.warnings]
    problem = f"no scenario is left: {'; '.join(dict.fromkeys(left_out))}"
    path: KeyPath = ("collective", "algorithm")
    path = next((path + rest for rest in FIRST_ALGORITHM if document.has(*path, *rest)), path)
    document.reject(path, problem, () if config is None else algorithms_for(config.kind))


def without_program(question: Question, spec: AlgorithmSpec, plan: Plan) -> Collective:
    """A collective without the program of its plan, for results.

    Parameters
    ----------
    question: the collective on the network.
    spec: the algorithm.
    plan: its plan.
    """
    return Collective(question, spec.kind, replace(plan, program=None))  # type: ignore[arg-type]
