# SPDX-License-Identifier: Apache-2.0
"""Plugins of a run, which may have registered its figures."""

from collections.abc import Iterable
from pathlib import Path

from flitlab.models.files import read_file
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.plugins import load_plugins
from flitlab.sim.config.text import ConfigDocument, wrap
from flitlab.sim.config.values import read_resolved
from flitlab.sim.report.figures.registry import names


def load_figure_plugins(folder: Path, figures: Iterable[str], trust_plugins: bool) -> None:
    """Load the plugins of a run if one of ``figures`` is not registered.

    trust_plugins: whether they may be imported. Raises :class:`~flitlab.sim.config.diagnostics.ConfigError` if they
    are not trusted, or one cannot be loaded.
    """
    resolved = folder / "config.resolved.yaml"
    if set(figures) <= set(names()) or not resolved.exists():
        return
    diagnostics = Diagnostics()
    named = {"plugins": read_resolved(read_file(resolved)).get("plugins")}
    load_plugins(ConfigDocument(wrap(named, str(resolved)), diagnostics), folder.resolve(), trust_plugins)
    diagnostics.raise_errors()
