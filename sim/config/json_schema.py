# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of configurations, for completion and checks in editors.

It is derived from the models that validate configurations. What a schema cannot express (whether a graph exists, or
sections fit together) is checked by ``simrun check``.
"""

import re
from typing import Any

from flitlab.fluid.kinds.spec import COMMON
from flitlab.models.mappings import JsonObject
from flitlab.models.registry import CATEGORIES, kind_key, names, spec_class
from flitlab.sim.config.expand import SCENARIO_KEYS
from flitlab.sim.config.overrides import CLASSES, DEFAULT_KINDS
from flitlab.sim.config.schema import NEEDS, SECTIONS, Config
from flitlab.sim.config.units import SHARE, quantity_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAMED = {"metrics": "metric", "ceilings": "ceiling"}
"""Key of a list whose entries may be bare names -> category of the entries."""

OWN_TEXTS = ("published", "chosen", "outputs", "plugins", "name")
"""Top-level keys below which there are no units and no sweeps."""

LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""Limits in the words of pydantic -> in the words of JSON schema."""

PARTIAL_SECTIONS = ("CollectiveConfig", "SearchConfig")
"""Sections whose required keys may be split between the top level and cases."""

GLOB = {
    "type": "object", "properties": {"glob": {"type": "string"}}, "required": ["glob"], "additionalProperties": False
}  # fmt: skip
"""All matching files, in place of one path."""

SWEEP = {"$ref": "#/$defs/sweep"}

Schema = JsonObject


def json_schema() -> Schema:
    """The schema of a configuration: all registered kinds with keys, units and sweeps."""
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
    # with cases, which may complete the top-level sections
    partial = {name: _section(name, value, "part.") for name, value in config["properties"].items()}
    complete = partial | {name: _section(name, value, "") for name, value in config["properties"].items()}
    columns = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    own = {"label": {"type": "string"}, "keys": columns, "compared": {"type": "boolean"}}
    case = own | {name: partial[name] for name in SCENARIO_KEYS}
    partial["cases"] = {"type": "array", "minItems": 1, "items": _closed(case) | {"required": ["label"]}}
    plugins = {"properties": {"plugins": {"type": "array", "minItems": 1}}, "required": ["plugins"]}
    without_cases = _closed(complete) | {"allOf": _needs()}
    return {
        "$schema": DIALECT, "title": "A configuration of flitlab", "$defs": definitions, "if": plugins,
        "then": _closed(dict.fromkeys(partial, True)),  # plugins may add to everything
        "else": {"if": {"required": ["cases"]}, "then": _closed(partial), "else": without_cases},
    }  # fmt: skip


