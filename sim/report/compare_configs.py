# SPDX-License-Identifier: Apache-2.0
"""What the configurations of several runs differ in, besides what was swept."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flitlab.models.files import read_file
from flitlab.sim.config.values import read_resolved, scenarios_of, shown, values_of

IGNORED = (
    "schema", "name", "label", "cases", "outputs", "published", "chosen", "plugins", "quick", "loads", "seeds",
    "ceilings", "metrics", "engine",
)  # fmt: skip
"""Keys that say how often and where one looks, and not at what: curves may differ in them. Engines agree."""

FOLLOWING = ("switching.mode", "switching.allocator", "switching.hold_packets", "switching.slotted")
"""Keys that ``routing.kind: deflection`` decides."""

PARTS = ("topology", "routing", "traffic")
"""What the manifest has the content hash of."""


@dataclass(frozen=True)
class Configuration:
    """What was run. values: key -> its values over all scenarios, as JSON. swept: keys that differ between scenarios.

    changed: keys that were given another value than the file has, by ``--set``.
    hashes: topology, routing or traffic -> content hashes over all scenarios.
    """

    values: dict[str, frozenset[str]]
    swept: frozenset[str]
    changed: frozenset[str]
    hashes: dict[str, frozenset[str]]

    @classmethod
    def read(cls, folder: Path, manifest: dict[str, Any]) -> "Configuration":
        """The configuration of the run in a folder.

        Raises ``OSError`` or ``ValueError`` if what was resolved of it cannot be read.
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
    """Without what follows from other keys."""
    follows = scenario.get("routing.kind") == '"deflection"'
    return {path: value for path, value in scenario.items() if not (follows and path in FOLLOWING)}


def differences(configurations: Sequence[Configuration], allowed: Collection[str] = ()) -> list[str]:
    """One line for each key in which runs differ although none of them swept it or was given it by ``--set``.

    allowed: keys that may differ all the same; what stands below them may, too.
    """
    may = {*allowed, *(key for one in configurations for key in one.swept | one.changed)}
    differing = _differing(configurations)
    lines = [_line(key, configurations) for key in differing if not _is_below(key, may)]
    for part in PARTS:
        on_what = (part, "topology")
        explained = any(_is_below(key, on_what) for key in [*differing, *may])
        if not explained and len({one.hashes[part] for one in configurations if one.hashes[part]}) > 1:
            lines.append(f"{part}: equal in the configurations, but another one was built (a file has changed?)")
    return lines


def changed(configurations: Sequence[Configuration]) -> list[str]:
    """One line for each key in which runs differ because one of them was given it by ``--set``."""
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
