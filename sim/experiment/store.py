# SPDX-License-Identifier: Apache-2.0
"""The folder of a run. Every file is written atomically, so that the run can be killed at any time."""

import hashlib
import json
import math
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel, ValidationError

from flitlab.models.delimited import csv_text
from flitlab.models.files import TEMPORARY_SUFFIX, entries, read_file, replace_file, replacing
from flitlab.models.instance import Instance
from flitlab.models.mappings import JsonObject, Row
from flitlab.models.scenario import Scenario
from flitlab.sim.config.diagnostics import KeyPath, key_path, show
from flitlab.sim.experiment.folders import (
    MANIFEST,
    UnrelatedFolder,
    digest_of,
    reject_unrelated_folder,
    sealed,
    text_digest,
)
from flitlab.sim.experiment.progress import say
from flitlab.sim.experiment.task import ScenarioFile

try:
    import fcntl
except ImportError:  # not Unix: the user must keep two runs from sharing a folder
    fcntl = None  # type: ignore[assignment]

SCRATCH = ".scenarios-"
"""Prefix of temporary folders of a run; the dot hides them."""

QUARANTINE = "quarantine"
"""Folder for damaged files, beside their original place."""

DIGEST = ', "digest": "'
"""End of the line of a stored result: the SHA-256 of its name and content."""


class StoreError(Exception):
    """A folder that cannot be used; the message gives the reason."""


class WriteError(StoreError):
    """A file of a run that cannot be written, for instance because the disk is full."""


class RecordError(ValueError):
    """A file that is not the stored result; the message gives the reason."""


