# SPDX-License-Identifier: Apache-2.0
"""Short forms of components: ``routing: minimal`` for ``routing: {kind: minimal}``, and other names of kinds."""

import re

from flitlab.models.collective.schedule import KINDS
from flitlab.models.registry import canonical_kind, kind_key
from flitlab.sim.config.overrides import is_sweep
from flitlab.sim.config.schema import SECTIONS
from flitlab.sim.config.text import Node


def expanded(root: Node) -> Node:
    """A configuration, or a case of one, with mappings for bare names of components, and their kinds for aliases.

    Parameters
    ----------
    root: the configuration; forms that are no component are left to validation.
    """
    if not root.is_map:
        return root
    values = {key: _component(key, value) if key in SECTIONS else value for key, value in root.value.items()}
    if "collective" in values and values["collective"].is_map:
        values["collective"] = _component("collective", values["collective"])
    for key in ("cases", "quick"):
        if key in values:
            inner = values[key]
            values[key] = inner.with_value([expanded(one) for one in inner.value]) if inner.is_list else expanded(inner)
    return root.with_value(values)


def _component(category: str, node: Node) -> Node:
    if isinstance(node.value, str):
        kind = node.with_value(canonical_kind(category, node.value))
        return node.with_value({kind_key(category): kind})
    if node.is_list:  # several programs
        return node.with_value([_component(category, one) for one in node.value])
    if is_sweep(node) and node.value["sweep"].is_list:
        return node.with_value({**node.value, "sweep": _component(category, node.value["sweep"])})
    if category == "switching":
        node = _with_pfc(node)
    key = kind_key(category)
    if not node.is_map or not isinstance(named := node.value.get(key), Node):
        return node
    return node.with_value({**node.value, key: _kind(category, named)})


_PFC_NAMES = {"xoff_packets": "xoff", "xon_packets": "xon"}
"""Other names of keys of ``switching.pfc``."""


def _with_pfc(node: Node) -> Node:
    """``queue: lossless`` with ``pfc`` for ``queue: {kind: lossless, ...}``."""
    queue = node.value.get("queue") if node.is_map else None
    if not isinstance(queue, Node) or not queue.is_map or "kind" not in queue.value:
        return node
    keys = {_PFC_NAMES.get(key, key): value for key, value in queue.value.items() if key != "kind"}
    marks = {key: keys.pop(key) for key in ("mark_probability", "mark_own") if key in keys}
    pfc = {"pfc": queue.with_value(keys)} if keys else {}
    return node.with_value({**node.value, "queue": queue.value["kind"], **pfc, **marks})


def _canonical(category: str, name: str) -> str:
    """The kind of a name; for collectives also as other programs write it, such as ``AllReduce`` or ``allgather``."""
    if category != "collective":
        return canonical_kind(category, name)
    return {kind.replace("_", ""): kind for kind in KINDS}.get(re.sub(r"[-_ ]", "", name).casefold(), name)


def _kind(category: str, node: Node) -> Node:
    """The name of a kind, or a sweep of them."""
    if isinstance(node.value, str):
        return node.with_value(_canonical(category, node.value))
    if is_sweep(node) and node.value["sweep"].is_list:
        names = node.value["sweep"]
        return node.with_value({**node.value, "sweep": names.with_value([_kind(category, one) for one in names.value])})
    return node
