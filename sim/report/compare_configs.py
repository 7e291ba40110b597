"""What the configurations of several runs differ in, besides what was swept."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

IGNORED = (
    "schema", "name", "label", "cases", "outputs", "published", "plugins", "quick", "loads", "seeds", "ceilings",
    "metrics", "engine",
)  # fmt: skip
"""Keys that say how often and where one looks, and not at what: curves may differ in them. Engines agree."""

FOLLOWING = ("switching.mode", "switching.allocator", "switching.hold_packets", "switching.slotted")
"""Keys that ``routing.kind: deflection`` decides."""

PARTS = ("topology", "routing", "traffic")
"""What the manifest has the content hash of."""


@dataclass(frozen=True)
class Configuration:
    """What was run. values: key -> its values over all scenarios, as JSON. swept: keys that differ between scenarios.

    hashes: topology, routing or traffic -> content hashes over all scenarios.
    """

    values: dict[str, frozenset[str]]
    swept: frozenset[str]
    hashes: dict[str, frozenset[str]]

    @classmethod
    def read(cls, folder: Path, manifest: dict[str, Any]) -> "Configuration":
        """Of a run folder. Raises ``OSError`` or ``ValueError`` if its resolved configuration cannot be read."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            document = yaml.load((folder / "config.resolved.yaml").read_bytes(), loader)
        except yaml.YAMLError as error:
            raise ValueError(f"config.resolved.yaml is no YAML: {' '.join(str(error).split())}") from None
        if not isinstance(document, dict):
            raise ValueError("config.resolved.yaml is no mapping")
        common = {key: value for key, value in document.items() if key not in IGNORED}
        scenarios = [_flat({**common, **case}) for case in document.get("cases") or [{}]]
        found = {key: frozenset(one[key] for one in scenarios if key in one) for one in scenarios for key in one}
        found["semantics_version"] = frozenset([json.dumps(manifest.get("semantics_version"))])
        differing = {key for key in found if len({one.get(key) for one in scenarios}) > 1}
        described = [one for one in manifest.get("scenarios", ()) if isinstance(one, dict)]
        hashes = {part: frozenset(one[part]["hash"] for one in described if part in one) for part in PARTS}
        return cls(found, frozenset({*differing, *manifest.get("columns", ())} - {"semantics_version"}), hashes)


def _flat(scenario: dict[str, Any]) -> dict[str, str]:
    """Key path -> value as JSON, without what follows from other keys."""
    routing = scenario.get("routing")
    follows = isinstance(routing, dict) and routing.get("kind") == "deflection"
    leaves = {path: json.dumps(value) for path, value in _leaves(scenario, "")}
    return {path: value for path, value in leaves.items() if not (follows and path in FOLLOWING)}


def _leaves(value: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if path or key not in IGNORED:
            where = f"{path}.{key}" if path else str(key)
            if isinstance(inner, dict):
                yield from _leaves(inner, where)
            else:
                yield where, inner


def differences(configurations: Sequence[Configuration], allowed: Collection[str] = ()) -> list[str]:
    """One line for each key in which runs differ although neither of them swept it and it is not allowed.

    allowed: keys; what stands below them may differ too.
    """
    may = {*allowed, *(key for one in configurations for key in one.swept)}
    keys = dict.fromkeys(key for one in configurations for key in one.values)
    differing = [key for key in keys if _differs(key, [one.values.get(key, frozenset()) for one in configurations])]
    lines = [
        f"{key}: {' | '.join(_shown(one.values.get(key, frozenset())) for one in configurations)}"
        for key in differing if not _is_below(key, may)
    ]  # fmt: skip
    for part in PARTS:
        on_what = (part, "topology")
        explained = any(_is_below(key, on_what) for key in [*differing, *may])
        if not explained and len({one.hashes[part] for one in configurations if one.hashes[part]}) > 1:
            lines.append(f"{part}: equal in the configurations, but another one was built (a file has changed?)")
    return lines


def _differs(key: str, values: Sequence[frozenset[str]]) -> bool:
    if key in FOLLOWING:
        values = [one for one in values if one]
    return len(set(values)) > 1


def _is_below(key: str, keys: Collection[str]) -> bool:
    return any(key == one or key.startswith(f"{one}.") for one in keys)


def _shown(values: frozenset[str]) -> str:
    return ", ".join(sorted(value.strip('"') for value in values)) or "-"