class Store:
    """Reads and writes the files of a run folder, which it creates.

    Parameters
    ----------
    folder: of the run.
    shared: whether other processes (shards) may write there at the same time. They write other files, or equal content.

    Raises
    ------
    StoreError: the folder cannot be written, has other content, links or pipes, or another run uses it.
    """

    def __init__(self, folder: Path, shared: bool = False):
        self.folder = folder
        self.shared = shared
        self._scratch: Path | None = None
        try:
            reject_unrelated_folder(folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / ".lock", shared)
        except UnrelatedFolder as error:
            raise StoreError(str(error)) from None
        except OSError as error:
            raise StoreError(f"cannot be written: {error.strerror or error}") from None
        if not shared:
            _tidy(folder)

    def close(self) -> None:
        """Remove temporary files."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        try:
            if fcntl is not None:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.folder / ".lock").unlink(missing_ok=True)
        except OSError:
            pass  # another shard goes on
        self._lock.close()

    def write(self, name: str, text: str) -> None:
        """Replace a file, atomically and durably. Raises :class:`WriteError`, for instance for a full disk."""
        try:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        except OSError as error:
            raise WriteError(f"{name} cannot be written: {error.strerror or error}") from None

    def remove(self, name: str) -> None:
        """Remove a file, if it exists. Raises :class:`WriteError`."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise WriteError(f"{name} cannot be removed: {error.strerror or error}") from None

    def write_json(self, name: str, value: object) -> None:
        """Replace a JSON file."""
        self.write(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def write_manifest(self, manifest: JsonObject) -> None:
        """Replace the manifest, with its digest."""
        self.write_json(MANIFEST, sealed(manifest))

    def write_record(self, name: str, record: JsonObject) -> None:
        """Replace the file of a result, with a digest for :func:`read_record`."""
        text = json.dumps(record)[:-1]  # on one line: with an indent, json uses its Python encoder, ten times slower
        self.write(name, f'{text}{DIGEST}{_digest(name, text.encode())}"}}\n')

    def record(self, name: str, check: Callable[[JsonObject], object] | None = None) -> JsonObject | None:
        """The result in a file, None if there is none. A damaged file is moved to quarantine.

        check: raises :class:`RecordError` for a result of another kind.
        """
        try:
            record = read_record(self.folder, name)
            if record is not None and check is not None:
                check(record)
            return record
        except RecordError as error:
            self.quarantine(name, str(error))
            return None

    def quarantine(self, name: str, why: str) -> None:
        """Move a damaged file away, and print that."""
        path = self.folder / name
        home = path.parent / QUARANTINE
        try:
            home.mkdir(exist_ok=True)
            names = chain([path.name], (f"{path.name}.{i}" for i in count(2)))
            target = next(home / name for name in names if not os.path.lexists(home / name))
            os.replace(path, target)
        except FileNotFoundError:
            return  # another shard was quicker
        except OSError as error:
            raise WriteError(f"{name} {why} and cannot be moved: {error.strerror or error}") from None
        say(f"{path} {why}: moved to {home}; its result is computed again")

    def write_csv(self, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Replace a CSV file; numbers read back equal.

        Parameters
        ----------
        name: of the file.
        columns: in order; missing values are empty.
        rows: column -> value.
        """
        self.write(name, csv_text(columns, cells(columns, rows)))

    def digest(self, name: str) -> str:
        """SHA-256 of a file."""
        return digest_of(self.folder / name)

    def scenario(self, scenario: Scenario | Instance, name: str) -> ScenarioFile | bytes:
        """A scenario or instance, pickled for workers, under a name that depends on its content."""
        try:
            if self._scratch is None:  # private to this process: pickles of others are never read
                self._scratch = Path(tempfile.mkdtemp(dir=self.folder, prefix=SCRATCH))
            path = self._scratch / f"{name}.pickle"
            if not path.exists():
                with replacing(path, durable=False) as file:
                    pickle.dump(scenario, file, pickle.HIGHEST_PROTOCOL)  # large tables are written without a copy
        except OSError as error:
            raise WriteError(f"a scenario cannot be written: {error.strerror or error}") from None
        return ScenarioFile(path.resolve())

    def discard_scenario(self, name: str) -> None:
        """Remove the pickle of a scenario that no call in flight needs; :meth:`scenario` writes it again."""
        if self._scratch is not None:
            with suppress(OSError):  # the folder is removed at the end
                (self._scratch / f"{name}.pickle").unlink(missing_ok=True)


def cells(columns: Sequence[str], rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield the cells of rows of a CSV file, of which numbers read back equal; parameters as of ``write_csv``."""
    for row in rows:
        yield [cell(row.get(column)) for column in columns]


class Memory(Store):
    """A run folder in memory, with the same files.

    files: name -> text.
    """

    def __init__(self) -> None:
        self.folder = Path("memory")
        self.shared = False
        self.files: dict[str, str] = {}
        self._pickles: dict[str, bytes] = {}

    def close(self) -> None:
        """Drop temporary data."""
        self._pickles.clear()

    def write(self, name: str, text: str) -> None:
        """Replace a file."""
        self.files[name] = text

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        self.files.pop(name, None)

    def record(self, name: str, check: Callable[[JsonObject], object] | None = None) -> JsonObject | None:
        """The result in a file, None if there is none."""
        if name not in self.files:
            return None
        record: JsonObject = json.loads(self.files[name])
        del record["digest"]
        return record

    def digest(self, name: str) -> str:
        """SHA-256 of a file."""
        return text_digest(self.files[name])

    def scenario(self, scenario: Scenario | Instance, name: str) -> bytes:
        """A scenario or instance, pickled for workers."""
        if name not in self._pickles:
            self._pickles[name] = pickle.dumps(scenario, pickle.HIGHEST_PROTOCOL)
        return self._pickles[name]

    def discard_scenario(self, name: str) -> None:
        """Forget the pickle of a scenario."""
        self._pickles.pop(name, None)

    def copy(self, folder: Path) -> None:
        """Write the files into a folder, except for those that exist."""
        for name, text in self.files.items():
            path = folder / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, text)


def read_record(folder: Path, name: str) -> JsonObject | None:
    """The result that :meth:`Store.write_record` wrote under a name, None if there is none.

    Raises :class:`RecordError` for anything else, also for a result of another name.
    """
    try:
        text = read_file(folder / name)
        value = json.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RecordError(f"cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError):
        raise RecordError("is truncated or not JSON") from None
    digest = value.pop("digest", None) if isinstance(value, dict) else None
    if digest is None:
        raise RecordError("has no digest: it is not a stored result")
    if digest != _digest(name, text.rpartition(DIGEST.encode())[0]):
        raise RecordError("does not match its digest")
    record: JsonObject = value
    return record


def require_cells(record: JsonObject, model: type[BaseModel]) -> None:
    """Raise :class:`RecordError`, which names the cell, for a record without the keys of a model, or with values of
    other types, which may have a valid digest.
    """
    try:
        model.model_validate(record)
    except ValidationError as error:
        first = error.errors()[0]
        path: KeyPath = ()
        value: Any = record
        for part in first["loc"]:  # a union adds its types
            keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
            if part not in keys:
                break
            path, value = (*path, part), value[part]
        if first["type"] == "missing":
            raise RecordError(f"is no stored result: {key_path(first['loc'])} is missing") from None
        raise wrong_cell(path, value) from None


def wrong_cell(path: KeyPath, value: object) -> RecordError:
    """The error of a value that no run writes there."""
    cell = " = ".join(filter(None, (key_path(path), show(value))))
    return RecordError(f"is no stored result: {cell} is not as a run writes it")


def _locked(path: Path, shared: bool) -> TextIO:
    """The open lock file. The last process to close it deletes it, so a lock on a deleted file is retried."""
    while True:
        lock = path.open("a+")  # some file systems want it readable for a shared lock
        if fcntl is None:
            return lock
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise StoreError("another run is writing there") from None
        except OSError:  # a file system without locks
            return lock
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        lock.close()


def _tidy(folder: Path) -> None:
    """Remove temporary files of a killed run."""
    for entry in entries(folder):
        if entry.name.startswith(SCRATCH) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name.startswith(".") and entry.name.endswith(TEMPORARY_SUFFIX):
            Path(entry.path).unlink(missing_ok=True)


def _digest(name: str, text: bytes) -> str:
    return hashlib.sha256(name.encode() + b"\n" + text).hexdigest()


def cell(value: object) -> str:
    """A value as text in a CSV file; '' for None and NaN.

    >>> cell(0.1), cell(None), cell(True), cell(float("nan"))
    ('0.1', '', 'True', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
