"""A folder of saved certificates: what proves the ceilings of a study, and the configuration they belong to."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluid.ceiling import Ceiling
from fluid.saved import Saved
from fluid.verify import Verified, verify
from models.scenario import Scenario
from sim.config.study import read

CONFIGURATION = "config.resolved.yaml"
INDEX = "certificates.json"
"""List of {scenario: index of the case, label, folder}."""


@dataclass(frozen=True)
class Verdict:
    """What came of verifying one certificate. problem: why it is none, or belongs to something else."""

    label: str
    file: str
    claimed: Saved | None
    proven: Verified | None
    problem: str = ""

    @property
    def confirmed(self) -> bool:
        """Whether what is proven lies within what is claimed."""
        return self.claimed is not None and self.proven is not None and self.proven.confirms(self.claimed)


def save(folder: Path, scenario: Scenario, rows: Sequence[Ceiling]) -> None:
    """Writes one file for each ceiling that has lengths or a flow to show."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        if row.certificate is not None or row.flow is not None:
            at = "" if row.load is None else f"@{row.load:g}"
            Saved.of(scenario, row).write(folder / f"{row.ceiling.replace(':', '-')}{at}.npz")


def verify_all(folder: Path, entries: Sequence[dict[str, Any]]) -> Iterator[Verdict]:
    """Verifies what the entries of :data:`INDEX` list, without any solver.

    Raises :class:`~sim.config.errors.ConfigError` if the configuration in the folder cannot be read.
    """
    study = read(folder / CONFIGURATION)
    for entry in entries:
        case = study.cases[entry["scenario"]]
        assert case.scenario is not None
        for file in sorted((folder / entry["folder"]).glob("*.npz")):
            yield _verdict(entry["label"], case.scenario, file, str(file.relative_to(folder)))


def _verdict(label: str, scenario: Scenario, file: Path, name: str) -> Verdict:
    try:
        saved = Saved.read(file)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        return Verdict(label, name, None, None, str(error))
    try:
        return Verdict(label, name, saved, verify(scenario, saved))
    except (ValueError, IndexError, ArithmeticError) as error:
        return Verdict(label, name, saved, None, str(error))
