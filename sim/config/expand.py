# SPDX-License-Identifier: Apache-2.0
"""Expands cases, sweeps and patterns of file names: from one configuration to one per scenario."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from glob import glob
from itertools import product
from math import log10
from pathlib import Path

from flitlab.models.registry import whole
from flitlab.sim.config.diagnostics import Diagnostics, KeyPath, key_path, show
from flitlab.sim.config.overrides import is_sweep, merge
from flitlab.sim.config.schema import Config, keys_of
from flitlab.sim.config.text import ConfigDocument, Node
from flitlab.sim.config.validation import reject_unknown_key

GLOB = "glob"
"""The key of a mapping that stands for all matching files."""


def with_files(node: Node, base: Path, diagnostics: Diagnostics, path: KeyPath = ()) -> Node:
    """A configuration with every ``{glob: ...}`` under a key ``path`` expanded to a sweep over the matching files.

    Parameters
    ----------
    node: the configuration.
    base: the folder that patterns are relative to.
    diagnostics: gets patterns without a match.
    path: of the node.
    """
    if node.is_list:
        return node.with_value([with_files(one, base, diagnostics, (*path, i)) for i, one in enumerate(node.value)])
    if not node.is_map:
        return node
    if path and path[-1] == "path" and set(node.value) == {GLOB}:
        return _files(node, base, diagnostics, path)
    return node.with_value(
        {key: with_files(inner, base, diagnostics, (*path, key)) for key, inner in node.value.items()}
    )  # fmt: skip


def _files(node: Node, base: Path, diagnostics: Diagnostics, path: KeyPath) -> Node:
    pattern = node.value[GLOB]

    def reject(problem: str) -> Node:
        diagnostics.reject(pattern.where, (*path, GLOB), problem, str(pattern.plain()))
        return node.with_value(None)

    if not isinstance(pattern.value, str) or not pattern.value.strip():
        return reject("must be a pattern of names, such as zoo/*.graphml")
    matches = sorted(glob(pattern.value, root_dir=base, recursive=True))
    files = [name for name in matches if (base / name).is_file()]
    if not files:
        return reject(f"matches no file in {base}")
    return node.with_value({"sweep": node.with_value([pattern.with_value(name) for name in files])})


SCENARIO_KEYS = (
    "topology", "capacity_of", "routing", "switching", "traffic", "transport", "application", "placement", "messages",
    "timeline", "collective", "loads", "seeds", "measure", "ceilings", "relative", "search", "metrics",
)  # fmt: skip
"""Top-level keys that may differ between scenarios."""

CASE_KEYS = ("label", "keys", "compared")
"""Keys of ``cases[]`` itself: its name in text and in columns of tables; whether published values are of it, too."""

MAX_SCENARIOS = 20_000


Label = str | int | float
"""A value in a column of tables that names scenarios."""

Swept = list[tuple[Node, dict[KeyPath, Label]]]
"""Options of a node, each with the swept values by path."""


@dataclass(frozen=True, eq=False)
class Variant:
    """The configuration of one scenario.

    Parameters
    ----------
    label: short and unique.
    keys: column of results.csv -> value, for the case and the swept keys.
    node: the configuration.
    compared: whether it is one of the scenarios that published values are of.
    """

    label: str
    keys: dict[str, Label]
    node: Node
    compared: bool = True


def expand(root: Node, name: str, diagnostics: Diagnostics) -> list[Variant]:
    """All scenarios: for each case, the product of all sweeps in the order of the file.

    Parameters
    ----------
    root: the whole configuration.
    name: label of the scenario if there is only one.
    diagnostics: gets all errors.
    """
    options: list[tuple[_Case, dict[KeyPath, Label], Node]] = []
    root = _without_common_sweeps(root, diagnostics)
    for case in _cases(root, diagnostics):
        node = case.node
        common = {key: value for key, value in node.value.items() if key not in SCENARIO_KEYS}
        varied = node.with_value({key: value for key, value in node.value.items() if key in SCENARIO_KEYS})
        for option, picks in _options(varied, (), diagnostics):
            if len(options) == MAX_SCENARIOS:
                diagnostics.reject(root.where, "", f"more than {MAX_SCENARIOS} scenarios")
                return []
            configuration = option.with_value({**common, **option.value})
            options.append((case, picks, _in_topology(configuration, diagnostics)))
    names = _short_names(list(dict.fromkeys(path for _, picks, _ in options for path in picks)))
    variants = []
    for case, picks, node in options:
        parts = [f"{names[path]}={show(value) or value}" for path, value in picks.items()]
        keys = case.keys | {key_path(path): value for path, value in picks.items()}
        label = ", ".join(parts if case.label is None else [case.label, *parts]) or name
        variants.append(Variant(label, keys, node, case.compared))
    return variants


@dataclass(frozen=True, eq=False)
class _Case:
    """A case before its sweeps are expanded. label: None for a configuration without cases."""

    label: str | None
    keys: dict[str, Label]
    node: Node
    compared: bool = True


def _in_topology(node: Node, diagnostics: Diagnostics) -> Node:
    """A configuration with a top-level ``capacity_of`` moved into ``topology``."""
    capacity_of, topology = node.get("capacity_of"), node.get("topology")
    if capacity_of is None or capacity_of.value is None or topology is None or not topology.is_map:
        return node
    if topology.get("capacity_of") is not None:
        diagnostics.reject(capacity_of.where, "capacity_of", "is also in topology: remove one of the two")
    topology = topology.with_value({**topology.value, "capacity_of": capacity_of})
    return node.with_value({**node.without("capacity_of").value, "topology": topology})


def _without_common_sweeps(root: Node, diagnostics: Diagnostics) -> Node:
    """Reject sweeps of keys that all scenarios share."""
    swept = [key for key, value in root.value.items() if key not in SCENARIO_KEYS and is_sweep(value)]
    for key in swept:
        if key in keys_of(Config):
            problem = "cannot differ between scenarios"
            diagnostics.reject(root.value[key].where, key, problem, choices=SCENARIO_KEYS)
        else:
            reject_unknown_key(ConfigDocument(root, diagnostics), (key,), sorted({*keys_of(Config), "cases"}))
    return root.without(*swept)


def _cases(root: Node, diagnostics: Diagnostics) -> Iterator[_Case]:
    """Each case with its configuration, or the configuration itself."""
    cases = root.get("cases")
    base = root.without("cases")
    if cases is None or cases.value is None:
        yield _Case(None, {}, base)
        return
    if not cases.is_list or not cases.value:
        diagnostics.reject(cases.where, "cases", "must be a list of mappings", show(cases.plain()))
        return
    seen: set[str] = set()
    for i, case in enumerate(cases.value):
        label = case.get("label").value if case.is_map and case.get("label") else None
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            problem = "each case needs a label, a text on one line"
            diagnostics.reject(case.where, f"cases[{i}].label", problem, show(label) if label else "")
            continue
        if label in seen:
            diagnostics.reject(case.where, f"cases[{i}].label", "is the label of an earlier case", label)
        seen.add(label)
        over = case.without(*CASE_KEYS).value
        for key in [key for key in over if key not in SCENARIO_KEYS]:
            location = over.pop(key).where
            if key in keys_of(Config):
                problem = "cannot differ between cases"
                diagnostics.reject(location, f"cases[{i}].{key}", problem, choices=SCENARIO_KEYS)
            else:
                reject_unknown_key(ConfigDocument(root, diagnostics), ("cases", i, key), [*CASE_KEYS, *SCENARIO_KEYS])
        compared = case.get("compared")
        if compared is not None and not isinstance(compared.value, bool):
            diagnostics.reject(compared.where, f"cases[{i}].compared", "must be true or false", show(compared.plain()))
        keys = _keys(case, label, f"cases[{i}].keys", diagnostics)
        yield _Case(label, keys, merge(base, base.with_value(over)), compared is None or compared.value is not False)


def _keys(case: Node, label: str, path: str, diagnostics: Diagnostics) -> dict[str, Label]:
    """The columns of a case and their values; by default only its label."""
    columns = case.get("keys")
    if columns is None:
        return {"case": label}
    keys = columns.plain()
    if not isinstance(keys, dict) or not all(isinstance(one, str | int | float) for one in keys.values()):
        diagnostics.reject(columns.where, path, "must be a mapping of columns to texts or numbers", show(keys))
        return {}
    for key in keys:
        if key != "case" and re.split(r"[.\[]", str(key))[0] not in SCENARIO_KEYS:
            diagnostics.reject(columns.value[key].where, f"{path}.{key}", "is no key that can be swept")
    return keys


def _options(node: Node, path: KeyPath, diagnostics: Diagnostics) -> Swept:
    """All combinations of the sweeps in a node, each with the swept values by path."""
    if is_sweep(node):
        return _sweep(node, path, diagnostics)
    if node.is_map:
        children = [(key, _options(child, (*path, key), diagnostics)) for key, child in node.value.items()]
    elif node.is_list:
        children = [(i, _options(child, (*path, i), diagnostics)) for i, child in enumerate(node.value)]
    else:
        return [(node, {})]
    if all(len(options) == 1 and not options[0][1] for _, options in children):
        return [(node, {})]
    combinations: Swept = []
    for combination in product(*(options for _, options in children)):
        nodes = [child for child, _ in combination]
        picks = {place: value for _, chosen in combination for place, value in chosen.items()}
        value = dict(zip(node.value, nodes, strict=True)) if node.is_map else nodes
        combinations.append((node.with_value(value), picks))
        if len(combinations) > MAX_SCENARIOS:
            break
    return combinations


def _sweep(node: Node, path: KeyPath, diagnostics: Diagnostics) -> Swept:
    key, options = key_path(path), node.value["sweep"]
    try:
        options = _range(options)
    except ValueError as error:
        diagnostics.reject(options.where, f"{key}.sweep", str(error))
        return []
    for other in node.value:
        if other != "sweep":
            diagnostics.reject(node.value[other].where, f"{key}.{other}", "is not allowed beside sweep")
    if not options.is_list or not options.value:
        problem = "must be a list of values, {from, to, step} or {from, to, per_decade}"
        diagnostics.reject(options.where, f"{key}.sweep", problem, show(options.plain()))
        return []
    labels = option_labels([option.plain() for option in options.value])
    variants = []
    for option, label in zip(options.value, labels, strict=True):
        if labels.count(label) > 1:
            diagnostics.reject(option.where, f"{key}.sweep", "is listed twice", show(label))
        variants += [(inner, {path: label, **picks}) for inner, picks in _options(option, path, diagnostics)]
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


def option_labels(options: Sequence[object]) -> list[Label]:
    """The label of each option of a sweep: a scalar's value; a mapping's kind and the keys that differ.

    >>> option_labels([6, 8])
    [6, 8]
    >>> option_labels([{"kind": "minimal", "select": "hash"}, {"kind": "minimal"}, {"kind": "deflection"}])
    ['minimal select=hash', 'minimal', 'deflection']
    """
    return [_option_label(option, options) for option in options]


def _option_label(option: object, options: Sequence[object]) -> Label:
    if not isinstance(option, dict):
        return option if isinstance(option, int | float | str) else (show(option) or str(option))
    kind = option.get("kind")
    same_kind = [other for other in options if isinstance(other, dict) and other.get("kind") == kind]
    plain = {key: value for key, value in option.items() if not (isinstance(value, dict) and "sweep" in value)}
    differing = [key for key in plain if key != "kind" and any(other.get(key) != plain[key] for other in same_kind)]
    parts = [f"{key}={show(option[key]) or option[key]}" for key in differing]
    return " ".join([str(kind)] * ("kind" in option) + parts) or "{}"


def _short_names(paths: Sequence[KeyPath]) -> dict[KeyPath, str]:
    """The last key of each path if that is unique, else the whole path."""
    last = [path[-1] for path in paths]
    return {
        path: str(path[-1]) if last.count(path[-1]) == 1 and isinstance(path[-1], str) else key_path(path)
        for path in paths
    }
