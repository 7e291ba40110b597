# SPDX-License-Identifier: Apache-2.0
"""Methods tried in turn: where one fails, or ends with bounds too far apart, another may do."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self

from flitlab.fluid.problem import FluidError, TooLargeError

FAILURES = (ValueError, ArithmeticError, LookupError, MemoryError)
"""Errors by which a method says that it cannot, or a certificate that it did not."""

FIRST_ORDER = ("scaled shortest paths", "multipliers", "Garg-Koenemann")
"""Methods of which a gap is expected."""


class Bounds(Protocol):
    """A lower and an upper bound, each with its proof, the method used, and which others gave up before, and why."""

    lower: float
    upper: float
    method: str
    note: str

    def tightened(self, other: Self) -> Self:
        """The larger lower bound and the smaller upper one."""


Attempts = dict[str, Callable[[], Any]]
"""Name of a method -> what it comes to, :class:`Bounds`, or None if the problem is none for it."""


def best_of(preferred: Attempts, others: Attempts, gap: float, enough: float = math.inf) -> Any:
    """The bounds of the first method that comes within a relative gap ``gap``, or of all that it took.

    enough: a lower bound that ends the search as well. others: tried only if none of the preferred comes to a bound.
    Raises :class:`~flitlab.fluid.problem.FluidError` with all the reasons if no method does, and
    :class:`~flitlab.fluid.problem.TooLargeError` if the first that would serve does not fit into memory.
    """
    best: Any = None
    notes = []
    for name, attempt in [*preferred.items(), *others.items()]:
        if best is not None and (name in others or best.lower >= enough or best.upper <= (1 + gap) * best.lower):
            break
        if best is not None and best.method not in FIRST_ORDER:
            notes.append(f"{best.method} left a gap of {best.upper / best.lower - 1:.2g}")
        try:
            bounds = attempt()
        except TooLargeError:
            if best is None:
                raise
            break
        except FAILURES as error:
            notes.append(f"{name} gave up: {str(error) or type(error).__name__}")
            continue
        best = best.tightened(bounds) if best and bounds else best or bounds
    if best is None:
        raise FluidError("; ".join(notes))
    return replace(best, note="; ".join(dict.fromkeys(notes)))


def both_methods(below: str, above: str) -> str:
    """The method of a lower bound and that of an upper one, as one text."""
    return below if below == above else f"{below}; upper bound: {above}"
