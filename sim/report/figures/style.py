# SPDX-License-Identifier: Apache-2.0
"""The style of all figures, their sizes and formats; equal runs give equal bytes.

Labels, names and titles come from users, so no text of a figure is parsed as TeX: ``style.mplstyle`` turns that off,
and :func:`log_axis` writes the powers of ten that matplotlib would set in TeX.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation

from flitlab.models.files import replacing

ArtistProperties: TypeAlias = dict[str, Any]
"""Properties of an artist of matplotlib, by name: color, linewidth, marker."""

in_style = matplotlib.style.context(["default", Path(__file__).with_name("style.mplstyle")])
"""Decorator: the style of the figures and nothing of the user's matplotlibrc."""

FORMATS: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Suffix -> what files of this kind would say of the day and of versions."""

SIZES = {"column": (3.5, 2.4), "double": (7.16, 3.2)}
"""Width and height in inches of a figure in one column of a paper, and across two."""


def new_figure(size: tuple[float, float] | None = None) -> Figure:
    """An empty figure whose parts keep clear of each other. size: inches."""
    figure = Figure(layout="constrained", figsize=size)
    FigureCanvasAgg(figure)
    return figure


_POWER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Powers(LogFormatterSciNotation):
    """Tick labels of a logarithmic axis as plain text: 10², 2×10⁻³."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of a tick at x, '' where there is none."""
        return plain_power(super().__call__(x, pos))


def plain_power(text: str) -> str:
    """A power as matplotlib writes it in TeX, as plain text.

    >>> plain_power("$\\\\mathdefault{10^{-2}}$"), plain_power("$\\\\mathdefault{2\\\\times10^{3}}$"), plain_power("")
    ('10⁻²', '2×10³', '')
    """
    inner = text.removeprefix("$\\mathdefault{").removesuffix("}$").replace(r"\times", "×")
    head, power, exponent = inner.partition("^{")
    return head + exponent.removesuffix("}").translate(_POWER) if power else inner


def log_axis(ax: Axes, which: Literal["x", "y"], base: float = 10.0) -> None:
    """Makes an axis logarithmic, with tick labels in plain text."""
    (ax.set_xscale if which == "x" else ax.set_yscale)("log", base=base)
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_formatter(Powers(base))
    axis.set_minor_formatter(Powers(base, labelOnlyBase=False))


@in_style
def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Writes ``stem.<format>`` of every format without dates or versions in them."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for path, suffix in zip(paths, formats, strict=True):
        with replacing(path) as file:
            figure.savefig(file, format=suffix, metadata=FORMATS[suffix])
    return paths


@in_style
def save_as(make: Callable[[], Figure], path: Path) -> Path:
    """Saves a figure as PNG or SVG, by the suffix, without dates or versions; returns the file.

    Raises ``ValueError`` for another suffix, before the figure is made.
    """
    metadata, figure = metadata_of(path), make()
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), metadata=metadata)
    return path


def metadata_of(path: Path) -> dict[str, None]:
    """What is left out of a file. Raises ``ValueError`` for a suffix other than .png and .svg."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in ("png", "svg"):
        raise ValueError(f"{path}: pictures are .png or .svg")
    return FORMATS[suffix]
