# SPDX-License-Identifier: Apache-2.0
"""The owner of a folder, and its manifest."""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from flitlab.models.files import read_file, special_files
from flitlab.models.hashing import content_hash
from flitlab.models.mappings import JsonObject, Keys, Row
from flitlab.sim.config.diagnostics import Diagnostics
from flitlab.sim.config.reporting import PlotConfig
from flitlab.sim.config.text import ConfigDocument, wrap
from flitlab.sim.config.validation import validated
from flitlab.sim.exit import RunStatus

MANIFEST = "manifest.json"

RESOLVED = "config.resolved.yaml"
"""The configuration as it was run, with all defaults."""

NOT_AS_WRITTEN = "is not as the run wrote it; repeat the command of the run to restore it"

READ = (
    "results.csv", "metrics.csv", "ceilings.csv", "published.csv", "saturation.csv", "flows.csv", "budget.csv",
    "budget_parts.csv", "budget_channels.csv", "budget_sensitivities.csv",
)  # fmt: skip
"""Tables that commands read, if they are there."""

MARKS = ("semantics_version", "config_hash")
"""Keys that every manifest of a run has, and other files of that name hardly have."""


class ManifestError(ValueError):
    """A manifest that no run has written; the message gives the error."""


class UnrelatedFolder(ValueError):
    """A folder with other content than the command expects."""


