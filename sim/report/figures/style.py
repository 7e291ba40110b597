# SPDX-License-Identifier: Apache-2.0
"""The look of all figures, their sizes and formats; the same bytes every time."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure

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


@in_style
def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Writes ``stem.<format>`` of every format without dates or versions in them."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in formats]
    for path, suffix in zip(paths, formats, strict=True):
        figure.savefig(path, metadata=FORMATS[suffix])
    return paths


@in_style
def save_as(make: Callable[[], Figure], path: Path) -> Path:
    """Saves a figure as PNG or SVG, by the suffix, without dates or versions; returns the file.

    Raises ``ValueError`` for another suffix, before the figure is made.
    """
    metadata = metadata_of(path)
    make().savefig(path, metadata=metadata)
    return path


def metadata_of(path: Path) -> dict[str, None]:
    """What is left out of a file. Raises ``ValueError`` for a suffix other than .png and .svg."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in ("png", "svg"):
        raise ValueError(f"{path}: pictures are .png or .svg")
    return FORMATS[suffix]
