# SPDX-License-Identifier: Apache-2.0
"""The values of the keys of resolved configurations, over all scenarios, and the differences of two of them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

import yaml

from flitlab.models.mappings import Keys

Values = dict[str, frozenset[str]]
"""Key path -> its values over all scenarios, as JSON."""

NAMES = ("schema", "name", "label", "keys", "compared")
"""Keys that results do not depend on."""

MAX_SHOWN_LENGTH = 60
"""Characters of a value in a list of differences; longer values are truncated."""


def read_resolved(text: bytes) -> Keys:
    """The mapping in ``config.resolved.yaml``. Raises ``ValueError`` for anything else."""
    try:
        document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"config.resolved.yaml is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise ValueError("config.resolved.yaml is no mapping")
    cases = document.get("cases", [])
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise ValueError("config.resolved.yaml: cases is no list of mappings")
    return document


def scenarios_of(resolved: Keys, without: Collection[str] = NAMES) -> list[dict[str, str]]:
    """Key path -> value as JSON, for every scenario. without: top-level keys to leave out."""
    common = {key: value for key, value in resolved.items() if key != "cases"}
    merged = ({**common, **case} for case in resolved.get("cases") or [{}])
    return [
        {path: json.dumps(value, default=str) for path, value in _leaves(one, "") if path.split(".")[0] not in without}
        for one in merged
    ]


def values_of(scenarios: Sequence[Mapping[str, str]]) -> Values:
    """All values of every key, over some scenarios."""
    values: dict[str, set[str]] = {}
    for one in scenarios:
        for key, value in one.items():
            values.setdefault(key, set()).add(value)
    return {key: frozenset(values) for key, values in values.items()}


def shown(values: Collection[str]) -> str:
    """The values of a key as text, '-' for none."""
    return ", ".join(sorted(value.strip('"') for value in values)) or "-"


def changes(before: Keys, now: Keys) -> list[str]:
    """``key (value -> value)`` for every key whose values differ between two resolved configurations.

    >>> changes({"seeds": [1], "topology": {"n": 4}}, {"seeds": [1, 2], "topology": {"n": 4}})
    ['seeds ([1] -> [1, 2])']
    """
    old, new = values_of(scenarios_of(before)), values_of(scenarios_of(now))
    keys = [key for key in dict.fromkeys((*new, *old)) if old.get(key) != new.get(key)]
    return [f"{key} ({_cut(shown(old.get(key, ())))} -> {_cut(shown(new.get(key, ())))})" for key in keys]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}..."


def _leaves(value: Mapping[object, object], path: str) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        where = f"{path}.{key}" if path else str(key)
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, where)
        else:
            yield where, inner
