# SPDX-License-Identifier: Apache-2.0
"""Reported numbers as intervals in ticks and flits, whatever their unit, and limits in the reported unit."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, InvalidOperation
from fractions import Fraction

LEAST_DIGITS = 3
"""A number with fewer digits counts as exact to this many: 0.5 is 0.500, not a number from 0.45 to 0.55."""

MAX_SHOWN_CHARACTERS = 9
"""Characters up to which a number is shown as reported; longer ones are rounded."""

MAX_EXPONENT = 100
"""Numbers from 1e-MAX_EXPONENT to 1e+MAX_EXPONENT are accepted: they are finite in any unit."""

SHOWN_DIGITS = 4
"""Significant digits of printed limits."""

ROUNDING = 1e-9
"""Relative difference below which numbers are equal: solvers round differently on other machines."""

PREFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "ns": 1.0}
"""Unit of time -> nanoseconds."""

RATES = (
    "flits/cycle/node", "packets/cycle/node", "flits/cycle/switch", "packets/cycle/switch", "flits/cycle/network",
    "packets/cycle/network", "fraction of capacity", "fraction of line rate", "Gbps per host", "GB/s per host",
    "Gbps per switch", "Gbps per network",
)  # fmt: skip
"""Units of loads and throughputs, as messages list them; ticks are cycles, hosts are nodes."""

TIMES = ("cycles", *SECONDS)
"""Units of latencies."""


class UnitError(ValueError):
    """An unknown unit, or one that needs a missing key of the claim.

    key: the missing key, '' where the unit itself is wrong. choices: known units.
    """

    def __init__(self, problem: str, key: str = "", choices: tuple[str, ...] = ()):
        super().__init__(problem)
        self.key, self.choices = key, choices


@dataclass(frozen=True)
class Unit:
    """A unit of a claim on its network.

    name: as in the claim. factor: its value in flits/tick per sending host (of a load: flits/tick of the busiest host
    at load 1), or in ticks. of_flow: the corresponding unit of a flow of the whole network, '' for a time; flow_factor:
    its value in flits/tick.
    """

    name: str
    factor: float
    of_flow: str = ""
    flow_factor: float = 1.0

    def at_most(self, value: float) -> str:
        """An upper limit with its unit, rounded up. value: flits/tick/host, or ticks."""
        return f"{at_most(value / self.factor)} {self.name}"

    def at_least(self, value: float) -> str:
        """A lower limit with its unit, rounded down. value: flits/tick/host, or ticks."""
        return f"{at_least(value / self.factor)} {self.name}"

    def about(self, value: float) -> str:
        """A value with its unit, rounded to the nearest. value: flits/tick/host, or ticks."""
        return f"{value / self.factor:.4g} {self.name}"

    def flow(self, value: float) -> str:
        """A flow of the whole network (flits/tick) with the unit of flows, rounded to the nearest."""
        return f"{_rounded(value / self.flow_factor, ROUND_HALF_EVEN, SHOWN_DIGITS)} {self.of_flow}"

    def flow_at_most(self, value: float) -> str:
        """An upper limit of a flow of the whole network (flits/tick) with the unit of flows, rounded up."""
        return f"{at_most(value / self.flow_factor)} {self.of_flow}"


def at_most(value: float, digits: int = SHOWN_DIGITS) -> str:
    """An upper bound with few digits: rounded up, so that it is one still, and so that all machines print the same.

    >>> at_most(0.71408), at_most(0.71409), at_most(0.2), at_most(47492.1), at_most(0.1 + 0.2)
    ('0.7141', '0.7141', '0.2', '47500', '0.3')
    """
    return _rounded(value * (1 - ROUNDING), ROUND_CEILING, digits)


def at_least(value: float, digits: int = SHOWN_DIGITS) -> str:
    """A lower bound with few digits: rounded down.

    >>> at_least(18.7559), at_least(22.5)
    ('18.75', '22.5')
    """
    return _rounded(value * (1 + ROUNDING), ROUND_FLOOR, digits)


def _rounded(value: float, rounding: str, digits: int) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    number = Decimal(value)
    last = number.adjusted() - digits + 1
    return f"{float(number.quantize(Decimal((0, (1,), last)), rounding)):.12g}"


@dataclass(frozen=True)
class Scale:
    """Values of the units of a claim on its network.

    hosts, switches: their numbers, of hosts those that send. flits: mean length of a packet. line: flits/tick of a
    host's channel. capacity: the load of uniform traffic that any routing can carry, None where not needed. link_gbps:
    rate of a channel of capacity 1. cycle_ns: nanoseconds of a tick. None: not given. mean: flits/tick that a sending
    host creates at load 1, on average.
    """

    hosts: int
    switches: int
    flits: float
    line: float
    capacity: float | None = None
    link_gbps: float | None = None
    cycle_ns: float | None = None
    mean: float = 1.0

    def unit(self, name: str, of_load: bool = False) -> Unit:
        """A unit of rates or times on this network. Raises :class:`UnitError`.

        of_load: whether it is of a load: then per host means the busiest host, and per switch or network what all hosts
        create.
        """
        if is_time(name):
            return Unit(name, self.time(name))
        factor, (counted, scope) = self.rate(name), _rate_unit(name)
        if of_load and scope != "node":
            factor /= self.mean
        if counted in ("capacity", "line"):
            return Unit(name, factor, "flits/cycle")
        if counted in ("flits", "packets"):
            return Unit(name, factor, f"{counted}/cycle", self.flits if counted == "packets" else 1.0)
        assert self.link_gbps is not None  # the rate above needs it, too
        what = re.split(r"\s+per\s+|/(?=[a-z]{3,})", name.strip())[0]
        return Unit(name, factor, what, float(counted) / (self.link_gbps * 1e9))

    def rate(self, unit: str) -> float:
        """The value of a unit in flits/tick/host. Raises :class:`UnitError`."""
        counted, scope = _rate_unit(unit)
        share = {"node": 1.0, "switch": self.switches / self.hosts, "network": 1 / self.hosts}[scope]
        if counted == "flits":
            return share
        if counted == "packets":
            return share * self.flits
        if counted == "capacity":
            if self.capacity is None:
                raise UnitError("needs the capacity of the network for uniform traffic", "topology")
            return self.capacity
        if counted == "line":
            if math.isinf(self.line):
                raise UnitError("has no meaning where host channels are infinite", "topology.host_capacity")
            return self.line
        if self.link_gbps is None:
            raise UnitError("needs link_gbps, the rate of a channel of capacity 1", "link_gbps")
        return share * float(counted) / (self.link_gbps * 1e9)

    def time(self, unit: str) -> float:
        """The value of a unit in ticks. Raises :class:`UnitError`."""
        text = unit.strip()
        if text.rstrip("s") in ("cycle", "tick"):
            return 1.0
        if text not in SECONDS:
            raise UnitError("is no unit of time", choices=TIMES)
        if self.cycle_ns is None:
            raise UnitError("needs cycle_ns, the nanoseconds of a cycle", "cycle_ns")
        return SECONDS[text] / self.cycle_ns


def is_time(unit: str) -> bool:
    """Whether a unit is one of times.

    >>> is_time("cycles"), is_time("us"), is_time("flits/cycle/node")
    (True, True, False)
    """
    return unit.strip().rstrip("s") in ("cycle", "tick") or unit.strip() in SECONDS


def needs_capacity(unit: str) -> bool:
    """Whether a unit of rates is relative to the ceiling of uniform traffic. Raises UnitError."""
    return _rate_unit(unit)[0] == "capacity"


SCOPES = {
    "node": "node", "host": "node", "endpoint": "node", "terminal": "node", "server": "node", "nic": "node",
    "switch": "switch", "router": "switch", "network": "network", "total": "network",
}  # fmt: skip


def _rate_unit(unit: str) -> tuple[str, str]:
    """What is counted ('flits', 'packets', 'capacity', 'line', or bits per second as a number), and per what.

    >>> _rate_unit("packets/cycle"), _rate_unit("Gbps per host"), _rate_unit("flits/tick/router")
    (('packets', 'node'), ('1000000000', 'node'), ('flits', 'switch'))
    """
    text = re.sub(r"\s+per\s+", "/", unit.strip())
    if text == "load":
        return "flits", "node"
    share = re.fullmatch(r"(?:fraction|share|1)(?: of | of the )(capacity|line[ _]rate|rate)", text)
    if share:
        return ("capacity" if share[1] == "capacity" else "line"), "node"
    match = re.fullmatch(r"(flit|packet)s?/(?:cycle|tick)(?:/(\w+?)s?)?", text)
    if match and (match[2] or "node") in SCOPES:
        return f"{match[1]}s", SCOPES[match[2] or "node"]
    match = re.fullmatch(r"([kMGT]?)(bps|bit/s|b/s|Bps|B/s|byte/s)(?:/(\w+?)s?)?", text)
    if match and (match[3] or "node") in SCOPES:
        bits = 8 if match[2] in ("Bps", "B/s", "byte/s") else 1
        return str(bits * PREFIX[match[1]]), SCOPES[match[3] or "node"]
    raise UnitError("is no unit of a rate", choices=RATES)


@dataclass(frozen=True)
class Quantity:
    """A reported number as flits/tick/host, or as ticks.

    text, unit: as reported. value: its value. slack: half a unit of its last digit. error: further relative error, such
    as that of a mean over a finite run.
    """

    text: str
    unit: Unit
    value: float
    slack: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return (self.value - self.slack) * (1 - self.error)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return (self.value + self.slack) * (1 + self.error)

    def __str__(self) -> str:
        number = self.text if len(self.text) <= MAX_SHOWN_CHARACTERS else f"{float(self.text):.6g}"
        return f"{number} {self.unit.name}"


def quantity(text: str, unit: Unit, error: float) -> Quantity:
    """A number with a unit.

    Parameters
    ----------
    text : str
        The number as reported.
    unit : Unit
        Its unit.
    error : float
        Relative error besides rounding.

    Raises
    ------
    ValueError
        Not a finite number above 0, or outside the range of doubles.
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError("is no number") from None
    if not number.is_finite():
        raise ValueError("must be a finite number")
    if number <= 0:
        raise ValueError("must be more than 0")
    if abs(number.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"must be between 1e-{MAX_EXPONENT} and 1e+{MAX_EXPONENT}")
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    last = min(exponent, number.adjusted() - LEAST_DIGITS + 1)
    # limit the exponent: digits beyond a double are irrelevant, and a large power of ten is slow
    slack = float(Fraction(10) ** max(last, -2 * MAX_EXPONENT) / 2)
    return Quantity(text.strip(), unit, float(number) * unit.factor, slack * unit.factor, error)
