# SPDX-License-Identifier: Apache-2.0
"""Differences between the configurations of several runs, besides swept keys."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from flitlab.models.files import read_file
from flitlab.models.mappings import JsonObject
from flitlab.sim.config.values import read_resolved, scenarios_of, shown, values_of

IGNORED = (
    "schema", "name", "label", "cases", "outputs", "published", "chosen", "plugins", "quick", "loads", "seeds",
    "ceilings", "metrics", "engine",
)  # fmt: skip
"""Keys that do not affect the measured system: curves may differ in them."""

FOLLOWING = ("switching.mode", "switching.allocator", "switching.hold_packets", "switching.slotted")
"""Keys that ``routing.kind: deflection`` decides."""

DERIVED = {"measure.ticks": "measure.max_ticks"}
"""Keys -> another one whose default they decide."""

PARTS = ("topology", "routing", "traffic")
"""Parts with a content hash in the manifest."""


@dataclass(frozen=True)
class Configuration:
    """The configuration of a run. values: key -> values over all scenarios, as JSON. swept: keys that differ between
    them.

    changed: keys set by ``--set``. hashes: topology, routing or traffic -> content hashes over all scenarios.
    """

    values: dict[str, frozenset[str]]
    swept: frozenset[str]
    changed: frozenset[str]
    hashes: dict[str, frozenset[str]]

    @classmethod
    def read(cls, folder: Path, manifest: JsonObject) -> "Configuration":
        """Return the configuration of the run in a folder.

        Raises ``OSError`` or ``ValueError`` if its resolved configuration cannot be read.
        """
        document = read_resolved(read_file(folder / "config.resolved.yaml"))
        scenarios = [_independent(one) for one in scenarios_of(document, IGNORED)]
        values = values_of(scenarios)
        values["semantics_version"] = frozenset([json.dumps(manifest.get("semantics_version"))])
        differing = {key for key in values if len({one.get(key) for one in scenarios}) > 1}
        described = [one for one in manifest.get("scenarios", ()) if isinstance(one, dict)]
        hashes = {part: frozenset(one[part]["hash"] for one in described if part in one) for part in PARTS}
        swept = frozenset({*differing, *manifest.get("columns", ())} - {"semantics_version"})
        sets = [one.removeprefix("--set ") for one in manifest.get("changes", ()) if one.startswith("--set ")]
        return cls(values, swept, frozenset(one.partition("=")[0].strip() for one in sets), hashes)


def _independent(scenario: dict[str, str]) -> dict[str, str]:
    """Return a scenario without keys that follow from others."""
    follows = scenario.get("routing.kind") == '"deflection"'
    return {path: value for path, value in scenario.items() if not (follows and path in FOLLOWING)}


def differences(configurations: Sequence[Configuration], allowed: Collection[str] = ()) -> list[str]:
    """Return one line for each key in which runs differ although none of them swept it or set it by ``--set``.

    allowed: keys that may differ, with all keys below them.
    """
    may = {*allowed, *(key for one in configurations for key in one.swept | one.changed)}
    may |= {DERIVED[key] for key in may & DERIVED.keys()}
    differing = _differing(configurations)
    lines = [_line(key, configurations) for key in differing if not _is_below(key, may)]
    for part in PARTS:
        on_what = (part, "topology")
        explained = any(_is_below(key, on_what) for key in [*differing, *may])
        if not explained and len({one.hashes[part] for one in configurations if one.hashes[part]}) > 1:
            lines.append(f"{part}: equal in the configurations, but another one was built (a file has changed?)")
    return lines


def changed(configurations: Sequence[Configuration]) -> list[str]:
    """Return one line for each key in which runs differ by ``--set``."""
    keys = {key for one in configurations for key in one.changed}
    return [_line(key, configurations) for key in _differing(configurations) if _is_below(key, keys)]


def _differing(configurations: Sequence[Configuration]) -> list[str]:
    keys = dict.fromkeys(key for one in configurations for key in one.values)
    return [key for key in keys if _differs(key, [one.values.get(key, frozenset()) for one in configurations])]


def _line(key: str, configurations: Sequence[Configuration]) -> str:
    return f"{key}: {' | '.join(shown(one.values.get(key, frozenset())) for one in configurations)}"


def _differs(key: str, values: Sequence[frozenset[str]]) -> bool:
    if key in FOLLOWING:
        values = [one for one in values if one]
    return len(set(values)) > 1


def _is_below(key: str, keys: Collection[str]) -> bool:
    return any(key == one or key.startswith(f"{one}.") for one in keys)
