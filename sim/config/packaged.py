# SPDX-License-Identifier: Apache-2.0
"""The configurations that are part of flitlab: ``configs/`` of a checkout, or of the installation."""

from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

FOLDER = Path("configs")
"""Where they are in a checkout, and below ``share/flitlab`` of an installation."""

SUFFIXES = (".yaml", ".yml")


def packaged_folders() -> Iterator[Path]:
    """``configs/`` of a checkout, and of the installation."""
    checkout = Path(__file__).resolve().parents[2] / FOLDER
    if checkout.is_dir():
        yield checkout
    try:
        files = distribution("flitlab").files or []
    except PackageNotFoundError:
        return
    own = (Path(str(file.locate())).resolve().parent for file in files if file.match(f"{FOLDER}/*.yaml"))
    yield from dict.fromkeys(own)


@lru_cache(maxsize=1)
def packaged() -> dict[str, Path]:
    """The configurations by name: their paths below ``configs/`` without suffix, such as ``routing/ksp``.

    Those of papers come last.
    """
    for folder in packaged_folders():
        paths = sorted(folder.rglob("*.yaml"))
        by_name = {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
        return dict(sorted(by_name.items(), key=lambda item: (item[0].startswith("paper/"), item[0])))
    return {}


def packaged_file(name: str | Path) -> Path | None:
    """The configuration that a relative path without a file stands for, such as ``configs/quick.yaml``; None if none.

    Parameters
    ----------
    name: with a suffix, with or without the folder ``configs``.
    """
    path = Path(name)
    if path.is_absolute() or path.suffix not in SUFFIXES or path.exists():
        return None
    parts = path.parts[1:] if path.parts[:1] == FOLDER.parts else path.parts
    return packaged().get(Path(*parts).with_suffix("").as_posix()) if parts else None
