# SPDX-License-Identifier: Apache-2.0
"""``simrun merge [FILE] DIR...``."""

import argparse
from pathlib import Path
from typing import Any

from flitlab.sim.cli.common import complain, why
from flitlab.sim.cli.run import finish, refused
from flitlab.sim.config.errors import ConfigError
from flitlab.sim.config.study import Study, read
from flitlab.sim.exit import BAD
from flitlab.sim.experiment.folders import MANIFEST, no_run, read_manifest
from flitlab.sim.experiment.runner import merge
from flitlab.sim.experiment.store import StoreError


def run(options: argparse.Namespace) -> int:
    """Puts together what workers have run; what is missing is listed, and makes the exit code 1."""
    paths = list(options.paths)
    file = paths.pop(0) if paths[0].is_file() else None
    problems = [f"{path}: no run folder: {problem}" for path in paths if (problem := no_run(path))]
    if problems or not paths:
        complain(*(problems or [f"simrun merge: no DIR: one holds the {MANIFEST} of a run"]))
        return BAD
    folder = options.out or paths[0]
    try:
        study = _study(file, paths)
        if study is None:
            return BAD
        report = merge(study, folder, [path for path in paths if path.resolve() != folder.resolve()])
    except StoreError as error:
        return refused(error, file or paths[0], folder)
    return finish(report, options.json)


def _study(file: Path | None, folders: list[Path]) -> Study | None:
    """The study of a file, or that of which all the folders hold parts; None after mistakes have been printed."""
    try:
        if file is not None:
            study = read(file)
        else:
            texts = {(folder / "config.resolved.yaml").read_bytes() for folder in folders}
            if len(texts) > 1:
                complain(f"{', '.join(map(str, folders))}: hold parts of different configurations")
                return None
            study = _again(folders[0])
    except ConfigError as error:
        complain(*map(str, error.mistakes))
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"{folders[0]}: cannot be read: {why(error)}")
        return None
    complain(*study.warnings)
    return study


def _again(folder: Path) -> Study:
    """The study that a worker has run into a folder."""
    manifest: dict[str, Any] = read_manifest(folder)
    changes: list[str] = manifest["changes"]
    return read(
        manifest["path"],
        [change.removeprefix("--set ") for change in changes if change.startswith("--set ")],
        "--quick" in changes,
        manifest["engine"],
        text=(folder / "config.yaml").read_text("utf-8"),
    )
