# SPDX-License-Identifier: Apache-2.0
"""The plugins of a run, which may have registered its figures."""

from collections.abc import Iterable
from pathlib import Path

from flitlab.sim.config.plugins import PluginError, load_plugin
from flitlab.sim.config.values import read_resolved
from flitlab.sim.report.figures.registry import names


def know_figures(folder: Path, wanted: Iterable[str]) -> None:
    """Loads the plugins of a run if it has a figure that nothing in this process has registered.

    Raises ``ValueError`` if one cannot be loaded.
    """
    resolved = folder / "config.resolved.yaml"
    if set(wanted) <= set(names()) or not resolved.exists():
        return
    for plugin in read_resolved(resolved.read_bytes()).get("plugins", ()):
        try:
            load_plugin(plugin)
        except PluginError as error:
            raise ValueError(f"{plugin}: {error}") from None
