# SPDX-License-Identifier: Apache-2.0
"""The figures that ``outputs.figures`` may name: each is registered by its file in ``kinds``, or by a plugin.

A figure is a function ``draw(ax, run, units, look)``. It draws a run (:class:`~flitlab.sim.report.folder.run.Run`) on
axes, with the marks of :mod:`~flitlab.sim.report.figures.marks`, and returns what the key says beside the names of
scenarios, if anything; where a run has panels it is called for each, with what that one shows
(:mod:`~flitlab.sim.report.figures.panels`). A figure with a layout of its own is a function ``make(run, size)`` that
returns the whole figure, or None if there is nothing to show; one of networks, ``draw(study, folder, formats)`` that
writes its files and returns them. The first paragraph of its docstring is its caption, and the rest of it says how it
is read.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

PACKAGE = "flitlab.sim.report.figures.kinds"
"""Where the built-in figures are, in files of their names."""

Of = Literal["packets", "flows", "programs", "collectives", "network"]
"""What a figure shows: results of one of four sorts, or the networks of the scenarios."""

Draw = TypeVar("Draw", bound=Callable[..., object])


@dataclass(frozen=True)
class Kind:
    """A kind of figure: what runs it is for and the function that draws it.

    of: the runs that have it. draw: as the module says. place: the lower, the earlier it is shown. usual: whether it is
    drawn where ``outputs.figures`` names none. panels: whether a figure on axes is drawn once for each panel.
    """

    name: str
    of: tuple[Of, ...]
    draw: Callable[..., Any]
    place: int
    usual: bool
    panels: bool

    @property
    def is_whole(self) -> bool:
        """Whether it has a layout of its own, and is not drawn on axes."""
        return "ax" not in inspect.signature(self.draw).parameters

    @property
    def caption(self) -> str:
        """The caption of the figure in words: the first paragraph of the docstring of what draws it."""
        return " ".join(self.meaning.partition("\n\n")[0].split())

    @property
    def meaning(self) -> str:
        """What the figure shows and how it is read: the docstring of what draws it."""
        return inspect.cleandoc(self.draw.__doc__ or "")


_registered: dict[str, Kind] = {}


def figure(
    name: str, *of: Of, place: int = 100, usual: bool = True, panels: bool = True
) -> Callable[[Draw], Draw]:  # fmt: skip
    """Decorator that registers a function as the figure of a name.

    of, place, usual, panels: as in :class:`Kind`. Raises ``ValueError`` for a name that another function holds.
    """

    def enter(draw: Draw) -> Draw:
        if not draw.__module__.startswith("flitlab."):
            figures()  # so that no plugin takes a built-in one's name
        holder = _registered.get(name)
        if holder is not None and _origin(holder.draw) != _origin(draw):
            raise ValueError(f"figure {name!r} is registered already, by {holder.draw.__module__}")
        _registered[name] = Kind(name, of, draw, place, usual, panels)
        return draw

    return enter


def _origin(draw: Callable[..., object]) -> tuple[bool, str]:
    """What may take the place of a figure: the same function of a file that is loaded again."""
    return draw.__module__.startswith("flitlab."), draw.__qualname__


def names() -> list[str]:
    """Names of all figures that ``outputs.figures`` may name, sorted; what draws them is not imported."""
    return sorted({*_registered, *_files()})


def usual() -> list[str]:
    """Names of the built-in figures that are drawn where ``outputs.figures`` names none, sorted.

    Their files are read, not imported: that takes matplotlib, which a configuration does not need.
    """
    return sorted(name for name, file in _files().items() if "usual=False" not in file.read_text("utf-8"))


def figures() -> dict[str, Kind]:
    """Every kind of figure by name, in the order in which they are shown."""
    for name in _files():
        importlib.import_module(f"{PACKAGE}.{name}")
    return {kind.name: kind for kind in sorted(_registered.values(), key=lambda kind: (kind.place, kind.name))}


def _files() -> dict[str, Path]:
    """The files of the built-in figures, by name."""
    (folder,) = importlib.import_module(PACKAGE).__path__
    return {module.name: Path(folder, f"{module.name}.py") for module in pkgutil.iter_modules([folder])}
