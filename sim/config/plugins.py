# SPDX-License-Identifier: Apache-2.0
"""Loads the files and modules that register user-defined components."""

import importlib
import importlib.util
import sys
from pathlib import Path

from flitlab.sim.config.diagnostics import crash
from flitlab.sim.config.text import ConfigDocument


class PluginError(Exception):
    """A plugin that cannot be loaded; the message gives the reason."""


UNTRUSTED = "is code, and is imported only with --trust-plugins (in Python trust_plugins=True) or if --plugin names it"
"""Why a plugin that a folder or a claim names is not imported: a third party may have written it."""


def load_plugins(document: ConfigDocument, base: Path, trusted: bool = True) -> None:
    """Import all ``plugins:``, and reject those that fail.

    Parameters
    ----------
    document: the configuration.
    base: the folder that file names are relative to.
    trusted: whether the user named the configuration to run; otherwise plugins must be loaded already.

    Raises
    ------
    ConfigError: untrusted plugins. Their components are unknown, so nothing else can be checked.
    """
    plugins = document.at("plugins")
    named = [(i, name) for i, name in enumerate(plugins if isinstance(plugins, list) else []) if isinstance(name, str)]
    if untrusted := [] if trusted else [i for i, name in named if not is_loaded(path_of(name, base))]:
        for i in untrusted:
            document.reject(("plugins", i), UNTRUSTED)
        document.diagnostics.raise_errors()
    for i, name in named:
        try:
            load_plugin(path_of(name, base))
        except PluginError as error:
            document.reject(("plugins", i), str(error))


def path_of(name: str, base: Path) -> str:
    """The full name of a plugin: a module name as it is, the absolute path of a file."""
    return str((base / name).resolve()) if name.endswith(".py") else name


def is_loaded(name: str) -> bool:
    """Whether a plugin was imported into this process: a module by name, a file by absolute path."""
    if not name.endswith(".py"):
        return name in sys.modules
    return getattr(sys.modules.get(_module_name(Path(name))), "__file__", None) == name


def load_plugin(name: str) -> None:
    """Import a module, or a file by its absolute path, once. Raises :class:`PluginError` for any failure."""
    try:
        _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # third-party code may raise anything, or exit
        raise PluginError(f"cannot be loaded: {crash(error)}") from error


def _load_file(path: Path) -> None:
    if is_loaded(str(path)):
        return
    module_name = _module_name(path)
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


def _module_name(path: Path) -> str:
    """The module name of an imported file."""
    return f"flitlab_plugin_{path.stem}"
