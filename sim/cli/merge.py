# SPDX-License-Identifier: Apache-2.0
"""``simrun merge`` (folder): merge the results of workers into tables, figures and a page."""

import argparse
from dataclasses import replace
from pathlib import Path

from flitlab.models.files import read_file, read_text
from flitlab.sim.cli.common import complain, error_text
from flitlab.sim.cli.components import load
from flitlab.sim.cli.options import add_json, add_trust
from flitlab.sim.cli.run import finish, report_store_error
from flitlab.sim.config.case import Study
from flitlab.sim.config.diagnostics import ConfigError
from flitlab.sim.config.pipeline import read
from flitlab.sim.exit import ExitCode
from flitlab.sim.experiment.folders import MANIFEST, RESOLVED, read_manifest, run_problem
from flitlab.sim.experiment.manifest import config_hash
from flitlab.sim.experiment.runner import merge
from flitlab.sim.experiment.store import StoreError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "paths",
        metavar="[FILE] DIR",
        type=Path,
        nargs="+",
        help="run folders of the workers; FILE: their configuration",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the results (default: the first DIR)")
    add_json(parser)
    add_trust(parser)


def run(options: argparse.Namespace) -> int:
    """Merge the results of workers; missing ones are listed and make the exit code 1."""
    paths = list(options.paths)
    file = paths.pop(0) if paths[0].is_file() else None
    problems = [f"{path}: not a run folder: {problem}" for path in paths if (problem := run_problem(path))]
    if problems or not paths:
        complain(*(problems or [f"simrun merge: DIR is missing: a run folder, with a {MANIFEST}"]))
        return ExitCode.BAD
    folder = options.out or paths[0]
    try:
        study = _study(file, paths, options)
        if study is None:
            return ExitCode.BAD
        report = merge(study, folder, [path for path in paths if path.resolve() != folder.resolve()])
    except StoreError as error:
        return report_store_error(error, file or paths[0], folder)
    return finish(report, options.json)


def _study(file: Path | None, folders: list[Path], options: argparse.Namespace) -> Study | None:
    """The study of a file, or the common study of the folders; None, with errors printed, if there is none."""
    try:
        load(options.plugin)
        if file is not None:
            study = read(file)
        else:
            texts = {read_file(folder / RESOLVED) for folder in folders}
            if len(texts) > 1:
                complain(f"{', '.join(map(str, folders))}: are runs of different configurations")
                return None
            study = _study_of_folder(folders[0], options.trust_plugins)
    except ConfigError as error:
        complain(*map(str, error.errors))
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"{folders[0]}: cannot be read: {error_text(error)}")
        return None
    complain(*study.warnings)
    return study


def _study_of_folder(folder: Path, trust_plugins: bool) -> Study:
    """The study of a run folder, from its resolved configuration.

    The manifest only gives the command of the user. Raises ``ValueError`` if it is of another configuration.
    """
    study, manifest = read(folder / RESOLVED, trust_plugins=trust_plugins), read_manifest(folder)
    if manifest["config_hash"] != config_hash(study):
        raise ValueError(f"{MANIFEST} does not match {RESOLVED}")
    return replace(study, file=manifest["path"], text=read_text(folder / "config.yaml"), changes=manifest["changes"])
