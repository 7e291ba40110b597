# SPDX-License-Identifier: Apache-2.0
"""Names of the dictionaries in signatures, by what their keys name.

Their values are of several types, which the docstring of a function or the header of a file states.
"""

from typing import Any, TypeAlias

Keys: TypeAlias = dict[str, Any]
"""Keys of a configuration, or of one of its parts, with their values as parsed from YAML."""

Row: TypeAlias = dict[str, Any]
"""A row of a table: its cells by column."""

Notes: TypeAlias = dict[str, Any]
"""What a model tells about itself in the results, by name; JSON-able."""

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON, as stored or printed."""

Fields: TypeAlias = dict[str, Any]
"""Fields of a record, or arguments of a call, by name."""
