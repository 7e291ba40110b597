# SPDX-License-Identifier: Apache-2.0
"""Rates and times as ns-3 writes them."""

import re
from math import inf

_BITS = {"b": 1, "B": 8}
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
RATE = rf"{NUMBER}(?:[kKMGT]|Ki|Mi|Gi)?(?:bps|b/s|Bps|B/s)"
"""A rate, such as 100Gbps."""

TIME = rf"{NUMBER}(?:s|ms|us|ns|ps)"
"""A time, such as 0.0005ms."""


def gbps(text: str) -> float:
    """Return a rate in Gbit/s. Raises ``ValueError``.

    >>> gbps("100Gbps"), gbps("12.5GB/s"), gbps("500Mbps"), gbps(".5Gbps")
    (100.0, 100.0, 0.5, 0.5)
    """
    if not re.fullmatch(RATE, text):
        raise ValueError(f"{text!r} is no rate such as 100Gbps")
    number, prefix, unit = re.fullmatch(rf"({NUMBER})(.*?)([bB])(?:ps|/s)", text).groups()  # type: ignore[union-attr]
    return _finite(text, float(number) * _PREFIX[prefix] * _BITS[unit] / 1e9)


def nanoseconds(text: str) -> float:
    """Return a time in ns. Raises ``ValueError``.

    >>> nanoseconds("0.0005ms"), nanoseconds("1us")
    (500.0, 1000.0)
    """
    match = re.fullmatch(rf"({NUMBER})([a-z]+)", text)
    if match is None or match[2] not in _SECONDS:
        raise ValueError(f"{text!r} is no time such as 500ns")
    return round(_finite(text, float(match[1]) * _SECONDS[match[2]] * 1e9), 9)


def _finite(text: str, value: float) -> float:
    """Return a value. Raises ``ValueError`` if it overflows."""
    if value == inf:
        raise ValueError(f"{text} is more than a number can hold")
    return value