def _closed(properties: Schema) -> Schema:
    """A mapping without other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _section(name: str, value: Schema, prefix: str) -> Schema:
    """The schema of a top-level key, or of a key of a case.

    prefix: of the definition of a component that may be incomplete.
    """
    if name in SECTIONS:
        component = {"$ref": f"#/$defs/{prefix}{name}"}
        short = {"enum": names(name)}
        either = {"anyOf": [component, short]}
        return {"anyOf": [component, short, _swept(either), *([_jobs()] if name == "application" else [])]}
    if name in NAMED:
        value = {"anyOf": [{"type": "array", "items": _named(NAMED[name])}, {"type": "null"}]}
    elif name not in OWN_TEXTS:
        value = _referring(_numbers(value, name, ""), prefix)
    return {"anyOf": [value, SWEEP]} if name in SCENARIO_KEYS else value


def _jobs() -> Schema:
    """A list of programs, each with its own keys and those of its kind."""
    job = {"type": "object", "properties": {"kind": {"enum": names("application")}}, "required": ["kind"]}
    return {"type": "array", "minItems": 1, "items": job}


def _referring(value: object, prefix: str) -> Any:
    """A schema with references to definitions of sections that may be incomplete."""
    if isinstance(value, list):
        return [_referring(one, prefix) for one in value]
    if not isinstance(value, dict):
        return value
    references = {f"#/$defs/{name}": f"#/$defs/{prefix}{name}" for name in PARTIAL_SECTIONS}
    return {key: references.get(one, one) if key == "$ref" else _referring(one, prefix) for key, one in value.items()}


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
    """The keys that all components of a category share."""
    if category == "ceiling":
        return {"properties": {key: {"const": value} for key, value in COMMON.items()}}
    more = SECTIONS.get(category)
    return {} if more is None else more.model_json_schema(by_alias=True)


def _any_of_kinds(category: str, kinds: dict[str, list[str]], is_partial: bool = False) -> Schema:
    """A component of any kind. kinds: required keys of each. is_partial: whether it may be incomplete."""
    key, default = kind_key(category), DEFAULT_KINDS.get(category)

    def then(kind: str) -> Schema:
        own = {"$ref": f"#/$defs/{category}.{kind}"}
        return own if is_partial or not kinds[kind] else own | {"required": kinds[kind]}

    choices = [{"if": {"properties": {key: {"const": kind}}, "required": [key]}, "then": then(kind)} for kind in kinds]
    schema: Schema = {"type": "object", "properties": {key: {"anyOf": [{"enum": list(kinds)}, SWEEP]}}}
    if category == "traffic" and not is_partial:  # a key implies its kind
        implied = {"$ref": f"#/$defs/{category}.{CLASSES}", "required": [CLASSES]}
        return schema | {"allOf": [*choices, {"if": {"not": {"required": [key]}}, "then": implied}]}
    if is_partial or default is None:
        return schema | {"allOf": choices} | ({} if is_partial else {"required": [key]})
    return schema | {"allOf": [*choices, {"if": {"not": {"required": [key]}}, "then": then(default)}]}


def _named(category: str, *more: str) -> Schema:
    """A component, or its bare name."""
    return {"anyOf": [{"enum": [*names(category), *more]}, {"$ref": f"#/$defs/{category}"}]}


def _needs() -> list[Schema]:
    """The keys that experiments require, except for loads, which some search for."""
    default = {"if": {"not": {"required": ["experiment"]}}, "then": {"required": ["topology", "routing", "traffic"]}}
    return [default] + [
        {
            "if": {"properties": {"experiment": {"const": name}}, "required": ["experiment"]},
            "then": {"required": [key for key in keys if key != "loads"]},
        }
        for name, keys in NEEDS.items()
    ]


def _tidy(schema: object) -> Any:
    """A pydantic schema without titles, with unions whose members may overlap."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: Schema = {}
    for key, value in schema.items():
        if key in ("title", "discriminator") or (key == "default" and isinstance(value, dict)):
            continue
        if key == "properties":
            tidy[key] = {name: _tidy(one) for name, one in value.items()}
        elif key == "oneOf":
            tidy["anyOf"] = _distinct(_tidy(value))
        elif key == "description" and isinstance(value, str):
            tidy[key] = _first_paragraph(value)
        else:
            tidy[LIMITS.get(key) or key] = _tidy(value)
    return tidy


def _distinct(parts: list[Any]) -> list[Any]:
    """The members of a union, without those that only serve pydantic to report a wrong form."""
    limited = {part.get("type") for part in parts if len(part) > 1}
    distinct = [part for part in parts if len(part) > 1 or part.get("type") not in limited]
    return [part for i, part in enumerate(distinct) if part not in distinct[:i]]


def _first_paragraph(text: str) -> str:
    """The first paragraph of a docstring on one line, without roles and links."""
    plain = re.sub(r":\w+:`~?([^`]*)`|\[([^]]*)]\([^)]*\)", r"\1\2", text.split("\n\n")[0])
    return " ".join(plain.split()).replace("``", "`")


def _with_units(schema: Schema, swept: bool) -> None:
    """Allow units in numbers, and a sweep of every key."""
    for name, value in schema.get("properties", {}).items():
        if "const" not in value:
            with_units = _numbers(value, name, "measure" if name == "window" else "")
            if name == "path":
                with_units = {"anyOf": [with_units, GLOB]}
            schema["properties"][name] = {"anyOf": [with_units, SWEEP]} if swept else with_units


def _numbers(schema: object, name: str, section: str) -> Any:
    """The schema of the value of a key, with units allowed in numbers."""
    if isinstance(schema, list):
        return [_numbers(one, name, section) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("number", "integer"):
        quantity = quantity_of(name, section) or (SHARE if schema["type"] == "number" else None)
        return schema if quantity is None else {"anyOf": [schema, {"type": "string", "pattern": quantity.pattern}]}
    inner = ("anyOf", "items", "prefixItems", "additionalProperties")
    return {key: _numbers(value, name, section) if key in inner else value for key, value in schema.items()}


def _swept(option: object) -> Schema:
    """A sweep: a list of values, or a range of numbers."""
    listed = {"type": "array", "minItems": 1, "items": option}
    schema = _closed({"sweep": {"anyOf": [listed, _range("step"), _range("per_decade")]}})
    return schema | {"required": ["sweep"]}


def _range(step: str) -> Schema:
    """A range: both ends and the step."""
    keys = ("from", "to", step)
    return _closed({key: {"type": ["number", "string"]} for key in keys}) | {"required": list(keys)}
