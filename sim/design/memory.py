# SPDX-License-Identifier: Apache-2.0
"""What a design has solved, in a folder that grows: a design that was interrupted goes on from there."""

import hashlib
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import flitlab
from flitlab.fluid.design.demands import Ends
from flitlab.models.files import read_text, replace_file

NAME = "solved"
"""The folder, in that of a design."""


class SolvedFolder(MutableMapping[str, Ends]):
    """Certified intervals by what they depend on, and the version of flitlab: a JSON file for each.

    A file that is damaged is left out: what it says is solved again.

    Parameters
    ----------
    folder: created if missing. Raises ``OSError``.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def __getitem__(self, key: str) -> Ends:
        try:
            lower, upper, proof = json.loads(read_text(self._file(key)))
            ends = Ends(float(lower), float(upper), str(proof))
        except (OSError, ValueError, TypeError):
            raise KeyError(key) from None
        if not 0 <= ends.lower <= ends.upper:
            raise KeyError(key)
        return ends

    def __setitem__(self, key: str, ends: Ends) -> None:
        replace_file(self._file(key), json.dumps(ends) + "\n", durable=False)

    def __delitem__(self, key: str) -> None:
        self._file(key).unlink()

    def __iter__(self) -> Iterator[str]:
        return (file.stem for file in sorted(self.folder.glob("*.json")))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _file(self, key: str) -> Path:
        name = hashlib.sha256(f"{flitlab.__version__} {key}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.json"
