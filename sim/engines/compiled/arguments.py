# SPDX-License-Identifier: Apache-2.0
"""Names of arguments whose named tuple depends on the switching mode, of functions that serve several modes."""

from typing import Any, TypeAlias

Constants: TypeAlias = Any
"""The constants of a run: the named tuple of its switching mode."""

State: TypeAlias = Any
"""What changes in a run: the named tuple of its switching mode, with the fields that a function reads."""
