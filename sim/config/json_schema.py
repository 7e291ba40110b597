# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of configurations, by which editors complete and check them.

It follows from the models with which configurations are checked. What no schema can say (whether such a graph exists,
what one part asks of another) is left to ``simrun check``.
"""

import re
from typing import Any

from flitlab.fluid.kinds.spec import COMMON
from flitlab.models.registry import CATEGORIES, kind_key, names, spec_class
from flitlab.sim.config.expand import SCENARIO_KEYS
from flitlab.sim.config.keys import SECTIONS
from flitlab.sim.config.overrides import DEFAULT_KINDS
from flitlab.sim.config.schema import NEEDS, Config
from flitlab.sim.config.units import SHARE, quantity_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAMED = {"metrics": "metric", "ceilings": "ceiling"}
"""Lists of components, of which each may be a name alone -> their category."""

OWN_TEXTS = ("published", "chosen", "outputs", "plugins", "name")
"""Keys at the top under which nothing has a unit, and nothing is swept."""

LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""What pydantic calls the limits of a number behind a validator -> what a schema calls them."""

PARTIAL_SECTIONS = ("CollectiveConfig", "SearchConfig")
"""Sections that need keys, but not in a case or beside cases."""

GLOB = {
    "type": "object", "properties": {"glob": {"type": "string"}}, "required": ["glob"], "additionalProperties": False
}  # fmt: skip
"""All files whose names fit, in place of the path of one."""

SWEEP = {"$ref": "#/$defs/sweep"}

Schema = dict[str, Any]


def json_schema() -> Schema:
    """The schema of a whole configuration: all kinds that are registered, each with its keys, units and sweeps."""
    definitions, config = _components(), _tidy(Config.model_json_schema(by_alias=True))
    definitions |= config.pop("$defs", {})
    algorithm = definitions["CollectiveConfig"]["properties"]
    algorithm["algorithm"] = {"anyOf": [_named("algorithm", "all"), _swept(_named("algorithm", "all"))]}
    algorithm["size_bytes"] = {"anyOf": [algorithm["size_bytes"], {"$ref": "#/$defs/spaced"}]}
    for name, definition in definitions.items():
        _with_units(definition, swept=name not in ("PublishedConfig", "ChoiceConfig", "PlotConfig"))
    for name in PARTIAL_SECTIONS:
        definitions[f"part.{name}"] = {key: value for key, value in definitions[name].items() if key != "required"}
    definitions |= {"sweep": _swept(True), "spaced": _range("per_decade")}
    # with cases, which may complete what stands beside them
    partial = {name: _section(name, value, "part.") for name, value in config["properties"].items()}
    complete = partial | {name: _section(name, value, "") for name, value in config["properties"].items()}
    columns = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    case = {"label": {"type": "string"}, "keys": columns} | {name: partial[name] for name in SCENARIO_KEYS}
    partial["cases"] = {"type": "array", "minItems": 1, "items": _closed(case) | {"required": ["label"]}}
    plugins = {"properties": {"plugins": {"type": "array", "minItems": 1}}, "required": ["plugins"]}
    without_cases = _closed(complete) | {"allOf": _needs()}
    return {
        "$schema": DIALECT, "title": "A configuration of flitlab", "$defs": definitions, "if": plugins,
        "then": _closed(dict.fromkeys(partial, True)),  # plugins may add to everything
        "else": {"if": {"required": ["cases"]}, "then": _closed(partial), "else": without_cases},
    }  # fmt: skip


