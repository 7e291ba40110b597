# SPDX-License-Identifier: Apache-2.0
"""Small tables in HTML, by which notebooks show our objects."""

from collections.abc import Mapping
from html import escape


def facts(title: str, rows: Mapping[str, object]) -> str:
    """A table of two columns under a title: what something is, and its value. Values that are None are left out."""
    lines = (
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
        if value is not None
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def interval(lower: float, upper: float) -> str:
    """Two ends as short as they can be told apart.

    >>> interval(0.5, 0.5), interval(0.4991, 0.5)
    ('0.5', '0.4991 to 0.5')
    """
    low, high = f"{lower:.4g}", f"{upper:.4g}"
    return low if low == high else f"{low} to {high}"
