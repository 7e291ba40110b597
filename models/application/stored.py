# SPDX-License-Identifier: Apache-2.0
"""Programs on disk: a folder ``NAME.program`` with one file per array, and the rest in JSON.

The arrays are mapped, not read: a program larger than memory is paged in where it is needed.
"""

import json
import mmap
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import SupportsIndex

import numpy as np

from flitlab.models.application.matching import DTYPES, ProgramError, check
from flitlab.models.application.program import Program, Step
from flitlab.models.files import open_file, read_text, replace_file, replacing
from flitlab.models.mappings import Fields, JsonObject
from flitlab.models.registry import SpecError

SUFFIX = ".program"
FORMAT = "flitlab program"
VERSION = 1

_SUMMARY = "program.json"
_UNRESERVED = 0x4000  # Linux: MAP_NORESERVE; without it, a private mapping larger than memory is refused


class StoredProgram(Program):
    """A program whose arrays are mapped from its folder. Other processes get the folder's name, not the arrays."""

    folder: Path | None = None  # of a copy with other arrays: None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self.folder is None:
            return super().__reduce_ex__(protocol)
        return _reopened, (self.folder, self.content_hash)


def write_program(program: Program, folder: Path) -> None:
    """Write a program into a folder ``NAME.program``, atomically; another program there is replaced.

    Raises ``SpecError`` for another name, or if something else has that name, ``OSError`` if it cannot be written.
    """
    if folder.suffix != SUFFIX:
        raise SpecError(f"the name of a program's folder ends in {SUFFIX}")
    if folder.exists() and not (folder / _SUMMARY).is_file():
        raise SpecError("exists, and is no program")
    summary = {
        "format": FORMAT,
        "version": VERSION,
        "ranks": program.ranks,
        "operations": program.operations,
        "simulated": program.simulated,
        "iterations": program.iterations,
        "notes": program.notes,
        "steps": [asdict(step) for step in program.steps],
    }
    with tempfile.TemporaryDirectory(prefix=f".{folder.stem}-", dir=folder.parent) as temporary:
        new, old = Path(temporary) / "new", Path(temporary) / "old"
        new.mkdir()
        for name in DTYPES:
            with replacing(new / f"{name}.npy") as file:
                np.save(file, getattr(program, name), allow_pickle=False)
        replace_file(new / _SUMMARY, json.dumps(summary, indent=1) + "\n")
        if folder.exists():
            os.replace(folder, old)
        try:
            os.replace(new, folder)
        except BaseException:
            if old.exists():
                os.replace(old, folder)
            raise


def read_program(folder: Path) -> StoredProgram:
    """The program of a folder written by :func:`write_program`; its arrays are private mappings of the files.

    Everything is checked once (:func:`~flitlab.models.application.matching.check`). Raises ``SpecError`` unless it is a
    complete and valid program of this version.
    """
    summary = _summary(folder)
    try:
        steps = tuple(Step(**step) for step in summary["steps"])
        fields = {key: summary[key] for key in ("simulated", "iterations", "notes")}
        ranks, operations = int(summary["ranks"]), int(summary["operations"])
    except (KeyError, TypeError, ValueError) as error:
        raise SpecError(f"{folder / _SUMMARY}: damaged: {type(error).__name__} {error}", "path") from None
    arrays: Fields = {name: _mapped(folder / f"{name}.npy") for name in DTYPES}
    program = StoredProgram(**arrays, steps=steps, **fields)
    object.__setattr__(program, "folder", folder.resolve())
    if (program.ranks, program.operations) != (ranks, operations):
        actual = f"{program.ranks} ranks and {program.operations} operations"
        raise SpecError(f"{folder}: damaged: {actual}, not {ranks} and {operations}", "path")
    try:
        check(program)
    except ProgramError as error:
        raise SpecError(f"{folder}: damaged: {error}", "path") from None
    return program


def _reopened(folder: Path, content: str) -> StoredProgram:
    """The program of a folder. Raises ``SpecError`` if its content has changed."""
    program = read_program(folder)
    if program.content_hash != content:
        raise SpecError(f"{folder}: has changed since the run began", "path")
    return program


def _summary(folder: Path) -> JsonObject:
    if not folder.is_dir():
        raise SpecError(f"{folder}: no such folder", "path")
    path = folder / _SUMMARY
    if not path.is_file():
        raise SpecError(f"{folder}: no program: it has no {_SUMMARY}", "path")
    try:
        summary = json.loads(read_text(path))
    except ValueError as error:
        raise SpecError(f"{path}: damaged: {error}", "path") from None
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise SpecError(f"{path}: not written as a program", "path")
    if summary.get("version") != VERSION:
        raise SpecError(
            f"{folder}: of version {summary.get('version')}; this is version {VERSION}: convert it again", "path"
        )
    return summary


def _mapped(path: Path) -> np.ndarray:
    """The array of a .npy file, backed by the file; changes never reach it."""
    try:
        with open_file(path, sys.maxsize) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("another version of the .npy format")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            offset = file.tell()
            if sys.platform == "linux":
                protection = mmap.PROT_READ | mmap.PROT_WRITE
                block = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | _UNRESERVED, prot=protection)
            else:
                block = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            return np.frombuffer(block, dtype, int(np.prod(shape, dtype=np.int64)), offset).reshape(shape)
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise SpecError(f"{path}: damaged: {text}", "path") from None
