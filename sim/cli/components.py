# SPDX-License-Identifier: Apache-2.0
"""Names, documentation and parameters of components, for ``list`` and ``show``."""

import inspect
import json
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from types import UnionType
from typing import Annotated, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from flitlab.models.mappings import Keys
from flitlab.models.registry import CATEGORIES, aliases_of, kind_key, names, spec_class
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.schema import SourceConfig
from flitlab.sim.config.text import ConfigDocument, load_text, wrap
from flitlab.sim.config.units import QUANTITIES
from flitlab.sim.measure.columns.registry import RESULTS, Column, columns
from flitlab.sim.report.figures.registry import figures

LISTED = (
    "topology", "routing", "traffic", "switching", "transport", "application", "placement", "metric", "ceiling",
    "algorithm", "column", "figure",
)  # fmt: skip
"""Categories of ``list`` and ``show``: those of the registry, columns and figures."""


def singular(word: str) -> str:
    """The category that a word is the plural of, or the word itself.

    >>> singular("topologies"), singular("metrics"), singular("switching"), singular("examples")
    ('topology', 'metric', 'switching', 'examples')
    """
    return next((one for one in LISTED if word in (f"{one}s", re.sub("y$", "ies", one))), word)


def load(plugins: list[str]) -> None:
    """Load the plugins of the command line. Raises :class:`~flitlab.sim.config.diagnostics.ConfigError`."""
    diagnostics = Diagnostics()
    load_plugins(ConfigDocument(wrap({"plugins": plugins}, "--plugin"), diagnostics), Path.cwd())
    diagnostics.raise_errors()


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
    return documented(spec_class(category, kind))


def without_links(text: str) -> str:
    """A text of Markdown with the words of its links alone, for a terminal.

    >>> without_links("a pause of a [queue](lossless.md#queues)")
    'a pause of a queue'
    """
    return re.sub(r"\[([^]]+)]\([^)]*\)", r"\1", text)


class Listed(NamedTuple):
    """A row of ``simrun list``."""

    name: str
    unit: str
    also: str
    meaning: str


def listed(category: str) -> list[Listed]:
    """The names in a category with the first line of their documentation, unit, and other names."""
    rows = []
    for kind in kinds(category):
        meaning, unit, also = documentation(category, kind).partition("\n")[0], "", ""
        if category == "column":
            one = next(described for table in RESULTS if (described := columns(table).get(kind)))
            meaning, unit = one.meaning, one.unit or ""
        elif category in CATEGORIES:
            also = ", ".join(aliases_of(category, kind))
        rows.append(Listed(kind, unit, also, without_links(meaning).replace("``", "")))
    return rows


def documented(model: type[BaseModel]) -> str:
    """The docstring of the model of a mapping."""
    return inspect.getdoc(model) or ""


def example(category: str, kind: str) -> Keys:
    """The first example in the documentation of a component; without one, its bare kind."""
    match = re.search(rf"Example: ``{category}: (.*?)``", documentation(category, kind), re.DOTALL)
    return load_text(match[1], kind, Diagnostics()).plain() if match else {kind_key(category): kind}


class Parameter(NamedTuple):
    """A key of a configuration, as tables print it; ``default`` is '' for a required key."""

    key: str
    type: str
    unit: str
    default: str
    meaning: str


def parameters(category: str, kind: str) -> list[Parameter]:
    """Every parameter of a component."""
    if category in ("column", "figure"):
        return []
    own = keys_in(spec_class(category, kind), kind_key(category))
    return own + (keys_in(SourceConfig) if category == "traffic" else [])


UNITS = {"ticks": "tick", "flits": "flit", "packets": "packet"} | {key: of.base for key, of in QUANTITIES.items()}
"""Last word of a key -> its unit."""


def _of_column(one: Column) -> str:
    return f"{one.meaning} ({one.unit})" if one.unit else one.meaning


def keys_in(model: type[BaseModel], without: str = "kind") -> list[Parameter]:
    """Every key of a mapping but ``without``. The unit follows from the key, or from the end of its docstring."""
    parameters = []
    for name, field in model.model_fields.items():
        if name == without:
            continue
        key = field.alias or name
        text = re.fullmatch(r"(.*?)(?: \[([^]]+)])?", (field.description or "").replace("\n", " "))
        meaning, unit = text.groups() if text else ("", None)
        unit = unit or UNITS.get(key.rpartition("_")[2], "")
        first, *others = _readable(field.annotation).split(" | ")
        kind = " | ".join([first + _interval(field.metadata), *others])
        parameters.append(Parameter(key, kind, unit, _default(field), meaning))
    return parameters


def _default(field: FieldInfo) -> str:
    """A default in YAML; '' of a required key."""
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "{}"
    return shorten(json.dumps(value, default=str), 60, placeholder=" ...")


def _interval(limits: Iterable[object]) -> str:
    """Limits of a number as an interval.

    >>> _interval([Gt(0), Le(64)]), _interval([])
    (' (0, 64]', '')
    """
    low, high = "(-inf", "inf)"
    for limit in limits:
        match limit:
            case Ge(value):
                low = f"[{value:g}"
            case Gt(value):
                low = f"({value:g}"
            case Le(value):
                high = f"{value:g}]"
            case Lt(value):
                high = f"{value:g})"
    return "" if (low, high) == ("(-inf", "inf)") else f" {low}, {high}"


MOST_INNER_KEYS = 4
"""Keys of a mapping that stand for its type; one of more is called a mapping."""


def _readable(annotation: object) -> str:
    """A type in the words of YAML.

    >>> from pydantic import Field
    >>> _readable(list[Annotated[int, Field(ge=1)]] | None), _readable(Literal["a", 1]), _readable(dict[str, int])
    ('list of int [1, inf) | null', 'a | 1', 'mapping')
    """
    if "Share" in str(annotation):
        return "int [1, 1e+09] | list of {flits, share}"
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        keys = [field.alias or name for name, field in annotation.model_fields.items()]
        return f"{{{', '.join(keys)}}}" if len(keys) <= MOST_INNER_KEYS else "mapping"
    if origin is Annotated:
        limits = [limit for part in parts[1:] if isinstance(part, FieldInfo) for limit in part.metadata]
        return _readable(parts[0]) + _interval(limits)
    if origin is Literal:
        return " | ".join(str(part) if part != "" else "''" for part in parts)
    if origin in (Union, UnionType):
        texts = dict.fromkeys(map(_readable, parts))
        # pydantic gets a number without limits for what has a wrong form, so that it names the right one
        limited = {text.split()[0] for text in texts if text[-1] in ")]" and " " in text}
        return " | ".join(text for text in texts if text not in limited)
    if origin is list:
        inner = _readable(parts[0])
        return f"list of ({inner})" if " | " in inner else f"list of {inner}"
    if origin is not None:
        return NAMES.get(origin, str(origin.__name__))
    return NAMES.get(annotation, str(getattr(annotation, "__name__", annotation)))


NAMES = {dict: "mapping", str: "text", type(None): "null"}
"""Python's type -> its name in YAML."""
