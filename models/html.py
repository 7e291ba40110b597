# SPDX-License-Identifier: Apache-2.0
"""Small HTML tables, with which notebooks show flitlab's objects."""

from collections.abc import Mapping
from html import escape


def facts(title: str, rows: Mapping[str, object]) -> str:
    """Return a two-column table of names and values with a title. Values that are None are omitted."""
    lines = (
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
        if value is not None
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def interval(lower: float, upper: float) -> str:
    """Format an interval with four digits, as one number if both ends look the same; NaN: that end is unknown.

    >>> interval(0.5, 0.5), interval(0.4991, 0.5), interval(float("nan"), 0.5), interval(0.5, float("nan"))
    ('0.5', '0.4991 to 0.5', 'at most 0.5', 'at least 0.5')
    """
    if lower != lower or upper != upper:
        return f"at most {upper:.4g}" if lower != lower else f"at least {lower:.4g}"
    low, high = f"{lower:.4g}", f"{upper:.4g}"
    return low if low == high else f"{low} to {high}"
