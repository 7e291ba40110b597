# SPDX-License-Identifier: Apache-2.0
"""What the parts of a configuration's schema are made of."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field
from pydantic_core import PydanticCustomError

from flitlab.models.registry import whole


class Section(BaseModel):
    """A mapping in a configuration: unknown keys and wrong types are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def require_distinct(values: list[Any]) -> list[Any]:
    """Refuses a list that says the same thing twice."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("listed_twice", "{value} is listed twice", {"value": str(value)})
    return values


def _shape(value: Any) -> str:
    """Which form of a key that has several is meant, so that errors speak of that form alone."""
    forms: dict[type, str] = {dict: "<map>", list: "<list>", str: "<text>"}
    return forms.get(type(value), "<number>")


BY_SHAPE = Discriminator(_shape)
"""For a union of forms, each tagged with what :func:`_shape` calls it."""

Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)]


MAX_NAME_BYTES = 200
"""Bytes of the longest name of a folder or file: file systems take 255, and some of our files add a suffix to it."""


def folder_name(value: str) -> str:
    """A text that can be the name of a folder or file, or ``PydanticCustomError``."""
    if not value.strip() or value.startswith(".") or set(value) & set("/\\") or not value.isprintable():
        raise PydanticCustomError("folder", "must be the name of a folder")
    if (length := len(value.encode())) > MAX_NAME_BYTES:
        problem = "must be the name of a folder, at most {most} bytes long, not {length}"
        raise PydanticCustomError("long_folder", problem, {"most": MAX_NAME_BYTES, "length": length})
    return value


Name = Annotated[str, AfterValidator(folder_name)]
"""Of a folder or file."""


def as_component(value: Any) -> Any:
    """A bare name stands for the component of that kind."""
    return {"kind": value} if isinstance(value, str) else value


def as_list(value: Any) -> Any:
    """A bare text stands for a list of one."""
    return [value] if isinstance(value, str) else value