def _closed(properties: Schema) -> Schema:
    """A mapping with no other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _section(name: str, value: Schema, part: str) -> Schema:
    """A key at the top, or of a case. part: how the definition of a component begins that may not be whole."""
    if name in SECTIONS:
        component = {"$ref": f"#/$defs/{part}{name}"}
        return {"anyOf": [component, _swept(component), *([_jobs()] if name == "application" else [])]}
    if name in NAMED:
        value = {"anyOf": [{"type": "array", "items": _named(NAMED[name])}, {"type": "null"}]}
    elif name not in OWN_TEXTS:
        value = _referring(_numbers(value, name, ""), part)
    return {"anyOf": [value, SWEEP]} if name in SCENARIO_KEYS else value


def _jobs() -> Schema:
    """Several programs at once, of which each has keys of its own beside those of its kind."""
    job = {"type": "object", "properties": {"kind": {"enum": names("application")}}, "required": ["kind"]}
    return {"type": "array", "minItems": 1, "items": job}


def _referring(value: Any, part: str) -> Any:
    """A schema that refers to what may not be whole, where there is such a definition."""
    if isinstance(value, list):
        return [_referring(one, part) for one in value]
    if not isinstance(value, dict):
        return value
    places = {f"#/$defs/{name}": f"#/$defs/{part}{name}" for name in PARTIAL_SECTIONS}
    return {key: places.get(one, one) if key == "$ref" else _referring(one, part) for key, one in value.items()}


def _components() -> Schema:
    """Definitions of all components: ``topology``, and ``topology.torus`` with its keys."""
    definitions: Schema = {}
    for category in CATEGORIES:
        kinds = {kind: spec_class(category, kind) for kind in names(category)}
        shared = _tidy(_shared(category))
        definitions |= shared.pop("$defs", {})
        needed = {}
        for kind, model in kinds.items():
            own = _tidy(model.model_json_schema(by_alias=True))
            definitions |= own.pop("$defs", {})
            own["properties"] = shared.get("properties", {}) | own["properties"] | {kind_key(category): {"const": kind}}
            own["description"] = _first_paragraph(model.__doc__ or "")
            needed[kind] = own.pop("required", [])
            definitions[f"{category}.{kind}"] = own
        definitions |= {
            category: _any_of_kinds(category, needed),
            f"part.{category}": _any_of_kinds(category, needed, True),
        }
    return definitions


def _shared(category: str) -> Schema:
    """The keys that all components of a category have besides."""
    if category == "ceiling":
        return {"properties": {key: {"const": value} for key, value in COMMON.items()}}
    more = SECTIONS.get(category)
    return {} if more is None else more.model_json_schema(by_alias=True)


def _any_of_kinds(category: str, kinds: dict[str, list[str]], part: bool = False) -> Schema:
    """A component of any kind, with the keys of that kind. kinds: with the keys that they need, if it is no part."""
    key, default = kind_key(category), DEFAULT_KINDS.get(category)

    def then(kind: str) -> Schema:
        own = {"$ref": f"#/$defs/{category}.{kind}"}
        return own if part or not kinds[kind] else own | {"required": kinds[kind]}

    choices = [{"if": {"properties": {key: {"const": kind}}, "required": [key]}, "then": then(kind)} for kind in kinds]
    schema: Schema = {"type": "object", "properties": {key: {"anyOf": [{"enum": list(kinds)}, SWEEP]}}}
    if part or default is None:
        return schema | {"allOf": choices} | ({} if part else {"required": [key]})
    return schema | {"allOf": [*choices, {"if": {"not": {"required": [key]}}, "then": then(default)}]}


def _named(category: str, *more: str) -> Schema:
    """A component, or its name alone."""
    return {"anyOf": [{"enum": [*names(category), *more]}, {"$ref": f"#/$defs/{category}"}]}


def _needs() -> list[Schema]:
    """What experiments cannot do without, but for loads, which some find themselves."""
    default = {"if": {"not": {"required": ["experiment"]}}, "then": {"required": ["topology", "routing", "traffic"]}}
    return [default] + [
        {
            "if": {"properties": {"experiment": {"const": name}}, "required": ["experiment"]},
            "then": {"required": [key for key in keys if key != "loads"]},
        }
        for name, keys in NEEDS.items()
    ]


def _tidy(schema: Any) -> Any:
    """A schema of pydantic's without titles, and with unions of which several parts may fit."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: Schema = {}
    for key, value in schema.items():
        if key in ("title", "discriminator"):
            continue
        if key == "properties":
            tidy[key] = {name: _tidy(one) for name, one in value.items()}
        elif key == "oneOf":
            tidy["anyOf"] = _distinct(_tidy(value))
        elif key == "description" and isinstance(value, str):
            tidy[key] = _first_paragraph(value)
        elif key == "default":
            tidy |= {} if isinstance(value, dict) else {key: value}
        else:
            tidy[LIMITS.get(key) or key] = _tidy(value)
    return tidy


def _distinct(parts: list[Any]) -> list[Any]:
    """The parts of a union, but for those that a wrong form is read as, so that pydantic names the right one."""
    limited = {part.get("type") for part in parts if len(part) > 1}
    distinct = [part for part in parts if len(part) > 1 or part.get("type") not in limited]
    return [part for i, part in enumerate(distinct) if part not in distinct[:i]]


def _first_paragraph(text: str) -> str:
    """The first paragraph of a docstring on one line, without its marks."""
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", " ".join(text.split("\n\n")[0].split())).replace("``", "`")


def _with_units(schema: Schema, swept: bool) -> None:
    """Lets numbers have units, and every key of a mapping be swept."""
    for name, value in schema.get("properties", {}).items():
        if "const" not in value:
            with_units = _numbers(value, name, "measure" if name == "window" else "")
            if name == "path":
                with_units = {"anyOf": [with_units, GLOB]}
            schema["properties"][name] = {"anyOf": [with_units, SWEEP]} if swept else with_units


def _numbers(schema: Any, name: str, section: str) -> Any:
    """A schema of a key's value, numbers in which may have units."""
    if isinstance(schema, list):
        return [_numbers(one, name, section) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("number", "integer"):
        quantity = quantity_of(name, section) or (SHARE if schema["type"] == "number" else None)
        return schema if quantity is None else {"anyOf": [schema, {"type": "string", "pattern": quantity.pattern}]}
    inner = ("anyOf", "items", "prefixItems", "additionalProperties")
    return {key: _numbers(value, name, section) if key in inner else value for key, value in schema.items()}


def _swept(option: Any) -> Schema:
    """A sweep over such values: a list of them, or a range of numbers."""
    listed = {"type": "array", "minItems": 1, "items": option}
    schema = _closed({"sweep": {"anyOf": [listed, _range("step"), _range("per_decade")]}})
    return schema | {"required": ["sweep"]}


def _range(step: str) -> Schema:
    """Both ends of a range, and how it goes on."""
    keys = ("from", "to", step)
    return _closed({key: {"type": ["number", "string"]} for key in keys}) | {"required": list(keys)}
