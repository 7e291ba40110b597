# SPDX-License-Identifier: Apache-2.0
"""Expands cases and sweeps: from one configuration to one per scenario."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import log10
from typing import Any

from flitlab.models.registry import whole
from flitlab.sim.config.check import reject_unknown_key
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import Diagnostic, key_path, show
from flitlab.sim.config.keys import keys_of
from flitlab.sim.config.load import KeyPath, Node
from flitlab.sim.config.overrides import is_sweep, merge
from flitlab.sim.config.schema import Config

SCENARIO_KEYS = (
    "topology",
    "capacity_of",
    "routing",
    "switching",
    "traffic",
    "transport",
    "application",
    "placement",
    "messages",
    "timeline",
    "collective",
    "loads",
    "seeds",
    "measure",
    "ceilings",
    "relative",
    "search",
    "metrics",
)
"""Top-level keys that may differ between scenarios."""

CASE_KEYS = ("label", "keys")
"""Keys of ``cases[]`` that name a scenario, in text and in columns of tables."""

MAX_SCENARIOS = 20_000


@dataclass(frozen=True, eq=False)
class Variant:
    """The configuration of one scenario.

    Parameters
    ----------
    label: short and unique.
    keys: column of results.csv -> value, for the case and the swept keys.
    node: the configuration.
    """

    label: str
    keys: dict[str, Any]
    node: Node


def expand(root: Node, name: str, errors: list[Diagnostic]) -> list[Variant]:
    """All scenarios: for each case, the product of all sweeps in the order of the file.

    Parameters
    ----------
    root: the whole configuration.
    name: label of the scenario if there is only one.
    errors: gets all errors.
    """
    options: list[tuple[str | None, dict[str, Any], dict[KeyPath, Any], Node]] = []
    root = _without_common_sweeps(root, errors)
    for label, keys, node in _cases(root, errors):
        common = {key: value for key, value in node.value.items() if key not in SCENARIO_KEYS}
        varied = node.with_value({key: value for key, value in node.value.items() if key in SCENARIO_KEYS})
        for option, picks in _options(varied, (), errors):
            if len(options) == MAX_SCENARIOS:
                errors.append(Diagnostic(root.where, "", "", f"more than {MAX_SCENARIOS} scenarios"))
                return []
            configuration = option.with_value({**common, **option.value})
            options.append((label, keys, picks, _in_topology(configuration, errors)))
    names = _short_names(list(dict.fromkeys(path for _, _, picks, _ in options for path in picks)))
    variants = []
    for label, keys, picks, node in options:
        parts = [f"{names[path]}={show(value) or value}" for path, value in picks.items()]
        keys = keys | {key_path(path): value for path, value in picks.items()}
        variants.append(Variant(", ".join(parts if label is None else [label, *parts]) or name, keys, node))
    return variants


def _in_topology(node: Node, errors: list[Diagnostic]) -> Node:
    """A configuration with a top-level ``capacity_of`` moved into ``topology``."""
    capacity_of, topology = node.get("capacity_of"), node.get("topology")
    if capacity_of is None or capacity_of.value is None or topology is None or not topology.is_map:
        return node
    if topology.get("capacity_of") is not None:
        errors.append(Diagnostic(capacity_of.where, "capacity_of", "", "is also in topology: remove one of the two"))
    rest = {key: value for key, value in node.value.items() if key != "capacity_of"}
    return node.with_value({**rest, "topology": topology.with_value({**topology.value, "capacity_of": capacity_of})})


def _without_common_sweeps(root: Node, errors: list[Diagnostic]) -> Node:
    """Reject sweeps of keys that all scenarios share."""
    swept = [key for key, value in root.value.items() if key not in SCENARIO_KEYS and is_sweep(value)]
    for key in swept:
        if key in keys_of(Config):
            problem = "cannot differ between scenarios"
            errors.append(Diagnostic(root.value[key].where, key, "", problem, SCENARIO_KEYS))
        else:
            reject_unknown_key(ConfigDocument(root, errors), (key,), sorted({*keys_of(Config), "cases"}))
    return root.with_value({key: value for key, value in root.value.items() if key not in swept})


def _cases(root: Node, errors: list[Diagnostic]) -> Iterator[tuple[str | None, dict[str, Any], Node]]:
    """(label, keys, configuration) of each case, or of the configuration itself."""
    cases = root.get("cases")
    base = root.with_value({key: value for key, value in root.value.items() if key != "cases"})
    if cases is None or cases.value is None:
        yield None, {}, base
        return
    if not cases.is_list or not cases.value:
        errors.append(Diagnostic(cases.where, "cases", show(cases.plain()), "must be a list of mappings"))
        return
    seen: set[str] = set()
    for i, case in enumerate(cases.value):
        label = case.get("label").value if case.is_map and case.get("label") else None
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            errors.append(
                Diagnostic(
                    case.where,
                    f"cases[{i}].label",
                    show(label) if label else "",
                    "each case needs a label, a text on one line",
                )
            )
            continue
        if label in seen:
            errors.append(Diagnostic(case.where, f"cases[{i}].label", label, "is the label of an earlier case"))
        seen.add(label)
        over = {key: value for key, value in case.value.items() if key not in CASE_KEYS}
        for key in [key for key in over if key not in SCENARIO_KEYS]:
            location = over.pop(key).where
            if key in keys_of(Config):
                problem = "cannot differ between cases"
                errors.append(Diagnostic(location, f"cases[{i}].{key}", "", problem, SCENARIO_KEYS))
            else:
                reject_unknown_key(ConfigDocument(root, errors), ("cases", i, key), [*CASE_KEYS, *SCENARIO_KEYS])
        yield label, _keys(case, label, f"cases[{i}].keys", errors), merge(base, base.with_value(over))


def _keys(case: Node, label: str, path: str, errors: list[Diagnostic]) -> dict[str, Any]:
    """The columns of a case and their values; by default only its label."""
    columns = case.get("keys")
    if columns is None:
        return {"case": label}
    keys = columns.plain()
    if not isinstance(keys, dict) or not all(isinstance(one, str | int | float) for one in keys.values()):
        errors.append(Diagnostic(columns.where, path, show(keys), "must be a mapping of columns to texts or numbers"))
        return {}
    for key in keys:
        if key != "case" and re.split(r"[.\[]", str(key))[0] not in SCENARIO_KEYS:
            errors.append(Diagnostic(columns.value[key].where, f"{path}.{key}", "", "is no key that can be swept"))
    return keys


def _options(node: Node, path: KeyPath, errors: list[Diagnostic]) -> list[tuple[Node, dict[KeyPath, Any]]]:
    """All combinations of the sweeps in a node, each with the swept values by path."""
    if is_sweep(node):
        return _sweep(node, path, errors)
    if node.is_map:
        children = [(key, _options(child, (*path, key), errors)) for key, child in node.value.items()]
        rebuild: Any = dict
    elif node.is_list:
        children = [(i, _options(child, (*path, i), errors)) for i, child in enumerate(node.value)]
        rebuild = _values
    else:
        return [(node, {})]
    if all(len(options) == 1 and not options[0][1] for _, options in children):
        return [(node, {})]
    combinations: list[tuple[Node, dict[KeyPath, Any]]] = []
    for combination in product(*(options for _, options in children)):
        pairs = [(key, child) for (key, _), (child, _) in zip(children, combination, strict=True)]
        picks = {place: value for _, chosen in combination for place, value in chosen.items()}
        combinations.append((node.with_value(rebuild(pairs)), picks))
        if len(combinations) > MAX_SCENARIOS:
            break
    return combinations


def _values(pairs: Sequence[tuple[Any, Node]]) -> list[Node]:
    return [value for _, value in pairs]


def _sweep(node: Node, path: KeyPath, errors: list[Diagnostic]) -> list[tuple[Node, dict[KeyPath, Any]]]:
    key, options = key_path(path), node.value["sweep"]
    try:
        options = _range(options)
    except ValueError as error:
        errors.append(Diagnostic(options.where, f"{key}.sweep", "", str(error)))
        return []
    for other in node.value:
        if other != "sweep":
            errors.append(Diagnostic(node.value[other].where, f"{key}.{other}", "", "is not allowed beside sweep"))
    if not options.is_list or not options.value:
        problem = "must be a list of values, {from, to, step} or {from, to, per_decade}"
        errors.append(Diagnostic(options.where, f"{key}.sweep", show(options.plain()), problem))
        return []
    labels = option_labels([option.plain() for option in options.value])
    variants = []
    for option, label in zip(options.value, labels, strict=True):
        if labels.count(label) > 1:
            errors.append(Diagnostic(option.where, f"{key}.sweep", show(label), "is listed twice"))
        variants += [(inner, {path: label, **picks}) for inner, picks in _options(option, path, errors)]
    return variants


def _range(options: Node) -> Node:
    """The values of ``{from, to, step}``, ends included; any other node unchanged.

    Raises ``ValueError`` for an invalid range, or one that is too long.
    """
    if options.is_map and set(options.value) == {"from", "to", "per_decade"}:
        return _spaced(options)
    if not options.is_map or set(options.value) != {"from", "to", "step"}:
        return options
    bounds = [options.value[key].value for key in ("from", "to", "step")]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in bounds):
        raise ValueError("from, to and step must be numbers")
    first, last, step = (Decimal(repr(value)) for value in bounds)
    if not all(value.is_finite() for value in (first, last, step)):
        raise ValueError("from, to and step must be finite")
    if step <= 0 or first > last:
        raise ValueError("step must be above 0" if step <= 0 else "from is above to")
    if last - first >= MAX_SCENARIOS * step:
        raise ValueError(f"more than {MAX_SCENARIOS:,} values are too many")
    integers = isinstance(bounds[0], int) and isinstance(bounds[2], int)
    values = [first + i * step for i in range(int((last - first) / step) + 1)]
    return options.with_value([options.with_value(int(value) if integers else float(value)) for value in values])


def _spaced(options: Node) -> Node:
    """The values of ``{from, to, per_decade}``, in geometric steps, ends included.

    Raises ``ValueError`` for an invalid range, or one that is too long.
    """
    first, last, per_decade = (whole(options.value[key].value) for key in ("from", "to", "per_decade"))
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in (first, last, per_decade)):
        raise ValueError("from, to and per_decade must be numbers")
    if not 0 < first <= last < float("inf") or not 0 < per_decade <= MAX_SCENARIOS:
        raise ValueError("from must be above 0 and at most to, and per_decade above 0")
    steps = max(1, round((log10(last) - log10(first)) * per_decade)) if last > first else 0
    if steps >= MAX_SCENARIOS:
        raise ValueError(f"more than {MAX_SCENARIOS:,} values are too many")
    values = [first * (last / first) ** (i / max(steps, 1)) for i in range(steps + 1)]
    integers = isinstance(first, int) and isinstance(last, int)
    distinct = dict.fromkeys(round(value) if integers else value for value in values)
    return options.with_value([options.with_value(value) for value in distinct])


def option_labels(options: Sequence[Any]) -> list[Any]:
    """The label of each option of a sweep: a scalar's value; a mapping's kind and the keys that differ.

    >>> option_labels([6, 8])
    [6, 8]
    >>> option_labels([{"kind": "minimal", "select": "hash"}, {"kind": "minimal"}, {"kind": "deflection"}])
    ['minimal select=hash', 'minimal', 'deflection']
    """
    return [_option_label(option, options) for option in options]


def _option_label(option: Any, options: Sequence[Any]) -> Any:
    if not isinstance(option, dict):
        return option if isinstance(option, int | float | str) else (show(option) or str(option))
    kind = option.get("kind")
    same_kind = [other for other in options if isinstance(other, dict) and other.get("kind") == kind]
    differing = [
        key for key, value in option.items()
        if key != "kind" and any(other.get(key) != value for other in same_kind) and not _is_plain_sweep(value)
    ]  # fmt: skip
    parts = [f"{key}={show(option[key]) or option[key]}" for key in differing]
    return " ".join([str(kind)] * ("kind" in option) + parts) or "{}"


def _is_plain_sweep(value: Any) -> bool:
    return isinstance(value, dict) and "sweep" in value


def _short_names(paths: Sequence[KeyPath]) -> dict[KeyPath, str]:
    """The last key of each path if that is unique, else the whole path."""
    last = [path[-1] for path in paths]
    return {
        path: str(path[-1]) if last.count(path[-1]) == 1 and isinstance(path[-1], str) else key_path(path)
        for path in paths
    }
