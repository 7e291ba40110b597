# SPDX-License-Identifier: Apache-2.0
"""The figures of rows beside the pages, small enough for a repository."""

import io
from pathlib import Path

from PIL import Image

from flitlab.models.files import open_file, replace_file
from flitlab.sim.experiment.scoreboard.file import read_row
from flitlab.sim.report.figures.draw import captions
from flitlab.sim.report.folder.run import Run

WIDTH = 1050
"""Pixels that a figure has at most: those of one column of a paper, 3.5 in at 300 dpi."""

COLOURS = 256
"""Colours of a reduced picture. With 64, curves that few pixels have take the colour of others."""


def take_figures(run: Path, folder: Path, name: str) -> dict[str, str]:
    """Copy the figures of a row's run into a folder, replacing earlier ones; return file -> caption.

    These are the figures that the configuration names, or the first that was drawn.
    """
    for earlier in [folder / f"{name}.png", *folder.glob(f"{name}.*.png")]:
        earlier.unlink(missing_ok=True)
    taken: dict[str, str] = {}
    for figure, caption in _selected(run).items():
        file = f"{name}.{figure}.png" if taken else f"{name}.png"
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / file, reduced(run / "figures" / f"{figure}.png"))
        taken[file] = caption
    return taken


def _selected(run: Path) -> dict[str, str]:
    """Names of the figures to copy, in order, with their captions."""
    if not any(run.glob("figures/*.png")):
        return {}
    read = Run.read(run)
    known = captions(read)
    order = list(known) if read.metrics else read.manifest.get("figures", [])
    drawn = [figure for figure in order if figure in known and (run / "figures" / f"{figure}.png").exists()]
    outputs = read_row(run / "config.yaml", not read.manifest.get("changes")).outputs
    named = outputs.get("plots") or outputs.get("figures")
    return {figure: known[figure] for figure in (drawn if named else drawn[:1])}


def reduced(picture: Path) -> bytes:
    """A PNG of at most :data:`WIDTH` pixels and few colours."""
    with open_file(picture) as file, Image.open(file) as image:
        plain = image.convert("RGB")
    if plain.width > WIDTH:
        plain = plain.resize((WIDTH, round(plain.height * WIDTH / plain.width)), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    plain.quantize(COLOURS).save(content, "png", optimize=True)
    return content.getvalue()
