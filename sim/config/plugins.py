# SPDX-License-Identifier: Apache-2.0
"""Loads the files and modules that register components of a user's own."""

import importlib
import importlib.util
import sys
from pathlib import Path

from flitlab.sim.config.check import crash
from flitlab.sim.config.page import Page


class PluginError(Exception):
    """A plugin that cannot be loaded; the message says why."""


def load_plugins(page: Page, base: Path) -> None:
    """Imports everything in ``plugins:``, files relative to ``base``, and refuses what fails."""
    plugins = page.at("plugins")
    for i, name in enumerate(plugins if isinstance(plugins, list) else []):
        if not isinstance(name, str):
            continue  # the schema says so
        try:
            load_plugin(path_of(name, base))
        except PluginError as error:
            page.refuse(("plugins", i), str(error))


def path_of(name: str, base: Path) -> str:
    """The name of a plugin wherever it is loaded: a module's as it is, the full path of a file."""
    return str((base / name).resolve()) if name.endswith(".py") else name


def load_plugin(name: str) -> None:
    """Imports a module, or a file by its full path, once. Raises :class:`PluginError`, whatever the code raises."""
    try:
        _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # a stranger's code may raise anything, and even exit
        raise PluginError(f"cannot be loaded: {crash(error)}") from error


def _load_file(path: Path) -> None:
    module_name = f"flitlab_plugin_{path.stem}"
    loaded = sys.modules.get(module_name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path):
        return
    if not path.exists():
        raise PluginError("No such file or directory")
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
