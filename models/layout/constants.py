# SPDX-License-Identifier: Apache-2.0
"""Constants of the layout, cost and power models: ``constants.yaml``, or a user's own values."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.closest_match import closest_match

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


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


class Cable(_Part):
    """Prices of cables, and the rule that chooses between electric and optical ones."""

    gbps: Positive
    electric: Price
    optical: Price
    reach: NotNegative | None
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
def _shipped() -> dict[str, Any]:
    constants: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("constants.yaml").read_text(encoding="utf-8"))
    return constants


def load(source: str | dict[str, Any] | None = None) -> Constants:
    """Load the shipped constants, with those replaced that a YAML file or a mapping names.

    Raises ``ValueError`` that names the file and the key: no such file, not YAML, an unknown key, a bad value.
    """
    text, changes = "", source
    if isinstance(source, str):
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
        raise ValueError(f"{where}a mapping with some of {', '.join(_shipped())} is expected")
    try:
        return Constants.model_validate(_merged(_shipped(), changes))
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


def _line_of(text: str, path: Sequence[Any]) -> int:
    """Return the line of the value at a path of keys in a YAML text, or of its nearest existing parent."""
    node, line = (yaml.compose(text) if text else None), 1
    for step in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        matches = [(key, value) for key, value in pairs if key.value == step]
        if not matches:
            break
        line, node = matches[0][0].start_mark.line + 1, matches[0][1]
    return line


def _merged(base: Any, changes: Any) -> Any:
    """Return ``base`` with the leaves that ``changes`` names replaced."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return base | {key: _merged(base.get(key), value) for key, value in changes.items()}


def _value_at(tree: Any, path: Sequence[str]) -> Any:
    for key in path:
        tree = tree[key]
    return tree
