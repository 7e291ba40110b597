# SPDX-License-Identifier: Apache-2.0
"""Numbers with units: ``64MB``, ``1KiB``, ``5us``, ``100Gbps``, ``10%``.

The name of a key defines its quantity and the unit of plain numbers: ``size_bytes``, ``link_ns``, ``nic_mbps``. Units
are converted before validation, so a sweep over them is a sweep over numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from flitlab.models.arrays import OUT_OF_RANGE, is_in_range
from flitlab.models.closest_match import closest_match
from flitlab.sim.config.diagnostics import Diagnostics, KeyPath, show
from flitlab.sim.config.text import Node

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
"""A number without unit, as a regular expression of Python and of JSON schemas."""


@dataclass(frozen=True)
class Quantity:
    """A physical quantity. name: in messages. units: unit -> factor. base: unit of plain numbers."""

    name: str
    units: Mapping[str, Decimal]
    base: str

    @property
    def pattern(self) -> str:
        """A regular expression for numbers with any of the units."""
        return rf"^\s*{NUMBER}\s*({'|'.join(map(re.escape, self.units))})\s*$"

    def number(self, text: str) -> int | float | None:
        """A number with a unit, converted to the base unit; None if the text is not one.

        Raises ``OverflowError`` for a number out of range, in its unit or in the base unit.
        """
        match = re.fullmatch(rf"\s*({NUMBER})\s*(\S.*?)\s*", text)
        if match is None or match[2] not in self.units:
            return None
        if not is_in_range(match[1]):
            raise OverflowError(OUT_OF_RANGE)
        if float(match[1]) == 0.0:  # also with exponents beyond those of Decimal
            return 0
        value = Decimal(match[1]) * self.units[match[2]] / self.units[self.base]
        if not is_in_range(str(value)):
            raise OverflowError(f"{OUT_OF_RANGE} in {self.base or 'all'}")
        return int(value) if value == value.to_integral_value() else float(value)


def _powers(suffix: str, first: str, base: int, factor: int = 1) -> dict[str, Decimal]:
    """The units with prefixes, each ``base`` times the one before. first: the prefixes, blank-separated."""
    prefixes = first.split()
    return {prefix + suffix: Decimal(factor) * base ** (i + 1) for i, prefix in enumerate(prefixes)}


BYTES = {"B": Decimal(1), **_powers("B", "k M G T", 1000), "KB": Decimal(1000), **_powers("B", "Ki Mi Gi Ti", 1024)}
"""Unit -> bytes; kB etc. are powers of 1000, KiB etc. of 1024."""

TIMES = {"ns": Decimal(1), "us": Decimal(10**3), "µs": Decimal(10**3), "ms": Decimal(10**6), "s": Decimal(10**9)}
"""Unit -> nanoseconds."""

RATES = {
    "bps": Decimal(1), **_powers("bps", "k M G T", 1000), **_powers("bit/s", "k M G T", 1000),
    "B/s": Decimal(8), **_powers("B/s", "k M G T", 1000, 8), **_powers("B/s", "Ki Mi Gi Ti", 1024, 8),
}  # fmt: skip
"""Unit -> bits per second."""

PERCENT = {"%": Decimal(1)}

PERCENTAGE = Quantity("percentage", PERCENT, "%")

SHARE = Quantity("share", {"%": Decimal(1), "": Decimal(100)}, "")
"""A share between 0 and 1: the meaning of a percentage under keys without another quantity."""

QUANTITIES: dict[str, Quantity] = {
    "bytes": Quantity("size", BYTES, "B"),
    **{unit: Quantity("time", TIMES, unit) for unit in ("ns", "us", "ms")},
    "seconds": Quantity("time", TIMES, "s"),
    **{unit.lower(): Quantity("rate", RATES, unit) for unit in ("kbps", "Mbps", "Gbps")},
    "percent": PERCENTAGE,
}
"""Last word of a key -> quantity of its value."""

KEYS_WITHOUT_UNITS = ("published", "chosen", "outputs", "plugins", "name", "label", "text", "path")
"""Keys below which texts are never numbers."""


def quantity_of(key: str, section: str = "") -> Quantity | None:
    """The quantity of a key, by its name; None if its numbers have no unit.

    section: the key above it.

    >>> quantity_of("size_bytes").name, quantity_of("link_ns").base, quantity_of("seed")
    ('size', 'ns', None)
    """
    if (section, key) == ("measure", "window"):
        return QUANTITIES["seconds"]
    return QUANTITIES.get(key.rpartition("_")[2])


def has_unit(value: object) -> bool:
    """Whether a value is a number with a unit of any quantity.

    >>> has_unit("100ms"), has_unit("100"), has_unit("many")
    (True, False, False)
    """
    return isinstance(value, str) and any(re.match(one.pattern, value) for one in QUANTITIES.values())


def without_units(node: Node, diagnostics: Diagnostics, path: KeyPath = (), quantity: Quantity | None = None) -> Node:
    """A configuration with plain numbers in place of numbers with units.

    Parameters
    ----------
    node: the configuration.
    diagnostics: gets numbers that cannot be converted.
    path: of the node.
    quantity: of the key that holds the node.
    """
    if node.is_map:
        value: dict[str, Node] = {}
        for key, inner in node.value.items():
            if key in KEYS_WITHOUT_UNITS:
                value[key] = inner
                continue
            name, above = key.rpartition(".")[2], str(path[-1]) if path else key.rpartition(".")[0]
            within = quantity if key in RANGE_KEYS else quantity_of(name, above)
            value[key] = without_units(inner, diagnostics, (*path, key), within)
        return node.with_value(value)
    if node.is_list:
        return node.with_value(
            [without_units(one, diagnostics, (*path, i), quantity) for i, one in enumerate(node.value)]
        )
    return node if not isinstance(node.value, str) else _plain(node, diagnostics, path, quantity)


RANGE_KEYS = ("sweep", "from", "to", "step")
"""Keys of sweeps whose values belong to the key above."""


def _plain(node: Node, diagnostics: Diagnostics, path: KeyPath, quantity: Quantity | None) -> Node:
    try:
        number = (quantity or SHARE).number(node.value)
    except OverflowError as error:
        choices = tuple((quantity or PERCENTAGE).units)
        diagnostics.reject(node.where, path, str(error), show(node.value), choices)
        return node.with_value(None)
    if quantity is None:
        return node if number is None else node.with_value(float(number))  # also of 100%, as a count is a whole number
    if number is None:
        unit = re.sub(rf"\s*{NUMBER}\s*", "", node.value, count=1).strip()
        problem = f"is no {quantity.name}: must be a number, of {quantity.base} if it has no unit"
        choices = tuple(quantity.units)
        diagnostics.reject(node.where, path, problem, show(node.value), choices, closest_match(unit, choices))
        return node.with_value(None)
    return node.with_value(number)