class _Read(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Part(_Read):
    hash: Annotated[str, Field(pattern=r"^\w*$")] = ""


class _Scenario(_Read):
    label: str
    keys: Keys = {}
    hash: str = ""
    topology: _Part = _Part()
    routing: _Part = _Part()
    traffic: _Part = _Part()
    seeds: list[int] = []
    loads: list[float] = []
    ceilings: list[Annotated[str, Field(pattern=r"^\w*$")]] = []
    measured: Keys | None = None
    placed: bool = False
    searched: bool = False
    zero_load_latency: Annotated[float, Field(ge=0)] | None = None


class _Row(_Read):
    cpu_s: float = 0.0
    machine: str = ""


class _Drawn(_Read):
    stamp: str = ""
    files: dict[str, str] | list[str] = {}


class _Source(_Read):
    commit: str | None = None
    modified: bool | None = None
    repository: str | None = None


class _Manifest(_Read):
    """The keys of a manifest that are read. All may be absent: tables can be drawn without."""

    name: str = ""
    path: str = ""
    experiment: str = ""
    engine: str = ""
    status: str = ""
    created: str = ""
    finished: str = ""
    semantics_version: int = 0
    config_hash: str = ""
    changes: list[str] = []
    command: list[str] = []
    versions: dict[str, str | None] = {}
    source: _Source = _Source()
    cpu_s: float = 0.0
    compile_s: float = 0.0
    flit_ns: Annotated[float, Field(gt=0)] | None = None
    mean_rate: dict[str, float] | float = 1.0
    background_rate: dict[str, float] = {}
    flits_per_load: dict[str, float] = {}
    energy: list[Annotated[tuple[str, float, str], Field(strict=False)]] = []
    figures: list[str] = []
    formats: list[Literal["png", "svg", "pdf"]] = []
    size: Literal["column", "double"] = "column"
    y: Literal["linear", "log", "both"] = "both"
    plots: list[PlotConfig] = []
    metrics: list[str] = []
    columns: list[str] = []
    scenarios: list[_Scenario] = []
    published: list[Row] = []
    problems: list[str] = []
    row: _Row = _Row()
    resolved: str = ""
    digest: str = ""
    tables: dict[Annotated[str, Field(pattern=r"^\w+\.(csv|parquet)$")], str] = {}
    drawn: _Drawn | None = None


def read_manifest(folder: Path) -> JsonObject:
    """The manifest of a folder, {} if there is none. Raises :class:`ManifestError` if it is invalid."""
    file = folder / MANIFEST
    if not file.exists():
        return {}
    try:
        manifest = json.loads(read_file(file))
    except (OSError, ValueError, RecursionError):
        raise ManifestError(f"{file}: is damaged, or not the manifest of a run") from None
    if not isinstance(manifest, dict):
        raise ManifestError(f"{file}: is not the manifest of a run")
    try:
        _Manifest.model_validate(manifest)
    except ValidationError:
        diagnostics = Diagnostics()
        validated(_Manifest, ConfigDocument(wrap(manifest, str(file)), diagnostics), manifest)
        raise ManifestError(
            "; ".join(map(str, diagnostics.errors)) or f"{file}: is not the manifest of a run"
        ) from None
    return manifest


def reject_special_files(folder: Path) -> None:
    """Raise :class:`UnrelatedFolder` if a folder has links, pipes or devices, ``OSError`` if it cannot be read.

    All commands that read a folder check this first: links lead out of it, and a pipe or device may block indefinitely.
    """
    special = next(special_files(folder), None)
    if special is not None:
        raise UnrelatedFolder(f"holds {special[0].relative_to(folder)}, which is {special[1]}, not a file")


def text_digest(text: str) -> str:
    """SHA-256 of a text, as of its file."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def digest_of(file: Path) -> str:
    """SHA-256 of a file, '' if it cannot be read."""
    try:
        return hashlib.sha256(read_file(file)).hexdigest()
    except OSError:
        return ""


def sealed(manifest: JsonObject) -> JsonObject:
    """A manifest with its digest, by which a later change is noticed."""
    plain: JsonObject = json.loads(json.dumps({key: value for key, value in manifest.items() if key != "digest"}))
    return {**plain, "digest": content_hash(plain)}


def altered(folder: Path, manifest: JsonObject) -> list[str]:
    """Names of the files that are not as the run wrote them: tables, the resolved configuration, the manifest.

    Of a manifest without a digest, of an earlier commit, only tables with digests are checked.
    """
    if manifest.get("status") == RunStatus.RUNNING:
        return []  # tables are not read: the stored points are
    written: dict[str, str] = dict(manifest.get("tables", {}))
    if "digest" not in manifest:
        return [name for name, digest in written.items() if digest and digest_of(folder / name) != digest]
    written[RESOLVED] = manifest.get("resolved", "")
    unknown = [name for name in READ if name not in written and (folder / name).exists()]
    changed = [name for name in (*written, *unknown) if digest_of(folder / name) != written.get(name, "")]
    return changed if sealed(manifest)["digest"] == manifest["digest"] else [MANIFEST, *changed]


def run_problem(folder: Path) -> str:
    """Why a folder is no run folder; '' if it is."""
    try:
        reject_special_files(folder)
        manifest = read_manifest(folder)
    except (UnrelatedFolder, ManifestError) as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if set(MARKS) <= manifest.keys():
        return ""
    return f"its {MANIFEST} is not that of a run" if manifest else f"it holds no {MANIFEST}"


def reject_unrelated_folder(folder: Path, mark: str = MANIFEST) -> None:
    """Raise :class:`UnrelatedFolder` if a folder is not empty and lacks the marker file of the command.

    Links, pipes and devices are rejected as :func:`reject_special_files` does. Hidden files do not count, nor do
    folders with nothing else: a killed run may leave them.

    Parameters
    ----------
    folder: may be missing.
    mark: the file that every folder of the command has.
    """
    is_empty, problem = not folder.exists() or not any(map(_counts, folder.iterdir())), ""
    if not is_empty and not os.path.lexists(folder / mark):
        problem = f"it holds no {mark}"
    else:
        reject_special_files(folder)
        if mark == MANIFEST and not is_empty:
            problem = run_problem(folder)
    if problem:
        raise UnrelatedFolder(f"is not empty, and not a folder of this command ({problem}): choose another folder")


def _counts(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return not path.is_dir() or path.is_symlink() or any(not inner.name.startswith(".") for inner in path.iterdir())
