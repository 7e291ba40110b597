# SPDX-License-Identifier: Apache-2.0
"""Constants of the layout, cost and power models: ``constants.yaml``, or a user's own values."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.closest_match import closest_match
from flitlab.models.layout.design_prices import cable_prices_by_length, design_prices, profiles
from flitlab.models.mappings import Keys

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

DEFAULT = "slimfly2014"
"""The profile of prices whose constants are those of ``constants.yaml``."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """Floor plan: distance of cabinets, and cable lengths in metres."""

    switches_per_cabinet: Annotated[int, Field(ge=1)]
    pitch: tuple[Positive, Positive]
    intra_cabinet: NotNegative
    overhead: NotNegative


class Price(_Part):
    """Dollars per Gbit/s of a cable: fixed + per_metre * length."""

    fixed: NotNegative
    per_metre: NotNegative


class Installation(_Part):
    """Dollars for the installation of a cable of capacity 1, within a cabinet and between cabinets."""

    within: NotNegative
    between: NotNegative


class Cable(_Part):
    """Prices of cables, the power of optical ones, and the rule that chooses between electric and optical ones."""

    gbps: Positive
    electric: Price
    optical: Price
    reach: NotNegative | None
    installation: Installation
    optic_watts: NotNegative
    one_way: NotNegative


class Switch(_Part):
    """Price and power of a switch."""

    fixed: Annotated[float, Field(allow_inf_nan=False)]
    per_port: NotNegative
    watts_per_port: NotNegative


class Constants(_Part):
    """All constants of a layout, as in ``constants.yaml``."""

    floor: Floor
    cable: Cable
    switch: Switch


@cache
def _shipped() -> Keys:
    constants: Keys = yaml.safe_load(Path(__file__).with_name("constants.yaml").read_text(encoding="utf-8"))
    return constants


REACH = 3.0
"""The longest copper cable of a profile whose prices do not depend on the length, in metres."""


MEDIA = ("electric", "optical")
"""Kinds of cables."""


@cache
def _base(profile: str | None) -> Keys:
    """The shipped constants, or those of a profile of ``design_prices.yaml``."""
    shipped = _shipped()
    if profile is None or profile == DEFAULT:
        return shipped
    prices, cables = design_prices(profile), cable_prices_by_length(profile)
    if cables is None:
        cables = {
            "electric": {"fixed": prices.copper, "per_metre": 0.0},
            "optical": {"fixed": 2 * prices.optic + prices.fibre, "per_metre": 0.0}, "reach": REACH,
        }  # fmt: skip
    per_gbps = {kind: {key: value / prices.gbps for key, value in cables[kind].items()} for kind in MEDIA}
    cable = {**cables, **per_gbps, "gbps": prices.gbps, "optic_watts": prices.optic_watts}
    switch = {
        "fixed": prices.switch_fixed, "per_port": prices.switch_port, "watts_per_port": prices.switch_port_watts,
    }  # fmt: skip
    return _merged(shipped, {"cable": cable, "switch": switch})  # type: ignore[no-any-return]


def load(source: str | Keys | None = None) -> Constants:
    """Load the shipped constants, or those of a profile, with those replaced that a YAML file or a mapping names.

    source: a file, the name of a profile of prices (:func:`~flitlab.models.layout.design_prices.profiles`), or a
    mapping, whose key ``profile`` names one.

    Raises ``ValueError`` that names the file and the key: no such file, not YAML, an unknown key or profile, a bad
    value.
    """
    text, changes, profile = "", source, None
    if isinstance(source, str) and source in profiles():
        changes, profile = None, source
    elif isinstance(source, str):
        try:
            text = Path(source).read_text(encoding="utf-8")
            changes = yaml.safe_load(text)
        except OSError as error:
            raise ValueError(f"{source}: {error.strerror}") from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"{source}: not YAML: {error}") from None
    if changes is None:
        changes = {}
    if not isinstance(changes, dict):
        where = f"{source}: " if text else ""
        raise ValueError(f"{where}a mapping with some of profile, {', '.join(_shipped())} is expected")
    if "profile" in changes:
        profile = changes["profile"]
        changes = {key: value for key, value in changes.items() if key != "profile"}
        if profile not in profiles():
            where = f"{source}:{_line_of(text, ['profile'])}: " if text else ""
            raise ValueError(f"{where}profile = {profile}: unknown profile; choices: {', '.join(profiles())}")
    try:
        return Constants.model_validate(_merged(_base(profile), changes))
    except ValidationError as error:
        wrong = [(_line_of(text, one["loc"]), _error_text(one)) for one in error.errors()]
        named = [f"{source}:{line}: {problem}" if text else problem for line, problem in sorted(wrong)]
        raise ValueError("; ".join(named)) from None


def _error_text(error: Any) -> str:
    """Convert an error of pydantic to text: the key, and what is wrong with it."""
    key = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{key} = {error['input']}: {error['msg'].replace('Input should', 'must')}"
    choices = list(_value_at(_shipped(), error["loc"][:-1]))
    suggestion = closest_match(str(error["loc"][-1]), choices)
    return f"{key}: unknown key; choices: {', '.join(choices)}" + (
        f"; did you mean {suggestion!r}?" if suggestion else ""
    )


def _line_of(text: str, path: Sequence[object]) -> int:
    """Return the line of the value at a path of keys in a YAML text, or of its nearest existing parent."""
    node, line = (yaml.compose(text) if text else None), 1
    for step in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        matches = [(key, value) for key, value in pairs if key.value == step]
        if not matches:
            break
        line, node = matches[0][0].start_mark.line + 1, matches[0][1]
    return line


def _merged(base: object, changes: object) -> Any:
    """Return ``base`` with the leaves that ``changes`` names replaced."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return base | {key: _merged(base.get(key), value) for key, value in changes.items()}


def _value_at(tree: Any, path: Sequence[str]) -> Any:
    for key in path:
        tree = tree[key]
    return tree
