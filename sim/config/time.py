"""Durations of a configuration in ticks.

A tick is the time of one flit on the fastest channel, ``flit_ns`` nanoseconds. Nanoseconds become ticks by
exact decimal division, rounded up: 18 ns at 2.667 ns a flit are 7 ticks.
"""

from decimal import ROUND_CEILING, Decimal

from flitlab.sim.config.check import mistake_at
from flitlab.sim.config.errors import Mistake
from flitlab.sim.config.load import Node
from flitlab.sim.config.schema import LONGEST_DELAY, SwitchingConfig

DEFAULTS = {"header": 0, "switch": 1, "link": 1, "injection": 1, "ejection": 1, "credit": 1}
"""Ticks of a delay that is not given."""


def ticks_of(ns: float, flit_ns: float) -> int:
    """Whole ticks that ``ns`` nanoseconds take, of the decimal numbers as written.

    >>> ticks_of(18, 2.667), ticks_of(0.3, 0.1), ticks_of(0, 2)
    (7, 3, 0)
    """
    # repr gives back the digits of the file (up to 15 of them), which the binary value only approximates
    quotient = Decimal(repr(ns)) / Decimal(repr(flit_ns))
    return int(quotient.to_integral_value(rounding=ROUND_CEILING))


def resolve(switching: SwitchingConfig, root: Node, mistakes: list[Mistake]) -> dict[str, int]:
    """Delay name -> ticks, in the order of :data:`DEFAULTS`; what is wrong is added to ``mistakes``."""
    found = dict(DEFAULTS)
    for name in DEFAULTS:
        ticks, ns = getattr(switching, f"{name}_ticks"), getattr(switching, f"{name}_ns")
        key = ("switching", f"{name}_ns")
        if ticks is not None:
            found[name] = ticks
        if ns is None:
            continue
        if ticks is not None:
            mistakes.append(mistake_at(root, key, f"{name}_ticks is given too"))
        elif switching.flit_ns is None:
            mistakes.append(mistake_at(root, key, "needs switching.flit_ns, the time of one flit"))
        elif ns > LONGEST_DELAY * switching.flit_ns:
            mistakes.append(mistake_at(root, key, f"must be at most {LONGEST_DELAY} ticks of flit_ns"))
        else:
            found[name] = ticks_of(ns, switching.flit_ns)
    return found
