# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions without Numba's dispatcher, which takes 8 µs for a call with tables."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba

from flitlab.models.rules.route import at_destination, next_port
from flitlab.models.rules.tables import Tables
from flitlab.models.rules.vc import Rings, allowed_vcs


def machine_code(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of a compiled function for arguments of these types, which is faster to call."""
    signature = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(signature)
    code: Callable[..., Any] = function.overloads[signature].entry_point
    return code


class RouteRules:
    """The rules that packets follow at every hop, compiled at first use for the tables of a run."""

    def __init__(self, routes: Tables, rings: Rings):
        self._routes = routes
        self._rings = rings

    @cached_property
    def at_destination(self) -> Callable[..., bool]:
        return machine_code(at_destination, self._routes, *[0] * 4)

    @cached_property
    def next_port(self) -> Callable[..., int]:
        return machine_code(next_port, self._routes, *[0] * 9)

    @cached_property
    def allowed_vcs(self) -> Callable[..., tuple[int, int]]:
        return machine_code(allowed_vcs, self._routes, *[0] * 4, self._rings, *[0] * 6)
