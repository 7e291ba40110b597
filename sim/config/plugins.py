# SPDX-License-Identifier: Apache-2.0
"""Loads the files and modules that register components of a user's own."""

import importlib
import importlib.util
import sys
from pathlib import Path

from flitlab.sim.config.check import crash
from flitlab.sim.config.document import ConfigDocument
from flitlab.sim.config.errors import ConfigError


class PluginError(Exception):
    """A plugin that cannot be loaded; the message says why."""


UNTRUSTED = "is code, and is imported only with --trust-plugins (in Python trust_plugins=True) or if --plugin names it"
"""Why a plugin is not imported that a folder or a claim names: others may have written these."""


def load_plugins(document: ConfigDocument, base: Path, trusted: bool = True) -> None:
    """Imports everything in ``plugins:``, files relative to ``base``, and refuses what fails.

    trusted: whether the user named the configuration as one to run. Without, a plugin has to be loaded already.

    Raises :class:`~flitlab.sim.config.errors.ConfigError` for plugins that are not trusted: what they would register
    is not known, so nothing else can be checked.
    """
    plugins = document.at("plugins")
    named = [(i, name) for i, name in enumerate(plugins if isinstance(plugins, list) else []) if isinstance(name, str)]
    if untrusted := [] if trusted else [i for i, name in named if not is_loaded(path_of(name, base))]:
        for i in untrusted:
            document.reject(("plugins", i), UNTRUSTED)
        raise ConfigError(document.errors)
    for i, name in named:
        try:
            load_plugin(path_of(name, base))
        except PluginError as error:
            document.reject(("plugins", i), str(error))


def path_of(name: str, base: Path) -> str:
    """The name of a plugin wherever it is loaded: a module's as it is, the full path of a file."""
    return str((base / name).resolve()) if name.endswith(".py") else name


def is_loaded(name: str) -> bool:
    """Whether a plugin was imported into this process: a module by its name, a file by its full path."""
    if not name.endswith(".py"):
        return name in sys.modules
    return getattr(sys.modules.get(_module_name(Path(name))), "__file__", None) == name


def load_plugin(name: str) -> None:
    """Imports a module, or a file by its full path, once. Raises :class:`PluginError`, whatever the code raises."""
    try:
        _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:  # a stranger's code may raise anything, and even exit
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
    """The name under which a file is imported."""
    return f"flitlab_plugin_{path.stem}"
