# SPDX-License-Identifier: Apache-2.0
"""Methods tried in order: where one fails, or leaves too wide a gap, the next one is tried."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self

from flitlab.fluid.problem import FluidError, TooLargeError

FAILURES = (ValueError, ArithmeticError, LookupError, MemoryError)
"""Errors by which a method, or the check of its certificate, fails."""

FIRST_ORDER = ("scaled shortest paths", "multipliers", "Garg-Koenemann")
"""First-order methods, which may leave a gap."""


class CertifiedBounds(Protocol):
    """A lower and an upper bound, each with its proof; the method, and which methods failed before it, and why."""

    lower: float
    upper: float
    method: str
    note: str

    def tightened(self, other: Self) -> Self:
        """The larger lower bound and the smaller upper bound."""


Attempts = dict[str, Callable[[], Any]]
"""Name of a method -> function that returns :class:`CertifiedBounds`, or None if the method does not apply."""


def best_of(preferred: Attempts, others: Attempts, gap: float, enough: float = math.inf, refuted: float = 0.0) -> Any:
    """Bounds of the first method that closes the gap, or the tightest of all methods tried.

    Parameters
    ----------
    preferred : Attempts
        Methods in the order in which they are tried.
    others : Attempts
        Methods that are tried only if no preferred one gives a bound.
    gap : float
        Relative gap between the two bounds at which the search ends.
    enough : float
        Lower bound at which the search ends, whatever the gap.
    refuted : float
        Upper bound at which it ends, likewise.

    Returns
    -------
    CertifiedBounds
        Its ``note`` lists the methods that failed or left a gap.

    Raises
    ------
    FluidError
        No method gives a bound; the message has all reasons.
    TooLargeError
        The first applicable method does not fit into memory.
    """
    best: Any = None
    notes = []
    for name, attempt in [*preferred.items(), *others.items()]:
        if best is not None and (
            name in others or best.lower >= enough or best.upper <= max((1 + gap) * best.lower, refuted)
        ):
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
    """The methods of a lower and of an upper bound as one text."""
    return below if below == above else f"{below}; upper bound: {above}"
