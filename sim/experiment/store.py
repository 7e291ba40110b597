"""The folder of a run: every file is written whole or not at all, so that a kill at any moment does no harm."""

import csv
import io
import json
import math
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from models.scenario import Scenario

try:
    import fcntl
except ImportError:  # not a Unix: two runs in one folder are then the user's affair
    fcntl = None  # type: ignore[assignment]


class StoreError(Exception):
    """The folder cannot be used; the message says why."""


class Store:
    """Reads and writes the files of one run folder, which it creates.

    Raises :class:`StoreError` if it cannot be written or another run is using it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("w")
        except OSError as error:
            raise StoreError(f"cannot be written: {error.strerror or error}") from None
        try:
            if fcntl is not None:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise StoreError("another run is writing there") from None
        self._scenarios = folder / ".scenarios"
        shutil.rmtree(self._scenarios, ignore_errors=True)

    def close(self) -> None:
        """Removes what only the run itself needed."""
        shutil.rmtree(self._scenarios, ignore_errors=True)
        (self.folder / ".lock").unlink(missing_ok=True)
        self._lock.close()

    def write(self, name: str, text: str) -> None:
        """Replaces a file, atomically and durably. Raises :class:`StoreError` where that cannot be (a full disk)."""
        try:
            self._replace(self.folder / name, text)
        except OSError as error:
            raise StoreError(f"{name} cannot be written: {error.strerror or error}") from None

    @staticmethod
    def _replace(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def write_json(self, name: str, value: Any) -> None:
        """Replaces a JSON file."""
        self.write(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> Any:
        """The content of a JSON file, None if there is none that can be read."""
        try:
            return json.loads((self.folder / name).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    def write_csv(self, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
        """Replaces a CSV file; numbers are written so that they read back equal."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
        self.write(name, text.getvalue())

    def scenario(self, scenario: Scenario, name: str) -> Path:
        """Path of a scenario, pickled for the workers under a name that follows from its content."""
        path = self._scenarios / f"{name}.pickle"
        if not path.exists():
            self._scenarios.mkdir(exist_ok=True)
            path.write_bytes(pickle.dumps(scenario, pickle.HIGHEST_PROTOCOL))
        return path


def cell(value: Any) -> str:
    """A value as it stands in a CSV file; nothing for None and NaN.

    >>> cell(0.1), cell(None), cell(True), cell(float("nan"))
    ('0.1', '', 'True', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)
