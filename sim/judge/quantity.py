# SPDX-License-Identifier: Apache-2.0
"""What a reported number says, whatever unit it is in: between which ends it lies, in ticks and flits."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

LEAST_DIGITS = 3
"""A number printed with fewer digits is taken as exact to so many: 0.5 is 0.500, and no number from 0.45 to 0.55."""

LONGEST = 9
"""Letters of a number that is shown as it is printed; longer ones are rounded where they are shown."""

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
    """A unit that nobody knows, or that needs a key which the claim does not have.

    key: what is missing, '' where the unit itself is wrong. choices: units that would do.
    """

    def __init__(self, problem: str, key: str = "", choices: tuple[str, ...] = ()):
        super().__init__(problem)
        self.key, self.choices = key, choices


@dataclass(frozen=True)
class Scale:
    """What the units of a claim mean on its network.

    hosts, switches: how many there are, of hosts those that send. flits: the mean length of a packet. line: flits that
    a host's channel takes in a tick. capacity: the load that any routing can carry of uniform traffic, None where that
    is not asked for. link_gbps: the rate of a channel of capacity 1. cycle_ns: nanoseconds of a tick. None: not given.
    """

    hosts: int
    switches: int
    flits: float
    line: float
    capacity: float | None = None
    link_gbps: float | None = None
    cycle_ns: float | None = None

    def rate(self, unit: str) -> float:
        """The flits per tick and host that one of a unit is. Raises :class:`UnitError`."""
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
        """The ticks that one of a unit is. Raises :class:`UnitError`."""
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


def asks_capacity(unit: str) -> bool:
    """Whether a unit of rates is relative to what the network carries of uniform traffic. Raises UnitError."""
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
    found = re.fullmatch(r"(flit|packet)s?/(?:cycle|tick)(?:/(\w+?)s?)?", text)
    if found and (found[2] or "node") in SCOPES:
        return f"{found[1]}s", SCOPES[found[2] or "node"]
    found = re.fullmatch(r"([kMGT]?)(bps|bit/s|b/s|Bps|B/s|byte/s)(?:/(\w+?)s?)?", text)
    if found and (found[3] or "node") in SCOPES:
        bits = 8 if found[2] in ("Bps", "B/s", "byte/s") else 1
        return str(bits * PREFIX[found[1]]), SCOPES[found[3] or "node"]
    raise UnitError("is no unit of a rate", choices=RATES)


@dataclass(frozen=True)
class Quantity:
    """A reported number as flits per tick and host, or as ticks.

    text, unit: as reported. value: what it says. slack: half a unit of its last digit. error: what it may be off by
    besides, relatively, as a mean of a run that ends.
    """

    text: str
    unit: str
    value: float
    slack: float
    error: float

    @property
    def low(self) -> float:
        """The least that may be meant."""
        return (self.value - self.slack) * (1 - self.error)

    @property
    def high(self) -> float:
        """The most that may be meant."""
        return (self.value + self.slack) * (1 + self.error)

    def __str__(self) -> str:
        number = self.text if len(self.text) <= LONGEST else f"{float(self.text):.6g}"
        return f"{number} {self.unit}"


def quantity(text: str, unit: str, factor: float, error: float) -> Quantity:
    """A number as it is printed, times what one of its unit is. Raises ``ValueError`` for what is no number above 0."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError("is no number") from None
    if not number.is_finite() or number <= 0:
        raise ValueError("must be more than 0")
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    last = min(exponent, number.adjusted() - LEAST_DIGITS + 1)
    slack = float(Fraction(10) ** last / 2)
    return Quantity(text.strip(), unit, float(number) * factor, slack * factor, error)
