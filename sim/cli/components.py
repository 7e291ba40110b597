# SPDX-License-Identifier: Apache-2.0
"""Names, documentation and parameters of components, for ``list`` and ``show``."""

import inspect
import re
from pathlib import Path
from textwrap import shorten
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from flitlab.models.registry import CATEGORIES, kind_key, names, spec_class
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import ConfigError, Diagnostic
from flitlab.sim.config.load import load_text, wrap
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.schema import SourceConfig
from flitlab.sim.measure.columns.registry import RESULTS, Column, columns
from flitlab.sim.report.figures.registry import figures


def load(plugins: list[str]) -> None:
    """Load the plugins of the command line. Raises :class:`~flitlab.sim.config.errors.ConfigError`."""
    errors: list[Diagnostic] = []
    load_plugins(ConfigDocument(wrap({"plugins": plugins}, "--plugin"), errors), Path.cwd())
    if errors:
        raise ConfigError(errors)


def kinds(category: str) -> list[str]:
    """The names in a category."""
    if category == "column":
        return list(columns(*RESULTS))
    if category == "figure":
        return list(figures())
    return names(category) if category in CATEGORIES else []


def documentation(category: str, kind: str) -> str:
    """The docstring of a component; the meaning of a column or figure."""
    if category == "column":
        return "\n".join(dict.fromkeys(_of_column(one) for table in RESULTS if (one := columns(table).get(kind))))
    if category == "figure":
        return figures()[kind].meaning
    return inspect.getdoc(spec_class(category, kind)) or ""


def example(category: str, kind: str) -> dict[str, Any]:
    """The first example in the documentation of a component; without one, its bare kind."""
    match = re.search(rf"Example: ``{category}: (.*?)``", documentation(category, kind), re.DOTALL)
    return load_text(match[1], kind, []).plain() if match else {kind_key(category): kind}


def parameters(category: str, kind: str) -> list[tuple[str, str, str]]:
    """(name, type, default) of every parameter of a component; '' for no default."""
    if category in ("column", "figure"):
        return []
    own = _fields(spec_class(category, kind), kind_key(category))
    return own + (_fields(SourceConfig) if category == "traffic" else [])


def _of_column(one: Column) -> str:
    return f"{one.meaning} ({one.unit})" if one.unit else one.meaning


def _fields(model: type[BaseModel], without: str = "kind") -> list[tuple[str, str, str]]:
    fields = []
    for name, field in model.model_fields.items():
        if name == without:
            continue
        default = "" if field.is_required() else repr(field.get_default(call_default_factory=True))
        default = shorten(default, 60, placeholder=" ...")
        fields.append((field.alias or name, _readable(field.annotation), default))
    return fields


def _readable(annotation: Any) -> str:
    """A type in the words of a configuration.

    >>> _readable(list[Annotated[int, "positive"]] | None), _readable(Literal["a", 1])
    ('list[int] | null', "'a' | 1")
    """
    if "Share" in str(annotation):
        return "int or list of {flits, share}"
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"{{{', '.join(field.alias or name for name, field in annotation.model_fields.items())}}}"
    if origin is Annotated:
        return _readable(parts[0])
    if origin is Literal:
        return " | ".join(map(repr, parts))
    if origin in (Union, UnionType):
        return " | ".join(map(_readable, parts))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(_readable, parts))}]"
    if annotation is type(None):
        return "null"
    return str(getattr(annotation, "__name__", annotation))
