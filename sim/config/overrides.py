# SPDX-License-Identifier: Apache-2.0
"""Changes to a configuration before validation: deep merging, ``--set`` and ``quick:``."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from flitlab.models.mappings import Keys
from flitlab.models.registry import UnknownKindError, kind_key, spec_class
from flitlab.sim.config.diagnostics import ConfigError, Diagnostics, KeyPath, parse_path
from flitlab.sim.config.text import MAX_DEPTH, Node, load_text

KIND_INDEPENDENT_KEYS = {
    "topology": ("hosts_per_switch", "host_capacity", "capacity", "capacity_of", "failures"),
    "traffic": ("packet_flits", "arrivals", "burst"),
    "application": ("ranks", "gflops"),
}
"""Keys that do not belong to a kind, and survive a change of it."""

DEFAULT_KINDS = {"switching": "vct"}
"""Section -> default kind."""

CLASSES = "classes"
"""Kind of ``traffic:``, and the key of it that implies this kind."""


def default_kind(category: str, mapping: Keys) -> str | None:
    """The kind of a component that does not name it; None if it has to.

    mapping: its keys.
    """
    if category == "traffic" and CLASSES in mapping:
        return CLASSES
    return DEFAULT_KINDS.get(category)


def merge(base: Node, over: Node, name: str = "") -> Node:
    """``over`` merged into ``base``: mappings key by key, anything else replaced.

    A mapping with another ``kind`` is replaced, except for :data:`KIND_INDEPENDENT_KEYS`; ``switching:`` with another
    ``mode``, except for the keys of both modes. Sweeps, and loads of another form, are replaced.

    Parameters
    ----------
    base: the node to change.
    over: the changes.
    name: the key that holds ``base``.
    """
    if not (base.is_map and over.is_map) or is_sweep(base) or is_sweep(over):
        return over
    if name == "loads" and not base.value.keys() & over.value.keys():
        return over
    base_values = base.value
    kind = over.get(kind_key(name))
    if kind is not None and kind.plain() != (
        old.plain() if (old := base.get(kind_key(name))) else DEFAULT_KINDS.get(name)
    ):
        base_values = {key: base_values[key] for key in _kept_keys(base, kind.plain(), name) if key in base_values}
    merged = dict(base_values)
    for key, value in over.value.items():
        merged[key] = merge(merged[key], value, key) if key in merged else value
    return over.with_value(merged) if base_values is not base.value else base.with_value(merged)


def _kept_keys(base: Node, kind: Any, name: str) -> Collection[str]:
    """Keys of a mapping that survive a change of its kind; of ``switching:`` those that both modes have."""
    if name != "switching":
        return KIND_INDEPENDENT_KEYS.get(name, ())
    keys: Collection[str] = base.value
    with suppress(UnknownKindError, TypeError):
        keys = spec_class(name, kind).model_fields
    return keys


def is_sweep(node: Node) -> bool:
    """Whether a node is ``{sweep: ...}``."""
    return node.is_map and "sweep" in node.value


def put(root: Node, path: KeyPath, value: Node) -> Node:
    """``root`` with ``value`` at ``path``; missing mappings are created, and all options of a sweep are changed.

    Parameters
    ----------
    root: the configuration.
    path: of the key to set.
    value: its node.

    Raises
    ------
    ValueError: the path runs through a scalar or past the end of a list.
    """
    if not path:
        return value
    first, remaining = path[0], path[1:]
    if is_sweep(root) and first != "sweep" and root.value["sweep"].is_list:
        options = root.value["sweep"]
        changed = options.with_value([put(option, path, value) for option in options.value])
        return root.with_value({**root.value, "sweep": changed})
    if root.is_map:
        child = root.value.get(first, Node({}, value.file, value.line))
        return root.with_value({**root.value, first: put(child, remaining, value)})
    if root.is_list and isinstance(first, int) and first < len(root.value):
        return root.with_value(
            [put(item, remaining, value) if i == first else item for i, item in enumerate(root.value)]
        )
    if root.is_list:
        raise ValueError(f"{first} is no index of a list of {len(root.value)}")
    if root.value is None:
        return put(root.with_value({}), path, value)
    raise ValueError(f"there is nothing under the value {root.plain()!r}")


def _place(text: str) -> KeyPath:
    """The path of a key to set. Raises ``ValueError``."""
    path = parse_path(text)
    if not path:
        raise ValueError("names no key; must have the form key.path")
    if len(path) > MAX_DEPTH:
        raise ValueError(f"is nested too deeply, in more than {MAX_DEPTH} mappings and lists")
    return path


def apply_set(root: Node, text: str, diagnostics: Diagnostics) -> Node:
    """``root`` with one ``--set key.path=value`` applied; errors are added.

    Another ``switching.mode`` is merged as a case is: keys that the mode does not have are dropped.

    Parameters
    ----------
    root: the configuration.
    text: ``key.path=value``.
    diagnostics: gets invalid changes.
    """
    key, equals, value = text.partition("=")
    if not equals or not parse_path(key):
        diagnostics.reject("--set", text, "must have the form key.path=value")
        return root
    try:
        path, errors = _place(key.strip()), diagnostics.new_errors()
        node = load_text(value, "--set", diagnostics, lines=False, path=path)
        if errors:
            return root
        section = root.get(*path[:-1])
        if path[-2:] == ("switching", "mode") and section is not None and section.is_map:
            return put(root, path[:-1], merge(section, section.with_value({"mode": node}), "switching"))
        return put(root, path, node)
    except ConfigError as error:
        for one in error.errors:
            diagnostics.reject("--set", key, one.problem, value)
    except ValueError as error:
        diagnostics.reject("--set", key, str(error), value)
    return root


def apply_quick(root: Node, diagnostics: Diagnostics) -> Node:
    """``root`` with its ``quick:`` mapping merged into it; keys may be paths such as ``measure.ticks``."""
    quick = root.get("quick")
    if quick is None or not quick.is_map:
        return root
    for key, value in quick.value.items():
        try:
            path = _place(key)
            old = root.get(*path)
            root = put(root, path, merge(old, value, str(path[-1])) if old else value)
        except ValueError as error:
            diagnostics.reject(value.where, f"quick.{key}", str(error))
    return root
