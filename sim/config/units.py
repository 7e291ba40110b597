"""Numbers with units, as people write them."""

import re
from decimal import Decimal
from typing import Any

from pydantic_core import PydanticCustomError

BYTES = {
    "": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20,
    "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""Unit -> bytes; kB and its like are powers of ten, KiB and its like of two."""


def as_bytes(value: Any) -> Any:
    """A number of bytes, which may have a unit; whatever is no text as it is. Raises ``PydanticCustomError``.

    >>> as_bytes("64 MB"), as_bytes("1KiB"), as_bytes(512)
    (64000000, 1024, 512)
    """
    if not isinstance(value, str):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    number, unit = _parted(value)
    if number is None or unit not in BYTES or number * BYTES[unit] % 1:
        units = ", ".join(unit for unit in BYTES if unit)
        problem = "must be a whole number of bytes, with or without a unit: {units}"
        raise PydanticCustomError("bytes", problem, {"units": units})
    return int(number * BYTES[unit])


def _parted(text: str) -> tuple[Decimal | None, str]:
    """A number and the unit behind it; None if there is none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:[eE]\d+)?)\s*([A-Za-z]*)\s*", text)
    return (Decimal(found[1]), found[2]) if found else (None, "")
