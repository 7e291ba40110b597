# SPDX-License-Identifier: Apache-2.0
"""Base class and field types of the sections."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field
from pydantic_core import PydanticCustomError

from flitlab.models.registry import whole


class Section(BaseModel):
    """A mapping of a configuration: unknown keys and wrong types are rejected, nothing is converted.

    The docstring of a field is the meaning of its key: ``simrun show``, editors and the documentation print it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


def require_distinct(values: list[Any]) -> list[Any]:
    """The list, if its values are distinct. Raises ``PydanticCustomError``."""
    for i, value in enumerate(values):
        if value in values[:i]:
            raise PydanticCustomError("listed_twice", "{value} is listed twice", {"value": str(value)})
    return values


def _shape(value: Any) -> str:
    """The form of a value, so that errors are about this form only."""
    forms: dict[type, str] = {dict: "<map>", list: "<list>", str: "<text>"}
    return forms.get(type(value), "<number>")


BY_SHAPE = Discriminator(_shape)
"""Discriminator of a union of forms, tagged as :func:`_shape` names them."""

Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)]


MAX_NAME_BYTES = 200
"""Bytes of the longest name of a folder or file: file systems allow 255, and suffixes are added."""


def folder_name(value: str) -> str:
    """A valid name of a folder or file. Raises ``PydanticCustomError``."""
    if not value.strip() or value.startswith(".") or set(value) & set("/\\") or not value.isprintable():
        raise PydanticCustomError("folder", "must be the name of a folder")
    if (length := len(value.encode())) > MAX_NAME_BYTES:
        problem = "must be the name of a folder, at most {most} bytes long, not {length}"
        raise PydanticCustomError("long_folder", problem, {"most": MAX_NAME_BYTES, "length": length})
    return value


Name = Annotated[str, AfterValidator(folder_name)]
"""Name of a folder or file."""


def as_component(value: Any) -> Any:
    """The mapping of a component; a bare name becomes ``{kind: name}``."""
    return {"kind": value} if isinstance(value, str) else value


def as_list(value: Any) -> Any:
    """A list; a bare text becomes a list of one."""
    return [value] if isinstance(value, str) else value
