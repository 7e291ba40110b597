"""Constants of the layout, cost and power models: ``constants.yaml``, or what a user puts in their place."""

from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Floor(_Part):
    """Where cabinets stand and how long a cable is, in metres."""

    switches_per_cabinet: Annotated[int, Field(ge=1)]
    pitch: tuple[Positive, Positive]
    intra_cabinet: NotNegative
    overhead: NotNegative


class Price(_Part):
    """Dollars per Gbit/s of a cable: fixed + per_metre * length."""

    fixed: NotNegative
    per_metre: NotNegative


class Cable(_Part):
    """What cables cost and which kind is taken."""

    gbps: Positive
    electric: Price
    optical: Price
    reach: NotNegative | None
    one_way: NotNegative


class Switch(_Part):
    """What switches cost and consume."""

    fixed: Annotated[float, Field(allow_inf_nan=False)]
    per_port: NotNegative
    watts_per_port: NotNegative


class Constants(_Part):
    """All of them, as in ``constants.yaml``."""

    floor: Floor
    cable: Cable
    switch: Switch


@cache
def _shipped() -> dict:
    return yaml.safe_load(Path(__file__).with_name("constants.yaml").read_text(encoding="utf-8"))


def load(given: str | dict[str, Any] | None = None) -> Constants:
    """The shipped constants, with those replaced that a YAML file or a mapping names.

    Raises ``ValueError`` that names the file and the key: no such file, not YAML, an unknown key, a bad value.
    """
    source, changes = "", given
    if isinstance(given, str):
        source = f"{given}: "
        try:
            changes = yaml.safe_load(Path(given).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{given}: {error.strerror}") from None
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"{given}: not YAML: {error}") from None
    if changes is None:
        changes = {}
    if not isinstance(changes, dict):
        raise ValueError(f"{source}a mapping with some of {', '.join(_shipped())} is expected")
    try:
        return Constants.model_validate(_merged(_shipped(), changes))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            choices = ", ".join(_at(_shipped(), first["loc"][:-1]))
            raise ValueError(f"{source}{place}: unknown key; choices: {choices}") from None
        raise ValueError(f"{source}{place}: {first['msg']}") from None


def _merged(base: Any, changes: Any) -> Any:
    """``base`` with the leaves that ``changes`` names replaced."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return base | {key: _merged(base.get(key), value) for key, value in changes.items()}


def _at(tree: Any, path) -> Any:
    for key in path:
        tree = tree[key]
    return tree
